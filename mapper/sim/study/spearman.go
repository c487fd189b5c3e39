package study

import "math"

// spearman returns the rank correlation of two lists, from -1 to 1; equal values share
// the mean of their ranks. It returns 0 if a list does not vary.
func spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	middle := float64(len(x)+1) / 2
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := range x {
		xy += (x[i] - middle) * (y[i] - middle)
		xx += (x[i] - middle) * (x[i] - middle)
		yy += (y[i] - middle) * (y[i] - middle)
	}
	return quotient(xy, math.Sqrt(xx*yy))
}

// ranks returns the ranks of values, from 1.
func ranks(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		below, equal := 0, 0
		for _, w := range values {
			switch {
			case w < v:
				below++
			case w == v:
				equal++
			}
		}
		out[i] = float64(below) + float64(equal+1)/2
	}
	return out
}
