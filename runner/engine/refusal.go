package engine

import "time"

// refusal is a call that an engine may refuse although it answers, for example because its
// containerd has crashed.
type refusal struct {
	e       *Health
	times   int
	counted bool // the engine counts it in refused; guarded by e.mu
}

// acceptedAfter is the time after which a running call counts as accepted: a call that
// follows a container lasts as long as the container.
const acceptedAfter = pingLimit

// try calls f.
func (r *refusal) try(f func() error) error {
	if r.times >= refusedAfter {
		defer time.AfterFunc(acceptedAfter, r.over).Stop()
	}
	return f()
}

// refused counts a refusal. said is its text.
func (r *refusal) refused(said string) {
	if r.times++; r.times < refusedAfter {
		return
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if !r.counted {
		r.counted = true
		r.e.refused++
		r.e.refusal = said
	}
}

// over ends the refusals of the call. The call no longer counts as one of the engine's refused
// calls.
func (r *refusal) over() {
	r.e.mu.Lock()
	was := r.counted
	if was {
		r.counted = false
		r.e.refused--
	}
	r.e.mu.Unlock()
	if was {
		r.e.look()
	}
}
