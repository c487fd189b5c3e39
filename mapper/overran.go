package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
)

// Overran records that a task exceeded its grant on a GPU while others lacked memory that
// they had been granted.
type Overran struct {
	Task  TaskID        `json:"task"`
	Used  units.Bytes   `json:"used"`
	Grant units.Bytes   `json:"grant"`
	At    units.Instant `json:"at"`
}

// overranFor is the time for which a neighbour's overuse explains a GPU OOM: samples are
// a second apart, and the same lack of memory may end both tasks, the neighbour first.
const overranFor = 10 * time.Second

// noteOverran records the tasks that use more than their grants on a GPU that has not
// enough memory for all grants.
func (l *ledger) noteOverran(g *GPU) {
	if len(g.Overran) == 0 && l.free(g) >= 0 {
		return
	}
	g.Overran = slices.DeleteFunc(slices.Clone(g.Overran), func(o Overran) bool { return l.now.Sub(o.At) > overranFor })
	if l.free(g) >= 0 || l.opt.Booking == BookSamples {
		return
	}
	for _, r := range g.Residents {
		if r.Used <= r.Grant {
			continue
		}
		g.Overran = slices.DeleteFunc(g.Overran, func(o Overran) bool { return o.Task == r.Task })
		g.Overran = append(g.Overran, Overran{Task: r.Task, Used: r.Used, Grant: r.Grant, At: l.now})
	}
}

// overranBeside returns the last neighbour that exceeded its grant during an attempt of a
// task, within overranFor, or nil.
func (g *GPU) overranBeside(task TaskID, a *Attempt, now units.Instant) *Overran {
	for i := len(g.Overran) - 1; i >= 0; i-- {
		o := &g.Overran[i]
		if o.Task != task && o.At >= a.Launched && now.Sub(o.At) <= overranFor {
			return o
		}
	}
	return nil
}
