package mapper

import (
	"slices"

	"carma/internal/units"
)

// Pinned sets the GPUs on which a task may run, or any if GPUs is empty. A task that runs
// elsewhere is suspended and resumed there if option SuspendMoves is on and that is
// possible. Otherwise it is stopped as by [RequeueRequested] and restarts there. The
// event is ignored if it names fewer GPUs than the task needs.
type Pinned struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	GPUs []GPUID       `json:"gpus"`
	By   string        `json:"by,omitempty"`
}

func (e Pinned) when() units.Instant { return e.At }
func (Pinned) kind() string          { return "pinned" }
func (e Pinned) about() TaskID       { return e.Task }

const (
	// RulePinned: the task is pinned to other GPUs.
	RulePinned Rule = "pinned"
	// RulePart: the GPU is a part of a card, and the task is on several GPUs.
	RulePart Rule = "part"
)

func (pre *preempter) pinned(ev Pinned) {
	t := pre.tasks[ev.Task]
	if t == nil || t.GPUs == 0 {
		return
	}
	usable := slices.Compact(slices.Sorted(slices.Values(ev.GPUs)))
	if t.GPUs > 1 {
		usable = slices.DeleteFunc(usable, func(id GPUID) bool { g := pre.byID[id]; return g != nil && g.MIG })
	}
	if len(ev.GPUs) > 0 && len(usable) < t.GPUs {
		return
	}
	t.Pinned = usable
	pre.placer.retry(t)
	pre.dirty = true
	if t.Phase == Launching || t.Phase == Running {
		pre.evictPinned(t, ev.By)
	}
}

// evictPinned suspends or stops a task that runs on a GPU to which it is not pinned.
func (pre *preempter) evictPinned(t *Task, by string) {
	if !slices.ContainsFunc(t.Current().Grants, func(g Grant) bool { return !t.mayGoTo(g.GPU) }) {
		return
	}
	why := Reason{Code: ReasonMoved, Name: by}
	if pre.canPreempt(t, why.Code) && pre.goesElsewhere(t, func(g *GPU) bool { return t.mayGoTo(g.ID) }) && pre.preemptTask(t, why) {
		return
	}
	t.Recall = &PendingRequeue{By: by}
	pre.stop(t, why)
}

// mayGoTo reports whether a task may run on a GPU: it is not pinned, or pinned to it.
func (t *Task) mayGoTo(id GPUID) bool { return len(t.Pinned) == 0 || slices.Contains(t.Pinned, id) }
