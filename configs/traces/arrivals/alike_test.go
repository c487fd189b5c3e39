package arrivals

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"carma/configs/traces/joblog"
)

func TestAlike(t *testing.T) {
	task := func(user string, gpus int, seconds float64) Arrival {
		return Arrival{User: user, GPUs: gpus, RunTime: time.Duration(seconds * float64(time.Second))}
	}
	for _, c := range []struct {
		name        string
		tasks       []Arrival
		next, pairs float64
	}{
		{"nothing", nil, 0, 0},
		{"one of each user", []Arrival{task("a", 1, 5), task("b", 1, 5)}, 0, 0},
		{"the same again", []Arrival{task("a", 1, 100), task("b", 1, 5), task("a", 1, 110)}, 1, 1},
		{"a little longer", []Arrival{task("a", 1, 100), task("a", 1, 111)}, 0, 0},
		{"on more GPUs", []Arrival{task("a", 1, 100), task("a", 2, 100)}, 0, 0},
		{"by turns", []Arrival{task("", 1, 10), task("", 1, 99), task("", 1, 10), task("", 1, 99)}, 0, 1. / 3},
		{"in blocks", []Arrival{task("", 1, 10), task("", 1, 10), task("", 1, 99), task("", 1, 99)}, 2. / 3, 1. / 3},
		{"unknown", []Arrival{task("", 1, 10), {GPUs: 1, RunTime: joblog.Unknown}, task("", 1, 10)}, 1, 1},
	} {
		next, pairs := List{Arrivals: c.tasks}.Alike()
		if math.Abs(next-c.next) > 1e-9 || math.Abs(pairs-c.pairs) > 1e-9 {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, next, pairs, c.next, c.pairs)
		}
	}
}

// TestAlikePairs compares with counting pair by pair.
func TestAlikePairs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var l List
		for range random.IntN(40) {
			l.Arrivals = append(l.Arrivals, Arrival{User: string(rune('a' + random.IntN(2))), GPUs: 1 + random.IntN(2), RunTime: time.Duration(random.IntN(60)) * time.Second})
		}
		all, close := 0, 0
		for i, a := range l.Arrivals {
			for _, b := range l.Arrivals[:i] {
				if a.User != b.User {
					continue
				}
				all++
				if a.GPUs == b.GPUs && near(a.RunTime, b.RunTime) {
					close++
				}
			}
		}
		if _, pairs := l.Alike(); math.Abs(pairs-float64(close)/float64(max(1, all))) > 1e-9 {
			t.Fatalf("%v of pairs, counted %d of %d in %+v", pairs, close, all, l.Arrivals)
		}
	}
}
