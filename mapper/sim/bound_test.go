package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestEarliest(t *testing.T) {
	for _, c := range []struct {
		name     string
		works    []work
		capacity float64
		want     float64
	}{
		{"nothing", nil, 2, 0},
		{"one task goes no faster than alone", []work{{3, 4, 0.5}}, 2, 11},
		{"all at once", []work{{0, 4, 1}, {0, 4, 1}, {0, 4, 1}}, 2, 6},
		{"not before it comes", []work{{0, 2, 1}, {10, 8, 2}}, 2, 14},
		{"late work beside early work", []work{{0, 10, 1}, {8, 4, 1}, {8, 4, 1}}, 2, 13}, // 10 left at 8, then 2 a second
		{"early tasks cannot use all there is", []work{{0, 6, 0.5}, {6, 9, 2}}, 1, 18},
	} {
		if got := earliest(c.works, c.capacity); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestEarliestIsExact compares with a search over all orders: whether a flow of work
// exists from the tasks into the times between arrivals.
func TestEarliestIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var works []work
		for range 1 + random.IntN(5) {
			works = append(works, work{float64(random.IntN(12)), float64(1 + random.IntN(20)), float64(1+random.IntN(6)) / 2})
		}
		capacity := float64(1+random.IntN(6)) / 2
		end := earliest(works, capacity)
		if !fits(works, capacity, end+1e-6) {
			t.Fatalf("%v on %v cannot be done by %v", works, capacity, end)
		}
		if fits(works, capacity, end-1e-3) {
			t.Fatalf("%v on %v can be done before %v", works, capacity, end)
		}
	}
}

// fits reports whether all can be done by end: a maximum flow from the works over
// the times between arrivals.
func fits(works []work, capacity, end float64) bool {
	cuts := []float64{end}
	for _, w := range works {
		if w.from >= end {
			return false
		}
		cuts = append(cuts, w.from)
	}
	slices.Sort(cuts)
	n, m := len(works), len(cuts)-1
	source, sink := n+m, n+m+1
	room := make([][]float64, n+m+2)
	for i := range room {
		room[i] = make([]float64, n+m+2)
	}
	all := 0.0
	for i, w := range works {
		room[source][i] = w.amount
		all += w.amount
		for k := range m {
			if cuts[k] >= w.from {
				room[i][n+k] = w.rate * (cuts[k+1] - cuts[k])
			}
		}
	}
	for k := range m {
		room[n+k][sink] = capacity * (cuts[k+1] - cuts[k])
	}
	flow := 0.0
	for {
		more := augment(room, source, sink)
		if more == 0 {
			return flow >= all-1e-9
		}
		flow += more
	}
}

// augment sends as much flow as possible along the shortest path with room.
func augment(room [][]float64, source, sink int) float64 {
	from := make([]int, len(room))
	for i := range from {
		from[i] = -1
	}
	queue := []int{source}
	for len(queue) > 0 && from[sink] < 0 {
		at := queue[0]
		queue = queue[1:]
		for to, r := range room[at] {
			if r > 1e-12 && from[to] < 0 && to != source {
				from[to] = at
				queue = append(queue, to)
			}
		}
	}
	if from[sink] < 0 {
		return 0
	}
	least := math.Inf(1)
	for at := sink; at != source; at = from[at] {
		least = min(least, room[from[at]][at])
	}
	for at := sink; at != source; at = from[at] {
		room[from[at]][at] -= least
		room[at][from[at]] += least
	}
	return least
}

// TestBoundInAnyWorld checks that no policy beats the bound, however pairs differ from
// the model and however tasks share a GPU.
func TestBoundInAnyWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	tasks := synthetic(60, 20)
	for i := range tasks {
		tasks[i].Name, tasks[i].At = tasks[i].Family, 0
	}
	speeds := map[[2]string]float64{}
	for i := range tasks {
		for j := range tasks {
			speeds[[2]string{tasks[i].Name, tasks[j].Name}] = 1
		}
	}
	for _, truth := range []Truth{{}, {Pair: 2, Seed: 3}, {Pair: 1, Time: 0.5, Activity: 0.5, Seed: 2}, {Speeds: speeds}, {Speeds: speeds, Pair: 1}} {
		for _, sharing := range []Sharing{MPS, TimeSlicing} {
			for _, policy := range []string{"round-robin", "carma"} {
				o := options(policy)
				o.SMACTCap, o.MaxTasks = 0, 2
				cfg := Config{Options: o, GPUs: station(2), Truth: truth, Sharing: sharing, StartUp: time.Second}
				m := mustRun(t, cfg, tasks).Metrics
				if m.Makespan < m.LowerBound || m.LowerBound <= 0 {
					t.Errorf("%s, %s, truth %s: makespan %s, bound %s", policy, sharing, truth, m.Makespan, m.LowerBound)
				}
			}
		}
	}
}

// TestFactorsOfPairs checks that the bound allows for factors that give two tasks more SM
// time than there is.
func TestFactorsOfPairs(t *testing.T) {
	o := options("round-robin")
	o.SMACTCap, o.WarmUp = 0, 0
	shortest := 100 * time.Hour
	for seed := range uint64(20) {
		a, b := training(0, time.Hour, 1<<30, Load{SMACT: 0.8}), training(0, time.Hour, 1<<30, Load{SMACT: 0.8})
		a.Name, b.Name = "a", "b"
		m := mustRun(t, Config{Options: o, GPUs: station(1), Truth: Truth{Pair: 2, Seed: seed}}, []Task{a, b}).Metrics
		shortest = min(shortest, m.Makespan)
		if m.Makespan < m.LowerBound {
			t.Errorf("seed %d: makespan %s, bound %s", seed, m.Makespan, m.LowerBound)
		}
	}
	if shortest > 80*time.Minute {
		t.Errorf("no factors made two tasks of an hour share a GPU for less than %s", shortest)
	}
}
