package traces

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"carma/internal/lazyregexp"
	"carma/internal/suggest"
)

// schema is the only version of the format so far.
const schema = "carma/trace/v1"

var keys = []string{"schema", "name", "description", "source", "campaign", "tasks"}

// yaml parses the YAML form node by node, so that every error has its line.
func (p *parser) yaml(content []byte) error {
	var document, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(content))
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return p.errorf(1, "empty; the first line of a trace is schema: %s", schema)
	} else if err != nil {
		return p.syntax(err)
	}
	if err := d.Decode(&second); err == nil {
		return p.errorf(second.Line, "a second document; a file holds one trace")
	} else if !errors.Is(err, io.EOF) {
		return p.syntax(err)
	}
	root := document.Content[0]
	values, err := p.pairs(root, "a trace")
	if err != nil {
		return err
	}
	if len(values) == 0 || values[0].key.Value != "schema" || values[0].value.Value != schema {
		return p.errorf(root.Line, "no schema; the first line of a trace is schema: %s", schema)
	}
	for _, v := range values {
		if err := p.top(v.key, v.value); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) top(key, value *yaml.Node) error {
	if key.Value == "tasks" {
		return p.tasks(value)
	}
	if value.Kind != yaml.ScalarNode {
		return p.errorf(value.Line, "%q is not a text", key.Value)
	}
	switch key.Value {
	case "schema":
	case "name":
		p.trace.Name = value.Value
	case "description":
		p.trace.Description = value.Value
	case "source":
		p.trace.Source = value.Value
	case "campaign":
		p.trace.Campaign, p.campaignLine = value.Value, value.Line
	default:
		return p.errorf(key.Line, "unknown key %q of a trace; nearest: %s", key.Value, suggest.Names(key.Value, keys, 1)[0])
	}
	return nil
}

func (p *parser) tasks(list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return p.errorf(list.Line, "tasks is not a list; write one task per line: - {at: 0, workload: mnist_train}")
	}
	for _, item := range list.Content {
		values, err := p.pairs(item, "a task")
		if err != nil {
			return err
		}
		t := Task{Line: item.Line}
		set := map[string]bool{}
		for _, v := range values {
			if v.value.Kind != yaml.ScalarNode || v.value.Tag == "!!null" {
				return p.errorf(v.value.Line, "%q of a task has no value", v.key.Value)
			}
			if err := p.set(&t, v.value.Line, v.key.Value, v.value.Value); err != nil {
				return err
			}
			set[v.key.Value] = true
		}
		if err := p.add(t, set); err != nil {
			return err
		}
	}
	return nil
}

type pair struct{ key, value *yaml.Node }

// pairs returns the keys and values of a mapping. Anchors and merges are not allowed,
// because a value would then come from another line than the one in its errors.
func (p *parser) pairs(n *yaml.Node, what string) ([]pair, error) {
	if n.Kind != yaml.MappingNode {
		return nil, p.errorf(n.Line, "not %s: keys and values are missing", what)
	}
	var all []pair
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case value.Kind == yaml.AliasNode || key.Kind != yaml.ScalarNode:
			return nil, p.errorf(key.Line, "anchors and compound keys are not part of the format; write the value out")
		case seen[key.Value]:
			return nil, p.errorf(key.Line, "key %q a second time", key.Value)
		}
		seen[key.Value] = true
		all = append(all, pair{key, value})
	}
	return all, nil
}

var yamlLine = lazyregexp.New(`^line (\d+): `)

// syntax turns an error of the YAML library into a parse error with a line, if the
// library's text begins with one.
func (p *parser) syntax(err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := yamlLine().FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
	}
	return p.errorf(line, "not YAML: %s", strings.ReplaceAll(message, "\n", " "))
}
