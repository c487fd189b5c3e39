package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"carma/internal/units"

	"carma/estimator"
	"carma/estimator/environment"
	"carma/estimator/methods"
)

// RunSeen scores a method that uses one measured run of the same training at another
// batch size: the next smaller or, if there is none, the next larger one. Trainings
// without such a run are left out.
func RunSeen(cases []Case, m methods.Method, fallback string, confidence float64) (Score, error) {
	score := Score{Method: m.Name() + ", one other batch size seen"}
	var t tally
	for i := range cases {
		c := &cases[i]
		o := otherBatch(cases, c)
		if c.Truncated || o == nil {
			continue
		}
		score.Of++
		a, err := ask(c, m, fallback, confidence)
		if err != nil {
			return score, err
		}
		b, err := ask(o, m, fallback, confidence)
		if err != nil {
			return score, err
		}
		if a.Point == 0 || b.Point == 0 {
			continue // the method has no answer
		}
		a = a.Given(c.Batch, methods.Seen{Measured: o.Measured, Point: b.Point, Batch: o.Batch})
		t.add(c.Measured, a.Point, a.Upper)
	}
	t.fill(&score)
	return score, nil
}

// RunAlone scores estimates from only n measured runs of a training at other batch sizes.
// It uses the runs at the next smaller batch sizes, and at larger batch sizes if there are
// too few.
func RunAlone(cases []Case, n int) Score {
	score := Score{Method: fmt.Sprintf("nothing known, %d other batch sizes seen", n)}
	if n == 1 {
		score.Method = "nothing known, one other batch size seen"
	}
	var t tally
	for i := range cases {
		c := &cases[i]
		others := otherBatches(cases, c)
		if c.Truncated || len(others) < n {
			continue
		}
		score.Of++
		var runs []estimator.Run
		for _, o := range others[:n] {
			runs = append(runs, estimator.Run{Batch: o.Batch, Peak: units.Bytes(o.Measured)})
		}
		if e, _, ok := estimator.FromRuns(c.Batch, runs); ok {
			t.add(c.Measured, int64(e.Point), int64(e.Memory))
		}
	}
	t.fill(&score)
	return score
}

// ask returns a method's answer for a case, or 0 if the method has no answer.
func ask(c *Case, m methods.Method, fallback string, confidence float64) (methods.Answer, error) {
	env, err := environment.Named(cmp.Or(c.Environment, fallback))
	if err != nil {
		return methods.Answer{}, err
	}
	s := methods.Subject{Config: c.Config, Environment: &env.Environment, Confidence: confidence}
	if c.Set == Timm {
		s.FakeTensor = c.FakeTensor
	}
	a, err := m.Estimate(s)
	if err != nil {
		return methods.Answer{}, nil // counts as no answer
	}
	return a, nil
}

// otherBatch returns the first of otherBatches, or nil if there is none.
func otherBatch(cases []Case, c *Case) *Case {
	if others := otherBatches(cases, c); len(others) > 0 {
		return others[0]
	}
	return nil
}

// otherBatches returns the runs of the same training at other batch sizes. Smaller batch
// sizes come before larger ones, and the nearest first.
func otherBatches(cases []Case, c *Case) []*Case {
	var others []*Case
	for i := range cases {
		o := &cases[i]
		if o.Group == c.Group && o.Environment == c.Environment && o.Batch != c.Batch && !o.Truncated {
			others = append(others, o)
		}
	}
	slices.SortStableFunc(others, func(a, b *Case) int { return cmp.Compare(distance(a.Batch, c.Batch), distance(b.Batch, c.Batch)) })
	return others
}

// distance returns a sort key from the distance in doublings. A larger batch size sorts
// after all smaller ones.
func distance(other, batch int) float64 {
	d := math.Abs(math.Log2(float64(other) / float64(batch)))
	if other > batch {
		d += 1000
	}
	return d
}
