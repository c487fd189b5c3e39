package compose

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"carma/internal/suggest"
)

// Extension is the key of carma's own settings.
const Extension = "x-carma"

// checker visits the keys of a document and collects the unsupported keys.
type checker struct {
	*document
	warnings []*Error
	refused  []*Error
}

func (c *checker) warn(line int, key, why string) { c.say(line, key, "not honoured: "+why) }

func (c *checker) say(line int, key, text string) {
	file, at := c.place(line)
	c.warnings = append(c.warnings, &Error{File: file, Line: at, Key: key, Text: text})
}

// told returns the warnings by line, without duplicates. A service that several others
// extend is visited several times.
func (c *checker) told() []string {
	byLine(c.warnings)
	var all []string
	for _, e := range c.warnings {
		if text := e.Error(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func byLine(all []*Error) {
	slices.SortStableFunc(all, func(a, b *Error) int { return a.Line - b.Line })
}

func (c *checker) refuse(line int, key, why string) {
	file, at := c.place(line)
	e := &Error{File: file, Line: at, Key: key, Text: why}
	if !slices.ContainsFunc(c.refused, func(known *Error) bool { return *known == *e }) {
		c.refused = append(c.refused, e)
	}
}

// err returns the first refusal in the file, with the places of the other refusals.
func (c *checker) err() error {
	if len(c.refused) == 0 {
		return nil
	}
	byLine(c.refused)
	first := *c.refused[0]
	if n := len(c.refused) - 1; n > 0 {
		more := make([]string, n)
		for i, e := range c.refused[1:] {
			more[i] = "line " + strconv.Itoa(e.Line) + " (" + e.Key + ")"
		}
		first.Text += "; also refused: " + strings.Join(more[:min(n, 5)], ", ")
		if n > 5 {
			first.Text += " and " + strconv.Itoa(n-5) + " more"
		}
	}
	return &first
}

// keys applies the rules to the keys of a mapping.
func (c *checker) keys(n *yaml.Node, at string, rules map[string]rule) {
	if n == nil || n.Kind != yaml.MappingNode {
		return // the loader reports the fault
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		name, key := k.Value, join(at, k.Value)
		r, known := rules[name]
		switch {
		case name == Extension, strings.HasPrefix(name, baseKey):
		case strings.HasPrefix(name, "x-"):
			if near := suggest.Near(name, []string{Extension}); len(near) > 0 {
				c.warn(k.Line, key, "did you mean "+Extension+"?")
			}
		case !known:
			names := slices.Sorted(maps.Keys(rules))
			c.refuse(k.Line, key, "unknown key; nearest: "+suggest.Names(name, names, 1)[0])
		case saysNothing(v):
		case r.verdict == warned:
			c.warn(k.Line, key, r.why)
		case r.verdict == refused:
			c.refuse(k.Line, key, r.why)
		case r.below != nil:
			c.under(v, key, r)
		}
	}
}

// under applies the rules of a key to the keys below it.
func (c *checker) under(v *yaml.Node, key string, r rule) {
	switch {
	case v.Kind == yaml.SequenceNode:
		for _, item := range v.Content {
			c.keys(item, key, r.below)
		}
	case r.named && v.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(v.Content); i += 2 {
			c.keys(v.Content[i+1], join(key, v.Content[i].Value), r.below)
		}
	default:
		c.keys(v, key, r.below)
	}
}

// saysNothing reports whether a value requests nothing, like false or an empty list.
func saysNothing(v *yaml.Node) bool {
	switch v.Kind {
	case yaml.ScalarNode:
		return v.Tag == "!!null" || v.Value == "" || strings.EqualFold(v.Value, "false")
	case yaml.SequenceNode, yaml.MappingNode:
		return len(v.Content) == 0
	}
	return false
}

// unknown refuses unknown keys, in all services. The loader's own error has
// neither the line nor the nearest key.
func (c *checker) unknown(n *yaml.Node, at string, rules map[string]rule) error {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Value == "device_requests" {
			return c.errorf(k.Line, join(at, k.Value), "that is the name in docker's API; write gpus: [{count: 1}]")
		}
		if _, known := rules[k.Value]; !known && !strings.HasPrefix(k.Value, "x-") && !strings.HasPrefix(k.Value, baseKey) {
			return c.errorf(k.Line, join(at, k.Value), "unknown key; nearest: %s", suggest.Names(k.Value, slices.Sorted(maps.Keys(rules)), 1)[0])
		}
	}
	return nil
}

// depends refuses services that wait for unknown ones or for each other.
func (c *checker) depends() error {
	names := c.services()
	waits := map[string][]string{}
	for _, name := range names {
		list, _ := c.find("services", name, "depends_on")
		if list == nil {
			continue
		}
		step := 1
		if list.Kind == yaml.MappingNode {
			step = 2
		}
		for i := 0; i < len(list.Content); i += step {
			n := list.Content[i]
			if !slices.Contains(names, n.Value) {
				return c.errorf(n.Line, "services."+name+".depends_on", "unknown service %q; nearest: %s", n.Value, suggest.Names(n.Value, names, 1)[0])
			}
			waits[name] = append(waits[name], n.Value)
		}
	}
	done := map[string]int{} // 1: being visited, 2: part of no cycle
	var way []string
	var visit func(name string) error
	visit = func(name string) error {
		switch done[name] {
		case 2:
			return nil
		case 1:
			circle := append(slices.Clone(way[slices.Index(way, name):]), name)
			_, line := c.find("services", way[len(way)-1], "depends_on")
			return c.errorf(line, "services."+way[len(way)-1]+".depends_on", "services that wait for each other never start: %s", strings.Join(circle, " after "))
		}
		done[name] = 1
		way = append(way, name)
		for _, of := range waits[name] {
			if err := visit(of); err != nil {
				return err
			}
		}
		way = way[:len(way)-1]
		done[name] = 2
		return nil
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}
