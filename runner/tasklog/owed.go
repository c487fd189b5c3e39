package tasklog

import "time"

// debt is the output that an attempt lost until its end, if there was no room
// for the note about it.
type debt struct {
	lost  loss
	last  time.Time
	cause error
}

func (s *Store) owe(k key, d debt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owed == nil {
		s.owed = map[key]debt{}
	}
	s.owed[k] = d
}

// NoteLosses writes notes for which there was no room when their attempts ended, if there is
// room now. Call it from time to time. An owed note is lost when the process ends.
func (s *Store) NoteLosses() {
	s.mu.Lock()
	owed := s.owed
	s.owed = nil
	s.mu.Unlock()
	for k, d := range owed {
		w, err := s.Writer(k.task, k.attempt)
		if err != nil {
			s.owe(k, d)
			continue
		}
		w.mu.Lock()
		if w.f == nil { // there is still no room
			s.owe(k, d)
		} else {
			w.lost, w.cause = d.lost, d.cause
			if d.last.After(w.last) {
				w.last = d.last
			}
		}
		w.mu.Unlock()
		_ = w.Close() // if that fails, Close records the debt again
	}
}
