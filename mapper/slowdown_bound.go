package mapper

import (
	"math"

	"carma/mapper/model"
)

// slowdownBound caches what is needed to reject most candidates by the first step of
// their forecasts, up to the first end there. No task is ever faster than alone. So a
// task that is certain then to end too late, or is too slow while all stay, needs no
// further steps. Nine in ten rejections for RuleSlowdown are found this way.
type slowdownBound struct {
	most float64 // the allowed slowdown of the bounds, or 0 if not computed
	// Residents under expected and under pessimistic load.
	as, late boundCase
}

// boundCase is one of the two cases.
type boundCase struct {
	demands []loadDemand
	left    []float64
	bounds  []bound
	// beside are the speeds beside a candidate with a typical load, by its class, with
	// the candidate last, or empty if not computed.
	beside [classes][]float64
}

// slowdownBound updates the bounds of a memo.
func (pr *predictor) slowdownBound(m *memo) *slowdownBound {
	v := &m.bound
	most := pr.predictedCap()
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

// certainlySlow reports whether a candidate is certain to be rejected on a GPU, because
// it or a resident would be slowed down too much. False means not known yet.
func (pr *predictor) certainlySlow(g *model.GPU, m *memo, n *candidate) bool {
	v, on := pr.slowdownBound(m), pr.sharingMode(g)
	with := residentForecast{left: n.left, elsewhere: 1, basis: n.basis}
	if v.as.tooSlow(on, m.parts, &with, n.demand, n.class, with.within(v.most-capMargin, false)) {
		return true
	}
	with.left *= lateness[with.basis]
	return v.late.tooSlow(on, m.parts, &with, n.worst, n.class, with.within(v.most, true))
}

// tooSlow reports whether a bound is certain to be exceeded beside a candidate, the last
// part, with demand d and bound most. class is the class of its load if typical, or -1.
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

// speeds returns the speeds of the tasks there and of a candidate.
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
