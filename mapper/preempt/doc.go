// Package preempt removes running tasks from their GPUs when the scheduler itself wants
// that: for tasks of higher priority, for short tasks, at the end of a time slice, for a
// cordon, because they are idle, use more memory than granted, slow a neighbour down, or
// are pinned elsewhere.
//
// A [Preempter] owns what a scheduling cycle has tried; the nominations that it makes are
// in the ledger. It answers which victims leave for a waiting task ([Preempter.Preempt],
// [Preempter.Rotate]). A removal is a displacement: a victim, a cause, and whether the
// victim is suspended or stopped. Where an option wants it and the driver can, it is
// suspended, so that no work is lost. A machine that runs out of memory, and a pin for
// which a task cannot be suspended, stop the task without one, because it is requeued in
// another way.
//
// It reads the ledger, the predictor, the queue, the reservations and the placer, and
// decides Suspend, Stop and Idle. What follows a stop is not here: package recovery
// requeues the task when its attempt has ended. Costs and waits are seconds of completion
// time.
package preempt
