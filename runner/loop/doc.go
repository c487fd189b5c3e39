// Package loop owns the scheduler's state while a daemon runs. One goroutine receives changes
// (see [Change]), journals their events, applies them to the state, journals the decisions and
// only then has them carried out. Every other goroutine submits changes with [Loop.Do] and
// [Loop.Post] and reads the state with [Loop.Look].
//
// The package also rebuilds the state at a start ([Loop.Load]), stores snapshots, and goes on
// when the disk is full: changes that have happened are tried again, others are refused. What
// the daemon does around the scheduler is in [Hooks].
package loop
