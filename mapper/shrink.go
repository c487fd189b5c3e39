package mapper

// What a grant is cut to above the highest memory that was seen: samples miss
// short spikes.
const (
	shrinkFactor = 1.05
	shrinkLeast  = 256 * MiB
)

// shrunk is what a resident's grant would be cut to.
func (r *Resident) shrunk() Bytes { return max(r.Peak.Scale(shrinkFactor), r.Peak+shrinkLeast) }

// shrinkLater has a resident's grant looked at when its memory has not grown
// for a while.
func (s *State) shrinkLater(r *Resident) {
	if s.opt.Shrink == 0 || r.ShrinkAt != 0 || r.Alone || r.shrunk() >= r.Grant {
		return
	}
	r.ShrinkAt = r.GrewAt.Add(s.opt.Shrink)
	s.at(r.ShrinkAt, deadline{})
}

// shrink cuts the grants of tasks whose memory has not grown for a while, so
// that an estimate that was too high does not keep others out for a whole run.
func (s *State) shrink() {
	for _, g := range s.gpus {
		for i := range g.Residents {
			r := &g.Residents[i]
			if r.ShrinkAt == 0 || r.ShrinkAt > s.now {
				continue
			}
			r.ShrinkAt = 0
			if s.now < r.GrewAt.Add(s.opt.Shrink) {
				s.shrinkLater(r)
				continue
			}
			s.cutGrant(g, r)
		}
	}
}

func (s *State) cutGrant(g *GPU, r *Resident) {
	if s.opt.Shrink == 0 || r.Alone || r.shrunk() >= r.Grant {
		return
	}
	t := s.tasks[r.Task]
	s.vacate(t)
	g.Reserved -= r.Grant - r.shrunk()
	r.Grant = r.shrunk()
	g.settle()
	grants := t.Current().Grants
	for i := range grants {
		if grants[i].GPU == g.ID {
			grants[i].Memory = r.Grant
		}
	}
	s.occupy(t)
}
