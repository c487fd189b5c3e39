package study

import (
	"math"
	"slices"
	"testing"

	"carma/configs/traces"
)

// TestPublishedFigures checks that the traces, policies and metrics in the file exist.
func TestPublishedFigures(t *testing.T) {
	sets, err := PublishedSets()
	if err != nil || len(sets) != 3 {
		t.Fatal(len(sets), err)
	}
	for _, s := range sets {
		if s.Title == "" || s.Source == "" || !(s.Tolerance > 0) {
			t.Errorf("%s: no title, source or tolerance", s.Name)
		}
		for _, f := range s.Figures {
			names := []string{f.Trace}
			if f.Trace == allTraces {
				names = s.Traces
			}
			for _, name := range names {
				if tr, err := traces.Read(name); err != nil || tr.Name != name {
					t.Errorf("%s: trace %q: %v", s.Name, name, err)
				}
			}
			if p, ok := presetNamed(f.Policy); !ok || p.Name != f.Policy {
				t.Errorf("%s: preset %q", s.Name, f.Policy)
			}
			if !slices.Contains(MetricNames(), f.Metric) || !(f.Value > 0) || f.GPUs < 1 || f.Tolerance < 0 {
				t.Errorf("%s: %+v", s.Name, f)
			}
		}
	}
}

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 20, 1000}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 0.8},
		{[]float64{1, 1, 2}, []float64{1, 1, 2}, 1},
		{[]float64{1, 2, 2, 4}, []float64{1, 3, 2, 4}, math.Sqrt(0.9)},
		{[]float64{1, 1}, []float64{1, 2}, 0},
		{nil, nil, 0},
	} {
		if got := spearman(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v, %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	line := func(ours float64, bound bool) Compared {
		return Compared{Figure{Value: 2, Tolerance: 0.1, Bound: bound}, ours}
	}
	for _, c := range []struct {
		lines []Compared
		rank  float64
		off   bool
	}{
		{[]Compared{line(2.19, true), line(1.81, true), line(3, false)}, 0.8, false},
		{[]Compared{line(2.21, true)}, 0.8, true},
		{[]Compared{line(1.79, true)}, 0.8, true},
		{[]Compared{line(2, true)}, 0.79, true},
	} {
		s := ComparedSet{PublishedSet{Rank: "makespan_ratio", LeastRank: 0.8}, c.lines, c.rank}
		if s.Off() != c.off {
			t.Errorf("%v, rank %v: off is %v", c.lines, c.rank, s.Off())
		}
	}
}
