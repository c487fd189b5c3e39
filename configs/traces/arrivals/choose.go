package arrivals

import (
	"fmt"
	"slices"
	"sort"

	"carma/configs/traces/joblog"
)

// Choice selects the tasks of a list that may be sampled, besides the tasks that
// succeeded.
type Choice struct {
	Failed, Killed bool
	MaxGPUs        int    // or 0 for any number
	User           string // or empty for all users
}

// Choose returns the tasks that may be sampled, and the number of tasks left out for each
// reason, as "186 failed". Suspended tasks and tasks without a known run time are always
// left out.
func (l List) Choose(c Choice) (chosen List, left []string) {
	chosen = List{First: l.First}
	var failed, killed, other, unknown, large, others int
	for _, one := range l.Arrivals {
		switch {
		case c.User != "" && one.User != c.User:
			others++
		case one.State == joblog.Failed && !c.Failed:
			failed++
		case one.State == joblog.Killed && !c.Killed:
			killed++
		case one.State == joblog.Other:
			other++
		case one.RunTime == joblog.Unknown:
			unknown++
		case c.MaxGPUs > 0 && one.GPUs > c.MaxGPUs:
			large++
		default:
			chosen.Arrivals = append(chosen.Arrivals, one)
		}
	}
	chosen.Sort()
	for _, r := range []struct {
		n    int
		what string
	}{
		{others, "of other users"}, {failed, "failed"}, {killed, "killed"}, {other, "suspended"}, {unknown, "without a known run time"}, {large, fmt.Sprintf("on more than %d GPUs", c.MaxGPUs)},
	} {
		if r.n > 0 {
			left = append(left, fmt.Sprintf("%d %s", r.n, r.what))
		}
	}
	return chosen, left
}

// Users returns the names of all users, sorted.
func (l List) Users() []string {
	var names []string
	for _, one := range l.Arrivals {
		if i, known := slices.BinarySearch(names, one.User); !known && one.User != "" {
			names = slices.Insert(names, i, one.User)
		}
	}
	return names
}

// Starts returns the number of tasks at which a full window w can begin, at least 1. It
// ignores w.Start.
func (l List) Starts(w Window) int {
	n := len(l.Arrivals)
	if w.Tasks > 0 {
		n = max(1, n-w.Tasks+1)
	}
	if w.Length > 0 {
		last := l.Span() - w.Length
		n = max(1, min(n, sort.Search(n, func(i int) bool { return l.Arrivals[i].At > last })))
	}
	return n
}
