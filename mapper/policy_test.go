package mapper

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/policy"
)

// testGPU describes one GPU of 40 GiB as a policy sees it.
type testGPU struct {
	busy  units.Bytes // memory of the task that runs there, or 0 if idle
	smact float64
	fault string
	// foreign is memory in use by other processes.
	foreign units.Bytes
}

func TestPolicies(t *testing.T) {
	idle := testGPU{}
	busy := func(mem units.Bytes, smact float64) testGPU { return testGPU{busy: mem * units.GiB, smact: smact} }
	for _, row := range []struct {
		name      string
		policy    string
		idleFirst bool
		gpus      []testGPU
		ring      int   // number of earlier launches, each on the next GPU of the ring
		n         int   // GPUs the task wants
		want      []int // in the order they are picked, or nil if it waits
	}{
		{"idle one", "exclusive", false, []testGPU{busy(1, 0), idle}, 0, 1, []int{1}},
		{"tie: lowest index", "exclusive", false, []testGPU{idle, idle, idle}, 0, 1, []int{0}},
		{"none idle", "exclusive", false, []testGPU{busy(1, 0), busy(1, 0)}, 0, 1, nil},
		{"memory does not rank", "exclusive", false, []testGPU{{foreign: 0}, {foreign: 0}}, 0, 2, []int{0, 1}},
		{"two idle ones apart", "exclusive", false, []testGPU{idle, busy(1, 0), idle}, 0, 2, []int{0, 2}},
		{"one short", "exclusive", false, []testGPU{idle, busy(1, 0)}, 0, 2, nil},

		{"starts at the first", "round-robin", false, []testGPU{idle, idle, idle}, 0, 1, []int{0}},
		{"goes on behind the last", "round-robin", false, []testGPU{idle, idle, idle}, 2, 1, []int{2}},
		{"comes round", "round-robin", false, []testGPU{idle, idle, idle}, 3, 1, []int{0}},
		{"two across the end", "round-robin", false, []testGPU{idle, idle, idle}, 2, 2, []int{2, 0}},
		{"passes over a fault", "round-robin", false, []testGPU{idle, {fault: "ECC"}, idle}, 1, 1, []int{2}},
		{"free memory does not rank", "round-robin", false, []testGPU{busy(30, 0), idle}, 0, 1, []int{0}},
		{"idle ones first", "round-robin", true, []testGPU{busy(10, 0), idle, idle}, 0, 1, []int{1}},

		{"most free", "magm", false, []testGPU{busy(20, 0), busy(10, 0), busy(30, 0)}, 0, 1, []int{1}},
		{"tie: lowest index", "magm", false, []testGPU{busy(20, 0), busy(10, 0), busy(10, 0)}, 0, 1, []int{1}},
		{"all alike", "magm", false, []testGPU{idle, idle}, 0, 1, []int{0}},
		{"foreign memory counts", "magm", false, []testGPU{{foreign: 11 * units.GiB}, busy(10, 0)}, 0, 1, []int{1}},
		{"idle first over most free", "magm", true, []testGPU{busy(10, 0), {foreign: 20 * units.GiB}}, 0, 1, []int{1}},
		{"two with the most", "magm", false, []testGPU{busy(20, 0), busy(10, 0), busy(30, 0), idle}, 0, 2, []int{3, 1}},

		{"least utilized", "lug", false, []testGPU{busy(1, .5), busy(30, .2), busy(1, .3)}, 0, 1, []int{1}},
		{"tie: lowest index", "lug", false, []testGPU{busy(1, .5), busy(30, .2), busy(1, .2)}, 0, 1, []int{1}},
		{"two least utilized", "lug", false, []testGPU{busy(1, .5), busy(1, .2), busy(1, .3)}, 0, 2, []int{1, 2}},
		{"the least utilized is too full", "lug", false, []testGPU{busy(1, .5), busy(39, .1)}, 0, 1, []int{0}},
		{"least utilized of two alike that fit", "lug", false, []testGPU{busy(39, .1), busy(1, .3), busy(1, .3)}, 0, 1, []int{1}},

		{"lowest index", "first-fit", false, []testGPU{busy(30, .9), idle, busy(1, 0)}, 0, 1, []int{0}},
		{"the first that fits", "first-fit", false, []testGPU{busy(36, 0), busy(35, 0), idle}, 0, 1, []int{1}},
		{"tie: lowest index", "first-fit", false, []testGPU{idle, idle}, 0, 1, []int{0}},
		{"two", "first-fit", false, []testGPU{busy(1, 0), busy(36, 0), busy(30, 0), idle}, 0, 2, []int{0, 2}},
		{"none fits", "first-fit", false, []testGPU{busy(36, 0), busy(38, 0)}, 0, 1, nil},
		{"idle first", "first-fit", true, []testGPU{busy(1, 0), idle}, 0, 1, []int{1}},

		{"least free that fits", "best-fit", false, []testGPU{busy(20, 0), busy(34, 0), busy(36, 0), idle}, 0, 1, []int{1}},
		{"fits exactly", "best-fit", false, []testGPU{busy(20, 0), busy(35, 0)}, 0, 1, []int{1}},
		{"tie: lowest index", "best-fit", false, []testGPU{idle, busy(30, 0), busy(30, 0)}, 0, 1, []int{1}},
		{"foreign memory counts", "best-fit", false, []testGPU{busy(10, 0), {foreign: 11 * units.GiB}}, 0, 1, []int{1}},
		{"two with the least", "best-fit", false, []testGPU{idle, busy(20, 0), busy(36, 0), busy(30, 0)}, 0, 2, []int{3, 1}},
		{"idle first over least free", "best-fit", true, []testGPU{busy(30, 0), idle, idle}, 0, 1, []int{1}},
		{"none fits", "best-fit", false, []testGPU{busy(39, 0)}, 0, 1, nil},

		{"most utilized", "mug", false, []testGPU{busy(1, .2), busy(30, .7), busy(1, .3), idle}, 0, 1, []int{1}},
		{"tie: lowest index", "mug", false, []testGPU{busy(1, .2), busy(1, .7), busy(30, .7)}, 0, 1, []int{1}},
		{"two most utilized", "mug", false, []testGPU{busy(1, .2), busy(1, .4), busy(1, .7)}, 0, 2, []int{2, 1}},
		{"the most utilized is too full", "mug", false, []testGPU{busy(1, .2), busy(36, .7)}, 0, 1, []int{0}},
		{"idle first over utilization", "mug", true, []testGPU{busy(1, .7), idle}, 0, 1, []int{1}},

		{"idle first over utilization", "lug", true, []testGPU{busy(1, 0), {smact: .4}}, 0, 1, []int{1}},
	} {
		t.Run(row.policy+"/"+row.name, func(t *testing.T) {
			opt := plain()
			opt.Policy, opt.IdleFirst = row.policy, row.idleFirst
			w := prepare(t, opt, row.gpus)
			for range row.ring {
				id := w.submit(units.GiB, nil)
				w.exit(id, model.ExitOK)
			}
			id := w.submit(5*units.GiB, gpus(row.n))
			w.wantOn(id, row.want...)
			if row.want == nil { // the nearest to being usable has the most free memory, then the lowest index
				want := map[string]string{
					"exclusive/none idle": "0 of 1: GPU 0 idle tasks=1",
					"exclusive/one short": "1 of 2: GPU 1 idle tasks=1",
					"first-fit/none fits": "0 of 1: GPU 0 memory have=36.0 GiB need=5.0 GiB of=40.0 GiB",
					"best-fit/none fits":  "0 of 1: GPU 0 memory have=39.0 GiB need=5.0 GiB of=40.0 GiB",
				}[row.policy+"/"+row.name]
				if why, _ := w.s.Why(id); sayWhy(why) != want || want == "" {
					t.Errorf("it waits because %q, want %q", sayWhy(why), want)
				}
			}
		})
	}
}

// Loads of measured tasks, and some that make round sums.
var (
	vgg128 = interference.Load{SMACT: 0.8263, SMOCC: 0.4212, DRAMA: 0.4108, Step: 0.2666}
	resnet = interference.Load{SMACT: 0.6855, SMOCC: 0.3475, DRAMA: 0.4709, Step: 0.0973}
	small  = interference.Load{SMACT: 0.1653, SMOCC: 0.0617, DRAMA: 0.0490, Step: 0.0153}

	tiny   = interference.Load{SMACT: 0.1499}
	medium = interference.Load{SMACT: 0.15}
	most   = interference.Load{SMACT: 0.5999} // just below the limit of medium
	jumbo  = interference.Load{SMACT: 0.6}

	half    = interference.Load{DRAMA: 0.125} // utilization 0.5
	over    = interference.Load{DRAMA: 0.1251}
	quarter = interference.Load{DRAMA: 0.015625}
	nothing = interference.Load{}
)

// TestGatedPolicies checks policies that filter by the expected load of a task on a GPU
// with residents.
func TestGatedPolicies(t *testing.T) {
	type loads = []interference.Load
	const (
		lucid = "0 of 1: GPU 0 sharing"
		horus = "0 of 1: GPU 0 utilization"
	)
	pair := 1 / interference.Speeds(loads{resnet, resnet})[0] // the slowdown of both
	for _, row := range []struct {
		name   string
		policy string
		edit   func(*model.Options)
		gpus   []loads // loads of the tasks on each GPU
		task   loads
		n      int
		want   []int
		why    string // the reason if it waits
	}{
		{"tiny and tiny", "lucid", nil, []loads{{tiny}}, loads{tiny}, 1, []int{0}, ""},
		{"tiny and jumbo", "lucid", nil, []loads{{tiny}}, loads{jumbo}, 1, []int{0}, ""},
		{"jumbo and tiny", "lucid", nil, []loads{{jumbo}}, loads{tiny}, 1, []int{0}, ""},
		{"medium and medium", "lucid", nil, []loads{{medium}}, loads{most}, 1, []int{0}, ""},
		{"medium and jumbo", "lucid", nil, []loads{{medium}}, loads{jumbo}, 1, nil, lucid},
		{"jumbo and jumbo", "lucid", nil, []loads{{jumbo}}, loads{jumbo}, 1, nil, lucid},
		{"an unknown task is jumbo", "lucid", nil, []loads{{medium}}, nil, 1, nil, lucid},
		{"a third", "lucid", nil, []loads{{tiny, tiny}}, loads{tiny}, 1, nil, lucid},
		{"a third by the most tasks", "lucid", func(o *model.Options) { o.MaxTasks = 2 }, []loads{{tiny, tiny}}, loads{tiny}, 1, nil, "0 of 1: GPU 0 max-tasks tasks=2"},
		{"jumbo on an idle GPU", "lucid", nil, []loads{{medium}, {}}, loads{jumbo}, 1, []int{1}, ""},
		{"most free memory first", "lucid", nil, []loads{{tiny, tiny}, {tiny}, {tiny}, {}}, loads{tiny}, 1, []int{3}, ""},
		{"tie: lowest index", "lucid", nil, []loads{{tiny, tiny}, {tiny}, {tiny}}, loads{tiny}, 1, []int{1}, ""},
		{"two", "lucid", nil, []loads{{medium}, {jumbo}, {tiny}}, loads{medium}, 2, []int{0, 2}, ""},
		{"only one of two", "lucid", nil, []loads{{jumbo}, {tiny}}, loads{medium}, 2, nil, "1 of 2: " + strings.TrimPrefix(lucid, "0 of 1: ")},

		{"just 100 %", "horus", nil, []loads{{half}}, loads{half}, 1, []int{0}, ""},
		{"a little over", "horus", nil, []loads{{half}}, loads{over}, 1, nil, horus},
		{"a little over by those there", "horus", nil, []loads{{over}}, loads{half}, 1, nil, horus},
		{"three", "horus", nil, []loads{{quarter, half}}, loads{quarter}, 1, []int{0}, ""},
		{"an unknown task fills a GPU", "horus", nil, []loads{{quarter}}, nil, 1, nil, horus},
		{"an unknown task on an idle GPU", "horus", nil, []loads{{quarter}, {}}, nil, 1, []int{1}, ""},
		{"lowest sum first", "horus", nil, []loads{{half}, {quarter}, {half}}, loads{quarter}, 1, []int{1}, ""},
		{"the sum ranks, not the number", "horus", nil, []loads{{half}, {nothing, nothing, quarter}}, loads{quarter}, 1, []int{1}, ""},
		{"tie: lowest index", "horus", nil, []loads{{half}, {quarter}, {quarter}}, loads{quarter}, 1, []int{1}, ""},
		{"idle is the lowest sum", "horus", nil, []loads{{quarter}, {}}, loads{quarter}, 1, []int{1}, ""},
		{"two", "horus", nil, []loads{{half}, {quarter}, {over}}, loads{half}, 2, []int{1, 0}, ""},

		{"least slowed down first", "carma", nil, []loads{{resnet}, {small}}, loads{small}, 1, []int{1}, ""},
		{"an idle GPU slows nobody down", "carma", nil, []loads{{small}, {}}, loads{small}, 1, []int{1}, ""},
		{"tie: lowest index", "carma", nil, []loads{{resnet}, {small}, {small}}, loads{small}, 1, []int{1}, ""},
		{"tie of idle ones", "carma", nil, []loads{{small}, {}, {}}, loads{small}, 1, []int{1}, ""},
		{"a heavy neighbour", "carma", nil, []loads{{vgg128}}, loads{small}, 1, nil, "0 of 1: GPU 0 slowdown task=0 1.62 " + capped(aimMargin)},
		{"a heavy newcomer", "carma", nil, []loads{{small}}, loads{vgg128}, 1, nil, "0 of 1: GPU 0 slowdown task=1 1.62 " + capped(aimMargin)},
		{"an unknown task beside a light one", "carma", nil, []loads{{small}}, nil, 1, []int{0}, ""},
		{"an unknown task beside a heavy one", "carma", nil, []loads{{vgg128}}, nil, 1, nil, "0 of 1: GPU 0 slowdown task=0 1.61 " + capped(aimMargin)},
		{"under the cap", "carma", func(o *model.Options) { o.SlowdownCap = unproven(pair + 1.01*aimMargin) }, []loads{{resnet}}, loads{resnet}, 1, []int{0}, ""},
		{"over what is aimed at", "carma", func(o *model.Options) { o.SlowdownCap = unproven(pair + 0.99*aimMargin) }, []loads{{resnet}}, loads{resnet}, 1, nil,
			fmt.Sprintf("0 of 1: GPU 0 slowdown task=1 %.2f cap=%.2f", pair, pair-0.01*aimMargin)},
		{"nobody may be slowed down", "carma", func(o *model.Options) { o.SlowdownCap = 1 }, []loads{{small}, {}}, loads{small}, 1, []int{1}, ""},
		{"waiting is better", "carma", func(o *model.Options) { o.SlowdownCap = 100 }, []loads{{vgg128, vgg128}}, loads{vgg128}, 1, nil,
			"0 of 1: GPU 0 wait tasks=2"},
		{"two", "carma", nil, []loads{{vgg128}, {small}, {}}, loads{small}, 2, []int{2, 1}, ""},
		{"two that do not do the same", "carma", nil, []loads{{vgg128}, {}}, loads{resnet, {}}, 2, []int{1, 0}, ""},
	} {
		t.Run(row.policy+"/"+row.name, func(t *testing.T) {
			opt := plain()
			opt.Policy = row.policy
			if row.edit != nil {
				row.edit(&opt)
			}
			w := newWorld(t, plain(), len(row.gpus))
			submit := func(n int, l loads) model.TaskID {
				id := w.submitOnly(gpus(n))
				w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{Memory: units.GiB}, Expected: model.Expected{Loads: l}})
				return id
			}
			for i, on := range row.gpus {
				w.openOnly(i)
				for _, l := range on {
					w.wantOn(submit(1, loads{l}), i)
				}
			}
			w.openOnly(-1)
			w.step(model.Configured{At: w.now, Options: opt})
			id := submit(row.n, row.task)
			w.wantOn(id, row.want...)
			if row.why != "" {
				if why, _ := w.s.Why(id); sayWhy(why) != row.why {
					t.Errorf("it waits because %q, want %q", sayWhy(why), row.why)
				}
			}
		})
	}
}

// openOnly takes all GPUs but one out of service, or all for -1.
func (w *world) openOnly(i int) {
	w.t.Helper()
	var all []model.GPUSample
	for _, g := range w.s.GPUs() {
		s := model.GPUSample{ID: g.ID}
		if i >= 0 && g.Index != i {
			s.Fault = "closed"
		}
		all = append(all, s)
	}
	w.sample(all...)
}

// TestDefaultsOf checks that each policy's own defaults are valid, and that a task starts with
// them.
func TestDefaultsOf(t *testing.T) {
	for _, name := range policy.Names() {
		opt := DefaultsOf(name)
		if err := Validate(opt); err != nil || opt.Policy != name {
			t.Errorf("%s: %+v, %v", name, opt, err)
		}
		w := newWorld(t, opt, 2)
		w.wantOn(w.submit(units.GiB, nil), 0)
		w.wantOn(w.submit(units.GiB, nil), 1)
	}
	if got := DefaultOptions(); !reflect.DeepEqual(got, DefaultsOf("carma")) {
		t.Errorf("the defaults are %+v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown policy has defaults")
		}
	}()
	DefaultsOf("mgam")
}

// prepare puts GPUs into given states: each busy GPU runs its own task.
func prepare(t *testing.T, opt model.Options, gpus []testGPU) *world {
	t.Helper()
	w := newWorld(t, plain(), len(gpus))
	var after []model.GPUSample
	for i, g := range gpus {
		others := make([]model.GPUSample, len(gpus)) // one GPU at a time is open
		for j := range others {
			others[j] = model.GPUSample{ID: gpuID(j)}
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
		after = append(after, model.GPUSample{ID: gpuID(i), SMACT: g.smact, Fault: g.fault, OtherProcesses: g.foreign})
	}
	w.s.placer.Restore(place.Snapshot{})
	w.sample(after...)
	w.step(model.Configured{At: w.now, Options: opt})
	return w
}

func TestPolicyNames(t *testing.T) {
	names := policy.Names()
	for _, name := range strings.Fields("exclusive round-robin first-fit best-fit magm lug mug lucid horus carma") {
		if !slices.Contains(names, name) {
			t.Errorf("policy %s is missing among %v", name, names)
		}
	}
	for i, name := range names {
		if slices.Index(names, name) != i {
			t.Errorf("two policies have the name %s", name)
		}
		if policy.Doc(name) == "" {
			t.Errorf("policy %s has no description", name)
		}
	}
	opt := plain()
	opt.Policy = "mgam"
	if err := Validate(opt); err == nil || err.Error() != `unknown policy "mgam"; there are `+strings.Join(policy.Names(), ", ") {
		t.Errorf("unknown policy: %v", err)
	}
}

// aimMargin is the margin that package place keeps below the cap for the expected
// slowdown (capMargin).
const aimMargin = 0.05
