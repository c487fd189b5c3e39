package runner

import (
	"context"
	"math"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
)

// steps returns a program that trains 1000 steps: 5 s each, or 10 s beside another task. beside
// reports whether there is another task.
func steps(beside func() bool) containerstest.Script {
	return func(ctx context.Context, p *containerstest.Process) int {
		p.Out("number of parameters: 25,557,032")
		for step := range 1000 {
			length := 5 * time.Second
			if beside() {
				length *= 2
			}
			select {
			case <-ctx.Done():
				return 143
			case <-p.Killed:
				return 137
			case <-time.After(length):
			}
			p.Out("step %d/1000 loss 0.5", step+1)
		}
		return 0
	}
}

// TestProgressTold checks in virtual time that a task's progress, its expected end and the
// slowdown by its neighbour are shown, and that the mapper gets them in a few events.
func TestProgressTold(t *testing.T) {
	long(t)
	inVirtualTime(t, func(v *virtual) {
		beside := make(chan bool, 1)
		beside <- false
		v.engine.AddImage("train", containerstest.Image{Run: steps(func() bool { b := <-beside; beside <- b; return b })})
		big := api.Submit{Image: "train", Mem: int64(10 * units.GiB)}
		made, err := v.admission.Submit(v.ctx, rootUser, big)
		if err != nil {
			t.Fatal(err)
		}
		ref := model.TaskID(made.ID).String()
		view := func() *api.Progress {
			t.Helper()
			task, err := v.query.Task(v.ctx, ref)
			if err != nil || task.Progress == nil || task.Params != 25557032 {
				t.Fatalf("%v: %+v", err, task)
			}
			return task.Progress
		}
		time.Sleep(20 * time.Minute)
		p := view()
		if p.Done < 238 || p.Done > 240 || p.Total != 1000 || p.Unit != "steps" || math.Abs(p.Rate-0.2) > 0.01 || p.ETABasis != "output" {
			t.Errorf("alone: %+v", p)
		}
		if left := p.ETA.Sub(v.Clock.Time()).Seconds(); math.Abs(left/(5*760)-1) > 0.05 {
			t.Errorf("it ends in %v s, want %v", left, 5*760)
		}
		if p.Slowdown != nil {
			t.Errorf("alone it is slowed down: %+v", p.Slowdown)
		}

		for v.shares(ref) == 0 { // two GPUs, so the third task must share one
			v.submit("long")
			time.Sleep(time.Second)
		}
		<-beside
		beside <- true
		time.Sleep(10 * time.Minute)
		p = view()
		if p.Slowdown == nil || p.Slowdown.Basis != "measured" || math.Abs(p.Slowdown.Value-2) > 0.1 || len(p.Slowdown.Beside) != 1 {
			t.Errorf("beside another: %+v", p.Slowdown)
		}
		if left := p.ETA.Sub(v.Clock.Time()).Seconds(); math.Abs(left/(10*(1000-p.Done))-1) > 0.05 {
			t.Errorf("beside another it ends in %v s, want %v", left, 10*(1000-p.Done))
		}
		if n := v.events("paced"); n < 2 || n > 10 {
			t.Errorf("%d events of pace in half an hour", n)
		}
	})
}

// shares returns the number of tasks beside a task.
func (v *virtual) shares(ref string) int {
	v.t.Helper()
	task, err := v.query.Task(v.ctx, ref)
	if err != nil {
		v.t.Fatal(err)
	}
	if task.Progress == nil || task.Progress.Slowdown == nil {
		return 0
	}
	return len(task.Progress.Slowdown.Beside)
}

// events counts the events of a kind in the journal.
func (v *virtual) events(kind string) (n int) {
	v.t.Helper()
	for ev, err := range v.Journal.Events(0) {
		if err != nil {
			v.t.Fatal(err)
		}
		if ev.Kind == kind {
			n++
		}
	}
	return n
}

// TestProgressAfterRestart: the next daemon continues to read, does not read stored lines
// again, and counts nothing twice.
func TestProgressAfterRestart(t *testing.T) {
	g := newRig(t)
	next := make(chan struct{})
	g.script("train", func(ctx context.Context, p *containerstest.Process) int {
		for step := 1; step <= 20; step++ {
			p.Out("step %d/1000", step)
		}
		<-next
		for step := 21; step <= 25; step++ {
			p.Out("step %d/1000", step)
		}
		<-ctx.Done()
		return 143
	})
	ref := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.running(ref)
	done := func() *api.Progress {
		task, err := g.api.Task(g.ctx(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return task.Progress
	}
	g.eventually("20 steps", func() bool { p := done(); return p != nil && p.Done == 20 })
	g.eventually("20 lines are kept", func() bool { return len(g.output(ref)) == 20 })
	g.restart()
	if p := done(); p != nil && p.Done != 0 {
		t.Errorf("kept lines are read again: %+v", p)
	}
	close(next)
	g.eventually("25 steps", func() bool { p := done(); return p != nil && p.Done == 25 && p.Total == 1000 && p.Source == "words" })
}
