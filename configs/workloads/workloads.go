package workloads

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"carma/internal/suggest"
)

type catalogue struct {
	profiles []Profile         // sorted by name
	byName   map[string]int    // maps a lower-case name, alias or solo run to an index in profiles
	models   map[string]string // maps a folded spelling to a model
}

var shipped = sync.OnceValue(func() catalogue {
	profiles, models, err := load(files)
	if err != nil {
		panic("workloads: " + err.Error()) // the files are embedded, so this is a bug of carma
	}
	c := catalogue{profiles: profiles, byName: map[string]int{}, models: models}
	for i, p := range profiles {
		for _, name := range append([]string{p.Name, p.Solo.ID}, p.Aliases...) {
			c.byName[strings.ToLower(name)] = i
		}
	}
	return c
})

// All returns every profile, sorted by name.
func All() []Profile { return slices.Clone(shipped().profiles) }

// Find returns the profile with that name, alias (a task name of the original) or solo
// run, ignoring case. The error lists the nearest names.
func Find(name string) (Profile, error) {
	c := shipped()
	if i, ok := c.byName[strings.ToLower(strings.TrimSpace(name))]; ok {
		return c.profiles[i], nil
	}
	return Profile{}, fmt.Errorf("unknown workload %q; nearest: %s", name, strings.Join(Nearest(name), ", "))
}

// Nearest returns the three names or aliases with the fewest edits from name, for
// messages.
func Nearest(name string) []string {
	var names []string
	for _, p := range shipped().profiles {
		names = append(append(names, p.Name), p.Aliases...)
	}
	return suggest.Names(name, names, 3)
}

// ByModel returns the profiles of a model, sorted by name, or nil if there is no such
// model. Case, hyphens, underscores, dots and spaces do not matter: resnet50, ResNet-50
// and res_net 50 are one model.
func ByModel(model string) []Profile {
	c := shipped()
	want, ok := c.models[normal(model)]
	if !ok {
		return nil
	}
	var found []Profile
	for _, p := range c.profiles {
		if p.Model == want {
			found = append(found, p)
		}
	}
	return found
}

var separators = strings.NewReplacer("-", "", "_", "", " ", "", ".", "")

func normal(model string) string { return separators.Replace(strings.ToLower(model)) }
