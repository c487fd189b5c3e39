package runner

import (
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
)

const (
	// explainAtMost bounds how many reasons one listing computes.
	explainAtMost = 100
	// explainPerSecond is the number of reasons that all listings together compute in a
	// second. Beyond that, they show reasons that are up to explainAge old. To compute a
	// reason, the loop looks at all GPUs, and submissions wait meanwhile.
	explainPerSecond = 500
	explainAge       = 5 * time.Second
)

// explanations caches the reasons why tasks wait, as listings last showed them. Only the
// loop uses them.
type explanations struct {
	second time.Time // beginning of the second that worked counts in
	worked int       // reasons computed in that second
	last   map[model.TaskID]explanation
}

type explanation struct {
	at    time.Time
	text  string
	code  model.ReasonCode
	known bool
}

// of returns why a task waits.
func (e *explanations) of(s *mapper.State, id model.TaskID, now time.Time) explanation {
	if now.Sub(e.second) >= time.Second {
		e.second, e.worked = now, 0
	}
	old, have := e.last[id]
	if have && e.worked >= explainPerSecond && now.Sub(old.at) < explainAge {
		return old
	}
	e.worked++
	if e.last == nil || len(e.last) > 10*explainPerSecond {
		e.last = map[model.TaskID]explanation{}
	}
	x := explanation{at: now}
	if why, ok := s.Why(id); ok {
		x.text, x.code, x.known = words.Why(why), why.Binding.Code, true
	}
	e.last[id] = x
	return x
}

// recent is like of, for callers that ask repeatedly: a reason that is not older than
// explainAge is not computed again.
func (e *explanations) recent(s *mapper.State, id model.TaskID, now time.Time) explanation {
	if old, have := e.last[id]; have && now.Sub(old.at) < explainAge {
		return old
	}
	return e.of(s, id, now)
}
