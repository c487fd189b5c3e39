// Package booking decides how much GPU memory is booked for a task: what its
// user declared, else what was measured of its workload or its model, else what
// an estimator makes of its network or of a few figures; corrected by earlier
// runs of the same task.
package booking
