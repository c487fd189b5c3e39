package zoo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carma/estimator/networks/graph"
	"carma/internal/suggest"
)

// findSized returns a network whose name contains its sizes: gcn:nodes=2708,edges=10556.
func findSized(network, given string) (graph.Network, error) {
	e, err := find(network)
	if err != nil {
		return e, err
	}
	if e.With == nil {
		return e, fmt.Errorf("%s takes no sizes behind a colon; leave out :%s", e.Name, given)
	}
	values := map[string]int64{}
	for _, pair := range strings.Split(given, ",") {
		name, text, _ := strings.Cut(pair, "=")
		most, ok := e.Values[name]
		if !ok {
			known := slices.Sorted(maps.Keys(e.Values))
			return e, fmt.Errorf("%s has no size %q; the nearest: %s", e.Name, name, strings.Join(suggest.Names(name, known, 3), ", "))
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > most {
			return e, fmt.Errorf("%s: %s is %q, want 1 to %d", e.Name, name, text, most)
		}
		if _, twice := values[name]; twice {
			return e, fmt.Errorf("%s: %s is given twice", e.Name, name)
		}
		values[name] = n
	}
	e.With(&e, values)
	return e, nil
}

// take sets the sizes given in a name.
func take(values map[string]int64, sizes map[string]*int64) {
	for name, to := range sizes {
		if v, ok := values[name]; ok {
			*to = v
		}
	}
}
