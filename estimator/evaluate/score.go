package evaluate

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"carma/estimator/environment"
	"carma/estimator/methods"
)

// Score is the quality of one method on a set of trainings. Errors are relative
// to the measured peak.
type Score struct {
	Method string `json:"estimator"`
	// Rows is the number of rows that the method answered, Of the number of all rows.
	Rows int `json:"rows"`
	Of   int `json:"of"`
	// Mean and Median are the mean and the median of |point / measured - 1|.
	Mean   float64 `json:"mean_error"`
	Median float64 `json:"median_error"`
	// Under is the share of points below the measured peak, BoundUnder the share
	// of bounds. Overhead is the mean of bound / measured - 1.
	Under      float64 `json:"under"`
	BoundUnder float64 `json:"bound_under"`
	Overhead   float64 `json:"bound_overhead"`
	// Failed is the number of rows on which the method failed. First is the first failure.
	Failed int    `json:"failed,omitempty"`
	First  string `json:"first_failure,omitempty"`
}

// Outcome is one method's answer for one row.
type Outcome struct {
	Set      string  `json:"set"`
	Row      int     `json:"line"`
	Name     string  `json:"name"`
	Method   string  `json:"estimator"`
	Measured int64   `json:"measured_bytes"`
	Point    int64   `json:"point_bytes"`
	Upper    int64   `json:"upper_bytes"`
	Error    float64 `json:"error"`
}

// Run scores every method on every case that was not truncated. The environment of cases
// without one is fallback.
func Run(cases []Case, all []methods.Method, fallback string, confidence float64) ([]Score, []Outcome, error) {
	var outcomes []Outcome
	scores := make([]Score, len(all))
	tallies := make([]tally, len(all))
	for _, c := range cases {
		if c.Truncated {
			continue
		}
		env, err := environment.Named(cmp.Or(c.Environment, fallback))
		if err != nil {
			return nil, nil, err
		}
		s := methods.Subject{Config: c.Config, Environment: &env.Environment, Confidence: confidence}
		if c.Set == Timm {
			s.FakeTensor = c.FakeTensor
		}
		for i, m := range all {
			scores[i].Of++
			a, err := m.Estimate(s)
			if err != nil {
				if !errors.Is(err, methods.ErrNotApplicable) && scores[i].Failed == 0 {
					scores[i].First = err.Error()
				}
				if !errors.Is(err, methods.ErrNotApplicable) {
					scores[i].Failed++
				}
				continue
			}
			a.Upper = clamped(a, env.Capacity)
			tallies[i].add(c.Measured, a.Point, a.Upper)
			outcomes = append(outcomes, Outcome{
				Set: c.Set, Row: c.Row, Name: c.Name, Method: m.Name(), Measured: c.Measured, Point: a.Point, Upper: a.Upper,
				Error: float64(a.Point)/float64(c.Measured) - 1,
			})
		}
	}
	for i, m := range all {
		scores[i].Method = m.Name()
		tallies[i].fill(&scores[i])
	}
	return scores, outcomes, nil
}

// clamped returns the bound that is allocated. A bound above the GPU's memory is reduced to
// this memory.
func clamped(a methods.Answer, capacity int64) int64 {
	if capacity > 0 && a.Upper > capacity {
		return max(capacity, a.Point)
	}
	return a.Upper
}

// Published scores the estimates that a file contains.
func Published(cases []Case) []Score {
	tallies := map[string]*tally{}
	of := 0
	for _, c := range cases {
		if c.Truncated {
			continue
		}
		of++
		for name, n := range c.Published {
			if tallies[name] == nil {
				tallies[name] = &tally{}
			}
			tallies[name].add(c.Measured, n, n)
		}
	}
	var scores []Score
	for name, t := range tallies {
		s := Score{Method: name + ", published", Of: of}
		t.fill(&s)
		scores = append(scores, s)
	}
	slices.SortFunc(scores, func(a, b Score) int { return cmp.Compare(a.Method, b.Method) })
	return scores
}

// tally sums errors.
type tally struct {
	errors            []float64
	under, boundUnder int
	overhead          float64
}

func (t *tally) add(measured, point, upper int64) {
	t.errors = append(t.errors, math.Abs(float64(point)/float64(measured)-1))
	if point < measured {
		t.under++
	}
	if upper < measured {
		t.boundUnder++
	}
	t.overhead += float64(upper)/float64(measured) - 1
}

func (t *tally) fill(s *Score) {
	s.Rows = len(t.errors)
	if s.Rows == 0 {
		return
	}
	n := float64(s.Rows)
	slices.Sort(t.errors)
	for _, e := range t.errors {
		s.Mean += e / n
	}
	s.Median = (t.errors[(s.Rows-1)/2] + t.errors[s.Rows/2]) / 2
	s.Under, s.BoundUnder, s.Overhead = float64(t.under)/n, float64(t.boundUnder)/n, t.overhead/n
}
