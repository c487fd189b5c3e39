package place

import (
	"math"

	"carma/mapper/model"
	"carma/mapper/predict"
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
	demands []predict.Demand
	left    []float64
	bounds  []predict.Bound
	// beside are the speeds beside a candidate with a typical load, by its class, with
	// the candidate last, or empty if not computed.
	beside [predict.Classes][]float64
}

// slowdownBound updates the bounds of a memo.
func (sc *scorer) slowdownBound(m *memo) *slowdownBound {
	v := &m.bound
	most := sc.predictor.PredictedCap()
	if v.most == most {
		return v
	}
	v.most = most
	v.as.begin()
	v.late.begin()
	for i := range m.parts {
		p := m.parts[i]
		allowed := p.SlowdownForCap() + slowAlready
		v.as.add(&p, p.Demand, p.Within(max(most-capMargin, allowed), false))
		p.Left *= p.Basis.Lateness()
		v.late.add(&p, p.WorstDemand, p.Within(max(most, allowed), true))
	}
	return v
}

func (v *boundCase) begin() {
	v.demands, v.left, v.bounds = v.demands[:0], v.left[:0], v.bounds[:0]
	for c := range v.beside {
		v.beside[c] = v.beside[c][:0]
	}
}

func (v *boundCase) add(p *predict.TaskForecast, d predict.Demand, b predict.Bound) {
	v.demands, v.left, v.bounds = append(v.demands, d), append(v.left, p.Left), append(v.bounds, b)
}

// certainlySlow reports whether a candidate is certain to be rejected on a GPU, because
// it or a resident would be slowed down too much. False means not known yet.
func (sc *scorer) certainlySlow(g *model.GPU, m *memo, n *candidate) bool {
	v, on := sc.slowdownBound(m), sc.predictor.SharingMode(g)
	with := predict.TaskForecast{Left: n.left, Elsewhere: 1, Basis: n.basis}
	if v.as.tooSlow(on, m.parts, &with, n.demand, n.class, with.Within(v.most-capMargin, false)) {
		return true
	}
	with.Left *= with.Basis.Lateness()
	return v.late.tooSlow(on, m.parts, &with, n.worst, n.class, with.Within(v.most, true))
}

// tooSlow reports whether a bound is certain to be exceeded beside a candidate, the last
// part, with demand d and bound most. class is the class of its load if typical, or -1.
func (v *boundCase) tooSlow(on predict.SharingMode, there []predict.TaskForecast, last *predict.TaskForecast, d predict.Demand, class int, most predict.Bound) bool {
	speeds := v.speeds(on, d, class)
	next := math.Inf(1)
	for i := range there {
		p := &there[i]
		speed := min(speeds[i], p.Elsewhere)
		next = min(next, v.left[i]/speed)
		if p.SlowdownBeside(speed) > v.bounds[i].Persisting {
			return true
		}
	}
	speed := min(speeds[len(there)], last.Elsewhere)
	next = min(next, last.Left/speed)
	if last.SlowdownBeside(speed) > most.Persisting || next+max(last.Left-next*speed, 0) > most.Finish {
		return true
	}
	for i := range there {
		if next+max(v.left[i]-next*min(speeds[i], there[i].Elsewhere), 0) > v.bounds[i].Finish {
			return true
		}
	}
	return false
}

// speeds returns the speeds of the tasks there and of a candidate.
func (v *boundCase) speeds(on predict.SharingMode, d predict.Demand, class int) []float64 {
	if class < 0 {
		v.demands = append(v.demands, d)
		speeds := on.Speeds(on.Buffer(), v.demands)
		v.demands = v.demands[:len(v.demands)-1]
		return speeds
	}
	if len(v.beside[class]) == 0 {
		v.demands = append(v.demands, d)
		v.beside[class] = on.Speeds(v.beside[class], v.demands)
		v.demands = v.demands[:len(v.demands)-1]
	}
	return v.beside[class]
}
