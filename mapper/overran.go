package mapper

import (
	"slices"

	"carma/mapper/model"
)

// noteOverran records the tasks that use more than their grants on a GPU that has not
// enough memory for all grants.
func (s *State) noteOverran(g *model.GPU) {
	if len(g.Overran) == 0 && s.FreeMemory(g) >= 0 {
		return
	}
	g.Overran = slices.DeleteFunc(slices.Clone(g.Overran), func(o model.Overran) bool { return s.Now().Sub(o.At) > model.OverrunWindow })
	if s.FreeMemory(g) >= 0 || s.Ledger.Options().Booking == model.BookSamples {
		return
	}
	for _, r := range g.Residents {
		if r.Used <= r.Grant {
			continue
		}
		g.Overran = slices.DeleteFunc(g.Overran, func(o model.Overran) bool { return o.Task == r.Task })
		g.Overran = append(g.Overran, model.Overran{Task: r.Task, Used: r.Used, Grant: r.Grant, At: s.Now()})
	}
}
