package compose

import (
	"errors"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/template"
	"go.yaml.in/yaml/v3"
)

// interpolate replaces the variables in all values of the document. As in Compose, an
// unset variable is empty and causes a warning.
func (d *document) interpolate(env map[string]string) error {
	return d.interpolateNode(d.root, "", env)
}

func (d *document) interpolateNode(n *yaml.Node, key string, env map[string]string) error {
	switch n.Kind {
	case yaml.ScalarNode:
		if !strings.Contains(n.Value, "$") {
			return nil
		}
		value, unset, err := substitute(n.Value, env)
		if err != nil {
			return d.errorf(n.Line, key, "%v", err)
		}
		for _, name := range unset {
			file, line := d.place(n.Line)
			d.unset = append(d.unset, &Error{File: file, Line: line, Key: key, Text: "the variable " + name + " is not set, so it is empty; set it, put it into .env, or write ${" + name + ":-DEFAULT}"})
		}
		n.Value = value
		if n.Style == 0 {
			n.Tag = "" // ${N} may be a number
			n.Tag = n.ShortTag()
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if err := d.interpolateNode(item, key, env); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := d.interpolateNode(n.Content[i+1], join(key, n.Content[i].Value), env); err != nil {
				return err
			}
		}
	}
	return nil
}

// substitute replaces the variables in a text. unset lists the variables that are not set
// and have no default.
func substitute(text string, env map[string]string) (value string, unset []string, err error) {
	for name, v := range template.ExtractVariables(map[string]any{"": text}, nil) {
		_, set := env[name]
		if set || name == "" || v.Required || v.DefaultValue != "" || v.PresenceValue != "" || hasDefault(text, name) {
			continue
		}
		unset = append(unset, name)
	}
	slices.Sort(unset)
	value, err = template.SubstituteWithOptions(text, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}, template.WithoutLogging)
	var invalid *template.InvalidTemplateError
	var missing *template.MissingRequiredError
	switch {
	case errors.As(err, &invalid):
		return "", nil, errors.New("$ begins a variable; write ${NAME}, or $$ for a dollar sign")
	case errors.As(err, &missing):
		return "", nil, errors.New("the variable " + missing.Variable + " is not set: " + missing.Reason)
	}
	return value, unset, err
}

// hasDefault reports whether a text has a default for a variable, which may be
// empty.
func hasDefault(text, name string) bool {
	for _, op := range []string{":-", "-", ":+", "+"} {
		if strings.Contains(text, "${"+name+op) {
			return true
		}
	}
	return false
}

func join(key, below string) string {
	if key == "" {
		return below
	}
	return key + "." + below
}
