// Package clock owns the daemon's time: the instant that it shows, the speed at which it
// passes, and the wall clock that it follows.
//
// It answers what time it is, how long an instant is away, and which time a daemon that
// starts continues with. It stores nothing: the caller keeps the JSON form of a [Clock]
// and of the last [Start].
package clock
