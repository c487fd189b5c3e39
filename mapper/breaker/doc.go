// Package breaker determines whether the engine, a GPU, a namespace or the task is at fault
// when containers do not start.
//
// If nothing starts on an engine or a GPU, no task loses an attempt. Such a failed start counts
// against the engine or the GPU, and the task returns to its place in the queue. After failed
// starts of several tasks the circuit breaker opens, and launching pauses there. From then on
// one probe task at a time is launched, at growing intervals, and the first container that
// starts closes the breaker. A failed start counts against the task itself as soon as another
// task has started at the same place.
//
// [Breakers] owns the breakers of the engine and of full namespaces, the failed starts for an
// unknown reason, and the schedule of the canary; the breaker of a GPU is a field of
// [model.GPU]. It answers whether the engine is paused, which tasks may be launched as a probe
// ([Breakers.MayLaunch]), whether a task waits for its namespace, and whether a canary is due.
// It changes the start failures and the back-off of tasks, and decides nothing: the caller
// requeues or ends a task.
package breaker
