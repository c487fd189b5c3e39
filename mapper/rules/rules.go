package rules

import (
	"fmt"
	"slices"
	"strings"

	"carma/internal/suggest"
	"carma/mapper"
	"carma/mapper/model"
)

// Apply sets one of the mapper's options from a text of the form KEY=VALUE.
func Apply(o *model.Options, rule string) error {
	name, value, ok := strings.Cut(rule, "=")
	if !ok {
		return fmt.Errorf("%q is not KEY=VALUE; write for example order=fair", rule)
	}
	name = strings.TrimSpace(name)
	i := slices.IndexFunc(Keys, func(k Key) bool { return k.Name == name && name != "policy" })
	if i < 0 {
		return fmt.Errorf("unknown key %q; nearest: %s", name, suggest.Names(name, Names(), 1)[0])
	}
	next := *o
	if err := Parse(Keys[i].At(&next), value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if Keys[i].Check != nil {
		if err := Keys[i].Check(&next); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := mapper.Validate(next); err != nil {
		return err
	}
	*o = next
	return nil
}

// Names returns the names of the keys that [Apply] accepts.
func Names() []string {
	var names []string
	for _, k := range Keys {
		if k.Name != "policy" {
			names = append(names, k.Name)
		}
	}
	return names
}
