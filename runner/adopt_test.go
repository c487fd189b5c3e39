package runner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/estimator"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/limiter"
	"carma/runner/record"
)

// grant returns the present allocation of a task on its first GPU.
func (g *rig) grant(ref string) (memory units.Bytes) {
	g.t.Helper()
	task, err := g.api.Task(g.ctx(), ref)
	if err != nil {
		g.t.Fatal(err)
	}
	err = g.loop.Look(g.ctx(), func(s *mapper.State) {
		if t, ok := s.Task(model.TaskID(task.ID)); ok && t.Current() != nil {
			memory = t.Current().Grants[0].Memory
		}
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return memory
}

// uses sets the memory use of a task in the samples.
func (g *rig) uses(ref string, used units.Bytes) {
	g.t.Helper()
	task := g.running(ref)
	g.cards.set(gpu.Sample{UUID: task.Attempts[0].GPUs[0].UUID, Used: used, Processes: []gpu.Process{
		{Task: model.TaskID(task.ID), Attempt: 1, Used: used},
	}})
}

// gated is a program that prints "before", waits until the gate is closed and
// prints "after". It counts its starts.
type gated struct {
	starts atomic.Int32
	gate   chan struct{}
}

func (g *rig) gated(ref string) *gated {
	p := &gated{gate: make(chan struct{})}
	g.script(ref, func(ctx context.Context, c *containerstest.Process) int {
		p.starts.Add(1)
		c.Out("before")
		select {
		case <-p.gate:
		case <-ctx.Done():
			return 143
		}
		c.Out("after")
		return 0
	})
	return p
}

// TestAdoptedWhateverHasChanged checks that a running container is adopted after any change of
// settings or of its task (finding R1).
func TestAdoptedWhateverHasChanged(t *testing.T) {
	long(t)
	const asked = 12 * units.GiB
	shrinks := func(g *rig) { g.opt.Mapper.Shrink = time.Millisecond }
	grows := func(g *rig) { g.opt.Mapper.Watchdog = model.WatchdogWarn }
	for name, c := range map[string]struct {
		before func(*rig)
		uses   units.Bytes // memory use in the samples, or 0
		after  func(*rig)  // between the two daemons
	}{
		"nothing":       {},
		"grant shrunk":  {before: shrinks, uses: 2 * units.GiB},
		"grant grown":   {before: grows, uses: 20 * units.GiB},
		"policy":        {after: func(g *rig) { g.opt.Mapper.Policy = "round-robin" }},
		"attachment":    {after: func(g *rig) { g.opt.Attach = containers.AttachRuntime }},
		"no attachment": {after: func(g *rig) { g.opt.Attach = "" }},
		"caps":          {after: func(g *rig) { g.opt.Limits = limiter.Options{Caps: limiter.CapsFractions} }},
		"mounts":        {after: func(g *rig) { g.opt.AllowedMounts = nil }},
		"devices": {after: func(g *rig) {
			g.opt.Devices = func(model.TaskID, int) ([]containers.Mount, []string) { return nil, []string{"NEW=1"} }
		}},
		"estimator": {after: func(g *rig) { g.estimator = estimator.NewCatalogue(nil) }},
		"image gone": {after: func(g *rig) {
			g.engine.AddImage("long", containerstest.Image{Remote: true})
		}},
		"older program": {after: func(g *rig) { g.madeByOlderProgram() }},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(g *rig) {
				if c.before != nil {
					c.before(g)
				}
			})
			long := g.gated("long")
			ref := g.run(api.Submit{Image: "long", Mem: int64(asked)})
			g.running(ref)
			if c.uses > 0 {
				g.uses(ref, c.uses)
				g.eventually("the grant changes", func() bool { return g.grant(ref) != asked })
			}
			made, grant := g.containers()[0], g.grant(ref)
			g.stop()
			if c.after != nil {
				c.after(g)
			}
			g.start()
			if now := g.containers(); len(now) != 1 || now[0].ID != made.ID || now[0].State != containers.StateRunning {
				t.Fatalf("after the restart the engine has %+v, want %s running", now, made.ID)
			}
			if now := g.grant(ref); now != grant {
				t.Errorf("its grant was %s and is %s", grant, now)
			}
			followed := make(chan []string, 1)
			go func() {
				var lines []string
				_, err := g.api.Logs(g.ctx(), ref, api.LogOptions{Follow: true}, func(l api.LogLine) error {
					lines = append(lines, l.Line)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				followed <- lines
			}()
			close(long.gate)
			if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 {
				t.Errorf("the task is %s (%s) after %d attempts", task.Phase, task.Reason, len(task.Attempts))
			}
			if n := long.starts.Load(); n != 1 {
				t.Errorf("%d starts, want 1", n)
			}
			want := []string{"before", "after"}
			if got := <-followed; !slices.Equal(got, want) {
				t.Errorf("followed %q, want %q", got, want)
			}
			g.eventually("the container is removed", func() bool { return len(g.containers()) == 0 })
		})
	}
}

// madeByOlderProgram changes the labels of containers, and the form of records, to the ones of
// versions without nonces.
func (g *rig) madeByOlderProgram() {
	g.engine.Relabel(func(labels map[string]string) {
		maps.DeleteFunc(labels, func(k, _ string) bool {
			return !slices.Contains([]string{label.Instance, label.Task, label.Attempt, label.Grant, label.GPUs, label.Name, label.User}, k)
		})
	})
	g.editRecords(func(r *record.Record) { r.Nonce = "" })
}

// TestStrangersAreNotAdopted checks that a container with the attempt's name that another task
// made is neither adopted nor ended, and that the task is not at fault.
func TestStrangersAreNotAdopted(t *testing.T) {
	for name, value := range map[string]string{label.Nonce: "0123456789abcdef", label.Instance: "other"} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			long := g.gated("long")
			ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
			g.running(ref)
			stranger := g.containers()[0]
			g.stop()
			g.engine.Relabel(func(labels map[string]string) { labels[name] = value })
			if name == label.Nonce { // the journal may be an older copy
				if why := g.refused().Error(); !strings.Contains(why, "belongs to another task of this number") {
					t.Error(why)
				}
				if _, err := journal.Repair(g.dir, journal.RepairOptions{Do: true, AcceptLoss: true}); err != nil {
					t.Fatal(err)
				}
			}
			g.start()
			task := g.until(ref, "in its second attempt", func(t api.Task) bool { return len(t.Attempts) == 2 && t.Phase == "running" })
			if first := task.Attempts[0]; first.Outcome != "infrastructure" || !first.Blameless {
				t.Errorf("the first attempt ended as %+v", first)
			}
			// The next daemon does not remove it either, although the attempt ended long ago.
			g.restart()
			g.running(ref)
			g.reconciler.Sweep(g.ctx(), map[model.TaskID]int{}, 100, containerUse{g.Runner})
			i := slices.IndexFunc(g.containers(), func(c containers.Container) bool { return c.ID == stranger.ID })
			if i < 0 || g.containers()[i].State != containers.StateRunning {
				t.Errorf("the other task's container was ended: %+v", g.containers())
			}
			close(long.gate)
			if task := g.finished(ref); task.Phase != "succeeded" {
				t.Errorf("the task is %s (%s)", task.Phase, task.Reason)
			}
		})
	}
}

// TestNameTaken checks that a task is not at fault if its container's name is taken.
func TestNameTaken(t *testing.T) {
	g := newRig(t)
	long := g.gated("long")
	close(long.gate)
	_, err := g.engine.Create(t.Context(), containers.Spec{Name: label.ContainerName(g.instance, 1, 1), Image: "long", Labels: map[string]string{label.Instance: g.instance}})
	if err != nil {
		t.Fatal(err)
	}
	task := g.finished(g.run(api.Submit{Image: "long", Mem: int64(units.GiB)}))
	if task.Phase != "succeeded" || len(task.Attempts) != 2 || !task.Attempts[0].Blameless || !strings.Contains(task.Attempts[0].Message, "taken") {
		t.Errorf("the task is %s (%s) after %+v", task.Phase, task.Reason, task.Attempts)
	}
	if n := len(g.containers()); n == 0 {
		t.Error("the other's container was removed")
	}
}

// editRecords changes the records in the journal of a daemon that is stopped.
func (g *rig) editRecords(change func(*record.Record)) {
	g.t.Helper()
	j, err := journal.Open(g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	defer j.Close()
	rows, err := j.Tasks(journal.Filter{})
	if err != nil {
		g.t.Fatal(err)
	}
	var batch journal.Batch
	for _, row := range rows {
		rec, err := record.Decode(row)
		if err != nil {
			g.t.Fatal(err)
		}
		change(rec)
		batch.Tasks = append(batch.Tasks, rec.Row())
	}
	if _, err := j.Commit(batch); err != nil {
		g.t.Fatal(err)
	}
}
