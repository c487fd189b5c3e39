// Package mapper holds every scheduling decision of carma: which task gets
// which GPUs, when, and with how much memory.
//
// It is a pure state machine. [State.Step] takes one [Event] and returns the
// [Decision]s that must now be carried out, in order; equal states and equal
// events give equal decisions. Time is data: every event carries its instant,
// and a delay is a [WakeAt] that comes back as [Woke]. The package reads no
// clock, starts no goroutine, does no I/O and imports only the standard
// library, so that the daemon (real time, real containers), `carma replay`
// (virtual time, modelled GPUs) and the tests run the very same code.
//
// What it does not do: estimate memory (package estimator), run containers
// (package containers), keep anything on disk (package runner).
package mapper
