package methods

import (
	"fmt"
	"strings"

	"carma/internal/suggest"
)

// Find returns the method of that name. The error for an unknown name lists the
// names.
func Find(all []Method, name string) (Method, error) {
	var names []string
	for _, m := range all {
		if m.Name() == name {
			return m, nil
		}
		names = append(names, m.Name())
	}
	if near := suggest.Near(strings.ToLower(name), names); len(near) > 0 {
		return nil, fmt.Errorf("no method %q; did you mean %s?", name, near[0])
	}
	return nil, fmt.Errorf("no method %q; there are %s", name, strings.Join(names, ", "))
}
