package waitreason

import (
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
)

const (
	// AtMost bounds how many reasons one listing computes.
	AtMost = 100
	// perSecond is the number of reasons that all listings together compute in a
	// second. Beyond that, they show reasons that are up to lifetime old. To compute a
	// reason, the loop looks at all GPUs, and submissions wait meanwhile.
	perSecond = 500
	lifetime  = 5 * time.Second
)

// Cache holds the reasons why tasks wait, as listings last showed them. Only the
// loop uses them.
type Cache struct {
	second time.Time // beginning of the second that worked counts in
	worked int       // reasons computed in that second
	last   map[model.TaskID]Reason
}

// Reason is the reason why a task waits. Known is false if the task does not wait.
type Reason struct {
	Text  string
	Code  model.ReasonCode
	Known bool
	at    time.Time
}

// Of returns why a task waits.
func (e *Cache) Of(s *mapper.State, id model.TaskID, now time.Time) Reason {
	if now.Sub(e.second) >= time.Second {
		e.second, e.worked = now, 0
	}
	old, have := e.last[id]
	if have && e.worked >= perSecond && now.Sub(old.at) < lifetime {
		return old
	}
	e.worked++
	if e.last == nil || len(e.last) > 10*perSecond {
		e.last = map[model.TaskID]Reason{}
	}
	x := Reason{at: now}
	if why, ok := s.Why(id); ok {
		x.Text, x.Code, x.Known = words.Why(why), why.Binding.Code, true
	}
	e.last[id] = x
	return x
}

// Recent does what Of does, for callers that ask repeatedly: a reason that is not older than
// lifetime is not computed again.
func (e *Cache) Recent(s *mapper.State, id model.TaskID, now time.Time) Reason {
	if old, have := e.last[id]; have && now.Sub(old.at) < lifetime {
		return old
	}
	return e.Of(s, id, now)
}
