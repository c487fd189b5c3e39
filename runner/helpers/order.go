package helpers

import (
	"fmt"
	"slices"

	"carma/runner/api"
)

// levels returns for each helper the length of the longest chain of helpers that must
// start before it. It is an error if helpers wait for each other.
func levels(list []api.Helper) (map[string]int, error) {
	of := map[string]*api.Helper{}
	for i := range list {
		of[list[i].Name] = &list[i]
	}
	level, visiting := map[string]int{}, map[string]bool{}
	var visit func(name string) (int, error)
	visit = func(name string) (int, error) {
		if n, known := level[name]; known {
			return n, nil
		}
		if visiting[name] {
			return 0, fmt.Errorf("helper %s waits for itself, in a circle", name)
		}
		visiting[name] = true
		most := 0
		for _, w := range of[name].Waits {
			n, err := visit(w.Helper)
			if err != nil {
				return 0, err
			}
			most = max(most, n+1)
		}
		level[name] = most
		return most, nil
	}
	for i := range list {
		if _, err := visit(list[i].Name); err != nil {
			return nil, err
		}
	}
	return level, nil
}

// after makes a helper that shares another helper's network start after that helper.
func after(s *api.Suite) {
	s.Helpers = slices.Clone(s.Helpers)
	for i := range s.Helpers {
		h := &s.Helpers[i]
		if h.Within != "" && !slices.ContainsFunc(h.Waits, func(w api.HelperWait) bool { return w.Helper == h.Within }) {
			h.Waits = append(slices.Clone(h.Waits), api.HelperWait{Helper: h.Within, Condition: "started"})
		}
	}
}
