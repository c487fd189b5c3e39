package suite

import (
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// active are the services that run, in an order in which each comes after those
// it waits for, and else in the file's.
func (c *checker) active(p *types.Project) ([]types.ServiceConfig, error) {
	if len(p.Services) == 0 {
		var profiles []string
		for _, s := range p.DisabledServices {
			profiles = append(profiles, s.Profiles...)
		}
		slices.Sort(profiles)
		_, line := c.find("services")
		return nil, c.errorf(line, "services", "all belong to profiles; choose with --profile: %s", strings.Join(slices.Compact(profiles), ", "))
	}
	var sorted []types.ServiceConfig
	done := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		s, ok := p.Services[name]
		if !ok || done[name] {
			return
		}
		done[name] = true
		for _, of := range c.services() {
			if _, waits := s.DependsOn[of]; waits {
				visit(of)
			}
		}
		s.Name = name
		sorted = append(sorted, s)
	}
	for _, name := range c.services() {
		visit(name)
	}
	return sorted, nil
}

// lineage is a service and those it extends, itself first.
func (c *checker) lineage(name string) []string {
	all := []string{name}
	for {
		v, _ := c.find("services", all[len(all)-1], "extends")
		if v == nil {
			return all
		}
		if _, of := get(v, "service"); of != nil {
			v = of
		}
		if v.Value == "" || slices.Contains(all, v.Value) {
			return all
		}
		all = append(all, v.Value)
	}
}

// service applies the rules to the keys of a service and of those it extends.
func (c *checker) service(s types.ServiceConfig) {
	for _, name := range c.lineage(s.Name) {
		n, _ := c.find("services", name)
		c.keys(n, "services."+name, serviceKeys)
	}
}

// at is the line of a key of a service, which may stand in one that it extends,
// and the key with its place.
func (c *checker) at(service string, keys ...string) (line int, key string) {
	for _, name := range c.lineage(service) {
		path := append([]string{"services", name}, keys...)
		if v, l := c.find(path...); v != nil {
			return l, strings.Join(path, ".")
		}
	}
	_, line = c.find(append([]string{"services", service}, keys...)...)
	return line, strings.Join(append([]string{"services", service}, keys...), ".")
}

// has reports whether the file gives a key of a service.
func (c *checker) has(service string, keys ...string) bool {
	for _, name := range c.lineage(service) {
		if v, _ := c.find(append([]string{"services", name}, keys...)...); v != nil {
			return true
		}
	}
	return false
}
