package mapper

import "math"

// slowdownBound is what a look at a GPU keeps to refuse most newcomers by the first step of
// their outlooks, up to the first end there. No task is faster later than alone, so
// what is certain then to end too late, or is too slow while all stay, needs no
// further steps. Nine in ten refusals for RuleSlowdown are found so.
type slowdownBound struct {
	most float64 // the slowdown that is allowed, for which the bounds are; 0: not worked out
	// The tasks there, as expected and in the likely worst case.
	as, late boundCase
}

// boundCase is one case of a glance.
type boundCase struct {
	demands []loadDemand
	left    []float64
	bounds  []bound
	// beside are the speeds beside a newcomer of a typical load, by its class, the
	// newcomer's last; empty: not worked out.
	beside [classes][]float64
}

// slowdownBound brings the glance of a memo up to date.
func (s *State) slowdownBound(m *memo) *slowdownBound {
	v := &m.glance
	most := s.predictedCap()
	if v.most == most {
		return v
	}
	v.most = most
	v.as.begin()
	v.late.begin()
	for i := range m.parts {
		p := m.parts[i]
		allowed := p.worst() + slowAlready
		v.as.add(&p, p.demand, p.within(max(most-capMargin, allowed), false))
		p.left *= lateness[p.basis]
		v.late.add(&p, p.worstDemand, p.within(max(most, allowed), true))
	}
	return v
}

func (v *boundCase) begin() {
	v.demands, v.left, v.bounds = v.demands[:0], v.left[:0], v.bounds[:0]
	for c := range v.beside {
		v.beside[c] = v.beside[c][:0]
	}
}

func (v *boundCase) add(p *residentForecast, d loadDemand, b bound) {
	v.demands, v.left, v.bounds = append(v.demands, d), append(v.left, p.left), append(v.bounds, b)
}

// certainlySlow reports whether a newcomer is certain to be refused on a GPU, as it or
// somebody there would be slowed down too much. False: that is not known yet.
func (s *State) certainlySlow(g *GPU, m *memo, n *candidate) bool {
	v, on := s.slowdownBound(m), s.sharingMode(g)
	with := residentForecast{left: n.left, elsewhere: 1, basis: n.basis}
	if v.as.tooSlow(on, m.parts, &with, n.demand, n.class, with.within(v.most-capMargin, false)) {
		return true
	}
	with.left *= lateness[with.basis]
	return v.late.tooSlow(on, m.parts, &with, n.worst, n.class, with.within(v.most, true))
}

// tooSlow reports whether a bound is certain to be exceeded beside a newcomer, the
// last part, whose demand and bound these are. class is that of its load if that is
// a typical one.
func (v *boundCase) tooSlow(on sharingMode, there []residentForecast, last *residentForecast, d loadDemand, class int, most bound) bool {
	speeds := v.speeds(on, d, class)
	next := math.Inf(1)
	for i := range there {
		p := &there[i]
		speed := min(speeds[i], p.elsewhere)
		next = min(next, v.left[i]/speed)
		if p.staying(speed) > v.bounds[i].persisting {
			return true
		}
	}
	speed := min(speeds[len(there)], last.elsewhere)
	next = min(next, last.left/speed)
	if last.staying(speed) > most.persisting || next+max(last.left-next*speed, 0) > most.finish {
		return true
	}
	for i := range there {
		if next+max(v.left[i]-next*min(speeds[i], there[i].elsewhere), 0) > v.bounds[i].finish {
			return true
		}
	}
	return false
}

// speeds are those of the tasks there and a newcomer.
func (v *boundCase) speeds(on sharingMode, d loadDemand, class int) []float64 {
	if class < 0 {
		v.demands = append(v.demands, d)
		speeds := on.speeds(on.scratch[:0], v.demands)
		v.demands = v.demands[:len(v.demands)-1]
		return speeds
	}
	if len(v.beside[class]) == 0 {
		v.demands = append(v.demands, d)
		v.beside[class] = on.speeds(v.beside[class], v.demands)
		v.demands = v.demands[:len(v.demands)-1]
	}
	return v.beside[class]
}
