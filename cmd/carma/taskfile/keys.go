package taskfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"carma/runner/api"

	"go.yaml.in/yaml/v3"

	"carma/internal/suggest"
)

// setters contains the keys of a task whose value is more than one text. All other keys
// are fields of a submission. The names equal the flags of carma run; a repeatable flag
// is a list.
var setters = map[string]func(*Task, *yaml.Node) error{
	"image":      image,
	"command":    words(func(t *Task) *[]string { return &t.Submit.Command }),
	"entrypoint": words(func(t *Task) *[]string { return &t.Submit.Entrypoint }),
	"env":        variables(func(t *Task) *[]pair { return &t.env }),
	"env-file":   list(func(t *Task) *[]string { return &t.EnvFiles }),
	"volumes":    list(func(t *Task) *[]string { return &t.Volumes }),
	"labels":     variables(func(t *Task) *[]pair { return &t.labels }),
	"array":      array,
	"sweep":      sweep,
	"after":      after,
}

// Keys returns the keys of a task, sorted.
func Keys() []string {
	keys := slices.Collect(maps.Keys(setters))
	for _, f := range api.Fields() {
		if f.Name != nameKey {
			keys = append(keys, f.Name)
		}
	}
	slices.Sort(keys)
	return keys
}

// nameKey is allowed in a file of one task only. In other files the key of a task
// is its name.
const nameKey = "name"

// set sets the value of a key.
func set(t *Task, key string, n *yaml.Node) error {
	if special := setters[key]; special != nil {
		return special(t, n)
	}
	field, _ := api.FieldNamed(key)
	if field.List {
		texts, err := items(n)
		field.Clear(&t.Submit)
		for i := 0; i < len(texts) && err == nil; i++ {
			err = field.Set(&t.Submit, texts[i])
		}
		return err
	}
	v, err := scalar(n)
	if err != nil {
		return err
	}
	return field.Set(&t.Submit, v)
}

// task reads one task over the defaults in base. besides lists keys that are allowed but
// do not belong to the task.
func (p *parser) task(n *yaml.Node, key string, base Task, besides []string) (Task, error) {
	t := base
	t.Line = n.Line
	pairs, err := p.pairs(n, key)
	if err != nil {
		return t, err
	}
	for _, kv := range pairs {
		name, at := kv.key.Value, join(key, kv.key.Value)
		switch {
		case slices.Contains(besides, name):
		case key == "" && name == nameKey:
			t.Submit.Name = kv.value.Value
			if err := p.name(kv.value.Line, at, t.Submit.Name); err != nil {
				return t, err
			}
		case name == nameKey:
			return t, p.errorf(kv.key.Line, at, "a task is called by its key below tasks")
		case !slices.Contains(Keys(), name):
			return t, p.errorf(kv.key.Line, at, "unknown key; nearest: %s", suggest.Names(name, Keys(), 1)[0])
		default:
			if err := set(&t, name, kv.value); err != nil {
				return t, p.wrong(kv.value, at, err)
			}
		}
	}
	return t, nil
}

func scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return "", errors.New("anchors and aliases are not part of the format; use defaults")
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("one value is expected, not a list or keys")
	case n.Tag == "!!null" || n.Value == "":
		return "", errors.New("no value")
	}
	return n.Value, nil
}

func image(t *Task, n *yaml.Node) (err error) {
	t.Submit.Image, err = scalar(n)
	return err
}

// items returns the values of a list. A single value counts as a list of one.
func items(n *yaml.Node) ([]string, error) {
	if n.Kind != yaml.SequenceNode || n.Anchor != "" {
		v, err := scalar(n)
		return []string{v}, err
	}
	all := []string{}
	for _, item := range n.Content {
		if item.Kind == yaml.ScalarNode && item.Tag == "!!str" && item.Value == "" {
			all = append(all, "") // an argument may be empty
			continue
		}
		v, err := scalar(item)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func list(to func(*Task) *[]string) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) (err error) {
		*to(t), err = items(n)
		return err
	}
}

// words returns a setter for a command: a list, or a text that is split at spaces. It
// refuses a text that needs a shell.
func words(to func(*Task) *[]string) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) error {
		all, err := items(n)
		if err == nil && n.Kind == yaml.ScalarNode {
			if strings.ContainsAny(all[0], "\"'\\$`|&;<>*?\n") {
				return fmt.Errorf("%q is for a shell; write a list: [sh, -c, ...]", all[0])
			}
			all = strings.Fields(all[0])
		}
		*to(t) = all
		return err
	}
}

// variables returns a setter for a mapping, or a list of KEY=value.
func variables(to func(*Task) *[]pair) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) error {
		all := slices.Clone(*to(t))
		if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				k, v := n.Content[i], n.Content[i+1]
				if k.Kind != yaml.ScalarNode || k.Value == "" || v.Kind != yaml.ScalarNode || strings.Contains(k.Value, "=") {
					return fmt.Errorf("%q has no value; write KEY: value", k.Value)
				}
				all = append(all, pair{k.Value, v.Value})
			}
			*to(t) = all
			return nil
		}
		given, err := items(n)
		for _, kv := range given {
			k, v, ok := strings.Cut(kv, "=")
			if err == nil && (!ok || k == "") {
				err = fmt.Errorf("%q is not KEY=value", kv)
			}
			all = append(all, pair{k, v})
		}
		*to(t) = all
		return err
	}
}

func array(t *Task, n *yaml.Node) error {
	given, err := items(n)
	if err == nil {
		t.Array, err = ParseArray(strings.Join(given, ","))
	}
	return err
}

func sweep(t *Task, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("no parameters; write for example sweep: {lr: [0.1, 0.01]}")
	}
	t.Sweep = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		axis := Axis{Key: key}
		if value.Tag != "!!null" {
			var err error
			if axis.Values, err = items(value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		if err := axis.check(); err != nil {
			return err
		}
		if slices.ContainsFunc(t.Sweep, func(a Axis) bool { return a.Key == key }) {
			return fmt.Errorf("%s a second time", key)
		}
		t.Sweep = append(t.Sweep, axis)
	}
	if len(t.Sweep) == 0 {
		return errors.New("no parameters; write for example sweep: {lr: [0.1, 0.01]}")
	}
	return nil
}

func after(t *Task, n *yaml.Node) error {
	given, err := items(n)
	if err != nil {
		return err
	}
	t.Submit.After, t.afterLine = nil, n.Line
	for _, text := range given {
		d, err := ParseAfter(text)
		if err != nil {
			return err
		}
		t.Submit.After = append(t.Submit.After, d)
	}
	return nil
}
