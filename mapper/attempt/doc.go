// Package attempt carries out what the scheduler decides for attempts on GPUs.
//
// [Attempts] owns the launches in flight to the engine and the instant of the next launch.
// It allocates GPUs and host memory to a task and begins its attempt ([Attempts.Bind]),
// records that a container has started, and frees what an attempt has
// ([Attempts.RemoveFrom], [Attempts.Detach]). It keeps the allocations of a suspended task
// until it resumes or ends, adopts containers that ran unrecorded, and repeats recorded
// launches, suspensions and grants. It answers whether the launches in flight have reached
// the limit ([Attempts.LimitReached]).
//
// It changes the ledger, the users, the predictor, the breakers and the queue together, so
// that they agree, and decides Launch and Resume. The placer chooses the GPUs before. What
// follows the end of an attempt is not here. The queues are in package queue, and phases
// outside of GPUs in package lifecycle.
package attempt
