// Package recovery decides what follows the end of an attempt.
//
// A [Recovery] owns nothing. [Recovery.Exited] takes an attempt off its GPUs, records what
// the run has shown, and ends the task or requeues it: after a GPU OOM with more memory,
// after a host OOM with more host memory, after a failure of the infrastructure elsewhere
// and after a back-off, and after a stop for others or for a request without any loss. For a
// GPU OOM it finds out whether the task had exceeded its own grant, or a neighbour its own.
//
// It uses the learner, the observer, the breakers and the attempts, and decides through the
// lifecycle. The class of an exit comes from outside, with the event. Memory is in bytes.
package recovery
