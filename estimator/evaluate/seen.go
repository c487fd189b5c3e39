package evaluate

import (
	"cmp"
	"math"

	"carma/estimator/environment"
	"carma/estimator/methods"
)

// RunSeen scores a method that is given one measured run of the same training
// at another batch size: the next smaller one, else the next larger one.
// Trainings that have none are left out.
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
			continue // it has no answer
		}
		a = a.Given(c.Batch, methods.Seen{Measured: o.Measured, Point: b.Point, Batch: o.Batch})
		t.add(c.Measured, a.Point, a.Upper)
	}
	t.fill(&score)
	return score, nil
}

// ask has a method answer for a case; a method without an answer gives 0.
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
		return methods.Answer{}, nil // scored as no answer
	}
	return a, nil
}

// otherBatch is the run of the same training whose batch size is nearest, a
// smaller one first.
func otherBatch(cases []Case, c *Case) *Case {
	var best *Case
	distance := math.Inf(1)
	for i := range cases {
		o := &cases[i]
		if o.Group != c.Group || o.Environment != c.Environment || o.Batch == c.Batch || o.Truncated {
			continue
		}
		d := math.Abs(math.Log2(float64(o.Batch) / float64(c.Batch)))
		if o.Batch > c.Batch {
			d += 1000
		}
		if d < distance {
			best, distance = o, d
		}
	}
	return best
}
