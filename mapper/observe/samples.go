package observe

import (
	"slices"

	"carma/mapper/model"
)

// Sampled stores the samples of GPUs and machines, and checks the grants of the tasks
// there.
func (ob *Observer) Sampled(ev model.Sampled) {
	ob.hostSampled(ev.Hosts)
	for i := range ev.GPUs {
		in := &ev.GPUs[i]
		g := ob.GPU(in.ID)
		if g == nil {
			continue
		}
		free, busy := ob.FreeMemory(g), ob.Busy(g)
		foreign, residue := in.OtherProcesses.Clamp(), ob.recordResidue(in.Tasks)
		for _, b := range residue {
			foreign = (foreign + b.Used).Clamp()
		}
		if foreign != g.OtherProcesses || in.Fault != g.Fault || !slices.Equal(residue, g.Residue) {
			g.OtherProcesses, g.Fault, g.Residue = foreign, in.Fault, residue
			ob.placer.Reconsider(g) // the tasks of residues may see it differently
			ob.CapacityChanged()
			ob.MarkDirty()
		}
		ob.setPersistentFault(g, in)
		g.Used = in.Used.Clamp()
		ob.predictor.RecordActivity(g)
		ob.predictor.SetCoarse(g, in.Coarse)
		g.SMACT, g.SMOCC, g.DRAMA = model.Fraction(in.SMACT), model.Fraction(in.SMOCC), model.Fraction(in.DRAMA)
		for j := range g.Residents {
			g.Residents[j].Used = 0
			g.Residents[j].Active, g.Residents[j].Timed = 0, false
		}
		for _, u := range in.Tasks {
			if r := g.Resident(u.Task); r != nil {
				r.Used = u.Used.Clamp()
				if u.Timed {
					r.Active, r.Timed = model.Fraction(u.Active), true
				}
				if r.Peak == 0 && r.Used > 0 {
					r.QuietSince = 0 // it has allocated memory
				}
				if r.Used > r.Peak {
					r.Peak, r.GrewAt = r.Used, ob.Now()
					ob.predictor.ScheduleShrink(r)
				}
			}
		}
		g.Settle()
		ob.predictor.NoteActivity(g)
		ob.checkGrants(g)
		ob.recordOveruse(g)
		g.Read = true
		ob.preempter.CheckActivity(g)
		if ob.FreeMemory(g) > free || busy && !ob.Busy(g) {
			ob.MarkDirty() // most samples do not make room for a task
		}
	}
}

// recordResidue returns the memory that suspended tasks still hold on a GPU: a program
// that has vacated it keeps its context there. The residue is allocated to no task and
// counts as other processes, except for the task itself when it resumes.
func (ob *Observer) recordResidue(uses []model.TaskUse) (all []model.SuspendedResidue) {
	for _, u := range uses {
		if t := ob.TaskByID(u.Task); t != nil && t.Phase == model.Suspended && u.Used > 0 {
			all = append(all, model.SuspendedResidue{Task: u.Task, Used: u.Used.Clamp()})
		}
	}
	return all
}

// recordOveruse records the tasks that use more than their grants on a GPU that has not
// enough memory for all grants.
func (ob *Observer) recordOveruse(g *model.GPU) {
	if len(g.Overran) == 0 && ob.FreeMemory(g) >= 0 {
		return
	}
	g.Overran = slices.DeleteFunc(slices.Clone(g.Overran), func(o model.Overran) bool { return ob.Now().Sub(o.At) > model.OverrunWindow })
	if ob.FreeMemory(g) >= 0 || ob.Options().Booking == model.BookSamples {
		return
	}
	for _, r := range g.Residents {
		if r.Used <= r.Grant {
			continue
		}
		g.Overran = slices.DeleteFunc(g.Overran, func(o model.Overran) bool { return o.Task == r.Task })
		g.Overran = append(g.Overran, model.Overran{Task: r.Task, Used: r.Used, Grant: r.Grant, At: ob.Now()})
	}
}
