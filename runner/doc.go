// Package runner is the daemon: it owns the scheduling state, keeps it on
// disk, runs the containers that the mapper asks for and answers the API.
//
// One goroutine owns the mapper.State ([Runner.loop]). It stores the events that
// have come in one durable transaction, applies them, stores the decisions, and
// hands them to workers, one goroutine per attempt. Their outcomes come back as
// events. Nothing is answered before it is durable. A container is made after its
// launch is journaled, and removed after its end is. The package keeps the duties
// of a host that mapper/doc.go lists.
//
// A daemon that stops, or is killed at any moment, leaves its containers
// running. The next one, of any later version, loads the newest snapshot, applies
// the events after it with their stored decisions, and finds the containers again
// by their labels and fixed names.
package runner
