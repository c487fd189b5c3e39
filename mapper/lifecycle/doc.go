// Package lifecycle changes the phases of tasks outside of GPUs.
//
// A [Lifecycle] owns the tasks that ended in the present step, for the tasks that depend on
// them ([Lifecycle.FollowUp]). It admits a submitted task to a queue when it has an
// estimate and nothing holds it: a dependency, a delay, a hold, the limit of its group. It
// requeues a task after an attempt ([Lifecycle.Requeue]), and finishes it
// ([Lifecycle.Finish]). It applies what users request of tasks: cancel, hold, requeue,
// resume, reorder, update.
//
// Where a recorded decision says how an attempt ended, that replaces what the part would
// decide. It uses the queue, the users, the breakers, the reservations, the placer, the
// preempter, the learner and the explainer, and decides Release, Requeue, Resize, Stop of a
// suspended task, and Finish. What happens on GPUs is not here.
package lifecycle
