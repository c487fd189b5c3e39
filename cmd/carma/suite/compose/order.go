package compose

import (
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// active returns the active services. Each comes after the services that it waits for;
// otherwise they are in the file's order.
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

// service applies the rules to the keys of a service and of the services that it
// extends.
func (c *checker) service(s types.ServiceConfig, rules map[string]rule) {
	for _, path := range c.lineage(s.Name) {
		n, _ := c.find(path...)
		c.keys(n, keyText(path), rules)
	}
}

// at returns the line and the full path of a service's key. The key may be in a service
// that the service extends.
func (c *checker) at(service string, keys ...string) (line int, key string) {
	for _, base := range c.lineage(service) {
		path := append(slices.Clone(base), keys...)
		if v, l := c.find(path...); v != nil {
			return l, keyText(path)
		}
	}
	_, line = c.find(append([]string{"services", service}, keys...)...)
	return line, strings.Join(append([]string{"services", service}, keys...), ".")
}

// has reports whether the file sets a key of a service.
func (c *checker) has(service string, keys ...string) bool {
	for _, base := range c.lineage(service) {
		if v, _ := c.find(append(slices.Clone(base), keys...)...); v != nil {
			return true
		}
	}
	return false
}
