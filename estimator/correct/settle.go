package correct

import (
	"math"
	"slices"
)

// normal is a mean and a variance.
type normal struct{ mean, variance float64 }

// observed returns errors that all have the same variance.
func observed(logs []float64, variance float64) []normal {
	all := make([]normal, len(logs))
	for i, x := range logs {
		all[i] = normal{x, variance}
	}
	return all
}

// settle returns the mean of a quantity from its prior and from the observations, and the
// variance of that mean. Their distributions have heavy tails: a value far from the
// others has less weight (Student's t by reweighting; Lange, Little and Taylor, "Robust
// statistical modeling using the t distribution", 1989). So a single outlier changes
// little, and a few consistent runs overrule the prior.
func settle(prior normal, seen []normal) normal {
	if len(seen) == 0 {
		return prior
	}
	all := seen
	if !math.IsInf(prior.variance, 1) {
		all = append(slices.Clone(seen), prior)
	}
	is := normal{mean: middle(all, prior.mean)}
	for range 30 {
		sum, weights := 0.0, 0.0
		for _, x := range all {
			off := (x.mean - is.mean) * (x.mean - is.mean) / x.variance
			w := min(1, (tails+1)/(tails+off)) / x.variance
			sum, weights = sum+w*x.mean, weights+w
		}
		next := normal{sum / weights, 1 / weights}
		done := math.Abs(next.mean-is.mean) < 1e-9
		if is = next; done {
			break
		}
	}
	return is
}

// middle returns the median of the means. Of two middle values it returns the one nearer
// to the prior.
func middle(all []normal, before float64) float64 {
	means := make([]float64, len(all))
	for i, x := range all {
		means[i] = x.mean
	}
	slices.Sort(means)
	a, b := means[(len(means)-1)/2], means[len(means)/2]
	if math.Abs(a-before) <= math.Abs(b-before) {
		return a
	}
	return b
}

// normal95 is the 95 % quantile of the normal distribution.
const normal95 = 1.6449

// quantile95 returns the 95 % quantile of Student's t with this number of degrees of
// freedom, at least 4, to 0.01 (the expansion in Abramowitz and Stegun, 26.7.5).
func quantile95(freedom float64) float64 {
	const z = normal95
	return z + (z*z*z+z)/(4*freedom) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*freedom*freedom)
}
