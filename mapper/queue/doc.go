// Package queue keeps the waiting tasks in the order in which they are tried.
//
// A [Queue] owns the recovery queue and the main queue, the tasks held for the limit of
// their group, the followers of each task, and the backlog: the waiting tasks by expected
// run time, with the sum of their work. It answers which task comes before which, at
// which place a task waits and why it is held, and who goes before it by fair share.
//
// It reads the users' ranks and the expected run times, and changes the rank and the
// position of waiting tasks. It neither launches nor ends a task: the scheduler walks over
// the lanes ([Queue.Recovery], [Queue.Main]) and removes what it launches. Places and
// positions count from 1.
package queue
