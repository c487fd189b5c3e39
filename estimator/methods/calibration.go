package methods

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"carma/configs/models"
)

//go:embed calibration.json
var calibrationFile []byte

// calibration has the errors of estimates on measured trainings that they were
// not fitted to. estimator/training/residual.py writes it.
type calibration struct {
	Groups  []group `json:"groups"`
	Tracker struct {
		// An estimate is the tracked peak times Factor, plus Base in MiB.
		Base   float64 `json:"base_mib"`
		Factor float64 `json:"factor"`
		Group  group   `json:"group"`
	} `json:"tracker"`
}

// group is a kind of training: an environment and a family of networks.
type group struct {
	Environment string        `json:"environment"`
	Family      models.Family `json:"family"`
	// Environments whose trainings are used if the group has none of its own.
	Environments []string `json:"environments,omitempty"`
	// Rows and Models are the numbers of those it was calibrated on.
	Rows   int `json:"rows"`
	Models int `json:"models"`
	// Residual: the correction was learned on trainings of this kind.
	Residual bool `json:"residual"`
	// Plain and Corrected are bounds on log(measured / point) without and with
	// the correction, by batch size. Corrected ones are in units of the spread
	// that the correction expects.
	Plain     []bounds `json:"plain"`
	Corrected []bounds `json:"corrected,omitempty"`
	// Other is a warning that the group is not the subject's own; empty: it is.
	Other string `json:"-"`
}

// bounds are those at one batch size, from trainings at batch sizes near it.
type bounds struct {
	Batch     int        `json:"batch"`
	Quantiles []quantile `json:"quantiles"`
}

type quantile struct {
	Confidence float64 `json:"confidence"`
	Log        float64 `json:"log"`
}

var calibrated = sync.OnceValue(func() *calibration {
	var c calibration
	if err := json.Unmarshal(calibrationFile, &c); err != nil {
		panic("calibration.json: " + err.Error()) // a test reads the file too
	}
	return &c
})

// groupOf finds the group of an environment and a family: their own, or the
// family's real models in any environment, or all real models.
func groupOf(environment string, family models.Family) group {
	for _, want := range []group{{Environment: environment, Family: family}, {Family: family}, {}} {
		for _, g := range calibrated().Groups {
			if g.Environment != want.Environment || g.Family != want.Family {
				continue
			}
			if g.Environment == "" && !slices.Contains(g.Environments, environment) {
				g.Other = fmt.Sprintf("no %s network was measured in %s: the bound is that of real models in %s",
					family, environment, strings.Join(g.Environments, ", "))
			}
			return g
		}
	}
	return group{}
}

// bound is the logarithm of upper bound over point: that of the nearest batch size
// and the next higher calibrated confidence. Beyond the highest one the bound is
// doubled.
func (g group) bound(confidence float64, batch int, corrected bool) float64 {
	all := g.Plain
	if corrected {
		all = g.Corrected
	}
	quantiles := at(all, batch)
	for _, q := range quantiles {
		if q.Confidence >= confidence-1e-9 {
			return max(q.Log, 0)
		}
	}
	if n := len(quantiles); n > 0 {
		return 2 * max(quantiles[n-1].Log, 0)
	}
	return math.Ln2
}

// at are the quantiles at the batch size that is the fewest doublings away.
func at(all []bounds, batch int) (quantiles []quantile) {
	least := math.Inf(1)
	for _, b := range all {
		if far := math.Abs(math.Log2(float64(b.Batch) / float64(max(batch, 1)))); far < least {
			least, quantiles = far, b.Quantiles
		}
	}
	return quantiles
}
