package arguments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"carma/configs/models"

	"go.yaml.in/yaml/v3"
)

// MaxFile is the largest size in bytes of a file that is read.
const MaxFile = 1 << 20

// table is a file of names and values, one level or more deep.
type table map[string]any

// open reads a file, or returns nil if it cannot. An error becomes a note of one line. A
// missing file causes no note, because it may be in the container.
func (r *reader) open(name string) table {
	if name == "" || strings.ContainsAny(name, "$\x00") {
		return nil
	}
	data, err := r.file(name)
	if err != nil {
		return nil
	}
	t, err := decode(name, data)
	if err != nil {
		r.note("%s: %v; not read", models.Clip(name), err)
		return nil
	}
	return t
}

// decode reads JSON or YAML.
func decode(name string, data []byte) (t table, err error) {
	if len(data) > MaxFile {
		return nil, errors.New("larger than 1 MiB")
	}
	if path.Ext(name) == ".json" || bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&t); err != nil {
			return nil, fmt.Errorf("not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
		}
		return t, nil
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("not YAML: %s", strings.TrimPrefix(oneLine(err.Error()), "yaml: "))
	}
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("no names and values")
	}
	return mapping(root.Content[0], 0), nil
}

// deepest bounds the levels of a YAML file.
const deepest = 4

// mapping returns the names and values of a node. It omits anchors and aliases, because a
// file of some lines could reference itself a million times.
func mapping(n *yaml.Node, depth int) table {
	t := table{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
		case value.Kind == yaml.ScalarNode && value.Tag != "!!null":
			t[key.Value] = value.Value
		case value.Kind == yaml.MappingNode && depth < deepest:
			t[key.Value] = map[string]any(mapping(value, depth+1))
		case value.Kind == yaml.SequenceNode:
			var list []any
			for _, item := range value.Content {
				if item.Kind == yaml.ScalarNode {
					list = append(list, item.Value)
				}
			}
			t[key.Value] = list
		}
	}
	return t
}

// within returns a table in a table, or nil if there is none.
func (t table) within(name string) table {
	inner, _ := t[name].(map[string]any)
	return inner
}

// text returns a value as a word, or empty if there is none or it is auto.
func (t table) text(name string) string {
	var word string
	switch v := t[name].(type) {
	case string:
		word = v
	case json.Number:
		word = v.String()
	case bool:
		word = yesNo(v)
	}
	if word == "auto" || word == "null" || word == "None" {
		return ""
	}
	return word
}

func (t table) on(name string) bool { return strings.EqualFold(t.text(name), "true") }

// argumentsFile reads a file of arguments. The files of HfArgumentParser, TRL,
// LLaMA-Factory and Axolotl use the names of command line arguments.
func (r *reader) argumentsFile(name string) {
	t := r.open(name)
	var all []argument
	for _, key := range sorted(t) {
		a := argument{name: normal(key)}
		if list, ok := t[key].([]any); ok {
			for _, v := range list {
				if s, ok := v.(string); ok {
					a.values = append(a.values, s)
				}
			}
		} else if word := t.text(key); word != "" {
			a.values = []string{word}
		}
		if len(a.values) > 0 {
			all = append(all, a)
		}
	}
	r.apply(all)
	r.parallelism(t.within("parallelism_config"), name)
}

func sorted(t table) []string {
	var keys []string
	for key := range t {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
