package mapper

import (
	"math"
	"slices"
)

// The constants of the weighing. docs/design.md, "Policy carma, step by step",
// says where each value is from.
const (
	// slowdownCap is the default of the option of that name.
	slowdownCap = 1.6
	// capMargin is subtracted from the cap for the expected slowdown: a margin
	// for errors of the prediction.
	capMargin = 0.05
	// slowAlready: where a slowdown is above the cap already, a newcomer may
	// raise it by this much. It covers rounding.
	slowAlready = 0.01
	// waitFactor: a task waits for the first end on a GPU if that costs less
	// than this share of what sharing costs.
	waitFactor = 0.8
	// avoidCost is added, in seconds, for a GPU on which the task's
	// infrastructure has failed. The GPU is taken only if others are worse.
	avoidCost = 3600
)

// refusal is why policy carma does not want a placement.
type refusal struct {
	rule Rule
	// For RuleSlowdown: how many times as long as alone a task would take, the
	// most allowed, and which it is; 0 is the newcomer.
	slowdown, most float64
	task           TaskID
}

// slowdownGate is the gate of policy carma: it rejects a GPU on which none of
// the task's parts may go.
func (s *State) slowdownGate(t *Task, g *GPU) Rule { return s.refusal(t, g).rule }

func (s *State) refusal(t *Task, g *GPU) (no refusal) {
	for _, id := range s.asks(t) {
		if _, no = s.weigh(g, id); no.rule == "" {
			break
		}
	}
	return no
}

// leastAdded picks the GPUs, all of one machine, on which a task adds least to
// the sum of all completion times: its own time plus the delay of its
// neighbours. It picks the GPUs one after the other, because the task may load
// each of them differently.
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
				added += avoidCost
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

// weigh predicts how many seconds a placement adds to the sum of all completion
// times. If the placement is not allowed, the refusal says why.
func (s *State) weigh(g *GPU, id int) (float64, refusal) {
	a := s.answer(g, id)
	if g.idle() { // always allowed, whatever foreign processes do there: else the task might wait for ever
		return a.added, refusal{}
	}
	return a.added, a.no
}

// beside weighs a newcomer beside the tasks of a GPU. Their outlook is known.
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
			before = there[i].worst() + slowAlready
			first = min(first, there[i].finish)
			added -= there[i].finish
		}
		added += with[i].finish
		expected, worst := with[i].slowdown(), late[i].worst()
		switch {
		case no.rule != "":
		case worst > max(most, before):
			no = refusal{RuleSlowdown, worst, most, with[i].task}
		case expected > max(most-capMargin, before):
			no = refusal{RuleSlowdown, expected, most - capMargin, with[i].task}
		}
	}
	if no.rule == "" && first+n.left < waitFactor*added {
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
