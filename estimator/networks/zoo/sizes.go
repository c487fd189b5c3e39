package zoo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carma/configs/nearest"
)

// findSized is a network whose name gives its sizes: gcn:nodes=2708,edges=10556.
func findSized(network, given string) (entry, error) {
	e, err := find(network)
	if err != nil {
		return e, err
	}
	if e.with == nil {
		return e, fmt.Errorf("%s takes no sizes behind a colon; leave out :%s", e.name, given)
	}
	values := map[string]int64{}
	for _, pair := range strings.Split(given, ",") {
		name, text, _ := strings.Cut(pair, "=")
		most, ok := e.values[name]
		if !ok {
			known := slices.Sorted(maps.Keys(e.values))
			return e, fmt.Errorf("%s has no size %q; the nearest: %s", e.name, name, strings.Join(nearest.Names(name, known, 3), ", "))
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > most {
			return e, fmt.Errorf("%s: %s is %q, want 1 to %d", e.name, name, text, most)
		}
		if _, twice := values[name]; twice {
			return e, fmt.Errorf("%s: %s is given twice", e.name, name)
		}
		values[name] = n
	}
	e.with(&e, values)
	return e, nil
}
