// Package energy shares what a GPU draws among the tasks on it. The daemon and the
// replay use the same rule.
package energy

// Shares appends the watts of each task on a GPU that draws watts, of which idle
// is what it draws without tasks (0: not known). Every task has an equal part of
// the idle watts: it keeps the GPU from being switched off, whatever it does. The
// rest goes by activity, which is the SM activity that each task causes, 0 to 1; it
// is shared equally where none causes any. The shares sum to watts. A GPU without
// tasks is nobody's.
func Shares(into []float64, watts, idle float64, activity []float64) []float64 {
	tasks := float64(len(activity))
	sum := 0.0
	for _, a := range activity {
		sum += max(0, a)
	}
	base := min(max(0, idle), watts)
	for _, a := range activity {
		part := 1 / tasks
		if sum > 0 {
			part = max(0, a) / sum
		}
		into = append(into, base/tasks+(watts-base)*part)
	}
	return into
}
