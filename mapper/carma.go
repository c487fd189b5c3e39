package mapper

import (
	"math"
	"slices"
)

// slowdownCap is the default of that option.
const slowdownCap = 1.6

// reserve is how much less than the cap is aimed at, for what the prediction
// does not see.
const reserve = 0.05

// patience is how much less waiting must cost than sharing before policy carma
// has a task wait for one on a GPU to end.
const patience = 0.8

// refusal is why policy carma does not want a placement.
type refusal struct {
	rule Rule
	// For RuleSlowdown: how many times as long as alone a task would take, the
	// most allowed, and which it is; 0 is the newcomer.
	slowdown, most float64
	task           TaskID
}

// slowdownGate is policy carma's: a GPU is turned down where no part of the
// task may go.
func (s *State) slowdownGate(t *Task, g *GPU) Rule { return s.refusal(t, g).rule }

func (s *State) refusal(t *Task, g *GPU) (no refusal) {
	for _, id := range s.asks(t) {
		if _, no = s.weigh(g, id); no.rule == "" {
			break
		}
	}
	return no
}

// leastAdded picks, on one machine, the GPUs on which a task adds least to the
// sum of all completion times: its own, and what it delays its neighbours by.
// Its GPUs are picked one after the other, as each may do something else on it.
func (s *State) leastAdded(t *Task, fitting []*GPU) []*GPU {
	var best []*GPU
	least := math.Inf(1)
	for len(fitting) > 0 {
		n := 1
		for n < len(fitting) && fitting[n].Node == fitting[0].Node {
			n++
		}
		if gpus, added := s.leastAddedOf(t, fitting[:n]); added < least {
			best, least = gpus, added
		}
		fitting = fitting[n:]
	}
	return best
}

func (s *State) leastAddedOf(t *Task, fitting []*GPU) (picked []*GPU, total float64) {
	for _, id := range s.asks(t) {
		var best *GPU
		least := math.Inf(1)
		for _, g := range fitting {
			if slices.Contains(picked, g) {
				continue
			}
			added, no := s.weigh(g, id)
			if len(t.Avoid) > 0 && slices.Contains(t.Avoid, g.ID) {
				added += aWhile // where its infrastructure failed, only if all else is worse
			}
			if no.rule == "" && added < least {
				best, least = g, added
			}
		}
		if best == nil {
			return nil, math.Inf(1)
		}
		picked = append(picked, best)
		total += least
	}
	return picked, total
}

// weigh predicts what a placement adds to the sum of all completion times, in
// seconds, or says why it must not be.
func (s *State) weigh(g *GPU, id int) (float64, refusal) {
	a := s.answer(g, id)
	if g.idle() { // whatever others do there: it might wait for ever for something better
		return a.added, refusal{}
	}
	return a.added, a.no
}

// beside weighs a newcomer beside those that are there, whose outlook is known.
func (s *State) beside(there []part, n *newcomer) (added, finish float64, no refusal) {
	with := append(append(s.step.with[:0], there...), part{sm: n.load.SMACT, demand: n.demand, left: n.left, elsewhere: 1, basis: n.basis})
	outlook(with)
	late := pessimistic(s.step.late[:0], with)
	s.step.with, s.step.late = with, late
	outlook(late)
	most := s.slowdownCap()
	first := math.Inf(1)
	for i := range with {
		before := 0.0
		if i < len(there) {
			before = there[i].worst() + 0.01 // what is slow already is not to get slower
			first = min(first, there[i].finish)
			added -= there[i].finish
		}
		added += with[i].finish
		expected, worst := with[i].slowdown(), late[i].worst()
		switch {
		case no.rule != "":
		case worst > max(most, before):
			no = refusal{RuleSlowdown, worst, most, with[i].task}
		case expected > max(most-reserve, before):
			no = refusal{RuleSlowdown, expected, most - reserve, with[i].task}
		}
	}
	if no.rule == "" && first+n.left < patience*added {
		no = refusal{rule: RuleWait}
	}
	return added, with[len(there)].finish, no
}

func (s *State) slowdownCap() float64 {
	if s.opt.SlowdownCap > 0 {
		return s.opt.SlowdownCap
	}
	return slowdownCap
}
