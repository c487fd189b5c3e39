package booking

import (
	"fmt"
	"math"
	"strings"

	"carma/configs/models"
	"carma/estimator"
	"carma/estimator/correct"
	"carma/internal/units"
	"carma/mapper/model"
)

// plainly stores the uncorrected estimate in e.Plain, so that a successful run can measure
// its error. family is the network's family, or empty if the figure was measured. A figure
// for another batch size than the requested one is not stored, because a run cannot measure
// its error.
func (p *Predictor) plainly(e estimator.Estimate, family, network string) estimator.Estimate {
	if e.WholeGPU || e.Point <= 0 || family == "" && !e.Exact {
		return e
	}
	group := strings.TrimSpace(e.Method + " " + family)
	e.Plain = model.RawEstimate{Group: group + ", " + p.Environment().Name, Model: network, Point: e.Point, Upper: e.Memory}
	return e
}

// modelKey returns a name that identifies a network. Networks from a probe have no names,
// and files of different networks may have the same name, so their key includes the
// number of parameters.
func modelKey(c *models.Config, described bool) string {
	if described {
		return fmt.Sprintf("%s, %d parameters", strings.ToLower(c.Name), c.Params())
	}
	if c.Origin == "probe" {
		return fmt.Sprintf("probed, %d parameters", c.Params())
	}
	return strings.ToLower(c.Name)
}

// measuring stores the estimator's answer for a model whose memory was declared, because
// its runs measure the estimator too. Nothing else changes.
func (p *Predictor) measuring(q estimator.Query, e estimator.Estimate) estimator.Estimate {
	if q.Model == "" && q.Network == nil {
		return e
	}
	q.Declared, q.Estimator = 0, ""
	if plain, err := p.unseen(q); err == nil {
		e.Plain = plain.Plain
	}
	return e
}

// asHere corrects an estimate by the errors of estimates in earlier runs on this machine.
// These are runs of the model with other settings, and runs of other models.
func (p *Predictor) asHere(q estimator.Query, e estimator.Estimate) estimator.Estimate {
	if e.Plain.Group == "" {
		return e
	}
	var runs []correct.Run
	for _, m := range q.Measured {
		if m.Group == e.Plain.Group && m.Point > 0 && m.Peak > 0 {
			runs = append(runs, correct.Run{Model: m.Model, Log: math.Log(float64(m.Peak) / float64(m.Point))})
		}
	}
	c := correct.Of(runs, e.Plain.Model, math.Log(float64(e.Plain.Upper)/float64(e.Plain.Point)))
	if c.Same+c.Others == 0 {
		return e
	}
	scaled := func(log float64) units.Bytes { return units.Bytes(float64(e.Plain.Point) * math.Exp(log)) }
	e.Point, e.Memory, e.Same, e.Others = scaled(c.Log), scaled(c.Upper), c.Same, c.Others
	e.Loose = true // earlier runs do not make a task impossible
	e.Detail = fmt.Sprintf("%s; corrected by %+.1f %% from %s: %s, %s booked", e.Detail, 100*(math.Exp(c.Log)-1), whose(c), e.Point, e.Memory)
	return e
}

// whose describes the runs on which a correction is based.
func whose(c correct.Correction) string {
	of := func(n int, what string) string {
		if n == 1 {
			return "1 run " + what
		}
		return fmt.Sprintf("%d runs %s", n, what)
	}
	switch {
	case c.Others == 0:
		return of(c.Same, "of this model here")
	case c.Same == 0:
		return of(c.Others, "of other models here")
	}
	return of(c.Same, "of this model") + " and " + of(c.Others, "of other models here")
}
