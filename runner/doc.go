// Package runner puts the daemon together: it makes the parts in the packages below it,
// carries out the mapper's decisions, and lists the routes of the API.
//
// One goroutine owns the mapper.State ([loop.Loop]). It stores the events that
// have come in one durable transaction, applies them, stores the decisions, and
// carries them out: each attempt has a goroutine of its own ([attempt.Attempt]). Their
// outcomes come back as events. Nothing is answered before it is durable. A container is made
// after its launch is journaled, and removed after its end is. The daemon keeps the duties
// of a host that mapper/doc.go lists.
//
// Requests come through [server.Server] and [endpoint.Endpoint]; [access.Authorizer] decides
// what a caller may do. New tasks go to [admission.Controller], changes of tasks to
// [control.Controller], questions to [query.Tasks] and [history.Reader].
//
// A daemon that stops, or is killed at any moment, leaves its containers
// running. The next one, of any later version, loads the newest snapshot, applies
// the events after it with their stored decisions, and finds the containers again
// by their labels and fixed names.
package runner
