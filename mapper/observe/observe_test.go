package observe

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

const hour = units.Instant(time.Hour)

// begin returns an observer over n GPUs of 40 GiB on one machine, at the first hour.
func begin(t *testing.T, n int, change func(*model.Options)) *Observer {
	t.Helper()
	opt := model.Options{Policy: "first-fit", LookAhead: 64, Ageing: time.Hour, Watchdog: model.WatchdogRelaunch, Shrink: 5 * time.Minute}
	if change != nil {
		change(&opt)
	}
	first, err := policy.Named(opt.Policy)
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(opt, first.IdleOnly)
	l.Begin(hour)
	us, pr := fairshare.New(l), predict.New(l)
	q := queue.New(l, us, pr)
	rs := reserve.New(l, pr, q)
	pl := place.New(l, pr, q, rs, first)
	pl.DropCache()
	ob := New(l, us, pr, pl, preempt.New(l, pr, q, rs, pl))
	ob.GPUsFound(gpus(n, "boot"))
	ob.ClearDirty()
	return ob
}

// gpus returns the event that n GPUs are there.
func gpus(n int, boot string) (ev model.GPUsFound) {
	for i := range n {
		ev.GPUs = append(ev.GPUs, model.GPUInfo{ID: model.GPUID('a' + rune(i)), Node: "n", Index: i, Capacity: 40 * units.GiB, Boot: boot})
	}
	return ev
}

// run adds a task that runs on a GPU with a grant of some GiB.
func run(ob *Observer, id model.TaskID, gpu model.GPUID, grant units.Bytes) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, GPUs: 1, Priority: model.Normal, User: "ada"}, Phase: model.Running, NextGrant: grant * units.GiB}
	t.Attempts = []model.Attempt{{N: 1, Launched: hour, Started: hour, Grants: []model.Grant{{GPU: gpu, Memory: grant * units.GiB}}}}
	ob.UseID(id)
	ob.AddTask(t)
	ob.users.Enqueued(t)
	ob.users.Dequeued(t)
	ob.placer.AddResident(t, []*model.GPU{ob.GPU(gpu)}, t.Last().Grants, false)
	ob.users.Occupy(t)
	return t
}

// use returns a sample of a GPU on which tasks use some GiB each, in order of number.
func use(gpu model.GPUID, each ...units.Bytes) model.GPUSample {
	s := model.GPUSample{ID: gpu, SMACT: 0.5}
	for i, gib := range each {
		s.Used += gib * units.GiB
		s.Tasks = append(s.Tasks, model.TaskUse{Task: model.TaskID(i + 1), Used: gib * units.GiB})
	}
	return s
}

func sampled(ob *Observer, s ...model.GPUSample) { ob.Sampled(model.Sampled{GPUs: s}) }

// decided returns the decisions so far in short, and drops them.
func decided(ob *Observer) (all []string) {
	for _, d := range ob.Decisions() {
		switch d := d.(type) {
		case model.GrantExceeded:
			all = append(all, fmt.Sprintf("exceeded %d: %d of %d, now %d", d.Task, d.Used/units.GiB, d.Grant/units.GiB, d.Booked/units.GiB))
		case model.GrantChanged:
			all = append(all, fmt.Sprintf("grant %d: %d", d.Task, d.Grants[0].Memory/units.GiB))
		}
	}
	ob.ClearDecisions()
	return all
}

// TestGPUsFound checks that a GPU with tasks stays when it is gone, and an idle one does not.
func TestGPUsFound(t *testing.T) {
	ob := begin(t, 3, nil)
	run(ob, 1, "b", 10)
	ob.GPUsFound(gpus(1, "boot"))
	if ob.NumGPUs() != 2 || !ob.GPU("b").Missing || ob.GPU("a").Missing || !ob.Dirty() {
		t.Errorf("%d GPUs, %+v", ob.NumGPUs(), ob.GPU("b"))
	}
	moved := gpus(2, "boot")
	moved.GPUs[1].Node = "other"
	if ob.GPUsFound(moved); ob.GPU("b").Missing || ob.GPU("b").Node != "n" {
		t.Errorf("back: %+v", ob.GPU("b"))
	}
}

// TestFaults checks that a fault that needs a reset lasts until the reset, the reboot or
// somebody clears it, and another until the next sample.
func TestFaults(t *testing.T) {
	ob := begin(t, 1, nil)
	g := ob.GPU("a")
	fail := func(lasts bool) {
		s := use("a")
		s.Fault, s.UntilReset = "XID 79", lasts
		sampled(ob, s)
	}
	fail(false)
	if g.Fault == "" || g.Persistent != nil {
		t.Errorf("fault %q, persistent %+v", g.Fault, g.Persistent)
	}
	sampled(ob, use("a"))
	if g.Fault != "" {
		t.Errorf("fault %q", g.Fault)
	}
	for name, end := range map[string]func(){
		"reset":  func() { ob.GPUsReset(model.GPUsReset{GPUs: []model.GPUID{"a"}}) },
		"reboot": func() { ob.GPUsFound(gpus(1, "next")) },
		"admin":  func() { ob.ClearFault(g) },
	} {
		ob.GPUsFound(gpus(1, "boot"))
		fail(true)
		sampled(ob, use("a"))
		ob.GPUsFound(gpus(1, "boot"))
		if g.Persistent == nil {
			t.Errorf("%s: the fault has ended before", name)
		}
		ob.ClearDirty()
		if end(); g.Persistent != nil || !ob.Dirty() {
			t.Errorf("%s: the fault lasts", name)
		}
	}
}

// TestSampled checks what a sample changes, and that it asks for a scheduling cycle only if
// there is more room than before.
func TestSampled(t *testing.T) {
	ob := begin(t, 1, nil)
	run(ob, 1, "a", 10)
	ob.ClearDirty()
	sampled(ob, use("a", 8))
	sampled(ob, use("a", 6))
	g := ob.GPU("a")
	if r := g.Resident(1); r.Used != 6*units.GiB || r.Peak != 8*units.GiB || !g.Read || g.SMACT != 0.5 || ob.Dirty() {
		t.Errorf("%+v on %+v, dirty %v", r, g, ob.Dirty())
	}
	s := use("a", 6)
	s.OtherProcesses = 5 * units.GiB
	if sampled(ob, s); g.OtherProcesses != 5*units.GiB || !ob.Dirty() {
		t.Errorf("other processes %v, dirty %v", g.OtherProcesses, ob.Dirty())
	}
}

// TestResidue checks that memory of a suspended task counts as memory of other processes.
func TestResidue(t *testing.T) {
	ob := begin(t, 1, nil)
	v := run(ob, 1, "a", 10)
	ob.GPU("a").Remove(1)
	v.Phase, v.Suspension = model.Suspended, &model.Suspension{From: v.Last().Grants}
	s := use("a", 1)
	s.OtherProcesses = 2 * units.GiB
	sampled(ob, s)
	if g := ob.GPU("a"); g.OtherProcesses != 3*units.GiB || g.ResidueOf(v) != units.GiB {
		t.Errorf("other processes %v, residue %v", g.OtherProcesses, g.ResidueOf(v))
	}
}

// TestExceededGrant checks that a grant grows as far as the card has room, that a task which
// exceeds it further is marked once, and that it is remembered where memory is short.
func TestExceededGrant(t *testing.T) {
	ob := begin(t, 1, nil)
	first := run(ob, 1, "a", 10)
	run(ob, 2, "a", 25)
	decided(ob)
	sampled(ob, use("a", 12, 20))
	if got := decided(ob); !slices.Equal(got, []string{"exceeded 1: 12 of 10, now 13", "grant 1: 13"}) && !slices.Equal(got, []string{"grant 1: 13", "exceeded 1: 12 of 10, now 13"}) {
		t.Errorf("decided %q", got)
	}
	sampled(ob, use("a", 20, 20))
	r := ob.GPU("a").Resident(1)
	if since := r.OverSince; since != hour || r.Grant != 15*units.GiB || first.NextGrant != 15*units.GiB {
		t.Errorf("over since %v, grant %v, next %v", since, r.Grant, first.NextGrant)
	}
	if len(ob.GPU("a").Overran) != 1 || ob.GPU("a").Overran[0].Task != 1 {
		t.Errorf("overran: %+v", ob.GPU("a").Overran)
	}
	decided(ob)
	if sampled(ob, use("a", 20, 20)); len(decided(ob)) > 0 {
		t.Error("the same overuse is reported twice")
	}
	sampled(ob, use("a", 14, 20))
	if r.OverSince != 0 {
		t.Error("it is still marked")
	}
	ob.Begin(hour.Add(model.OverrunWindow + 1))
	if sampled(ob, use("a", 14, 20)); len(ob.GPU("a").Overran) > 0 {
		t.Errorf("overran: %+v", ob.GPU("a").Overran)
	}
}

// TestShrink checks that a grant is cut when memory has not grown for a while, and not before.
func TestShrink(t *testing.T) {
	ob := begin(t, 1, nil)
	run(ob, 1, "a", 20)
	run(ob, 2, "a", 15)
	sampled(ob, use("a", 10, 5))
	for _, row := range []struct {
		after         time.Duration
		first, second bool // whether it is cut
	}{{time.Minute, false, false}, {6 * time.Minute, false, true}, {9 * time.Minute, true, true}} {
		ob.Begin(hour.Add(row.after))
		ob.Shrink()
		g := ob.GPU("a")
		if a, b := g.Resident(1).Grant, g.Resident(2).Grant; (a < 15*units.GiB) != row.first || a < 12*units.GiB || (b < 7*units.GiB) != row.second || b < 5*units.GiB {
			t.Errorf("after %v: %v and %v", row.after, a, b)
		}
		if row.after == time.Minute {
			ob.Begin(hour.Add(3 * time.Minute))
			sampled(ob, use("a", 12, 5)) // the first has grown
		}
	}
}

// TestReclaim checks that the margin of a task that learns its memory goes to a neighbour
// that exceeds its grant.
func TestReclaim(t *testing.T) {
	ob := begin(t, 1, func(o *model.Options) { o.Shrink = 0 })
	run(ob, 1, "a", 20).Learner = true
	run(ob, 2, "a", 20)
	sampled(ob, use("a", 10, 25))
	if a, b := ob.GPU("a").Resident(1).Grant, ob.GPU("a").Resident(2).Grant; b < 27*units.GiB || a+b != 40*units.GiB || a < 10*units.GiB {
		t.Errorf("grants %v and %v", a, b)
	}
}

// TestHosts checks the inventory, the helpers and the samples of machines.
func TestHosts(t *testing.T) {
	ob := begin(t, 1, nil)
	ob.HostsFound(model.HostsFound{Hosts: []model.HostInfo{{Node: "n", Total: 100 * units.GiB, Memory: 90 * units.GiB, Most: 90 * units.GiB, CPUs: 8000}}})
	h := ob.Host("n")
	ob.HelpersBooked(model.HelpersBooked{Node: "n", Suite: "s", Memory: 20 * units.GiB})
	if !h.Known || h.FreeMemory() != 70*units.GiB {
		t.Errorf("known %v, free %v", h.Known, h.FreeMemory())
	}
	ob.ClearDirty()
	ob.Sampled(model.Sampled{Hosts: []model.HostSample{{Node: "n", Available: 50 * units.GiB, Helpers: []model.HelpersUse{{Suite: "s", Used: 30 * units.GiB}}}}})
	if h.FreeMemory() >= 70*units.GiB || h.Helpers[0].Used != 30*units.GiB || ob.Dirty() {
		t.Errorf("free %v, helpers %+v, dirty %v", h.FreeMemory(), h.Helpers, ob.Dirty())
	}
	ob.HelpersBooked(model.HelpersBooked{Node: "n", Suite: "s"})
	if len(h.Helpers) > 0 || !ob.Dirty() {
		t.Errorf("helpers %+v", h.Helpers)
	}
}

// TestDevicesChecked checks that the loss of devices keeps its first instant until it ends.
func TestDevicesChecked(t *testing.T) {
	ob := begin(t, 1, nil)
	a := run(ob, 1, "a", 10).Last()
	check := func(attempt int, state model.DeviceState) {
		ob.DevicesChecked(model.DevicesChecked{Task: 1, Attempt: attempt, State: state})
	}
	check(2, model.DevicesGone)
	if a.Devices != nil {
		t.Error("the devices of another attempt")
	}
	check(1, model.DevicesGone)
	ob.Begin(hour.Add(time.Minute))
	if check(1, model.DevicesDenied); a.Devices == nil || a.Devices.Since != hour || a.Devices.State != model.DevicesDenied {
		t.Errorf("%+v", a.Devices)
	}
	if check(1, ""); a.Devices != nil {
		t.Errorf("%+v", a.Devices)
	}
}
