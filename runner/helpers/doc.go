// Package helpers runs the helpers of suites: plain containers beside the tasks of
// one user, with the networks and volumes of the suite. It decides nothing about
// GPUs and queues, and knows tasks only by the networks that they join.
//
// A suite is stored before any resource of it is created, and forgotten after all are gone.
// In between, every step may be repeated. So a daemon that was killed continues: it finds
// containers, networks and volumes by their names and labels. The engine itself restarts
// helpers that have ended, also while no daemon runs.
package helpers
