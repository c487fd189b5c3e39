package runner

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/verify"
)

// oldDaemon is the remains of a daemon of an earlier version: its journal, in the rig's
// folder, and its containers, on the rig's engine.
type oldDaemon struct {
	tasks   []oldTask
	mu      sync.Mutex
	starts  map[string]int // of containers, by name
	release chan struct{}  // closed to end the programs
}

type oldTask struct {
	ID       int64
	Name     string
	Phase    string
	Attempts []oldAttempt
}

type oldAttempt struct {
	N       int
	Outcome string
	Grant   int64
	GPUs    []int
}

// takeOver starts the present version of the daemon on a copy of an old daemon's folder.
func takeOver(t *testing.T, from string, change func(dir string)) (*rig, *oldDaemon) {
	t.Helper()
	old := &oldDaemon{starts: map[string]int{}, release: make(chan struct{})}
	decodeFile(t, filepath.Join(from, "tasks.json"), &old.tasks)
	g := newRig(t, func(g *rig) {
		packed, _ := filepath.Glob(filepath.Join(from, "*.gz"))
		for _, path := range packed {
			unpack(t, path, filepath.Join(g.dir, strings.TrimSuffix(filepath.Base(path), ".gz")))
		}
		if change != nil {
			change(g.dir)
		}
		g.cards.devices = goOn(t, g.dir)
		g.opt.Mapper.Policy, g.opt.Mapper.Backoff = "first-fit", 10*time.Hour
		g.opt.StopGrace, g.opt.SampleEvery = 10*time.Hour, time.Hour
		g.opt.Speed, g.opt.SetSpeed = 1, func(float64) {}
		old.containers(t, g.engine, filepath.Join(from, "containers.json"))
	})
	return g, old
}

// goOn sets the journal's clock to its last event, as if the old daemon had
// just ended. It returns the GPUs that the old daemon had.
func goOn(t *testing.T, dir string) (found []gpu.Device) {
	t.Helper()
	j, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	var last int64
	for ev, err := range j.Events(0) {
		if err != nil {
			t.Fatal(err)
		}
		last = ev.At
		if e, err := model.DecodeEvent(ev.Kind, ev.Body); err != nil {
			t.Fatal(err)
		} else if e, ok := e.(model.GPUsFound); ok {
			found = nil
			for _, g := range e.GPUs {
				found = append(found, gpu.Device{UUID: string(g.ID), Index: g.Index, Model: g.Model, Capacity: g.Capacity})
			}
		}
	}
	anchor, err := json.Marshal(map[string]any{"wall": time.Now().UnixNano(), "sim": last, "speed": 1})
	if err == nil {
		err = j.SetMeta("clock", anchor)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// containers gives the engine the containers that the old daemon left.
func (o *oldDaemon) containers(t *testing.T, engine *containerstest.Fake, path string) {
	t.Helper()
	var left []struct {
		Name, Image, State string
		Labels             map[string]string
	}
	decodeFile(t, path, &left)
	for _, c := range left {
		engine.AddImage(c.Image, containerstest.Image{Run: o.program})
		if c.State != "running" {
			t.Fatalf("container %s is %s: the test knows running ones only", c.Name, c.State)
		}
		id, err := engine.Create(t.Context(), containers.Spec{Name: c.Name, Image: c.Image, Labels: c.Labels})
		if err == nil {
			err = engine.Start(t.Context(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// program ignores the stop signal. It ends with code 0 when it is released.
func (o *oldDaemon) program(_ context.Context, p *containerstest.Process) int {
	o.mu.Lock()
	o.starts[p.Spec.Name]++
	o.mu.Unlock()
	select {
	case <-o.release:
		return 0
	case <-p.Killed:
		return 137
	}
}

// check compares the tasks with the old daemon's records of them.
func (o *oldDaemon) check(t *testing.T, g *rig) {
	t.Helper()
	for _, want := range o.tasks {
		task, err := g.api.Task(g.ctx(), model.TaskID(want.ID).String())
		if err != nil {
			t.Errorf("task %d (%s) is lost: %v", want.ID, want.Name, err)
			continue
		}
		got := oldTask{ID: task.ID, Name: task.Name, Phase: task.Phase}
		for _, a := range task.Attempts {
			at := oldAttempt{N: a.N, Outcome: a.Outcome, Grant: a.Grant}
			for _, d := range a.GPUs {
				at.GPUs = append(at.GPUs, d.Index)
			}
			got.Attempts = append(got.Attempts, at)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("task %d was left as\n%+v\nand is taken over as\n%+v (%s)", want.ID, want, got, task.Reason)
		}
	}
}

// once checks that every attempt of every task has been started one time.
func (o *oldDaemon) once(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, n := range o.starts {
		if n != 1 {
			t.Errorf("container %s was started %d times", name, n)
		}
	}
}

// TestOldJournal lets the present version take over journals that earlier versions wrote. Every
// task is unchanged, keeps its container and continues.
func TestOldJournal(t *testing.T) {
	folders, _ := filepath.Glob("testdata/journals/*/*/tasks.json")
	if len(folders) < 2 {
		t.Fatal("the journals are missing")
	}
	for _, f := range folders {
		dir := filepath.Dir(f)
		t.Run(strings.TrimPrefix(dir, "testdata/journals/"), func(t *testing.T) {
			g, old := takeOver(t, dir, nil)
			goesOn(t, g, old)
		})
	}
}

// TestOtherPolicyOrder lets a program with policies that choose differently take over a
// journal: launched tasks stay where they are. The journal contains best-fit although first-fit
// decided, which simulates a later change of the policy.
func TestOtherPolicyOrder(t *testing.T) {
	long(t)
	for _, how := range []string{"killed", "stopped"} {
		t.Run(how, func(t *testing.T) {
			g, old := takeOver(t, "testdata/journals/c2fad6d/"+how, func(dir string) {
				rewrite(t, dir, `"policy":"first-fit"`, `"policy":"magm"`)
			})
			goesOn(t, g, old)
		})
	}
}

// goesOn checks that nothing has changed, lets the programs end, and checks that all tasks
// that can run then do.
func goesOn(t *testing.T, g *rig, old *oldDaemon) {
	t.Helper()
	before := len(g.containers())
	old.check(t, g)
	if n := len(g.containers()); n != before {
		t.Errorf("there were %d containers, now %d", before, n)
	}
	old.once(t)
	if t.Failed() {
		return
	}
	close(old.release)
	for _, was := range old.tasks {
		if was.Name == "gone" || was.Name == "later" {
			continue // in hours
		}
		task := g.finished(model.TaskID(was.ID).String())
		attempts, want := len(was.Attempts), "succeeded"
		switch was.Phase {
		case "failed", "cancelled":
			want = was.Phase
		case "stopping":
			want = "cancelled"
		case "held", "queued", "recovering":
			attempts++
		}
		if task.Phase != want || len(task.Attempts) != attempts {
			t.Errorf("task %d (%s) was %s and has %s after %d attempts (%s), want %s after %d",
				was.ID, was.Name, was.Phase, task.Phase, len(task.Attempts), task.Reason, want, attempts)
		}
	}
	old.once(t)
	g.eventually("all containers are removed", func() bool { return len(g.containers()) == 0 })
	v, err := verify.Journal(g.dir, "test")
	if err != nil || len(v.Faults) > 0 {
		t.Errorf("the journal is not sound: %v, %q", err, v.Faults)
	}
	if v.Submitted != len(old.tasks) && v.First == 1 {
		t.Errorf("%d submissions, want %d", v.Submitted, len(old.tasks))
	}
}

// rewrite replaces words in the events and snapshots of a journal, as if
// another program had written it.
func rewrite(t *testing.T, dir, from, to string) {
	t.Helper()
	aside := filepath.Join(dir, "aside")
	if err := os.Mkdir(aside, 0o700); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "carma.db*"))
	for _, f := range files {
		if err := os.Rename(f, filepath.Join(aside, filepath.Base(f))); err != nil {
			t.Fatal(err)
		}
	}
	src, err := journal.Open(aside)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	dst, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dst.Close() }()
	replaced := 0
	other := func(b []byte) []byte {
		replaced += strings.Count(string(b), from)
		return []byte(strings.ReplaceAll(string(b), from, to))
	}
	var all journal.Batch
	for ev, err := range src.Events(0) {
		if err != nil {
			t.Fatal(err)
		}
		ev.Body = other(ev.Body)
		all.Events = append(all.Events, ev)
	}
	for d, err := range src.Decisions(0) {
		if err != nil {
			t.Fatal(err)
		}
		all.Decisions = append(all.Decisions, d)
	}
	if all.Tasks, err = src.Tasks(journal.Filter{}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all.Tasks) // oldest first
	if all.Decided, err = src.Decided(); err != nil {
		t.Fatal(err)
	}
	if _, err := dst.Commit(all); err != nil {
		t.Fatal(err)
	}
	snap, err := src.Load()
	if err == nil && snap.Body != nil {
		err = dst.Snapshot(snap.Seq, all.Events[snap.Seq-1].At, other(snap.Body))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"instance", "clock"} {
		value, err := src.Meta(key)
		if err == nil {
			err = dst.SetMeta(key, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if replaced == 0 {
		t.Fatalf("nothing in the journal says %s", from)
	}
}

func decodeFile(t *testing.T, path string, to any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
