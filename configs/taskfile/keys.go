package taskfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/mapper/units"

	"go.yaml.in/yaml/v3"

	"carma/configs/nearest"
)

// setters are the keys of a task. The names are those of the flags of carma
// run; what a flag takes several times is a list.
var setters = map[string]func(*Task, *yaml.Node) error{
	"image":      text(func(t *Task) *string { return &t.Image }),
	"command":    words(func(t *Task) *[]string { return &t.Command }),
	"entrypoint": words(func(t *Task) *[]string { return &t.Entrypoint }),
	"env":        variables(func(t *Task) *[]pair { return &t.env }),
	"env-file":   list(func(t *Task) *[]string { return &t.EnvFiles }),
	"workdir":    text(func(t *Task) *string { return &t.WorkDir }),
	"volumes":    list(func(t *Task) *[]string { return &t.Volumes }),
	"shm-size":   memory(func(t *Task) *int64 { return &t.ShmSize }),
	"host-mem":   memory(func(t *Task) *int64 { return &t.HostMem }),
	"cpus":       number(func(t *Task) *float64 { return &t.CPUs }),
	"pids":       count(1, func(t *Task) *int { return &t.Pids }),
	"visibility": choice(func(t *Task) *string { return &t.Visibility }, "private", "open"),
	"labels":     variables(func(t *Task) *[]pair { return &t.labels }),
	"pull":       choice(func(t *Task) *string { return &t.Pull }, "missing", "always", "never"),
	"gpus":       count(1, func(t *Task) *int { return &t.GPUs }),
	"mem":        memory(func(t *Task) *int64 { return &t.Mem }),
	"est-model":  text(func(t *Task) *string { return &t.EstModel }),
	"batch-size": count(1, func(t *Task) *int { return &t.BatchSize }),
	"estimator":  text(func(t *Task) *string { return &t.Estimator }),
	"probe":      yes(func(t *Task) *bool { return &t.Probe }),
	"exclusive":  yes(func(t *Task) *bool { return &t.Exclusive }),
	"priority":   choice(func(t *Task) *string { return &t.Priority }, "low", "normal", "high"),
	"retries":    count(0, func(t *Task) *int { return &t.Retries }),
	"time":       duration(func(t *Task) *time.Duration { return &t.Time }),
	"slot":       duration(func(t *Task) *time.Duration { return &t.Slot }),
	"stop-grace": duration(func(t *Task) *time.Duration { return &t.StopGrace }),
	"delay":      duration(func(t *Task) *time.Duration { return &t.Delay }),
	"array":      array,
	"parallel":   count(1, func(t *Task) *int { return &t.Parallel }),
	"sweep":      sweep,
	"after":      after,
}

// Keys are the keys of a task, sorted.
func Keys() []string { return slices.Sorted(maps.Keys(setters)) }

// task reads one task over what defaults say. besides are keys that are not
// the task's and may stand there.
func (p *parser) task(n *yaml.Node, key string, base Task, besides []string) (Task, error) {
	t := base
	t.Line = n.Line
	pairs, err := p.pairs(n, key)
	if err != nil {
		return t, err
	}
	for _, kv := range pairs {
		name, at := kv.key.Value, join(key, kv.key.Value)
		set, known := setters[name]
		switch {
		case slices.Contains(besides, name):
		case key == "" && name == "name":
			t.Name = kv.value.Value
			if err := p.name(kv.value.Line, at, t.Name); err != nil {
				return t, err
			}
		case name == "name":
			return t, p.errorf(kv.key.Line, at, "a task is called by its key below tasks")
		case !known:
			return t, p.errorf(kv.key.Line, at, "unknown key; nearest: %s", nearest.Names(name, Keys(), 1)[0])
		default:
			if err := set(&t, kv.value); err != nil {
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

func text(to func(*Task) *string) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) (err error) {
		*to(t), err = scalar(n)
		return err
	}
}

func choice(to func(*Task) *string, among ...string) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) error {
		v, err := scalar(n)
		if err == nil && !slices.Contains(among, v) {
			err = fmt.Errorf("%q is not one of %s; nearest: %s", v, strings.Join(among, ", "), nearest.Names(v, among, 1)[0])
		}
		*to(t) = v
		return err
	}
}

func count(least int, to func(*Task) *int) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) error {
		v, err := scalar(n)
		if err != nil {
			return err
		}
		i, err := strconv.Atoi(v)
		if err != nil || i < least || i > 1e9 {
			return fmt.Errorf("%q is not a whole number from %d on", v, least)
		}
		*to(t) = i
		return nil
	}
}

func number(to func(*Task) *float64) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) error {
		v, err := scalar(n)
		if err != nil {
			return err
		}
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f > 0 && f < 1e6) {
			return fmt.Errorf("%q is not a number above 0", v)
		}
		*to(t) = f
		return nil
	}
}

func memory(to func(*Task) *int64) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) error {
		v, err := scalar(n)
		if err != nil {
			return err
		}
		b, err := units.ParseBytes(v)
		if err == nil && b == 0 {
			err = errors.New("nothing is not an amount of memory; write for example 512M or 12G")
		}
		*to(t) = int64(b)
		return err
	}
}

func duration(to func(*Task) *time.Duration) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) error {
		v, err := scalar(n)
		if err != nil {
			return err
		}
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a time; write for example 30s, 90m or 2h", v)
		}
		*to(t) = d
		return nil
	}
}

func yes(to func(*Task) *bool) func(*Task, *yaml.Node) error {
	return func(t *Task, n *yaml.Node) error {
		v, err := scalar(n)
		if err == nil && v != "true" && v != "false" {
			err = fmt.Errorf("%q is not true or false", v)
		}
		*to(t) = v == "true"
		return err
	}
}

// items are the values of a list; one value alone is a list of one.
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

// words are a command: a list, or a text that is split at spaces. A text that
// only a shell would understand is refused.
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

// variables are a mapping, or a list of KEY=value.
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
	t.After, t.afterLine = nil, n.Line
	for _, text := range given {
		a, err := ParseAfter(text)
		if err != nil {
			return err
		}
		t.After = append(t.After, a)
	}
	return nil
}
