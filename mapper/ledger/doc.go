// Package ledger records what is allocated: the GPUs, the machines, the unfinished tasks
// with their grants, and the timers and decisions of the present step.
//
// It answers what is free, whether a task can ever fit, and which tasks are where. It
// chooses no GPU and no victim. The other parts of the scheduler embed a [*Ledger].
//
// Entries of GPUs, machines and tasks are shared with the caller: after a change of an
// entry call its Settle or Changed. The queues are tried again after [Ledger.MarkDirty].
package ledger
