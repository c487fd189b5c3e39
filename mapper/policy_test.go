package mapper

import (
	"strings"
	"testing"
)

// gpuState is what a policy sees of one GPU of 40 GiB.
type gpuState struct {
	busy  Bytes // a task that holds this much runs there; 0: idle
	smact float64
	fault string
	// foreign is memory in use by others.
	foreign Bytes
}

func TestPolicies(t *testing.T) {
	idle := gpuState{}
	busy := func(mem Bytes, smact float64) gpuState { return gpuState{busy: mem * GiB, smact: smact} }
	for _, row := range []struct {
		name      string
		policy    string
		idleFirst bool
		gpus      []gpuState
		ring      int   // launches before, each on the next GPU of the ring
		n         int   // GPUs the task wants
		want      []int // in the order they are picked; nil: it waits
	}{
		{"idle one", "exclusive", false, []gpuState{busy(1, 0), idle}, 0, 1, []int{1}},
		{"tie: lowest index", "exclusive", false, []gpuState{idle, idle, idle}, 0, 1, []int{0}},
		{"none idle", "exclusive", false, []gpuState{busy(1, 0), busy(1, 0)}, 0, 1, nil},
		{"memory does not rank", "exclusive", false, []gpuState{{foreign: 0}, {foreign: 0}}, 0, 2, []int{0, 1}},
		{"two idle ones apart", "exclusive", false, []gpuState{idle, busy(1, 0), idle}, 0, 2, []int{0, 2}},
		{"one short", "exclusive", false, []gpuState{idle, busy(1, 0)}, 0, 2, nil},

		{"starts at the first", "round-robin", false, []gpuState{idle, idle, idle}, 0, 1, []int{0}},
		{"goes on behind the last", "round-robin", false, []gpuState{idle, idle, idle}, 2, 1, []int{2}},
		{"comes round", "round-robin", false, []gpuState{idle, idle, idle}, 3, 1, []int{0}},
		{"two across the end", "round-robin", false, []gpuState{idle, idle, idle}, 2, 2, []int{2, 0}},
		{"passes over a fault", "round-robin", false, []gpuState{idle, {fault: "ECC"}, idle}, 1, 1, []int{2}},
		{"free memory does not rank", "round-robin", false, []gpuState{busy(30, 0), idle}, 0, 1, []int{0}},
		{"idle ones first", "round-robin", true, []gpuState{busy(10, 0), idle, idle}, 0, 1, []int{1}},

		{"most free", "magm", false, []gpuState{busy(20, 0), busy(10, 0), busy(30, 0)}, 0, 1, []int{1}},
		{"tie: lowest index", "magm", false, []gpuState{busy(20, 0), busy(10, 0), busy(10, 0)}, 0, 1, []int{1}},
		{"all alike", "magm", false, []gpuState{idle, idle}, 0, 1, []int{0}},
		{"foreign memory counts", "magm", false, []gpuState{{foreign: 11 * GiB}, busy(10, 0)}, 0, 1, []int{1}},
		{"idle first over most free", "magm", true, []gpuState{busy(10, 0), {foreign: 20 * GiB}}, 0, 1, []int{1}},
		{"two with the most", "magm", false, []gpuState{busy(20, 0), busy(10, 0), busy(30, 0), idle}, 0, 2, []int{3, 1}},

		{"least utilized", "lug", false, []gpuState{busy(1, .5), busy(30, .2), busy(1, .3)}, 0, 1, []int{1}},
		{"tie: lowest index", "lug", false, []gpuState{busy(1, .5), busy(30, .2), busy(1, .2)}, 0, 1, []int{1}},
		{"two least utilized", "lug", false, []gpuState{busy(1, .5), busy(1, .2), busy(1, .3)}, 0, 2, []int{1, 2}},
		{"the least utilized is too full", "lug", false, []gpuState{busy(1, .5), busy(39, .1)}, 0, 1, []int{0}},
		{"idle first over utilization", "lug", true, []gpuState{busy(1, 0), {smact: .4}}, 0, 1, []int{1}},
	} {
		t.Run(row.policy+"/"+row.name, func(t *testing.T) {
			opt := plain()
			opt.Policy, opt.IdleFirst = row.policy, row.idleFirst
			w := prepare(t, opt, row.gpus)
			for range row.ring {
				id := w.submit(GiB, nil)
				w.exit(id, ExitOK)
			}
			id := w.submit(5*GiB, gpus(row.n))
			w.wantOn(id, row.want...)
		})
	}
}

// prepare puts GPUs into given states: each busy one by a task of its own.
func prepare(t *testing.T, opt Options, gpus []gpuState) *world {
	t.Helper()
	w := newWorld(t, plain(), len(gpus))
	var after []GPUSample
	for i, g := range gpus {
		others := make([]GPUSample, len(gpus)) // one GPU at a time is open
		for j := range others {
			others[j] = GPUSample{ID: gpuID(j)}
			if j != i {
				others[j].Fault = "closed"
			}
		}
		w.sample(others...)
		if g.busy > 0 {
			id := w.submit(g.busy, nil)
			w.wantOn(id, i)
			w.started(id)
		}
		after = append(after, GPUSample{ID: gpuID(i), SMACT: g.smact, Fault: g.fault, Foreign: g.foreign})
	}
	w.s.ring = 0
	w.sample(after...)
	w.step(Configured{At: w.now, Options: opt})
	return w
}

func TestPolicyNames(t *testing.T) {
	if got := strings.Join(PolicyNames(), " "); got != "exclusive round-robin first-fit best-fit magm lug mug lucid horus carma" {
		t.Errorf("policies are %s", got)
	}
	for _, name := range PolicyNames() {
		if PolicyDoc(name) == "" {
			t.Errorf("policy %s has no description", name)
		}
	}
	opt := plain()
	opt.Policy = "mgam"
	if err := opt.Validate(); err == nil || err.Error() != `unknown policy "mgam"; there are `+strings.Join(PolicyNames(), ", ") {
		t.Errorf("unknown policy: %v", err)
	}
}
