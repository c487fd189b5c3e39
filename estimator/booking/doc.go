// Package booking decides how much GPU memory is booked for a task. It takes the
// first of: the user's figure, what was measured of its workload or model, the
// estimate from its network or from a few figures. Earlier runs of the same task
// correct it.
package booking
