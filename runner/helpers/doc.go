// Package helpers runs the helpers of suites: plain containers beside the tasks of one
// user, with the networks and volumes of the suite. It has no part in GPUs and queues,
// and its only link to tasks are the networks that they join.
//
// A suite is stored before any of its resources is created, and its entry is deleted
// after all are removed. In between, every step may be repeated. So the next daemon
// continues after a daemon was killed, and finds containers, networks and volumes by
// their names and labels. The engine itself restarts helpers that have ended, also while
// no daemon runs.
package helpers
