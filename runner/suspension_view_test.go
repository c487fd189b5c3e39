package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/suspend"
	"carma/runner/verify"
)

// happens journals and applies events in one step.
func (g *rig) happens(events ...model.Event) {
	g.t.Helper()
	c := &loop.Change{Events: func(units.Instant) ([]model.Event, []*record.Record, error) { return events, nil, nil }}
	if err := g.loop.Do(g.ctx(), c); err != nil {
		g.t.Fatal(err)
	}
}

// canSuspend reports to the core that the driver can suspend on all GPUs.
func (g *rig) canSuspend() {
	g.t.Helper()
	found := model.GPUsFound{At: g.Clock.Now()}
	if err := g.loop.Look(g.ctx(), func(s *mapper.State) {
		for _, gpu := range s.GPUs() {
			gpu.Suspend = model.SuspendHere
			found.GPUs = append(found.GPUs, gpu.GPUInfo)
		}
	}); err != nil {
		g.t.Fatal(err)
	}
	g.happens(found)
}

// suspended runs a task and reports to the core that it was suspended on GPU 0: no driver
// is asked.
func (g *rig) suspended(by, why string) (ref string) {
	g.t.Helper()
	g.script("stay", untilStopped)
	ref = g.run(api.Submit{Image: "stay", Mem: int64(3 * units.GiB)})
	id := model.TaskID(g.running(ref).ID)
	g.canSuspend()
	now := g.Clock.Now()
	g.happens(model.SuspendAsked{At: now, Task: id, By: by, Why: why}, model.SuspendDone{At: now, Task: id, Attempt: 1})
	return ref
}

func (g *rig) why(ref string) api.Why {
	g.t.Helper()
	why, err := g.api.Why(g.ctx(), ref)
	if err != nil {
		g.t.Fatal(err)
	}
	return why
}

// TestCannotSuspend checks that the refusal of a suspend contains the reason and an
// alternative.
func TestCannotSuspend(t *testing.T) {
	g := newRig(t, byMemory)
	blocker := g.blocker()
	ref := g.waiting(api.Submit{})
	_, err := g.api.Suspend(g.ctx(), ref, api.Note{})
	g.refusedTo(err, 409, "task "+ref+" is queued and has no GPU; carma hold "+ref+" keeps it from being launched")
	_, err = g.api.Suspend(g.ctx(), blocker, api.Note{})
	g.refusedTo(err, 409, "cannot be suspended: it runs on 2 GPUs: ")
	_, err = g.api.Resume(g.ctx(), blocker)
	g.refusedTo(err, 409, "is not suspended: it is running")
	g.asksToStop(blocker, api.StopRequest{})
	g.finished(ref)
	g.script("stay", untilStopped)
	ref = g.run(api.Submit{Image: "stay", Mem: int64(units.GiB)})
	g.running(ref)
	_, err = g.api.Suspend(g.ctx(), ref, api.Note{})
	g.refusedTo(err, 409, "the driver cannot suspend programs on GPU ")
	g.refusedTo(err, 409, "carma requeue --hold "+ref+" stops it")
	g.canSuspend()
	_, err = g.control.Suspend(g.ctx(), request.Caller{UID: 4321, Name: "eve"}, ref, api.Note{})
	g.refusedTo(err, 403, "belongs to")
	// This daemon has no suspender. The task continues and shows that reason.
	if _, err = g.api.Suspend(g.ctx(), ref, api.Note{}); err != nil {
		t.Fatal(err)
	}
	g.until(ref, "running on", func(t api.Task) bool {
		return t.Phase == "running" && t.ReasonCode == "not-suspended" && t.Suspension == nil
	})
	if got := g.why(ref).Summary; !strings.Contains(got, "it could not be suspended and runs on: ") || strings.Contains(got, "again") {
		t.Errorf("why: %s", got)
	}
}

// TestCannotSuspendHere: if another driver would not help, the refusal has the reason.
func TestCannotSuspendHere(t *testing.T) {
	g := newRig(t, byMemory, func(g *rig) { g.opt.NoSuspending = "its claim keeps the memory" })
	g.script("stay", untilStopped)
	ref := g.run(api.Submit{Image: "stay", Mem: int64(units.GiB)})
	g.running(ref)
	_, err := g.api.Suspend(g.ctx(), ref, api.Note{})
	g.refusedTo(err, 409, "task "+ref+" cannot be suspended: its claim keeps the memory; carma requeue --hold "+ref+" stops it, ")
	if c := g.saysSuspending(); !strings.Contains(c.Detail, "no: its claim keeps the memory") {
		t.Errorf("doctor: %s", c.Detail)
	}
}

// TestSuspendedIsSeen checks that the user who suspended a task, its host memory and the reason
// for waiting are shown.
func TestSuspendedIsSeen(t *testing.T) {
	g := newRig(t, byMemory)
	ref := g.suspended("ann", "room for the demo")
	got := g.phase(ref)
	s := got.Suspension
	if got.Phase != "suspended" || s == nil || s.By != "ann" || s.Why != "room for the demo" || s.Since.IsZero() || s.Host != int64(3*units.GiB) || s.Back || len(s.From) != 1 || s.From[0].Index != 0 {
		t.Errorf("it is %s: %+v", got.Phase, s)
	}
	time.Sleep(5 * time.Millisecond)
	if away := g.phase(ref).Attempts[0].Suspended; away < 5*time.Millisecond || away > time.Minute {
		t.Errorf("it has been suspended for %s", away)
	}
	if got := g.why(ref).Summary; got != "suspended by ann: room for the demo; it has 3.0 GiB in host memory and comes back after carma resume "+ref {
		t.Errorf("why: %s", got)
	}
	_, err := g.api.Suspend(g.ctx(), ref, api.Note{})
	g.refusedTo(err, 409, "is suspended already; carma hold "+ref)
	_, err = g.api.Release(g.ctx(), ref)
	g.refusedTo(err, 409, "is not held, it is suspended; carma resume "+ref)
	_, err = g.api.Move(g.ctx(), ref, api.MoveRequest{})
	g.refusedTo(err, 409, "is suspended and in no queue; carma resume "+ref)
	_, err = g.api.Update(g.ctx(), ref, api.Update{Mem: new(int64(units.GiB))})
	g.refusedTo(err, 409, "is suspended; what it has booked can be changed while it waits: carma requeue --hold "+ref)
	_, err = g.api.Update(g.ctx(), ref, api.Update{CPUs: new(2.0)})
	g.refusedTo(err, 409, "is suspended; its host memory and processors can be changed while it waits or runs: carma resume "+ref+", or carma requeue --hold "+ref)
	_, err = g.api.Pin(g.ctx(), ref, api.PinRequest{GPUs: []string{"1"}, Stop: true})
	g.refusedTo(err, 409, "cannot come back to these GPUs")
	_, err = g.api.Exec(g.ctx(), ref, api.ExecRequest{Command: []string{"true"}})
	g.refusedTo(err, 409, "task "+ref+" is suspended: its programs stand still until carma resume "+ref)
	if _, err := g.api.Update(g.ctx(), ref, api.Update{Priority: new("low")}); err != nil {
		t.Error(err)
	}
	info, err := g.api.Info(g.ctx())
	if err != nil || info.Running != 0 || info.Suspended != 1 || info.Held != 0 || info.Queued != 0 {
		t.Errorf("%+v, %v", info, err)
	}

	// It waits for the task on its GPU. It would fit on GPU 1, but cannot move there.
	g.happens(model.GPUsCordoned{At: g.Clock.Now(), GPUs: []model.GPUID{"GPU-a"}, Closure: &model.Cordon{By: "root"}})
	if _, err := g.api.Resume(g.ctx(), ref); err != nil {
		t.Fatal(err)
	}
	if got := g.why(ref); got.Position != 1 || !strings.Contains(got.Summary, "it has 3.0 GiB in host memory; it waits to come back: GPU 0 is drained") && !strings.Contains(got.Summary, "it waits to come back: GPU 1 is not the GPU") {
		t.Errorf("why: %+v", got)
	}
	if info, err := g.api.Info(g.ctx()); err != nil || info.Suspended != 1 || info.Queued != 0 || info.Held != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := g.api.Hold(g.ctx(), ref, api.Note{Why: "the data is late"}); err != nil {
		t.Fatal(err)
	}
	if got := g.why(ref); got.Position != 0 || !strings.Contains(got.Summary, "and is held by root: the data is late: carma release "+ref) || g.phase(ref).Suspension.HeldBy != "root" {
		t.Errorf("why: %+v", got)
	}
	g.happens(model.GPUsCordoned{At: g.Clock.Now(), GPUs: []model.GPUID{"GPU-a"}})
	if got := g.phase(ref); got.Phase != "suspended" {
		t.Errorf("held, it is %s", got.Phase)
	}
	id := model.TaskID(got.ID)
	g.happens(model.HoldChanged{At: g.Clock.Now(), Task: id}, model.Resumed{At: g.Clock.Now(), Task: id, Attempt: 1})
	if got := g.phase(ref); got.Phase != "running" || got.Suspension != nil || len(got.Attempts) != 1 || got.Attempts[0].Suspended <= 0 {
		t.Errorf("back, it is %+v", got)
	}
	if got := g.why(ref).Summary; !strings.HasPrefix(got, "it does not wait: attempt 1 is running on GPU 0") {
		t.Errorf("why: %s", got)
	}
}

// TestSuspendedLeaves checks that a suspended task can be requeued or stopped.
func TestSuspendedLeaves(t *testing.T) {
	g := newRig(t, byMemory)
	ref := g.suspended("ann", "")
	if _, err := g.api.Requeue(g.ctx(), ref, api.RequeueRequest{Hold: true, Why: "it takes too much host memory"}); err != nil {
		t.Fatal(err)
	}
	got := g.until(ref, "held", func(t api.Task) bool { return t.Phase == "held" })
	if got.Suspension != nil || len(got.Attempts) != 1 || got.Attempts[0].Suspended <= 0 {
		t.Errorf("%+v", got)
	}
	if _, err := g.api.Release(g.ctx(), ref); err != nil {
		t.Fatal(err)
	}
	g.until(ref, "running again", func(t api.Task) bool { return t.Phase == "running" && len(t.Attempts) == 2 })
	id, now := model.TaskID(got.ID), g.Clock.Now()
	g.happens(model.SuspendAsked{At: now, Task: id}, model.SuspendDone{At: now, Task: id, Attempt: 2})
	if _, err := g.api.Stop(context.Background(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := g.finished(ref); got.Phase != "cancelled" || got.Suspension != nil {
		t.Errorf("stopped, it is %+v", got)
	}
	_, err := g.api.Resume(g.ctx(), ref)
	g.refusedTo(err, 409, "has ended")
}

// TestVerifySuspended: suspensions and their total time are counted from the journal, also
// for a task that was still suspended at its end.
func TestVerifySuspended(t *testing.T) {
	g, s, ref := suspendable(t)
	for range 2 {
		if _, err := g.api.Suspend(g.ctx(), ref, api.Note{}); err != nil {
			t.Fatal(err)
		}
		g.inPhase(ref, model.Suspended)
		if _, err := g.api.Resume(g.ctx(), ref); err != nil {
			t.Fatal(err)
		}
		g.inPhase(ref, model.Running)
	}
	s.fail(suspend.Runs, errors.New("the driver said no"))
	if _, err := g.api.Suspend(g.ctx(), ref, api.Note{}); err != nil {
		t.Fatal(err)
	}
	g.until(ref, "running on", func(t api.Task) bool { return t.ReasonCode == "not-suspended" })
	away := g.phase(ref).Attempts[0].Suspended
	if _, err := g.api.Suspend(g.ctx(), ref, api.Note{}); err != nil {
		t.Fatal(err)
	}
	g.inPhase(ref, model.Suspended)
	g.stop()
	v, err := verify.Journal(g.dir, "test")
	if err != nil || len(v.Faults) > 0 || v.Suspended != 3 || v.Resumed != 2 || v.SuspendedTime != away || away <= 0 {
		t.Errorf("%+v, %v; away for %s", v, err, away)
	}
}

// TestSuspendedTerminal: users attached to a task's terminal read that it is suspended, by
// whom, and that it has resumed.
func TestSuspendedTerminal(t *testing.T) {
	g, _, _ := suspendable(t)
	g.script("sh", shell)
	ref := g.run(api.Submit{Image: "sh", Mem: int64(units.GiB) / 2, ContainerOptions: api.ContainerOptions{TTY: true, Interactive: true}})
	g.running(ref)
	s := g.screen(g.api.Attach(g.ctx(), ref))
	s.shows("$ ")
	if _, err := g.api.Suspend(g.ctx(), ref, api.Note{Why: "room for the demo"}); err != nil {
		t.Fatal(err)
	}
	s.shows("suspended by root: room for the demo; its programs stand still until carma resume " + ref)
	if _, err := g.api.Resume(g.ctx(), ref); err != nil {
		t.Fatal(err)
	}
	s.shows("it is back on its GPU, and goes on")
}
