package mapper

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestOOMLadder checks the grant of every attempt after repeated GPU OOMs, with the exact
// sizes.
func TestOOMLadder(t *testing.T) {
	type step struct {
		peak, demand units.Bytes // reported with the OOM
		need         units.Bytes // grant after the OOM
		alone        bool
	}
	for _, row := range []struct {
		name  string
		mem   units.Bytes
		steps []step
		fails string // the reason after the OOM of the last step
	}{
		{"nothing known but the grant", 8 * units.GiB, []step{
			{0, 0, 11 * units.GiB, false}, // 8 x 1.25 + 1
			{0, 0, gib(16.5), false},      // 11 x 1.5
			{0, 0, gib(16.5), true},       // exclusive
		}, "gpu-oom-alone <- ran-out have=39.0 GiB"},
		{"the observed peak counts", 8 * units.GiB, []step{
			{12 * units.GiB, 0, 16 * units.GiB, false}, // 12 x 1.25 + 1
			{20 * units.GiB, 0, 30 * units.GiB, false},
			{31 * units.GiB, 0, 31 * units.GiB, true},
		}, "gpu-oom-alone <- ran-out have=39.0 GiB"},
		{"the known demand counts", 8 * units.GiB, []step{
			{8 * units.GiB, 20 * units.GiB, 26 * units.GiB, false},
			{9 * units.GiB, 10 * units.GiB, 39 * units.GiB, false}, // below the grant, so the grant counts
			{0, 0, 38 * units.GiB, true},                           // leaves room for other processes, up to the headroom
		}, "gpu-oom-alone <- ran-out have=39.0 GiB"},
		{"more than there is comes alone at once", 30 * units.GiB, []step{
			{0, 35 * units.GiB, 38 * units.GiB, true},
		}, "gpu-oom-alone <- ran-out have=39.0 GiB"},
		{"more than any GPU has", 30 * units.GiB, []step{
			{0, 50 * units.GiB, 38 * units.GiB, true},
		}, "gpu-oom-alone <- ran-out have=39.0 GiB"},
		{"no estimate", 0, []step{
			{0, 0, units.GiB, false},
			{10 * units.GiB, 0, 15 * units.GiB, false},
			{16 * units.GiB, 0, 16 * units.GiB, true},
		}, "gpu-oom-alone <- ran-out have=39.0 GiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := plain()
			opt.Headroom = units.GiB
			w := newWorld(t, opt, 1)
			id := w.submit(row.mem, nil)
			for i, s := range row.steps {
				w.started(id)
				w.exitWith(model.Exited{Task: id, Class: model.ExitGPUOOM, Peak: s.peak, Demand: s.demand})
				task := w.task(id)
				if task.NextGrant != s.need || task.NextExclusive != s.alone || len(task.Attempts) != i+2 || task.OOMs != i+1 {
					t.Fatalf("after OOM %d it needs %s, alone %v, attempts %d, OOMs %d; want %s, %v",
						i+1, task.NextGrant, task.NextExclusive, len(task.Attempts), task.OOMs, s.need, s.alone)
				}
				if r := w.requeued[i]; r.Task != id || r.Need != s.need || r.Alone != s.alone || r.Reason.Code != model.ReasonOOM || r.Reason.Cause == nil {
					t.Errorf("requeued as %+v", r)
				}
				want := s.need
				if s.alone {
					want = 39 * units.GiB
				}
				if got := task.Current().Grants[0].Memory; got != want {
					t.Errorf("attempt %d is granted %s, want %s", i+2, got, want)
				}
			}
			w.exit(id, model.ExitGPUOOM)
			w.wantFailed(id, row.fails)
		})
	}
}

func TestOOMAttempts(t *testing.T) {
	for attempts, alone := range map[int][]bool{1: {false}, 2: {false, true}, 3: {false, false, true}, 5: {false, false, false, false, true}} {
		opt := plain()
		opt.Attempts = attempts
		w := newWorldOf(t, opt, model.GPUInfo{ID: "a", Capacity: 40 * units.GiB}, model.GPUInfo{ID: "b", Index: 1, Capacity: 80 * units.GiB})
		w.sample(model.GPUSample{ID: "b", Fault: "not now"}) // a larger GPU exists, so an exclusive GPU is not the last try
		id := w.submit(units.GiB, nil)
		for range attempts {
			w.exit(id, model.ExitGPUOOM)
		}
		var got []bool
		for _, l := range w.launches {
			got = append(got, l.Alone)
		}
		if !slices.Equal(got, alone) {
			t.Errorf("%d attempts: alone in %v, want %v", attempts, got, alone)
		}
		w.wantPhase(id, model.Failed)
		if r := w.finished[id].Reason; r.Code != model.ReasonOOMTooOften || r.Count != attempts || r.Cause == nil {
			t.Errorf("%d attempts: %s", attempts, say(r))
		}
	}
}

// TestOOMOnUnequalGPUs checks that an OOM alone on a small GPU is not final if there is a
// larger one, and that the memory on several GPUs is limited by the smaller.
func TestOOMOnUnequalGPUs(t *testing.T) {
	w := newWorldOf(t, plain(), model.GPUInfo{ID: "a", Capacity: 80 * units.GiB}, model.GPUInfo{ID: "b", Index: 1, Capacity: 40 * units.GiB})
	busy := w.submit(50*units.GiB, nil)
	id := w.submit(10*units.GiB, whole)
	w.wantOn(id, 1)
	w.exit(id, model.ExitGPUOOM)
	w.wantOn(id)
	if need := w.task(id).NextGrant; need != 51*units.GiB { // 40 x 1.25 + 1
		t.Errorf("it needs %s", need)
	}
	w.exit(busy, model.ExitOK)
	w.wantOn(id, 0)
	w.exit(id, model.ExitGPUOOM)
	w.wantFailed(id, "gpu-oom-alone <- ran-out have=80.0 GiB")

	pair := w.submit(35*units.GiB, gpus(2))
	w.exit(pair, model.ExitGPUOOM)
	w.wantOn(pair, 0, 1) // not 44.75 GiB on both, which is impossible
	if task := w.task(pair); !task.NextExclusive || task.NextGrant != 40*units.GiB {
		t.Errorf("alone %v with %s", task.NextExclusive, task.NextGrant)
	}
}

// TestOOMWithoutGPUs checks that an OOM on a GPU that was lost while the task ran does not
// change its memory need.
func TestOOMWithoutGPUs(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submit(8*units.GiB, nil)
	w.step(model.GPUsFound{At: w.now})
	w.exit(id, model.ExitGPUOOM)
	if task := w.task(id); task.Phase != model.Recovering || task.NextExclusive || task.NextGrant != 11*units.GiB {
		t.Errorf("%s, alone %v, needs %s", task.Phase, task.NextExclusive, task.NextGrant)
	}
}

// TestForeignUseIsPutUpWith checks that a task that recovery runs exclusively does not wait
// because a desktop uses a few megabytes.
func TestForeignUseIsPutUpWith(t *testing.T) {
	opt := plain()
	opt.Headroom = units.GiB
	w := newWorld(t, opt, 1)
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 300 * units.MiB})
	id := w.submit(35*units.GiB, nil)
	w.exit(id, model.ExitGPUOOM)
	w.wantOn(id, 0)
}

func TestBlame(t *testing.T) {
	sample := func(foreign units.Bytes, uses ...units.Bytes) model.GPUSample {
		s := model.GPUSample{ID: "GPU-0", OtherProcesses: foreign}
		for i, u := range uses {
			s.Tasks = append(s.Tasks, model.TaskUse{Task: model.TaskID(i + 1), Used: u})
		}
		return s
	}
	for _, row := range []struct {
		name   string
		grants []units.Bytes // task 1 is the victim
		see    model.GPUSample
		demand units.Bytes
		own    bool
		reason string
		grown  units.Bytes // task 2's grant afterwards
	}{
		{"the neighbour used more than its grant", []units.Bytes{20 * units.GiB, 15 * units.GiB}, sample(0, 18*units.GiB, 22*units.GiB), 0, false,
			"gpu-oom-blameless <- neighbour task=2 have=22.0 GiB of=15.0 GiB", gib(24.2)},
		{"its grant grows as far as the card has it", []units.Bytes{5 * units.GiB, 20 * units.GiB, 15 * units.GiB}, sample(0, 4*units.GiB, 30*units.GiB, units.GiB), 0, false,
			"gpu-oom-blameless <- neighbour task=2 have=30.0 GiB of=20.0 GiB", 25 * units.GiB},
		{"both over: its own", []units.Bytes{20 * units.GiB, 15 * units.GiB}, sample(0, 21*units.GiB, 19*units.GiB), 0, true,
			"gpu-oom <- wanted-more have=20.0 GiB need=21.0 GiB", 15 * units.GiB},
		{"it is known to have wanted more", []units.Bytes{20 * units.GiB, 15 * units.GiB}, sample(0, 18*units.GiB, 22*units.GiB), 24 * units.GiB, true,
			"gpu-oom <- wanted-more have=20.0 GiB need=24.0 GiB", 15 * units.GiB},
		{"it is known to have wanted less", []units.Bytes{20 * units.GiB, 15 * units.GiB}, sample(0, 18*units.GiB, 22*units.GiB), 19 * units.GiB, false,
			"gpu-oom-blameless <- neighbour task=2 have=22.0 GiB of=15.0 GiB", gib(24.2)},
		{"the neighbour was over and left room enough", []units.Bytes{20 * units.GiB, 10 * units.GiB}, sample(0, 18*units.GiB, 12*units.GiB), 0, true,
			"gpu-oom <- ran-out have=20.0 GiB", 10 * units.GiB},
		{"a process that is not carma's", []units.Bytes{20 * units.GiB, 15 * units.GiB}, sample(9*units.GiB, 18*units.GiB, 15*units.GiB), 0, false,
			"gpu-oom-blameless <- foreign-use have=9.0 GiB", 15 * units.GiB},
		{"such a process, and room enough", []units.Bytes{20 * units.GiB, 10 * units.GiB}, sample(9*units.GiB, 18*units.GiB, 10*units.GiB), 0, true,
			"gpu-oom <- ran-out have=20.0 GiB", 10 * units.GiB},
		{"nobody", []units.Bytes{20 * units.GiB, 20 * units.GiB}, sample(0, 18*units.GiB, 20*units.GiB), 0, true,
			"gpu-oom <- ran-out have=20.0 GiB", 20 * units.GiB},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorldOf(t, plain(), model.GPUInfo{ID: "GPU-0", Capacity: 40 * units.GiB}, model.GPUInfo{ID: "GPU-1", Index: 1, Capacity: 40 * units.GiB})
			w.sample(model.GPUSample{ID: "GPU-1", Fault: "closed"})
			for _, mem := range row.grants {
				w.started(w.submit(mem, nil))
			}
			w.sample(row.see, model.GPUSample{ID: "GPU-1"})
			w.exitWith(model.Exited{Task: 1, Class: model.ExitGPUOOM, Demand: row.demand})

			task := w.task(1)
			if got := say(w.requeued[0].Reason); got != row.reason || !task.Attempts[0].Reason.Equal(w.requeued[0].Reason) {
				t.Errorf("because %q\n   want %q", got, row.reason)
			}
			if first := task.Attempts[0]; first.NotAtFault == row.own || (task.OOMs == 1) != row.own || (task.NotAtFault == 1) == row.own {
				t.Errorf("blameless %v, OOMs %d, blameless deaths %d", first.NotAtFault, task.OOMs, task.NotAtFault)
			}
			if !row.own && (task.NextGrant != row.grants[0] || task.NextExclusive) {
				t.Errorf("the victim is punished: it needs %s, alone %v", task.NextGrant, task.NextExclusive)
			}
			over := w.task(2)
			if got := over.Current().Grants[0].Memory; got != row.grown || over.NextGrant != row.grown {
				t.Errorf("the neighbour has %s and needs %s, want %s", got, over.NextGrant, row.grown)
			}
			w.wantOn(1, 1)
		})
	}
}

// TestBlameHasAnEnd checks that a task whose attempts all fail because of other tasks fails in
// the end.
func TestBlameHasAnEnd(t *testing.T) {
	opt := plain()
	opt.BlamelessRetries = 3
	w := newWorld(t, opt, 1)
	id := w.submit(10*units.GiB, nil)
	for range 3 {
		w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 35 * units.GiB})
		w.exit(id, model.ExitGPUOOM)
		if task := w.task(id); task.OOMs != 0 {
			t.Fatal("blamed too early")
		}
		w.sample(model.GPUSample{ID: "GPU-0"})
		w.wantOn(id, 0)
	}
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 35 * units.GiB})
	w.exit(id, model.ExitGPUOOM)
	if task := w.task(id); task.OOMs != 1 || task.NextGrant != gib(13.5) || task.Last().NotAtFault {
		t.Errorf("OOMs %d, needs %s, blameless %v", task.OOMs, task.NextGrant, task.Last().NotAtFault)
	}
}

func TestProgramFault(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(units.GiB, nil)
	w.exit(a, model.ExitProgram)
	w.wantFailed(a, "program count=1 \"it said program\"")
	if w.finished[a].Code != 1 {
		t.Errorf("code %d", w.finished[a].Code)
	}

	b := w.submit(units.GiB, func(r *model.Request) { r.Retries = 2 })
	for i, class := range []model.Class{model.ExitProgram, model.ExitHostOOM} {
		w.exit(b, class)
		if w.attempt(b) != i+2 || w.task(b).OOMs != 0 || w.task(b).NextGrant != units.GiB {
			t.Fatalf("after failure %d: %+v", i+1, w.task(b))
		}
	}
	if got := say(w.requeued[0].Reason); got != "retry count=1 limit=2 <- program count=1 \"it said program\"" {
		t.Errorf("requeued because %q", got)
	}
	w.exit(b, model.ExitProgram)
	w.wantFailed(b, "program count=1 \"it said program\"")

	// It returns to the position of its number, not to recovery.
	c := w.submit(30*units.GiB, func(r *model.Request) { r.Retries = 1 })
	d := w.submit(30*units.GiB, high)
	w.exit(c, model.ExitProgram)
	w.wantPhase(c, model.Queued)
	w.wantOn(d, 0)
}

func TestHostOOM(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submit(units.GiB, nil)
	w.exit(id, model.ExitHostOOM)
	w.wantFailed(id, "host-oom \"it said host-oom\"") // a larger share of a GPU does not help
}

func TestCannotStart(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submit(units.GiB, func(r *model.Request) { r.Retries = 5 })
	w.exit(id, model.ExitCannotStart)
	w.wantFailed(id, "cannot-start \"it said cannot-start\"")
}

func TestInfrastructure(t *testing.T) {
	w := newWorld(t, plain(), 2)
	id := w.submit(units.GiB, nil)
	w.wantOn(id, 0)
	for i, wait := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 640} {
		w.exit(id, model.ExitInfrastructure)
		w.wantPhase(id, model.Recovering)
		w.wait(wait*time.Second - 1)
		w.wantOn(id)
		w.wait(1)
		if w.on(id) == nil {
			t.Fatalf("failure %d: it has not come back after %ds", i+1, wait)
		}
		if task := w.task(id); task.OOMs != 0 || task.Failures != 0 || task.NextGrant != units.GiB || !task.Attempts[i].NotAtFault {
			t.Fatalf("failure %d costs something: %+v", i+1, task)
		}
		if i == 0 {
			w.wantOn(id, 1) // on another GPU
		}
	}
	w.exit(id, model.ExitInfrastructure)
	w.wantFailed(id, "too-often count=9 <- infrastructure \"it said infrastructure\"")

	// An avoided GPU is used if there is no other.
	a := w.submit(units.GiB, nil)
	w.exit(a, model.ExitInfrastructure)
	w.sample(model.GPUSample{ID: "GPU-1", Fault: "ECC"})
	w.wait(10 * time.Second)
	w.wantOn(a, 0)

	// A task evicted by MPS, or stopped by somebody else, runs again at once. After an
	// MPS fault it runs again when the server has had time to recover.
	m := newWorld(t, plain(), 1)
	id = m.submit(units.GiB, nil)
	m.exit(id, model.ExitMPSFault)
	m.wantPhase(id, model.Recovering)
	m.wait(10 * time.Second)
	m.wantOn(id, 0)
	if task := m.task(id); len(task.Avoid) != 0 || task.NotAtFault != 1 {
		t.Errorf("after an MPS fault: %+v", task)
	}
	for _, class := range []model.Class{model.ExitEvicted, model.ExitStopped} {
		w := newWorld(t, plain(), 1)
		id := w.submit(units.GiB, nil)
		w.exit(id, class)
		w.wantOn(id, 0)
		if task := w.task(id); len(task.Avoid) != 0 || task.NotAtFault != 1 {
			t.Errorf("%s: %+v", class, task)
		}
	}
}

// TestStaged checks the stages: 10 GiB free after the first GPU OOM, 20 after the second,
// then exclusive.
func TestStaged(t *testing.T) {
	type step struct {
		need  units.Bytes
		alone bool
	}
	for _, row := range []struct {
		name     string
		mem      units.Bytes
		booking  string
		attempts int
		demand   units.Bytes
		steps    []step
	}{
		{"as booked", 2 * units.GiB, model.BookGrants, 4, 0, []step{{10 * units.GiB, false}, {20 * units.GiB, false}, {20 * units.GiB, true}}},
		{"by samples", 2 * units.GiB, model.BookSamples, 4, 0, []step{{10 * units.GiB, false}, {20 * units.GiB, false}, {0, true}}},
		{"more than a floor", 15 * units.GiB, model.BookGrants, 4, 0, []step{{15 * units.GiB, false}, {20 * units.GiB, false}, {20 * units.GiB, true}}},
		{"what it wanted does not count before it is alone", 2 * units.GiB, model.BookGrants, 4, 30 * units.GiB, []step{{10 * units.GiB, false}, {20 * units.GiB, false}, {30 * units.GiB, true}}},
		{"no third floor", 2 * units.GiB, model.BookGrants, 6, 0, []step{{10 * units.GiB, false}, {20 * units.GiB, false}, {20 * units.GiB, true}}},
		{"two attempts", 2 * units.GiB, model.BookGrants, 2, 0, []step{{2 * units.GiB, true}}},
		{"three attempts", 2 * units.GiB, model.BookGrants, 3, 0, []step{{10 * units.GiB, false}, {10 * units.GiB, true}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := plain()
			opt.Recovery, opt.Booking, opt.Attempts, opt.Headroom = model.RecoverStaged, row.booking, row.attempts, units.GiB
			w := newWorld(t, opt, 1)
			id := w.submit(row.mem, nil)
			for i, s := range row.steps {
				w.started(id)
				w.exitWith(model.Exited{Task: id, Class: model.ExitGPUOOM, Demand: row.demand})
				w.wantOn(id, 0)
				if task := w.task(id); task.NextGrant != s.need || task.NextExclusive != s.alone {
					t.Errorf("after OOM %d it needs %s, alone %v; want %s, %v", i+1, task.NextGrant, task.NextExclusive, s.need, s.alone)
				}
			}
			w.exit(id, model.ExitGPUOOM)
			w.wantPhase(id, model.Failed)
		})
	}

	// A floor is an amount of free memory. The task waits until a GPU has that much.
	opt := plain()
	opt.Recovery = model.RecoverStaged
	w := newWorld(t, opt, 1)
	full := w.submit(30*units.GiB+1, nil)
	id := w.submit(2*units.GiB, nil)
	w.exit(id, model.ExitGPUOOM)
	w.wantOn(id)
	if why, _ := w.s.Why(id); !why.Recovery || sayWhy(why) != "0 of 1: GPU 0 memory have=30.0 GiB need=10.0 GiB of=40.0 GiB" {
		t.Errorf("it waits because %q", sayWhy(why))
	}
	other := w.submit(units.GiB, nil)
	w.wantOn(other, 0) // others are not kept waiting
	w.exit(full, model.ExitOK)
	w.wantOn(id, 0)

	// A floor above the memory of all GPUs has the same effect as exclusive.
	w = newWorldOf(t, opt, model.GPUInfo{ID: "a", Capacity: 8 * units.GiB})
	id = w.submit(2*units.GiB, nil)
	w.exit(id, model.ExitGPUOOM)
	if task := w.task(id); !task.NextExclusive || task.Phase != model.Launching {
		t.Errorf("on a GPU of 8 GiB: %s, alone %v, needs %s", task.Phase, task.NextExclusive, task.NextGrant)
	}
}

// TestRecoverOriginal checks that a task that ran out of memory gets an exclusive idle GPU, and
// that no task of the main queue is started before.
func TestRecoverOriginal(t *testing.T) {
	opt := plain()
	opt.Recovery = model.RecoverOriginal
	w := newWorld(t, opt, 2)
	a, b, c := w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil)
	w.wantOn(a, 0)
	w.wantOn(b, 1)
	w.wantOn(c, 0)
	w.exit(a, model.ExitGPUOOM)
	if task := w.task(a); task.Phase != model.Recovering || !task.NextExclusive || task.NextGrant != 10*units.GiB {
		t.Fatalf("%s, alone %v, needs %s", task.Phase, task.NextExclusive, task.NextGrant)
	}
	if why, _ := w.s.Why(a); sayWhy(why) != "0 of 1: GPU 0 idle tasks=1" {
		t.Errorf("it waits because %q", sayWhy(why))
	}
	d, e := w.submit(units.GiB, nil), w.submit(units.GiB, high)
	for _, id := range []model.TaskID{d, e} {
		w.wantOn(id)
		if why, _ := w.s.Why(id); sayWhy(why) != "recovery-first" || len(why.Fits) != 2 {
			t.Errorf("task %d fits %v and waits because %q", id, why.Fits, sayWhy(why))
		}
	}
	// A second recovering task does not wait for the first.
	w.exit(b, model.ExitGPUOOM)
	w.wantOn(a, 1)
	w.wantOn(b)
	w.wantOn(d)
	if got := w.task(a).Current().Grants[0].Memory; got != 40*units.GiB {
		t.Errorf("it has %s for itself", got)
	}
	w.exit(c, model.ExitOK)
	w.wantOn(b, 0)
	w.wantOn(d) // no GPU has room, but recovery does not block it
	if why, _ := w.s.Why(d); sayWhy(why) != "0 of 1: GPU 0 alone task=2" {
		t.Errorf("it waits because %q", sayWhy(why))
	}
	w.exit(a, model.ExitOK)
	w.wantOn(d, 1)
	w.wantOn(e, 1)
	w.exit(b, model.ExitGPUOOM)
	w.wantFailed(b, "gpu-oom-alone <- ran-out have=40.0 GiB")
}
