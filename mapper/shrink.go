package mapper

// What a grant is cut to above the highest memory that was seen: samples miss
// short spikes.
const (
	shrinkFactor = 1.05
	shrinkLeast  = 256 * MiB
)

// shrink cuts the grants of tasks whose memory has not grown for a while, so
// that an estimate that was too high does not keep others out for a whole run.
func (s *State) shrink() {
	if s.opt.Shrink == 0 || s.opt.Booking == BookSamples {
		return
	}
	for _, g := range s.gpus {
		for i := range g.Residents {
			r := &g.Residents[i]
			if r.Alone || r.GrewAt == 0 || r.Used == 0 || s.now < r.GrewAt.Add(s.opt.Shrink) {
				continue
			}
			grant := max(r.Peak.Scale(shrinkFactor), r.Peak+shrinkLeast)
			if grant >= r.Grant {
				continue
			}
			g.Reserved -= r.Grant - grant
			r.Grant = grant
			g.settle()
			for k := range s.tasks[r.Task].Current().Grants {
				if a := &s.tasks[r.Task].Current().Grants[k]; a.GPU == g.ID {
					a.Memory = grant
				}
			}
		}
	}
}
