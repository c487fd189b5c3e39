package pairs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// This file measures how well few observed pairs of a kind of task predict its other
// pairs, if nothing else is known of the kind: no activity, no measured model. Package
// mapper learns a correction for each pair of kinds, which says nothing of other pairs.
// Here kinds get corrections too: how much a kind is slowed down by others, and how much
// it slows others down.

// TestFewPairs prints the answer on measured pairs in the form of Gavel (GitHub
// stanford-futuredata/gavel): columns gpu, job_a, job_b, gpus_a, gpus_b,
// alone_a_steps_s and alone_b_steps_s, together_a_steps_s and together_b_steps_s.
// It is run by hand:
//
//	PAIRS=gavel-pairs.csv go test ./mapper/sim/pairs -run TestFewPairs -v
func TestFewPairs(t *testing.T) {
	path := os.Getenv("PAIRS")
	if path == "" {
		t.Skip("a study, run by hand: PAIRS=FILE go test ./mapper/sim/pairs -run TestFewPairs -v")
	}
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table, err := readTable(path, file)
	if err != nil {
		t.Fatal(err)
	}
	rows, apart, err := readRates(table)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d speeds of pairs on one GPU; %d pairs do not fit together", len(rows), apart)
	for _, gpu := range []string{"v100", "k80"} {
		var speeds []observed
		for _, r := range rows {
			if r.gpu == gpu {
				speeds = append(speeds, r)
			}
		}
		for _, line := range reportOf(speeds) {
			t.Logf("%s: %s", gpu, line)
		}
	}
}

// observed is one kind beside another.
type observed struct {
	gpu        string
	of, beside string
	log        float64 // of the speed relative to alone
}

// readRates returns both directions of each pair of jobs on one GPU, and the number of
// pairs that are inconsistent.
func readRates(t *table) (list []observed, apart int, err error) {
	if err := t.need("gpu", "job_a", "job_b", "gpus_a", "gpus_b", "alone_a_steps_s", "alone_b_steps_s", "together_a_steps_s", "together_b_steps_s"); err != nil {
		return nil, 0, err
	}
	for _, r := range t.rows {
		var v [6]float64
		for i, column := range []string{"gpus_a", "gpus_b", "alone_a_steps_s", "alone_b_steps_s", "together_a_steps_s", "together_b_steps_s"} {
			if v[i], _, err = t.number(r, column); err != nil {
				return nil, 0, err
			}
		}
		switch {
		case v[0] != 1 || v[1] != 1 || v[2] <= 0 || v[3] <= 0:
			continue
		case v[4] <= 0 || v[5] <= 0:
			apart++
			continue
		}
		gpu, a, b := t.text(r, "gpu"), t.text(r, "job_a"), t.text(r, "job_b")
		list = append(list, observed{gpu, a, b, math.Log(v[4] / v[2])})
		if a != b {
			list = append(list, observed{gpu, b, a, math.Log(v[5] / v[3])})
		}
	}
	return list, apart, nil
}

// effects are the mean of all log speeds, and the deviation of each kind as the one that
// is slowed down and as the one that slows down, with their variances and the residual
// variance.
type effects struct {
	mean               float64
	of, beside         map[string]float64
	varOf, varBe, left float64
}

// fit estimates the effects; each kind's effect is shrunk by its number of observations.
func fit(list []observed) effects {
	e := effects{of: map[string]float64{}, beside: map[string]float64{}, varOf: 0.05, varBe: 0.05, left: 0.05}
	for _, o := range list {
		e.mean += o.log / float64(len(list))
	}
	for range 50 {
		e.varOf = refit(list, e.of, func(o observed) string { return o.of }, func(o observed) float64 { return o.log - e.mean - e.beside[o.beside] }, e.varOf, e.left)
		e.varBe = refit(list, e.beside, func(o observed) string { return o.beside }, func(o observed) float64 { return o.log - e.mean - e.of[o.of] }, e.varBe, e.left)
		sum := 0.0
		for _, o := range list {
			d := o.log - e.mean - e.of[o.of] - e.beside[o.beside]
			sum += d * d
		}
		e.left = max(1e-6, sum/float64(len(list)))
	}
	return e
}

// refit is one step for one side; it returns the variance of the kinds.
func refit(list []observed, to map[string]float64, kind func(observed) string, rest func(observed) float64, variance, left float64) float64 {
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, o := range list {
		sums[kind(o)] += rest(o)
		counts[kind(o)]++
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	total := 0.0
	for _, name := range names {
		n := counts[name]
		to[name] = sums[name] / (n + left/variance)
		total += to[name]*to[name] + 1/(n/left+1/variance)
	}
	return max(1e-6, total/float64(len(names)))
}

// learned is a kind's own effect, learned pair by pair.
type learned struct{ mean, variance float64 }

// see shifts the effect by a part of the prediction error, as mapper.learnPairs does;
// noise is the variance of an observation.
func (l *learned) see(residual, noise float64) {
	gain := l.variance / (l.variance + noise)
	l.mean += gain * residual
	l.variance *= 1 - gain
}

// rule sets the initial effect of a kind and the noise of its observations.
type rule struct {
	name  string
	begin func(e effects) (of, beside, noise float64)
}

// The constants of mapper/correction.go: the first variance, and the square of the
// error of a measured speed.
const (
	firstVariance = 0.05 * 0.05
	measuredNoise = 0.1 * 0.1
)

var rules = []rule{
	{"as mapper/correction.go", func(effects) (float64, float64, float64) { return firstVariance, firstVariance, measuredNoise }},
	{"variances of other kinds", func(e effects) (float64, float64, float64) { return e.varOf, e.varBe, e.left }},
}

// seen lists the numbers of observed pairs before the rest is predicted.
var seen = []int{0, 1, 3, 10}

// draws is the number of draws of observed pairs for each kind.
const draws = 50

// score leaves each kind out of the fit, observes k of its pairs, drawn at random, and
// predicts the others: its own speed, and the speed of the tasks beside it. It returns
// the errors of the log speeds.
func score(list []observed, r rule, k int) (own, others Errors) {
	random := rand.New(rand.NewPCG(1, uint64(k)))
	for _, kind := range kindsOf(list) {
		var mine, rest []observed
		var partners []string
		for _, o := range list {
			switch {
			case o.of == o.beside && o.of == kind: // it is both sides
			case o.of == kind || o.beside == kind:
				mine = append(mine, o)
				if o.of == kind {
					partners = append(partners, o.beside)
				}
			default:
				rest = append(rest, o)
			}
		}
		if len(partners) <= slices.Max(seen) {
			continue
		}
		e := fit(rest)
		for range draws {
			random.Shuffle(len(partners), func(i, j int) { partners[i], partners[j] = partners[j], partners[i] })
			varOf, varBe, noise := r.begin(e)
			of, beside := learned{0, varOf}, learned{0, varBe}
			for _, o := range mine {
				switch {
				case o.of == kind && slices.Contains(partners[:k], o.beside):
					of.see(o.log-e.mean-e.beside[o.beside]-of.mean, noise)
				case o.beside == kind && slices.Contains(partners[:k], o.of):
					beside.see(o.log-e.mean-e.of[o.of]-beside.mean, noise)
				}
			}
			for _, o := range mine {
				switch {
				case o.of == kind && !slices.Contains(partners[:k], o.beside):
					own = append(own, min(0, e.mean+e.beside[o.beside]+of.mean)-o.log)
				case o.beside == kind && !slices.Contains(partners[:k], o.of):
					others = append(others, min(0, e.mean+e.of[o.of]+beside.mean)-o.log)
				}
			}
		}
	}
	return own, others
}

func kindsOf(list []observed) []string {
	var kinds []string
	for _, o := range list {
		kinds = append(kinds, o.of, o.beside)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// reportOf returns a line for each rule and number of pairs.
func reportOf(list []observed) []string {
	e := fit(list)
	lines := []string{fmt.Sprintf("%d speeds of %d kinds; standard deviations: kind slowed down %.2f, kind that slows down %.2f, pair %.2f",
		len(list), len(kindsOf(list)), math.Sqrt(e.varOf), math.Sqrt(e.varBe), math.Sqrt(e.left))}
	for _, r := range rules {
		for _, k := range seen {
			own, others := score(list, r, k)
			lines = append(lines, fmt.Sprintf("%-25s %2d pairs seen: |log error| of its speed median %.3f p90 %.3f; of its neighbour's median %.3f p90 %.3f",
				r.name, k, own.Median(), own.Quantile(0.9), others.Median(), others.Quantile(0.9)))
		}
	}
	return lines
}

// madeUp returns speeds of pairs of n kinds with effects of these standard deviations.
func madeUp(n int, kind, pair float64) []observed {
	random := rand.New(rand.NewPCG(3, 4))
	of, beside := make([]float64, n), make([]float64, n)
	for i := range n {
		of[i], beside[i] = kind*random.NormFloat64(), kind*random.NormFloat64()
	}
	var list []observed
	for i := range n {
		for j := range n {
			list = append(list, observed{"x", fmt.Sprintf("kind %02d", i), fmt.Sprintf("kind %02d", j), -2 + of[i] + beside[j] + pair*random.NormFloat64()})
		}
	}
	return list
}

// TestScoreOfFewPairs checks that few pairs help much where kinds differ, and that where
// only pairs differ they neither help nor harm.
func TestScoreOfFewPairs(t *testing.T) {
	known := rules[1]
	list := madeUp(20, 0.3, 0.05)
	if e := fit(list); math.Abs(math.Sqrt(e.varOf)-0.3) > 0.1 || math.Abs(math.Sqrt(e.left)-0.05) > 0.01 {
		t.Errorf("standard deviations %.3f of kinds, %.3f of pairs", math.Sqrt(e.varOf), math.Sqrt(e.left))
	}
	for _, side := range []int{0, 1} {
		errors := func(list []observed, k int) float64 {
			own, others := score(list, known, k)
			return []Errors{own, others}[side].Median()
		}
		if none, one, ten := errors(list, 0), errors(list, 1), errors(list, 10); none < 0.1 || one > 0.09 || ten > 0.05 {
			t.Errorf("side %d: %.3f with no pair, %.3f with one, %.3f with ten", side, none, one, ten)
		}
		only := madeUp(20, 0, 0.3)
		if none, ten := errors(only, 0), errors(only, 10); ten > 1.05*none || none < 0.15 {
			t.Errorf("side %d: %.3f with no pair, %.3f with ten where pairs alone differ", side, none, ten)
		}
	}
}

func TestReadRates(t *testing.T) {
	table, err := readTable("g.csv", strings.NewReader(`gpu,job_a,job_b,gpus_a,gpus_b,alone_a_steps_s,alone_b_steps_s,together_a_steps_s,together_b_steps_s
v100,x,y,1,1,10,4,5,4
v100,x,x,1,1,10,10,5,5
v100,y,z,1,1,4,4,0,0
v100,x,y,2,2,10,4,5,4
`))
	if err != nil {
		t.Fatal(err)
	}
	list, apart, err := readRates(table)
	want := []observed{{"v100", "x", "y", math.Log(0.5)}, {"v100", "y", "x", 0}, {"v100", "x", "x", math.Log(0.5)}}
	if err != nil || apart != 1 || !slices.Equal(list, want) {
		t.Errorf("%v, %d apart, %v", list, apart, err)
	}
	table.columns = map[string]int{"gpu": 0}
	if _, _, err := readRates(table); err == nil || err.Error() != "g.csv:1: no column job_a" {
		t.Error(err)
	}
}
