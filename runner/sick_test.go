package runner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
)

// errBridgeGone is Docker's error if its bridge was removed (finding R4).
var errBridgeGone = fmt.Errorf("start container: %w", containers.ReadStartFault("failed to create endpoint x on network bridge: adding interface veth0 to bridge docker0 failed: could not find bridge docker0: route ip+net: no such network interface"))

// TestSickEngine checks that no task loses an attempt on an engine that answers but starts
// nothing. info, why, doctor and the followed output report this once, with cause and remedy.
// Launching resumes without an action by anybody (R4).
func TestSickEngine(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("train", containerstest.Image{})
	g.engine.FailAll(containerstest.OpStart, errBridgeGone)
	var refs []string
	for range 6 {
		refs = append(refs, g.run(api.Submit{Image: "train", Mem: int64(30 * units.GiB)}))
	}
	notices := make(chan int, 1)
	go func() {
		n := 0
		_, err := g.api.Logs(g.ctx(), refs[5], api.LogOptions{Follow: true}, func(l api.LogLine) error {
			if l.Notice != "" {
				n++
			}
			if strings.Contains(l.Line, "attempt") {
				n += 100
			}
			return nil
		})
		if err != nil {
			n = -1
		}
		notices <- n
	}()
	g.eventually("the engine is known to be sick", func() bool {
		info, err := g.api.Info(g.ctx())
		return err == nil && len(info.Trouble) == 1 && info.Trouble[0].Code == "bridge-gone" && info.Trouble[0].Remedy != "" && !info.Trouble[0].NextTest.IsZero()
	})
	why, err := g.api.Why(g.ctx(), refs[5])
	if err != nil || !strings.Contains(why.Summary, "the network bridge of the containers is gone") || !strings.Contains(why.Summary, "to mend it: ") {
		t.Errorf("why: %+v, %v", why, err)
	}
	checks, err := g.api.Doctor(g.ctx())
	told := 0
	for _, c := range checks {
		if c.Status == "failure" && strings.Contains(c.Detail, "bridge") && c.Fix != "" {
			told++
		}
	}
	if told != 1 || err != nil {
		t.Errorf("doctor tells it %d times: %+v, %v", told, checks, err)
	}
	g.engine.FailAll(containerstest.OpStart, nil)
	for _, ref := range refs {
		task := g.finished(ref)
		if task.Phase != "succeeded" || len(task.Attempts) > 2 {
			t.Errorf("task %s: %s (%s), attempts %+v", ref, task.Phase, task.Reason, task.Attempts)
		}
	}
	if n := <-notices; n < 0 || n > 1 {
		t.Errorf("a follower was told %d times", n)
	}
	if info, err := g.api.Info(g.ctx()); err != nil || len(info.Trouble) != 0 {
		t.Errorf("after it: %+v, %v", info.Trouble, err)
	}
}

// TestSickEngineRestart: the unhealthy state of an engine survives the daemon, and the tasks
// are still not at fault.
func TestSickEngineRestart(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("train", containerstest.Image{})
	g.engine.FailAll(containerstest.OpStart, errBridgeGone)
	var refs []string
	for range 4 {
		refs = append(refs, g.run(api.Submit{Image: "train", Mem: int64(30 * units.GiB)}))
	}
	for range 3 {
		g.eventually("the engine is known to be sick", func() bool {
			info, err := g.api.Info(g.ctx())
			return err == nil && len(info.Trouble) == 1
		})
		g.restart()
	}
	g.engine.FailAll(containerstest.OpStart, nil)
	for _, ref := range refs {
		if task := g.finished(ref); task.Phase != "succeeded" {
			t.Errorf("task %s: %s (%s)", ref, task.Phase, task.Reason)
		}
	}
}

// TestMissingDeviceNode: if the device node of a GPU is missing, the GPU is
// avoided. The task that failed on it runs elsewhere (R6).
func TestMissingDeviceNode(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("train", containerstest.Image{})
	g.engine.FailNext(containerstest.OpStart, errors.New(`start: error gathering device information while adding custom device "/dev/nvidia0": no such file or directory`))
	task := g.finished(g.run(api.Submit{Image: "train", Mem: int64(30 * units.GiB)}))
	if task.Phase != "succeeded" || len(task.Attempts) != 2 || task.Attempts[0].GPUs[0] == task.Attempts[1].GPUs[0] {
		t.Errorf("%s (%s), attempts %+v", task.Phase, task.Reason, task.Attempts)
	}
}

// TestEngineDownAtTheStart: if the engine does not answer, the daemon reports it, with a
// remedy, and accepts submissions (R5).
func TestEngineDownAtTheStart(t *testing.T) {
	g := newRig(t, func(g *rig) { g.engine.Down() })
	info, err := g.api.Info(g.ctx())
	if err != nil || len(info.Trouble) != 1 || info.Trouble[0].Code != "down" || !strings.Contains(info.Trouble[0].Text, "does not answer") || info.Trouble[0].Remedy == "" {
		t.Errorf("info: %+v, %v", info, err)
	}
	g.engine.Up()
	g.eventually("it is over", func() bool {
		info, err := g.api.Info(g.ctx())
		return err == nil && len(info.Trouble) == 0
	})
}
