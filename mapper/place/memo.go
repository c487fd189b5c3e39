package place

import (
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// scoreResult is the result of scoring a candidate on a GPU.
type scoreResult struct {
	added  float64
	finish float64 // its end, in seconds from now
	no     refusal
	rough  bool // it is rejected as no.rule says; the rest is not computed
}

// memo holds the forecast of a GPU and the scores derived from it.
type memo struct {
	checked    units.Instant // the instant at which it was last found valid
	gpu        int           // the version of the GPU then
	turnover   int           // of the GPU at the forecast
	valid      bool
	version    uint64                 // unique among the forecasts of a state
	at         units.Instant          // the instant of the forecast
	extra      float64                // SM activity that the tasks do not explain
	parts      []predict.TaskForecast // the tasks there, with their forecasts
	work       float64                // the remaining SM work of these, in seconds
	ends       units.Instant          // the first end among them, or 0 if not computed
	bound      slowdownBound
	candidates []int         // the numbers of the scored candidates
	answers    []scoreResult // their results, in the same order
	index      []int32       // positions in candidates, plus 1, hashed by number; its length is a power of two
}

// find returns the position of a candidate's result, or -1.
func (m *memo) find(id int) int {
	for i := id; len(m.index) > 0; i++ {
		at := int(m.index[i&(len(m.index)-1)]) - 1
		if at < 0 || m.candidates[at] == id {
			return at
		}
	}
	return -1
}

// enter adds a result that is not there.
func (m *memo) enter(id int, a scoreResult) {
	m.candidates, m.answers = append(m.candidates, id), append(m.answers, a)
	from := len(m.candidates) - 1
	if 2*len(m.candidates) > len(m.index) {
		m.index = make([]int32, max(32, 2*len(m.index)))
		from = 0
	}
	for at := from; at < len(m.candidates); at++ {
		i := m.candidates[at]
		for m.index[i&(len(m.index)-1)] != 0 {
			i++
		}
		m.index[i&(len(m.index)-1)] = int32(at + 1)
	}
}

// memo returns the memo of a GPU, and recomputes it if necessary.
func (sc *scorer) memo(g *model.GPU) *memo {
	m := &cacheOf(g).forecast
	if m.valid && m.checked == sc.Now() && m.gpu == g.Version() {
		return m
	}
	at, extra := sc.forecastAt(g), sc.predictor.UnexplainedActivity(g)
	if !m.valid || m.turnover != g.Turnover() || m.at != at || m.extra != extra {
		sc.table.version++
		*m = memo{valid: true, turnover: g.Turnover(), version: sc.table.version, at: at, extra: extra, parts: sc.predictor.Forecasts(m.parts[:0], g, at), bound: m.bound, candidates: m.candidates[:0], answers: m.answers[:0], index: m.index}
		m.bound.most = 0
		clear(m.index)
		sc.predictor.SharingMode(g).Forecast(m.parts, nil)
		for i := range m.parts {
			m.work += m.parts[i].Left * m.parts[i].SM
		}
	}
	m.checked, m.gpu = sc.Now(), g.Version()
	return m
}

// forecastAt returns the instant for which a forecast is made; it advances in steps.
func (sc *scorer) forecastAt(g *model.GPU) units.Instant {
	return g.ChangedAt.Add(sc.Now().Sub(g.ChangedAt) / ForecastValid * ForecastValid)
}

// score returns the result of scoring a candidate on a GPU.
func (sc *scorer) score(g *model.GPU, id int) scoreResult { return sc.ask(g, id, false) }

// slowdownRule returns only the rule of that result, which is often found sooner.
func (sc *scorer) slowdownRule(g *model.GPU, id int) model.Rule {
	if g.Idle() {
		return ""
	}
	_, no := sc.latest(g, id, true)
	return no
}

// added returns the seconds that a candidate adds to the sum of all completion times on a
// GPU, and the rule that rejects it there.
func (sc *scorer) added(g *model.GPU, id int) (seconds float64, no model.Rule) {
	seconds, no = sc.latest(g, id, false)
	if g.Idle() { // always allowed, see weigh
		no = ""
	}
	return seconds, no
}

// latest is ask by way of the score table, for callers that need only the added seconds
// and the rule. With verdict only the rule is valid.
func (sc *scorer) latest(g *model.GPU, id int, verdict bool) (added float64, no model.Rule) {
	m := sc.memo(g)
	if k := sc.table.find(g, m, id); k != nil && (verdict || !k.rough()) {
		return k.added, k.rule()
	}
	a := sc.ask(g, id, verdict)
	sc.table.enter(g, m, id, &a)
	return a.added, a.no.rule
}

func (sc *scorer) ask(g *model.GPU, id int, verdict bool) scoreResult {
	m := sc.memo(g)
	k := m.find(id)
	if k >= 0 && (verdict || !m.answers[k].rough) {
		return m.answers[k]
	}
	var a scoreResult
	switch n := &sc.candidates.all[id]; {
	case n.prior.IsUnknown():
		a = sc.besideInDoubt(g, n, verdict)
	case verdict && sc.certainlySlow(g, m, n):
		a = scoreResult{rough: true, no: refusal{rule: model.RuleSlowdown}}
	default:
		a = sc.beside(g, m.parts, n, verdict)
	}
	if k >= 0 {
		m.answers[k] = a
	} else {
		m.enter(id, a)
	}
	return a
}
