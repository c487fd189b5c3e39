package retention

import (
	"maps"
	"slices"
	"testing"
)

// TestShare: a user with less than a fair share loses no task.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		users map[string]int
		total int
		want  int
	}{
		{map[string]int{"a": 10}, 4, 4},
		{map[string]int{"a": 10, "b": 1}, 4, 3},
		{map[string]int{"a": 10, "b": 10, "c": 1}, 6, 3},
		{map[string]int{"a": 10, "b": 10}, 5, 3},
		{map[string]int{"a": 10, "b": 10, "c": 10}, 0, 0},
	} {
		if got := share(c.users, c.total); got != c.want {
			t.Errorf("%v of %d: %d, want %d", slices.Sorted(maps.Keys(c.users)), c.total, got, c.want)
		}
	}
}
