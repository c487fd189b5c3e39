package mapper

import "carma/internal/units"

// rejectedCache are tasks on one GPU that every GPU has turned down. A later task that asks for the
// same needs to ask only GPUs that have changed since. They are among the notes.
type rejectedCache map[requestKey][]rejectedEntry

// requestKey is what two tasks must have in common so that each GPU answers both in the same
// way, if the second needs no less memory.
type requestKey struct {
	ask   int // the number of the newcomer, which also tells whether its load is known
	alone bool
}

// rejectedEntry is one that failed. Of one likeness, those that need more are the later ones: a
// later one that needs less tells all that an earlier one does.
type rejectedEntry struct {
	need units.Bytes
	at   int     // the clock
	kept []GPUID // the GPUs that were kept free then, which tell nothing
}

// requestKey is the likeness of a waiting task; false: GPUs may answer it differently from
// every other.
func (s *State) requestKey(t *Task) (l requestKey, ok bool) {
	odd := t.GPUs != 1 || t.Phase != Queued || len(t.Pinned) > 0 || t.Learner || t.Estimate.Share != 0
	if odd || len(s.gpus) < triesFrom || s.policy.pick == nil {
		return l, false
	}
	if s.opt.FillHeld || s.opt.preempts() { // who may go to a GPU that is kept or claimed depends on the task
		return l, false
	}
	return requestKey{s.candidatesOf(t)[0], s.alone(t)}, true
}

// cacheRejection notes that a task was turned down by every GPU but those that are kept free.
func (s *State) cacheRejection(t *Task) {
	l, ok := s.requestKey(t)
	if !ok {
		return
	}
	if s.cache.tries == nil {
		s.cache.tries = rejectedCache{}
	}
	all := s.cache.tries[l]
	for len(all) > 0 && all[len(all)-1].need >= t.NextGrant {
		all = all[:len(all)-1]
	}
	if len(all) == mostTries {
		all = append(all[:0], all[1:]...)
	}
	s.cache.tries[l] = append(all, rejectedEntry{t.NextGrant, s.cache.clock, s.head.GPUs})
}

// triesFrom: fewer GPUs are asked sooner than what is kept is looked up.
const triesFrom = 4

// mostTries are kept of one likeness.
const mostTries = 32

// cachedRejection is the clock when a task that asks for the same and needs no more memory was
// turned down by every GPU but some, which are returned; 0: there was none.
func (s *State) cachedRejection(t *Task) (at int, but []GPUID) {
	l, ok := s.requestKey(t)
	if !ok {
		return 0, nil
	}
	all := s.cache.tries[l]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].need <= t.NextGrant && all[i].at > s.cache.forgotten {
			return all[i].at, all[i].kept
		}
	}
	return 0, nil
}
