package mapper

// slowdownCap is the default of that option.
const slowdownCap = 1.5

// slowdownGate is policy carma's: with the newcomer nobody on a GPU may be
// predicted to take more than so many times as long as alone.
func (s *State) slowdownGate(t *Task, g *GPU) Rule {
	most := s.opt.SlowdownCap
	if most == 0 {
		most = slowdownCap
	}
	l := t.load(0)
	before, after := 0.0, 0.0
	for i := range g.Residents {
		before += g.Residents[i].Speed
	}
	for _, speed := range s.speeds(g.Residents, &l) {
		if speed*most < 1 {
			return RuleSlowdown
		}
		after += speed
	}
	g.gain = after - before
	return ""
}
