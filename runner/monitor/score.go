package monitor

import (
	"fmt"
	"math"
	"slices"
)

// Methods to compute one score from the readings in a window.
const (
	// ActivityMean takes the mean of the readings.
	ActivityMean = "mean"
	// ActivityRisk gives more weight to high readings.
	ActivityRisk = "risk"
)

// scoreOf returns the function for one of the words above; empty is the mean.
func scoreOf(word string) (func([]float64) float64, error) {
	switch word {
	case "", ActivityMean:
		return mean, nil
	case ActivityRisk:
		return risk, nil
	}
	return nil, fmt.Errorf("unknown activity %q; it is %s or %s", word, ActivityMean, ActivityRisk)
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}

// risk is the score of CARMA's successor AEGIS (GitHub ehsanyousefzadehasl/AEGIS):
// 0.20 mean + 0.20 median + 0.30 p95 + 0.10 p50 + 0.20 EMA, where the EMA has
// alpha = 2/(n+1) for n readings, oldest first.
func risk(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	alpha, ema := 2/float64(len(v)+1), v[0]
	for _, x := range v[1:] {
		ema = alpha*x + (1-alpha)*ema
	}
	return 0.20*mean(v) + 0.30*quantile(sorted, 0.5) + 0.30*quantile(sorted, 0.95) + 0.20*ema
}

// quantile interpolates linearly in sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low, part := math.Modf(at)
	i := int(low)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + part*(sorted[i+1]-sorted[i])
}
