package mapper

import (
	"slices"

	"carma/mapper/model"
)

// noteOverran records the tasks that use more than their grants on a GPU that has not
// enough memory for all grants.
func (l *ledger) noteOverran(g *model.GPU) {
	if len(g.Overran) == 0 && l.free(g) >= 0 {
		return
	}
	g.Overran = slices.DeleteFunc(slices.Clone(g.Overran), func(o model.Overran) bool { return l.now.Sub(o.At) > model.OverrunWindow })
	if l.free(g) >= 0 || l.opt.Booking == model.BookSamples {
		return
	}
	for _, r := range g.Residents {
		if r.Used <= r.Grant {
			continue
		}
		g.Overran = slices.DeleteFunc(g.Overran, func(o model.Overran) bool { return o.Task == r.Task })
		g.Overran = append(g.Overran, model.Overran{Task: r.Task, Used: r.Used, Grant: r.Grant, At: l.now})
	}
}
