package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carma/internal/units"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
)

// TestCallsHaveLimits: every call of an engine that hangs returns, with the error of an
// engine that does not answer. A wait continues, and returns the end when the engine works
// again.
func TestCallsHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := containerstest.NewFake()
		defer f.Shutdown()
		f.AddImage("i", containerstest.Image{Run: untilStopped})
		d, ctx := bounded{f}, t.Context()
		id, err := d.Create(ctx, containers.Spec{Name: "job", Image: "i"})
		if err == nil {
			err = d.Start(ctx, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() { _, err := d.Wait(ctx, id); waited <- err }()
		synctest.Wait()
		f.Freeze()
		for what, call := range map[string]func() error{
			"image":    func() error { _, err := d.Image(ctx, "i"); return err },
			"pull":     func() error { return d.Pull(ctx, "i", containers.Credential{}) },
			"create":   func() error { _, err := d.Create(ctx, containers.Spec{Name: "other", Image: "i"}); return err },
			"start":    func() error { return d.Start(ctx, id) },
			"signal":   func() error { return d.Signal(ctx, id) },
			"kill":     func() error { return d.Kill(ctx, id) },
			"remove":   func() error { return d.Remove(ctx, id) },
			"list":     func() error { _, err := d.List(ctx, nil); return err },
			"attached": func() error { _, err := d.Attached(ctx, id); return err },
		} {
			if err := call(); !errors.Is(err, containers.ErrUnavailable) || strings.Contains(err.Error(), "context") {
				t.Errorf("%s: %v, want ErrUnavailable", what, err)
			}
		}
		time.Sleep(10 * waitRound)
		select {
		case err := <-waited:
			t.Fatalf("wait came back: %v", err)
		default:
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := d.Kill(gone, id); !errors.Is(err, context.Canceled) || errors.Is(err, containers.ErrUnavailable) {
			t.Errorf("a call that was given up: %v", err)
		}
		f.Thaw()
		if err := d.Kill(ctx, id); err != nil {
			t.Error(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("wait: %v", err)
		}
	})
}

// An engine that hangs delays no answer (finding F10).
func TestHungEngineHoldsUpNobody(t *testing.T) {
	long(t)
	g := newRig(t, func(g *rig) { g.opt.Init = "/bin/true" })
	long := g.gated("long")
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(ref)
	stopped := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(stopped)
	g.engine.Freeze()
	defer g.engine.Thaw()
	many := api.Submission{}
	for range 20 {
		many.Tasks = append(many.Tasks, api.Submit{Image: "other", Mem: int64(units.GiB)})
	}
	all, err := g.api.SubmitAll(g.ctx(), many)
	if err != nil || len(all.Warnings) != 1 || !strings.Contains(all.Warnings[0], "does not answer") {
		t.Fatalf("submission to an engine that hangs: %+v, %v", all, err)
	}
	if _, err := g.api.Info(g.ctx()); err != nil {
		t.Error(err)
	}
	checks, err := g.api.Doctor(g.ctx())
	if err != nil || checks[0].Status != "failure" || !strings.Contains(checks[0].Detail, "does not answer") {
		t.Errorf("doctor: %+v, %v", checks, err)
	}
	if _, err := g.api.Prove(g.ctx(), "long"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("proof: %v", err)
	}
	g.asksToStop(stopped, api.StopRequest{Now: true})
	g.engine.Thaw()
	g.script("other", printing(0, "here"))
	if task := g.finished(stopped); task.Phase != "cancelled" {
		t.Errorf("the stopped task is %s", task.Phase)
	}
	close(long.gate)
	if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 {
		t.Errorf("the task that ran is %s after %+v", task.Phase, task.Attempts)
	}
}
