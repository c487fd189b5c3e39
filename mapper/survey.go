package mapper

import "carma/mapper/units"

// survey is the most that the GPUs can take. It lets a pass skip most tasks that
// do not fit without looking at each GPU.
type survey struct {
	open int             // GPUs that pass the preconditions common to all tasks
	idle int             // of these, idle
	free [16]units.Bytes // the most free memory among them, descending
}

// survey leaves out the GPUs that are kept free, once the pass is behind the task
// they are kept for.
func (s *State) survey(p *pass) (v survey) {
	for _, g := range s.gpus {
		if s.rejectAny(g) != "" || g.alone() || s.full(g) || p.favoured != nil && !s.opt.FillHeld && s.kept.Until == 0 && s.agedOn(g) != 0 {
			continue
		}
		if g.idle() {
			v.idle++
		}
		v.add(s.free(g))
	}
	return v
}

func (v *survey) add(free units.Bytes) {
	i := min(v.open, len(v.free)-1)
	v.open++
	if v.open > len(v.free) && free <= v.free[i] {
		return
	}
	for ; i > 0 && v.free[i-1] < free; i-- {
		v.free[i] = v.free[i-1]
	}
	v.free[i] = free
}

func (v *survey) possible(t *Task, alone bool) bool {
	if alone && v.idle < t.GPUs {
		return false
	}
	if t.home() { // what it left on its GPUs is not counted as free
		return v.open >= t.GPUs
	}
	return v.open >= t.GPUs && v.free[min(t.GPUs, len(v.free))-1] >= max(t.Need, 1)
}
