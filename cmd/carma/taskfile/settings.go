package taskfile

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"carma/internal/suggest"
)

// Settings reads the allowed keys of a task from a mapping in a file of another
// format, over the defaults in base. key is the mapping's own key, for errors.
func Settings(file string, n *yaml.Node, key string, allowed []string, base Task) (Task, error) {
	p := &parser{file: file}
	t := base
	pairs, err := p.pairs(n, key)
	if err != nil {
		return t, err
	}
	for _, kv := range pairs {
		name, at := kv.key.Value, join(key, kv.key.Value)
		if !slices.Contains(allowed, name) {
			return t, p.errorf(kv.key.Line, at, "unknown key; nearest: %s", suggest.Names(name, slices.Sorted(slices.Values(allowed)), 1)[0])
		}
		if err := set(&t, name, kv.value); err != nil {
			return t, p.wrong(kv.value, at, err)
		}
	}
	return t, nil
}
