package runner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/bare"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/request"
)

// refusing is a driver that makes no container of one image.
type refusing struct {
	containers.Driver
	image, says string
}

func (d refusing) Unwrap() containers.Driver { return d.Driver }

func (d refusing) Create(ctx context.Context, spec containers.Spec) (string, error) {
	if spec.Image == d.image {
		return "", errors.New("create container: " + d.says)
	}
	return d.Driver.Create(ctx, spec)
}

// withCanary gives a rig's daemon the canary's program.
func withCanary(g *rig) { g.opt.Init = "/bin/true" }

func bobAndAlice() (bob, alice request.Caller) {
	return request.Caller{UID: 1001, GID: 1001, Name: "bob"}, request.Caller{UID: 1002, GID: 1002, Name: "alice"}
}

// TestOneUsersSuiteCannotStart: R4 of the third review. 40 tasks of one user never start, for
// an unknown reason. The engine must not be reported as unhealthy, /readyz must stay 200,
// another user's tasks must run, and the 40 tasks must fail with the engine's message.
func TestOneUsersSuiteCannotStart(t *testing.T) {
	long(t)
	g := newRig(t, withCanary, func(g *rig) {
		g.driver = refusing{g.engine, "bad", "sethostname: invalid argument"}
		g.opt.Mapper.BlamelessRetries = 3
	})
	g.engine.AddImage("bad", containerstest.Image{})
	g.engine.AddImage("good", containerstest.Image{})
	bob, alice := bobAndAlice()
	var bad []string
	for range 40 {
		made, err := g.admission.Submit(g.ctx(), bob, api.Submit{Image: "bad", Mem: int64(units.GiB)})
		if err != nil {
			t.Fatal(err)
		}
		bad = append(bad, model.TaskID(made.ID).String())
	}
	quiet := func() {
		t.Helper()
		if info, err := g.api.Info(g.ctx()); err != nil || len(info.Trouble) != 0 {
			t.Fatalf("info: %+v, %v", info.Trouble, err)
		}
		if status, body := g.get("/readyz"); status != 200 {
			t.Fatalf("readyz: %d %s", status, body)
		}
	}
	for range 6 {
		made, err := g.admission.Submit(g.ctx(), alice, api.Submit{Image: "good", Mem: int64(units.GiB)})
		if err != nil {
			t.Fatal(err)
		}
		if task := g.finished(model.TaskID(made.ID).String()); task.Phase != "succeeded" || len(task.Attempts) != 1 {
			t.Errorf("alice's task: %s (%s)", task.Phase, task.Reason)
		}
		quiet()
	}
	for _, ref := range bad {
		task := g.finished(ref)
		if last := task.Attempts[len(task.Attempts)-1]; task.Phase != "failed" || last.Outcome != "cannot-start" || last.Blameless || !strings.Contains(task.Reason, "sethostname: invalid argument") {
			t.Errorf("task %s: %s (%s), %+v", ref, task.Phase, task.Reason, last)
		}
		quiet()
	}
	if made, err := g.admission.Submit(g.ctx(), bob, api.Submit{Image: bare.CanaryImage}); err == nil {
		t.Errorf("task %d runs the canary's image", made.ID)
	}
	g.eventually("the canary is removed", func() bool {
		list, err := g.engine.List(g.ctx(), nil)
		return err == nil && len(list) == 0
	})
	all, err := g.api.Tasks(g.ctx(), api.ListOptions{All: true})
	if err != nil || len(all) != 46 {
		t.Errorf("%d tasks are listed, %v", len(all), err)
	}
}

// TestOtherGPUIsNotBlamed checks that a start failure because of a device that carma did not
// assign counts against the task and not against a GPU, also for a task without a GPU.
func TestOtherGPUIsNotBlamed(t *testing.T) {
	for name, noGPU := range map[string]bool{"one GPU": false, "no GPU": true} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, withCanary, func(g *rig) {
				g.driver = refusing{g.engine, "bad", "nvidia-container-cli: device error: GPU-11111111-2222-3333-4444-555555555555: unknown device"}
				g.opt.Mapper.BlamelessRetries = 2
			})
			g.engine.AddImage("bad", containerstest.Image{})
			var refs []string
			for range 4 {
				s := api.Submit{Image: "bad", NoGPU: noGPU}
				if !noGPU {
					s.Mem = int64(units.GiB)
				}
				refs = append(refs, g.run(s))
			}
			for _, ref := range refs {
				task := g.finished(ref)
				if task.Phase != "failed" || task.Attempts[len(task.Attempts)-1].Outcome != "cannot-start" {
					t.Errorf("task %s: %s (%s)", ref, task.Phase, task.Reason)
				}
				if info, err := g.api.Info(g.ctx()); err != nil || len(info.Trouble) != 0 {
					t.Errorf("info: %+v, %v", info.Trouble, err)
				}
			}
		})
	}
}

// TestReadyFollowsCanary checks that the canary detects an engine that starts nothing for an
// unknown reason, even if only one user has tasks. /readyz answers 503 while the canary fails,
// also after the tasks have been removed, and 200 when the canary starts. No task loses an
// attempt.
func TestReadyFollowsCanary(t *testing.T) {
	g := newRig(t, withCanary)
	g.engine.AddImage("train", containerstest.Image{})
	g.engine.FailAll(containerstest.OpStart, errors.New("start container: something new"))
	stays, goes := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)}), g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	down := func() bool {
		status, body := g.get("/readyz")
		return status == 503 && strings.Contains(body, "carma's own test container does not start") && strings.Contains(body, "something new")
	}
	g.eventually("the canary fails", down)
	g.eventually("why names the engine", func() bool { // a task may be running as a probe at the moment
		why, err := g.api.Why(g.ctx(), stays)
		return err == nil && strings.Contains(why.Summary, "the container engine starts nothing")
	})
	if _, err := g.api.Stop(g.ctx(), goes, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(goes)
	g.restart()
	g.eventually("the canary of the next daemon fails too", down)
	g.engine.FailAll(containerstest.OpStart, nil)
	g.eventually("readyz is well again", func() bool { status, _ := g.get("/readyz"); return status == 200 })
	if task := g.finished(stays); task.Phase != "succeeded" || len(task.Attempts) > 2 {
		t.Errorf("%s (%s), attempts %+v", task.Phase, task.Reason, task.Attempts)
	}
}

// TestCanarySwept checks that the next daemon removes the canary of a killed daemon.
func TestCanarySwept(t *testing.T) {
	g := newRig(t, withCanary)
	g.script(bare.CanaryImage, untilStopped)
	id, err := g.engine.Create(g.ctx(), g.canary.Spec("carma-"+g.instance+"-canary-killed"))
	if err == nil {
		err = g.engine.Start(g.ctx(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.restart()
	g.eventually("it is removed", func() bool {
		list, err := g.engine.List(g.ctx(), nil)
		return err == nil && len(list) == 0
	})
}
