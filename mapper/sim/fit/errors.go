package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"carma/mapper/sim"
)

// residuals are predicted minus measured speeds.
type residuals struct {
	speed []float64 // of each task
	sum   []float64 // of both tasks of a pair
	light []float64 // of a light task beside a heavy one
	heavy []float64 // of the heavy one there
}

// What counts as light and heavy there.
const (
	lightSMACT = 0.35
	heavySMACT = 0.70
)

func (r *residuals) add(p pair, m sim.Model) {
	s := m.Speeds([]sim.Load{p.a.load, p.b.load})
	a, b := s[0]-p.speedA, s[1]-p.speedB
	r.speed = append(r.speed, a, b)
	r.sum = append(r.sum, a+b)
	if p.a.load.SMACT > p.b.load.SMACT {
		p.a, p.b, a, b = p.b, p.a, b, a
	}
	if p.a.load.SMACT < lightSMACT && p.b.load.SMACT > heavySMACT {
		r.light = append(r.light, a)
		r.heavy = append(r.heavy, b)
	}
}

func errorsOf(pairs []pair, m sim.Model) residuals {
	var r residuals
	for _, p := range pairs {
		r.add(p, m)
	}
	return r
}

// crossValidate predicts the pairs of each group's tasks by a model that has
// seen none of them. A pair of two groups is predicted twice.
func crossValidate(pairs []pair, group func(workload) string) residuals {
	var groups []string
	for _, p := range pairs {
		groups = append(groups, group(p.a), group(p.b))
	}
	slices.Sort(groups)
	var r residuals
	for _, g := range slices.Compact(groups) {
		var seen, held []pair
		for _, p := range pairs {
			if group(p.a) == g || group(p.b) == g {
				held = append(held, p)
			} else {
				seen = append(seen, p)
			}
		}
		m := fit(seen)
		for _, p := range held {
			r.add(p, m)
		}
	}
	return r
}

func (r residuals) String(title string) string {
	return fmt.Sprintf("%-28s speed |e| median %.3f mean %.3f p90 %.3f bias %+.3f; sum |e| median %.3f mean %.3f; light beside heavy (%d) |e| median %.3f bias %+.3f, the heavy one bias %+.3f",
		title+":", quantile(r.speed, 0.5), meanAbs(r.speed), quantile(r.speed, 0.9), mean(r.speed),
		quantile(r.sum, 0.5), meanAbs(r.sum), len(r.light), quantile(r.light, 0.5), mean(r.light), mean(r.heavy))
}

// shippedErrors tells how the shipped coefficients do on any pairs.
func shippedErrors(pairs []pair) string {
	return strings.Join([]string{
		errorsOf(pairs, sim.Fitted).String("shipped coefficients"),
		errorsOf(withoutSteps(pairs), sim.Fitted).String("the same, steps not known"),
	}, "\n")
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(max(1, len(xs)))
}

func absolute(xs []float64) []float64 {
	out := slices.Clone(xs)
	for i, x := range out {
		out[i] = math.Abs(x)
	}
	return out
}

func meanAbs(xs []float64) float64 { return mean(absolute(xs)) }

// quantile of the absolute values, between the two nearest.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sorted := absolute(xs)
	slices.Sort(sorted)
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
