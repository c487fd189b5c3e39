// Package runner is the daemon: it owns the scheduling state, keeps it on
// disk, runs the containers that the mapper asks for and answers the API.
//
// One goroutine owns the mapper.State ([Runner.loop]). It takes what has
// happened, makes one durable transaction of it, only then applies it, and
// hands the decisions to one worker goroutine per attempt, whose outcomes come
// back as events. Nothing is answered before it is durable, no container is
// made before its launch can be derived from the journal, and none is removed
// before its end is journaled.
//
// A daemon that stops, or is killed at any moment, leaves its containers
// running. The next one loads the newest snapshot, applies the events after
// it, and finds the containers again by their labels and fixed names.
package runner
