// Package runner is the daemon: it owns the scheduling state, keeps it on
// disk, runs the containers that the mapper asks for and answers the API.
//
// One goroutine owns the mapper.State ([Runner.loop]). It takes what has
// happened, makes one durable transaction of it, only then applies it, stores
// the decisions, and hands them to one worker goroutine per attempt, whose
// outcomes come back as events. Nothing is answered before it is durable, no
// container is made before its launch is journaled, and none is removed before
// its end is.
//
// A daemon that stops, or is killed at any moment, leaves its containers
// running. The next one, of whatever version, loads the newest snapshot, applies
// the events after it with what was decided on them, and finds the containers
// again by their labels and fixed names.
package runner
