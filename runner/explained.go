package runner

import (
	"time"

	"carma/mapper"
	"carma/mapper/words"
)

const (
	// explainAtMost bounds how many reasons one listing works out.
	explainAtMost = 100
	// explainPerSecond is how many reasons listings have worked out anew in a
	// second, and explainAge how old one may be when more are asked for: each
	// costs the loop a look at all GPUs, and submissions wait meanwhile.
	explainPerSecond = 500
	explainAge       = 5 * time.Second
)

// explanations are the reasons why tasks wait, as listings last gave them. The
// loop's own.
type explanations struct {
	second time.Time // begins
	worked int       // reasons worked out in it
	last   map[mapper.TaskID]explanation
}

type explanation struct {
	at    time.Time
	text  string
	code  mapper.ReasonCode
	known bool
}

// of is why a task waits.
func (e *explanations) of(s *mapper.State, id mapper.TaskID, now time.Time) explanation {
	if now.Sub(e.second) >= time.Second {
		e.second, e.worked = now, 0
	}
	old, have := e.last[id]
	if have && e.worked >= explainPerSecond && now.Sub(old.at) < explainAge {
		return old
	}
	e.worked++
	if e.last == nil || len(e.last) > 10*explainPerSecond {
		e.last = map[mapper.TaskID]explanation{}
	}
	x := explanation{at: now}
	if why, ok := s.Why(id); ok {
		x.text, x.code, x.known = words.Why(why), why.Binding.Code, true
	}
	e.last[id] = x
	return x
}
