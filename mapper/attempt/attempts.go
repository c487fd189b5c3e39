package attempt

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/breaker"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/lifecycle"
	"carma/mapper/place"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// Attempts changes the allocations of attempts on GPUs and machines, from the launch over
// suspensions to the removal.
type Attempts struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor
	breakers  *breaker.Breakers
	queue     *queue.Queue
	reserve   *reserve.Reservations
	placer    *place.Placer
	preempter *preempt.Preempter
	lifecycle *lifecycle.Lifecycle

	notBefore units.Instant    // no launch before this (option Interval)
	inflight  []inflightLaunch // launches in flight to the engine, in order
}

// New returns the attempts over other parts, with no launch in flight.
func New(l *ledger.Ledger, us *fairshare.Users, pr *predict.Predictor, br *breaker.Breakers, q *queue.Queue, rs *reserve.Reservations, pl *place.Placer, pre *preempt.Preempter, lc *lifecycle.Lifecycle) *Attempts {
	return &Attempts{Ledger: l, users: us, predictor: pr, breakers: br, queue: q, reserve: rs, placer: pl, preempter: pre, lifecycle: lc}
}

// Snapshot is the section of the attempts in a snapshot.
type Snapshot struct {
	NotBefore units.Instant    `json:"not_before,omitempty"`
	Handing   []inflightLaunch `json:"handing,omitempty"`
}

// Save returns the section of a snapshot. It shares nothing with the attempts.
func (at *Attempts) Save() Snapshot { return Snapshot{at.notBefore, slices.Clone(at.inflight)} }

// Restore replaces what the attempts own by a section of a snapshot.
func (at *Attempts) Restore(snap Snapshot) { at.notBefore, at.inflight = snap.NotBefore, snap.Handing }

// Configured applies the present options to the launches in flight and to the interval.
func (at *Attempts) Configured() {
	if at.Options().LaunchesAtOnce == 0 { // a later limit counts the launches from then on
		at.inflight = nil
	}
	if next := at.Now().Add(at.Options().Interval); next < at.notBefore { // a shorter interval counts at once
		at.notBefore = next
		at.SetTimer(next, ledger.Timer{})
	}
}

// NotBefore returns the instant before which nothing is launched (option Interval).
func (at *Attempts) NotBefore() units.Instant { return at.notBefore }

// maxBackoffDoublings bounds the back-off: 64 times the option.
const maxBackoffDoublings = 6

// Backoff returns for how long a task waits after n failures. It doubles with each of
// them, at most maxBackoffDoublings times.
func (at *Attempts) Backoff(n int) time.Duration {
	return at.Options().Backoff << min(n-1, maxBackoffDoublings)
}
