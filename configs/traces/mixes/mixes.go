// Package mixes draws workloads from the catalogue by their weight class, like the
// original's traces.
package mixes

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carma/configs/workloads"
	"carma/internal/suggest"
)

// Class is the weight of a task.
type Class int

// The classes, in the order of listings.
const (
	Light  Class = iota // under 10 minutes
	Medium              // 10 to 60 minutes
	Heavy               // over an hour, or on several GPUs
)

// Classes lists the classes.
var Classes = []Class{Light, Medium, Heavy}

// String returns the name of the class.
func (c Class) String() string { return []string{"light", "medium", "heavy"}[c] }

// ClassOf returns the class of a task, determined only by its GPUs and its run time.
func ClassOf(gpus int, alone time.Duration) Class {
	switch {
	case gpus > 1 || alone > time.Hour:
		return Heavy
	case alone < 10*time.Minute:
		return Light
	}
	return Medium
}

// Mix is the share of each class; the sum is 1.
type Mix [3]float64

// Default contains the weights of the script that drew the original's traces t1 and t2
// (GitHub ehsanyousefzadehasl/Philly-Trace-Analyser-and-Task-Mapper).
var Default = Mix{0.3, 0.6, 0.1}

// named are the default mix and the shares of the original's other traces.
var named = []struct {
	name string
	mix  Mix
}{
	{"default", Default},
	{"mix-90", Mix{0.65, 0.27, 0.08}},
	{"heavy-60", Mix{0, 0.83, 0.17}},
}

// Names lists the names of mixes.
func Names() []string {
	names := make([]string, len(named))
	for i, n := range named {
		names[i] = n.name
	}
	return names
}

// Parse reads a mix: a name, or weights of light, medium and heavy tasks like
// 65/27/8 or 0.3/0.6/0.1. Only the ratio of the weights counts.
func Parse(s string) (Mix, error) {
	for _, n := range named {
		if n.name == s {
			return n.mix, nil
		}
	}
	parts := strings.Split(s, "/")
	if len(parts) == 1 {
		return Mix{}, fmt.Errorf("unknown mix %q; nearest: %s; or write weights of light, medium and heavy: 30/60/10", s, suggest.Names(s, Names(), 1)[0])
	}
	var m Mix
	sum := 0.0
	for i, p := range parts {
		w, err := strconv.ParseFloat(p, 64)
		if err != nil || !(w >= 0 && w <= 1e6) || len(parts) != len(m) {
			return Mix{}, fmt.Errorf("%q is not three weights from 0 on; write light/medium/heavy, for example 30/60/10", s)
		}
		m[i] = w
		sum += w
	}
	if sum == 0 {
		return Mix{}, fmt.Errorf("%q: the weights are all 0; write for example 30/60/10", s)
	}
	for i := range m {
		m[i] /= sum
	}
	return m, nil
}

// String formats the shares for people.
func (m Mix) String() string {
	return fmt.Sprintf("%.4g %% light, %.4g %% medium, %.4g %% heavy", 100*m[Light], 100*m[Medium], 100*m[Heavy])
}

// drawn is the order in which a random number is compared with the classes. It is
// part of the result: a seed gives the same trace in every version.
var drawn = []Class{Heavy, Light, Medium}

// Class draws a class by the shares of m.
func (m Mix) Class(d Dice) Class {
	f := d.Float()
	for _, c := range drawn {
		if f -= m[c]; f < 0 {
			return c
		}
	}
	for _, c := range []Class{Medium, Light} { // reached only because of rounding
		if m[c] > 0 {
			return c
		}
	}
	return Heavy
}

// Pool contains the shipped workloads by class, sorted by name.
type Pool [3][]workloads.Profile

// Draw draws a class, then a workload of that class.
func (p *Pool) Draw(m Mix, d Dice) workloads.Profile {
	pool := p[m.Class(d)]
	return pool[d.Below(len(pool))]
}

// Of returns the workloads that were measured in a campaign. It leaves out
// gpt2-xl, whose activity was not measured. No trace of the original has it, and
// it fills an A100 40 GB up to the last 0.8 GB, which leaves an estimator no
// margin.
func Of(campaign string) *Pool {
	if campaign == "v1" {
		return v1()
	}
	return v2()
}

var (
	v1 = sync.OnceValue(func() *Pool { return poolOf("v1") })
	v2 = sync.OnceValue(func() *Pool { return poolOf("v2") })
)

func poolOf(campaign string) *Pool {
	var p Pool
	for _, w := range workloads.All() {
		c, err := w.Campaign(campaign)
		if err != nil || w.Solo.Span == "" {
			continue // not measured
		}
		class := ClassOf(w.GPUs, c.RunTime)
		p[class] = append(p[class], w)
	}
	return &p
}

// All returns the workloads of a pool, sorted by name.
func (p *Pool) All() []workloads.Profile {
	all := slices.Concat(p[0], p[1], p[2])
	slices.SortFunc(all, func(a, b workloads.Profile) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Dice draws random numbers from PCG, whose stream is fixed. The methods of
// math/rand/v2 are not used, because their results may change.
type Dice struct{ pcg *rand.PCG }

// NewDice returns the dice of a seed. The numbers are the same with every version of Go.
func NewDice(seed uint64) Dice { return Dice{rand.NewPCG(seed, 0)} }

// Below returns a number from 0 to n-1.
func (d Dice) Below(n int) int {
	high, _ := bits.Mul64(d.pcg.Uint64(), uint64(n))
	return int(high)
}

// Float returns a number from 0 to below 1.
func (d Dice) Float() float64 { return float64(d.pcg.Uint64()>>11) / (1 << 53) }
