// Package booking decides how much GPU memory is booked for a task. It takes the
// first of these that exists: the user's figure, the measurement of its workload
// or model, the estimate from its network, the estimate from a few figures.
// Earlier runs of the same task correct it.
package booking
