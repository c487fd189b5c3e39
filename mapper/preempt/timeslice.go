package preempt

import (
	"cmp"
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/reserve"
)

// SetSlotTimers sets timers for the ends of the slots of running tasks.
func (pre *Preempter) SetSlotTimers() {
	for _, g := range pre.GPUList() {
		for i := range g.Residents {
			if ends := pre.SlotEnds(pre.TaskByID(g.Residents[i].Task)); ends > pre.Now() {
				pre.SetTimer(ends, ledger.Timer{})
			}
		}
	}
	for _, t := range pre.WithoutGPU() {
		if ends := pre.SlotEnds(t); ends > pre.Now() {
			pre.SetTimer(ends, ledger.Timer{})
		}
	}
}

// Rotate stops or suspends tasks whose slot is used up, for the tasks that wait: as few
// as the first waiting task needs, then the next. Memory of tasks that are being stopped
// or suspended already counts as free, so no two tasks are stopped for the same room.
func (pre *Preempter) Rotate(blocked []*model.Task) {
	if len(blocked) == 0 || !pre.anySlotOver() {
		return
	}
	after := &timeslice{pre: pre, promised: map[string]promised{}}
	for _, g := range pre.GPUList() {
		v := g.Clone()
		for _, r := range g.Residents {
			if p := pre.TaskByID(r.Task).Phase; p == model.Stopping || p == model.Suspending {
				v.RemoveTask(r.Task)
			}
		}
		after.gpus = append(after.gpus, v)
	}
	kept := pre.reserve.Head()
	defer func() { pre.reserve.SetHead(kept) }()
	for _, t := range blocked {
		victims, fits := after.makeRoom(t)
		if fits && t.ID == pre.reserve.Head().Task {
			pre.reserve.SetHead(reserve.Head{}) // its GPUs are open to others once it runs
		}
		for _, id := range victims {
			victim := pre.TaskByID(id)
			why := model.Reason{Code: model.ReasonSlotUsed, Span: pre.SlotOf(victim)}
			how := suspendOrStop
			if !pre.reserve.HostAllows(t, victim) {
				how = stopOnly
			}
			pre.displace(displacement{victim, why, how})
		}
	}
}

func (pre *Preempter) anySlotOver() bool {
	if pre.Options().Slot <= 0 && pre.TasksWithSlot() == 0 {
		return false
	}
	for _, g := range pre.GPUList() {
		for i := range g.Residents {
			if pre.SlotEnds(pre.TaskByID(g.Residents[i].Task)) <= pre.Now() {
				return true
			}
		}
	}
	return slices.ContainsFunc(pre.WithoutGPU(), func(t *model.Task) bool { return pre.SlotEnds(t) <= pre.Now() })
}

// timeslice is the ledger as it will be when the stopped tasks have gone and the tasks
// for which they stop have started.
type timeslice struct {
	pre      *Preempter
	gpus     []*model.GPU
	promised map[string]promised // of each machine, look-up only
}

// makeRoom makes room for a waiting task and returns the tasks to stop.
func (r *timeslice) makeRoom(t *model.Task) (victims []model.TaskID, fits bool) {
	switch {
	case t.GPUs == 0:
		return r.hostVictims(t)
	case !r.couldFitHost(t):
		return nil, false
	}
	return r.admit(t)
}

// admit makes room for a waiting task and returns the tasks to stop. If stopping
// would not help, it changes nothing and returns false.
func (r *timeslice) admit(t *model.Task) (victims []model.TaskID, fits bool) {
	var options []freedSlot
	for i, g := range r.gpus {
		if victims, ok := r.room(t, g); ok {
			options = append(options, freedSlot{r.pre.GPUList()[i], g, victims})
		}
	}
	var picked []freedSlot
	for _, node := range r.nodes(options, t.GPUs) {
		slices.SortStableFunc(node, func(a, b freedSlot) int { return cmp.Compare(len(a.victims), len(b.victims)) })
		node = node[:t.GPUs]
		if picked == nil || stops(node) < stops(picked) {
			picked = node
		}
	}
	for _, o := range picked {
		for _, id := range o.victims {
			if !slices.Contains(victims, id) {
				victims = append(victims, id)
			}
		}
	}
	for _, id := range victims {
		for _, g := range r.gpus {
			g.RemoveTask(id)
		}
	}
	for _, o := range picked { // no resident is added: the policies look up the progress of residents
		taken := t.NeedOn(o.then)
		if r.pre.RunsAlone(t) {
			taken = o.then.Capacity
		}
		o.then.OtherProcesses, o.then.Used = o.then.OtherProcesses+taken, o.then.Used+taken
		o.then.Settle()
	}
	return victims, picked != nil
}

// freedSlot is a GPU to which a task could go, with the tasks that must leave it first.
type freedSlot struct {
	now, then *model.GPU
	victims   []model.TaskID
}

func stops(all []freedSlot) int {
	n := 0
	for _, o := range all {
		n += len(o.victims)
	}
	return n
}

// nodes returns the options of each machine that has at least n.
func (r *timeslice) nodes(all []freedSlot, n int) [][]freedSlot {
	var nodes [][]freedSlot
	for len(all) > 0 {
		m := 1
		for m < len(all) && all[m].now.Node == all[0].now.Node {
			m++
		}
		if m >= n {
			nodes = append(nodes, all[:m:m])
		}
		all = all[m:]
	}
	return nodes
}

// room returns the tasks that must leave a GPU for t to fit, the longest running first,
// or false if t would not fit even then.
func (r *timeslice) room(t *model.Task, g *model.GPU) ([]model.TaskID, bool) {
	pre := r.pre
	if pre.placer.Reject(t, g) == "" {
		return nil, true
	}
	var over []*model.Task
	for i := range g.Residents {
		v := pre.TaskByID(g.Residents[i].Task)
		if pre.SlotEnds(v) <= pre.Now() && pre.queue.Before(t, pre.rotated(v)) {
			over = append(over, v)
		}
	}
	slices.SortFunc(over, func(a, b *model.Task) int {
		return cmp.Or(cmp.Compare(a.Last().SlotStart(), b.Last().SlotStart()), cmp.Compare(a.ID, b.ID))
	})
	then := g.Clone()
	for i, v := range over {
		then.RemoveTask(v.ID)
		if pre.placer.Reject(t, then) == "" {
			ids := make([]model.TaskID, i+1)
			for j := range ids {
				ids[j] = over[j].ID
			}
			return ids, true
		}
	}
	return nil, false
}

// rotated returns a copy of a running task as it would wait after its slot. If the copy
// goes before a waiting task, the running task does not stop for that one.
func (pre *Preempter) rotated(t *model.Task) *model.Task {
	c := *t
	pre.queue.PutLast(&c)
	c.Phase = model.Queued
	c.Rank = pre.queue.RankOf(&c)
	return &c
}
