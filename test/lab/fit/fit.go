package main

import (
	"math"
	"slices"

	"carma/mapper/sim"
	"carma/mapper/sim/pairs"
)

// fit returns the model with the least loss on the pairs.
func fit(all []pairs.Pair) sim.Model {
	fixed := stepDefault(all)
	for _, p := range all { // nothing is known of tasks busier than these
		fixed.Ceiling = max(fixed.Ceiling, p.A.Load.SMACT, p.B.Load.SMACT)
	}
	model := func(x []float64) sim.Model {
		m := fixed
		m.Block, m.Power, m.Turn, m.DRAM = math.Exp(x[0]), x[1], math.Exp(x[2]), x[3]
		return m
	}
	x := minimize(func(x []float64) float64 {
		m := model(x)
		// A negative DRAM term would make tasks faster by sharing.
		return loss(all, m) + 100*max(0, -m.DRAM)
	}, []float64{2, 8, 0, 1})
	return model(x)
}

// stepDefault returns the regression of log step on SMACT over the pairs' tasks.
func stepDefault(all []pairs.Pair) sim.Model {
	seen := map[string]bool{}
	var n, sx, sy, sxx, sxy float64
	for _, p := range all {
		for _, w := range []pairs.Task{p.A, p.B} {
			if seen[w.ID] || w.Load.Step == 0 {
				continue
			}
			seen[w.ID] = true
			x, y := w.Load.SMACT, math.Log(w.Load.Step)
			n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
		}
	}
	slope := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return sim.Model{StepBase: (sy - slope*sx) / n, StepSlope: slope}
}

// scale is the error from which on the loss is more linear than quadratic.
const scale = 0.1

func loss(all []pairs.Pair, m sim.Model) float64 {
	sum := 0.0
	for _, p := range all {
		s := m.Speeds(p.Loads())
		for _, e := range []float64{s[0] - min(1, p.SpeedA), s[1] - min(1, p.SpeedB)} {
			sum += math.Sqrt(1+e*e/(scale*scale)) - 1
		}
	}
	return sum / float64(len(all))
}

// minimize is the simplex method of Nelder and Mead, restarted until a restart
// gains nothing. It has no randomness: equal input gives equal output.
func minimize(f func([]float64) float64, x []float64) []float64 {
	best := f(x)
	for {
		y, value := simplex(f, x)
		if value > best-1e-9 {
			return y
		}
		x, best = y, value
	}
}

func simplex(f func([]float64) float64, start []float64) ([]float64, float64) {
	type vertex struct {
		x []float64
		f float64
	}
	at := func(x []float64) vertex { return vertex{x, f(x)} }
	points := []vertex{at(start)}
	for i := range start {
		x := slices.Clone(start)
		x[i] += 0.1 + 0.1*math.Abs(x[i])
		points = append(points, at(x))
	}
	for range 2000 {
		slices.SortStableFunc(points, func(a, b vertex) int {
			if a.f < b.f {
				return -1
			} else if a.f > b.f {
				return 1
			}
			return 0
		})
		n := len(points) - 1
		if points[n].f-points[0].f < 1e-12 {
			break
		}
		// along is a point on the line from the worst through the middle of
		// the others.
		along := func(t float64) vertex {
			x := make([]float64, n)
			for i := range x {
				for _, p := range points[:n] {
					x[i] += p.x[i] / float64(n)
				}
				x[i] += t * (x[i] - points[n].x[i])
			}
			return at(x)
		}
		switch reflected := along(1); {
		case reflected.f < points[0].f:
			if expanded := along(2); expanded.f < reflected.f {
				reflected = expanded
			}
			points[n] = reflected
		case reflected.f < points[n-1].f:
			points[n] = reflected
		default:
			if contracted := along(-0.5); contracted.f < points[n].f {
				points[n] = contracted
				continue
			}
			for i := range points[1:] {
				x := slices.Clone(points[i+1].x)
				for j := range x {
					x[j] = (x[j] + points[0].x[j]) / 2
				}
				points[i+1] = at(x)
			}
		}
	}
	return points[0].x, points[0].f
}
