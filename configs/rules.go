package configs

import (
	"fmt"
	"reflect"
	"strings"

	"carma/internal/suggest"
	"carma/mapper"
	"carma/mapper/model"
)

// SetRule sets one of the mapper's options from a text of the form KEY=VALUE.
func SetRule(o *model.Options, setting string) error {
	name, value, ok := strings.Cut(setting, "=")
	if !ok {
		return fmt.Errorf("%q is not KEY=VALUE; write for example order=fair", setting)
	}
	name = strings.TrimSpace(name)
	i := -1
	for k := range keys {
		if keys[k].name == name && keys[k].name != "policy" && ofMapper(keys[k]) {
			i = k
		}
	}
	if i < 0 {
		return fmt.Errorf("unknown key %q; nearest: %s", name, suggest.Names(name, RuleKeys(), 1)[0])
	}
	c := Config{Mapper: *o}
	if err := set(keys[i].at(&c), value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if keys[i].check != nil {
		if err := keys[i].check(&c); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := mapper.Validate(c.Mapper); err != nil {
		return err
	}
	*o = c.Mapper
	return nil
}

// RuleKeys returns the keys that SetRule accepts.
func RuleKeys() []string {
	var names []string
	for _, k := range keys {
		if k.name != "policy" && ofMapper(k) {
			names = append(names, k.name)
		}
	}
	return names
}

// ofMapper reports whether a key is one of the mapper's options.
func ofMapper(k key) bool {
	var c Config
	options := reflect.ValueOf(&c.Mapper)
	at := reflect.ValueOf(k.at(&c)).Pointer()
	return at >= options.Pointer() && at < options.Pointer()+options.Type().Elem().Size()
}
