// Package record keeps what the daemon knows about each task.
//
// A [Record] is one task: the request, its submitter, the scheduler's state of it, and
// what was observed about its attempts. It is never changed: the With methods return a
// changed copy. The journal stores it as JSON.
//
// A [Store] owns the records of the unfinished tasks and of the tasks that finished last;
// older ones are in the journal only. It answers which task has a number or a name, which
// tasks are newest, what has changed since a version, and how much a user has submitted.
// The daemon's loop writes it, any goroutine reads it.
package record
