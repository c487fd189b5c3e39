package mixes

import (
	"math"
	"strings"
	"testing"
	"time"

	"carma/configs/workloads"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]Mix{
		"default": {0.3, 0.6, 0.1}, "mix-90": {0.65, 0.27, 0.08}, "heavy-60": {0, 0.83, 0.17},
		"30/60/10": Default, "0.3/0.6/0.1": Default, "65/27/8": {0.65, 0.27, 0.08}, "0/83/17": {0, 0.83, 0.17}, "1/1/2": {0.25, 0.25, 0.5}, "0/0/5": {0, 0, 1},
	} {
		m, err := Parse(s)
		for i := range m {
			if math.Abs(m[i]-want[i]) > 1e-12 || err != nil {
				t.Errorf("%s: %v %v", s, m, err)
			}
		}
	}
	for s, want := range map[string]string{
		"heavy": `unknown mix "heavy"; nearest: heavy-60; or write`, "": "unknown mix", "30/60": "is not three weights", "30/60/10/1": "is not three weights",
		"30/-1/10": "is not three weights", "a/b/c": "is not three weights", "0/0/0": "the weights are all 0", "NaN/1/1": "is not three", "Inf/1/1": "is not three", "1//1": "is not three",
	} {
		if _, err := Parse(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", s, err)
		}
	}
	if s := (Mix{0.65, 0.27, 0.08}).String(); s != "65 % light, 27 % medium, 8 % heavy" {
		t.Error(s)
	}
}

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		gpus  int
		alone time.Duration
		want  Class
	}{
		{1, 10*time.Minute - 1, Light}, {1, 10 * time.Minute, Medium}, {1, time.Hour, Medium}, {1, time.Hour + 1, Heavy}, {2, time.Minute, Heavy},
	} {
		if got := ClassOf(c.gpus, c.alone); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestShares: the classes have the shares of their weights. A class of weight 0 is never drawn.
func TestShares(t *testing.T) {
	const n = 10_000
	for _, name := range append(Names(), "0/0/1", "1/0/0", "0/1/0") {
		m, err := Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		var counts [3]float64
		d := NewDice(9)
		for range n {
			counts[m.Class(d)]++
		}
		for c, count := range counts {
			if math.Abs(count/n-m[c]) > 0.02 || m[c] == 0 && count > 0 {
				t.Errorf("%s: %s comes in a share of %.3f", name, Class(c), count/n)
			}
		}
	}
}

// TestPools: in both campaigns, every pool has only workloads of its class.
func TestPools(t *testing.T) {
	for campaign, most := range map[string]int{"v1": 48, "v2": len(workloads.All()) - 1} {
		p := Of(campaign)
		for class, list := range p {
			if len(list) == 0 {
				t.Errorf("%s: no %s workload", campaign, Class(class))
			}
			for _, w := range list {
				c, err := w.Campaign(campaign)
				if err != nil || ClassOf(w.GPUs, c.RunTime) != Class(class) {
					t.Errorf("%s: %s as %s, %v", campaign, w.Name, Class(class), err)
				}
			}
		}
		if n := len(p.All()); n < 40 || n > most {
			t.Errorf("%s: %d workloads", campaign, n)
		}
	}
}

// TestDice checks that every version of Go gives these random numbers.
func TestDice(t *testing.T) {
	d := NewDice(7)
	var got []int
	for range 5 {
		got = append(got, d.Below(100))
	}
	again := NewDice(7)
	for i := range got {
		if again.Below(100) != got[i] {
			t.Error("not the same again")
		}
	}
	for range 1000 {
		if n := d.Below(3); n < 0 || n > 2 {
			t.Fatal(n)
		}
		if f := d.Float(); f < 0 || f >= 1 {
			t.Fatal(f)
		}
	}
}
