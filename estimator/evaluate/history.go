package evaluate

import (
	"math"

	"carma/configs/models"
	"carma/estimator/correct"
	"carma/estimator/methods"
)

// historyMost is the largest number of an environment's trainings that are each corrected
// by all others. The work grows with the square of the number.
const historyMost = 500

// RunHistory scores a method whose estimates are corrected by earlier runs on the machine.
// The earlier runs are all other cases. All cases must be of one environment and one family
// of networks. If same is true, the earlier runs include runs of the same model with other
// settings, otherwise only runs of other models.
func RunHistory(cases []Case, m methods.Method, fallback string, confidence float64, same bool) (Score, error) {
	score := Score{Method: m.Name() + ", other models run here before"}
	if same {
		score.Method = m.Name() + ", it and other models run here before"
	}
	type run struct {
		c      *Case
		a      methods.Answer
		family models.Family
	}
	var runs []run
	for i := range cases {
		c := &cases[i]
		if c.Truncated || c.Config == nil {
			continue
		}
		score.Of++
		a, err := ask(c, m, fallback, confidence)
		if err != nil {
			return score, err
		}
		if a.Point > 0 {
			runs = append(runs, run{c, a, c.Config.Family})
		}
	}
	var t tally
	for i, r := range runs {
		var seen []correct.Run
		for j, o := range runs {
			if i != j && o.family == r.family && (same || o.c.Group != r.c.Group) {
				seen = append(seen, correct.Run{Model: o.c.Group, Log: math.Log(float64(o.c.Measured) / float64(o.a.Point))})
			}
		}
		if len(seen) == 0 {
			continue
		}
		bound := math.Log(float64(max(r.a.Upper, r.a.Point)) / float64(r.a.Point))
		c := correct.Of(seen, r.c.Group, bound)
		at := func(log float64) int64 { return int64(float64(r.a.Point) * math.Exp(log)) }
		t.add(r.c.Measured, at(c.Log), at(c.Upper))
	}
	t.fill(&score)
	return score, nil
}
