// Package preempt removes running tasks from their GPUs when the scheduler itself wants
// that: for tasks of higher priority, for short tasks, at the end of a time slice, for a
// cordon, because they are idle, use more memory than granted, slow a neighbour down, or
// are pinned elsewhere.
//
// A [Preempter] owns the nominations of GPUs and what a scheduling cycle has tried. It
// answers which victims leave for a waiting task ([Preempter.Preempt],
// [Preempter.Rotate]). Each removal is one displacement: a victim, a cause, and whether
// the victim is suspended or stopped. Where an option wants it and the driver can, it is
// suspended, so that no work is lost.
//
// It reads the ledger, the predictor, the queue, the reservations and the placer, and
// decides Suspend, Stop and Idle. What follows a stop is not here: the scheduler requeues
// the task when its attempt has ended. Costs and waits are seconds of completion time.
package preempt
