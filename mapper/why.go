package mapper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ImpossibleError says that a request can never be met by this machine.
type ImpossibleError struct {
	Option string // the command line option at fault: "gpus", "mem"
	Text   string
}

func (e *ImpossibleError) Error() string { return e.Text }

// beyond reports whether only the upper bound is more than there is.
func (e Estimate) beyond(most Bytes) bool {
	return e.Memory > most && e.Point > 0 && e.Point <= most
}

// Check tells whether a request can be met at all, on an empty machine; the
// error is an *[ImpossibleError] with the nearest possible value.
func (s *State) Check(r Request, e Estimate) error {
	n, most := max(r.GPUs, 1), s.ceiling(s.bookable)
	switch {
	case n > len(most):
		return &ImpossibleError{"gpus", fmt.Sprintf("%s asked for, this server has %d", plural(n, "GPU"), len(most))}
	case e.Memory > most.of(n) && !e.beyond(most.of(n)):
		return &ImpossibleError{"mem", fmt.Sprintf("%s of memory asked for on %s, the most there is: %s", e.Memory, plural(n, "GPU"), most.of(n))}
	}
	if err := s.checkQuota(n, e.Memory, r.Exclusive || e.WholeGPU || s.policy.idleOnly); err != nil {
		return err
	}
	return s.checkSlot(r.Slot)
}

// Why explains where a task stands.
type Why struct {
	Task     TaskID
	Phase    Phase
	Position int // in the order of all queues, from 1; 0: in none
	Recovery bool
	// Fits are the GPUs that would take it now, Rejected all others with the
	// reason, both in index order. Only for a waiting task.
	Fits     []GPUID
	Rejected []Rejection
	// Binding is the one reason that decides, a clause. Rule is set where it is
	// not about a GPU: RuleQuota, RuleFairShare, RuleAfter, RuleDelay, RuleGroup.
	Binding string
	Rule    Rule
}

// Why explains where an unfinished task stands; false for any other.
func (s *State) Why(id TaskID) (Why, bool) {
	t := s.tasks[id]
	if t == nil {
		return Why{}, false
	}
	w := Why{Task: id, Phase: t.Phase, Recovery: t.Phase == Recovering}
	if t.Phase != Queued && t.Phase != Recovering {
		w.Binding = t.Reason
		if rule, text := s.heldBy(t); rule != "" {
			w.Rule, w.Binding = rule, text
		}
		return w, true
	}
	w.Position = s.queue.position(t)
	for _, g := range s.gpus {
		if rule := s.reject(t, g); rule != "" {
			w.Rejected = append(w.Rejected, s.rejection(t, g, rule))
		} else {
			w.Fits = append(w.Fits, g.ID)
		}
	}
	w.Binding = s.binding(t, w)
	switch over, fair := s.overQuota(t), s.fairly(t); {
	case over != "" && w.Binding == over:
		w.Rule = RuleQuota
	case fair != "" && strings.Contains(w.Binding, fair):
		w.Rule = RuleFairShare
	}
	return w, true
}

// binding picks the one reason that decides.
func (s *State) binding(t *Task, w Why) string {
	switch {
	case s.engineDown != "":
		return s.engineDown
	case s.sick.paused():
		return s.sickText()
	case len(s.gpus) == 0:
		return "no GPU was found on this machine"
	case t.NotBefore > s.now:
		return fmt.Sprintf("tried again in %s after: %s", t.NotBefore.Sub(s.now).Round(time.Second), t.Reason)
	case s.overQuota(t) != "":
		return s.overQuota(t)
	case t.Phase == Queued && s.recoveryBlocks():
		return "tasks in the recovery queue go first (recovery: original)"
	case s.now < s.notBefore:
		return fmt.Sprintf("one launch every %s", s.opt.Interval)
	case s.fits(w, t) && !s.inSight(t) && s.fairly(t) != "":
		return s.fairly(t)
	case s.fits(w, t) && !s.inSight(t):
		return fmt.Sprintf("%s ahead of it in the queue; no more than %d that do not fit are passed over", plural(s.queue.place(t)-1, "task"), s.opt.LookAhead)
	case s.fits(w, t):
		if s.again > s.now { // nothing has happened since the last look, but time has passed
			return fmt.Sprintf("it fits by now; the queue is looked at again within %s", s.again.Sub(s.now).Round(time.Second))
		}
		return "it fits and is about to start"
	case t.GPUs > len(s.gpus):
		return fmt.Sprintf("%s asked for, this server has %d", plural(t.GPUs, "GPU"), len(s.gpus))
	case len(w.Rejected) == 0:
		return fmt.Sprintf("%d GPUs fit, but no %d of one machine together", len(w.Fits), t.GPUs)
	}
	nearest := s.nearest(w.Rejected)
	if fair := s.fairly(t); fair != "" {
		return fmt.Sprintf("%s; %s", nearest, fair)
	}
	if t.GPUs > 1 {
		return fmt.Sprintf("%d of %d GPUs fit; %s", len(w.Fits), t.GPUs, nearest)
	}
	return nearest.String()
}

// fits reports whether enough of the GPUs that would take a task are in one
// machine, and the policy would take them.
func (s *State) fits(w Why, t *Task) bool {
	gpus := make([]*GPU, len(w.Fits))
	for i, id := range w.Fits {
		gpus[i] = s.byID[id]
	}
	gpus = ofMachinesWith(t.GPUs, gpus)
	return len(gpus) > 0 && (s.policy.pick == nil || s.policy.pick(s, t, gpus) != nil)
}

// nearest is the rejection of the GPU that is closest to being usable: it
// failed the latest precondition; among equals, the most free memory.
func (s *State) nearest(all []Rejection) Rejection {
	return slices.MaxFunc(all, func(a, b Rejection) int {
		return cmp.Or(
			cmp.Compare(slices.Index(ruleOrder, a.Rule), slices.Index(ruleOrder, b.Rule)),
			cmp.Compare(s.free(s.byID[a.GPU]), s.free(s.byID[b.GPU])),
			cmp.Compare(b.Index, a.Index))
	})
}
