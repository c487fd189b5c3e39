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

// calibration contains the errors of estimates on measured trainings to which the
// estimates were not fitted. estimator/training/residual.py writes it.
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
	// Environments lists environments whose trainings are used if the group has none of its
	// own.
	Environments []string `json:"environments,omitempty"`
	// Rows and Models count the rows and models used for calibration.
	Rows   int `json:"rows"`
	Models int `json:"models"`
	// Plain are bounds on log(measured / point).
	Plain Bounds `json:"plain"`
	// Other is a warning that the group is not the subject's own, or empty.
	Other string `json:"-"`
}

// Bounds contains logarithms of upper bound over point, by batch size and confidence.
// Those for a batch size come from trainings at similar batch sizes.
type Bounds []struct {
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

// groupOf returns the group of an environment and a family. If there is none, it returns
// the family's real models in any environment, or else all real models.
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

// Log returns the bound at the nearest batch size (in doublings), for the next higher
// calibrated confidence. Beyond the highest confidence the bound is doubled.
func (all Bounds) Log(confidence float64, batch int) float64 {
	var quantiles []quantile
	least := math.Inf(1)
	for _, b := range all {
		if far := math.Abs(math.Log2(float64(b.Batch) / float64(max(batch, 1)))); far < least {
			least, quantiles = far, b.Quantiles
		}
	}
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
