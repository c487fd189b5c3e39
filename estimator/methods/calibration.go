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

// calibration is how far estimates were off on measured trainings that they
// were not fitted to; written by estimator/training/residual.py.
type calibration struct {
	Groups  []group `json:"groups"`
	Tracker struct {
		// A tracked peak times Factor plus Base, in MiB.
		Base   float64 `json:"base_mib"`
		Factor float64 `json:"factor"`
		Group  group   `json:"group"`
	} `json:"tracker"`
}

// group is a kind of training: an environment and a family of networks.
type group struct {
	Environment string        `json:"environment"`
	Family      models.Family `json:"family"`
	// Environments a group without one of its own is made of.
	Environments []string `json:"environments,omitempty"`
	// Rows and Models it was calibrated on.
	Rows   int `json:"rows"`
	Models int `json:"models"`
	// Residual: the correction was learned on trainings of this kind.
	Residual bool `json:"residual"`
	// Plain and Corrected are bounds on log(measured / point) without and
	// with the correction.
	Plain     []quantile `json:"plain"`
	Corrected []quantile `json:"corrected,omitempty"`
	// Other says that the group is not the subject's own.
	Other string `json:"-"`
}

type quantile struct {
	Confidence float64 `json:"confidence"`
	Log        float64 `json:"log"`
}

var calibrated = sync.OnceValue(func() *calibration {
	var c calibration
	if err := json.Unmarshal(calibrationFile, &c); err != nil {
		panic("calibration.json: " + err.Error()) // a test reads it
	}
	return &c
})

// groupOf finds the group of an environment and a family: their own, else the
// family's real models wherever, else all real models together.
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

// bound is the logarithm of upper bound over point: that of the next higher
// confidence calibrated. Beyond the highest the bound is doubled.
func (g group) bound(confidence float64, corrected bool) float64 {
	quantiles := g.Plain
	if corrected {
		quantiles = g.Corrected
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
