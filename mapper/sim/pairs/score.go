package pairs

import (
	"math"
	"slices"

	"carma/mapper/sim"
)

// Errors contains predicted minus measured speeds.
type Errors []float64

// Scores contains a model's errors on pairs.
type Scores struct {
	Speed Errors // of each task
	Sum   Errors // of both tasks of a pair
	Light Errors // of a light task next to a heavy one
	Heavy Errors // of that heavy task
}

// A task is light if its SMACT is below LightSMACT, and heavy if it is above HeavySMACT.
const (
	LightSMACT = 0.35
	HeavySMACT = 0.70
)

// LightBesideHeavy reports whether a pair has a light and a heavy task, and which one is
// light.
func (p Pair) LightBesideHeavy() (lightIsA, ok bool) {
	a, b := p.A.Load.SMACT, p.B.Load.SMACT
	return a < b, min(a, b) < LightSMACT && max(a, b) > HeavySMACT
}

// Add scores one more pair by m, and returns the predicted speeds.
func (s *Scores) Add(p Pair, m sim.Model) (speedA, speedB float64) {
	speeds := m.Speeds(p.Loads())
	a, b := speeds[0]-p.SpeedA, speeds[1]-p.SpeedB
	s.Speed = append(s.Speed, a, b)
	s.Sum = append(s.Sum, a+b)
	if lightIsA, ok := p.LightBesideHeavy(); ok {
		if !lightIsA {
			a, b = b, a
		}
		s.Light = append(s.Light, a)
		s.Heavy = append(s.Heavy, b)
	}
	return speeds[0], speeds[1]
}

// Score returns the errors of model m on pairs.
func Score(pairs []Pair, m sim.Model) Scores {
	var s Scores
	for _, p := range pairs {
		s.Add(p, m)
	}
	return s
}

// Bias returns the mean, or 0 without values.
func (e Errors) Bias() float64 {
	sum := 0.0
	for _, x := range e {
		sum += x
	}
	return sum / float64(max(1, len(e)))
}

// Mean returns the mean of the absolute values.
func (e Errors) Mean() float64 { return e.absolute().Bias() }

// Median returns the median of the absolute values.
func (e Errors) Median() float64 { return e.Quantile(0.5) }

// Quantile returns the quantile of the absolute values, interpolated between the two
// nearest, or 0 without values.
func (e Errors) Quantile(q float64) float64 {
	if len(e) == 0 {
		return 0
	}
	sorted := e.absolute()
	slices.Sort(sorted)
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

func (e Errors) absolute() Errors {
	out := slices.Clone(e)
	for i, x := range out {
		out[i] = math.Abs(x)
	}
	return out
}
