// Package throughput reads the progress of the running attempts from their output, and
// reports their speeds to the mapper. It owns what the reader of each attempt ([Follower])
// has found: steps, parameters, the time in which the attempt was alone on its GPUs, and
// the last speed that the mapper was given. A task's time does not advance while the task
// is suspended.
//
// Package progress reads the lines; this package decides which lines it gets, from the
// engine's log or from an attached stream, and when a line was printed.
package throughput
