// Package energy divides the power of a GPU among its tasks. The daemon and the replay
// use the same rule.
package energy

// Shares appends the watts of each task on a GPU that draws watts. idle is its draw
// without tasks, or 0 if not known. Every task gets an equal part of the idle watts,
// because it keeps the GPU from being switched off whatever its activity. The rest is
// divided by activity, the SM activity that each task causes, 0 to 1, or equally if no
// task causes any. The shares sum to watts. The power of a GPU without tasks is charged
// to no task.
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
