package arrivals

import (
	"slices"
	"time"

	"carma/configs/traces/joblog"
)

// alike is the largest ratio of the run times of two tasks that count as alike.
const alike = 1.1

// Alike measures how often tasks repeat other tasks. Two tasks are alike if they have the
// same user and number of GPUs, and their run times differ by at most a tenth. Next is
// the share of tasks that are like their user's previous task. Pairs is the share of
// pairs of tasks that are alike, over all pairs of tasks of one user. Pairs is the
// expected value of Next if users submitted their tasks in random order. Tasks whose run
// time is unknown do not count. Both are 0 if there is nothing to compare.
func (l List) Alike() (next, pairs float64) {
	last := map[string]Arrival{} // only for look-up
	same, compared := 0, 0
	users := map[string]int{}
	runs := map[string]map[int][]time.Duration{}
	for _, a := range l.Arrivals {
		if a.RunTime == joblog.Unknown {
			continue
		}
		if before, ok := last[a.User]; ok {
			compared++
			if before.GPUs == a.GPUs && near(before.RunTime, a.RunTime) {
				same++
			}
		}
		last[a.User] = a
		users[a.User]++
		if runs[a.User] == nil {
			runs[a.User] = map[int][]time.Duration{}
		}
		runs[a.User][a.GPUs] = append(runs[a.User][a.GPUs], a.RunTime)
	}
	if compared == 0 {
		return 0, 0
	}
	// Integers, so the order of the maps does not matter.
	all, close := 0, 0
	for user, n := range users {
		all += n * (n - 1) / 2
		for _, times := range runs[user] {
			close += nearPairs(times)
		}
	}
	return float64(same) / float64(compared), float64(close) / float64(max(1, all))
}

// near reports whether two run times are within a tenth of each other.
func near(a, b time.Duration) bool {
	return float64(max(a, b)) <= alike*float64(min(a, b))
}

// nearPairs counts the pairs of near run times. It sorts the run times.
func nearPairs(times []time.Duration) int {
	slices.Sort(times)
	n, from := 0, 0
	for i := range times {
		for !near(times[from], times[i]) {
			from++
		}
		n += i - from
	}
	return n
}
