package runner

import (
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/verify"

	"github.com/rs/zerolog"
)

// setBack replaces the journal of a stopped rig by a backup.
func (g *rig) setBack(file string, acceptLoss bool) {
	g.t.Helper()
	if _, err := journal.Restore(g.dir, file, acceptLoss); err != nil {
		g.t.Fatal(err)
	}
}

// refused starts a daemon and returns why it does not start.
func (g *rig) refused() *journal.Refusal {
	g.t.Helper()
	j, err := journal.Open(g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	defer j.Close()
	_, err = New(g.ctx(), g.opt, Deps{
		Journal: j, Driver: g.engine, GPUs: g.cards, Clock: clock.New(1), Estimator: g.estimator, Log: zerolog.Nop(),
	})
	var r *journal.Refusal
	if !errors.As(err, &r) {
		g.t.Fatalf("started, or refused with %v", err)
	}
	return r
}

func (g *rig) labelled() (running []string) {
	g.t.Helper()
	list, err := g.engine.List(g.ctx(), map[string]string{label.Instance: g.instance})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, c := range list {
		running = append(running, c.Labels[label.Task]+"."+c.Labels[label.Attempt]+" "+string(c.State))
	}
	slices.Sort(running)
	return running
}

// TestOlderCopyBesideContainers: an older journal beside newer containers is refused, and
// no container is killed. If the loss is accepted, the containers are adopted and end as
// tasks, and no number is given twice (finding F7).
func TestOlderCopyBesideContainers(t *testing.T) {
	g := newRig(t, byMemory)
	p := g.gated("train")
	first := g.run(api.Submit{Image: "train", Mem: int64(4 * units.GiB)})
	g.running(first)
	file := filepath.Join(t.TempDir(), "backup.db")
	if _, _, err := journal.Backup(g.dir, file); err != nil { // beside the daemon
		t.Fatal(err)
	}
	second := g.run(api.Submit{Image: "train", Name: "newer", Mem: int64(4 * units.GiB)})
	g.running(second)
	g.stop()
	g.setBack(file, false)
	was := g.labelled()

	r := g.refused()
	text := r.Error()
	for _, want := range []string{"containers are newer than the journal", "task 2, attempt 1; the journal's last task is", "to go on: carma journal repair --accept-loss --data-dir " + g.dir} {
		if !strings.Contains(text, want) {
			t.Errorf("the refusal lacks %q:\n%s", want, text)
		}
	}
	if now := g.labelled(); !slices.Equal(now, was) {
		t.Errorf("containers after the refusal: %v, before: %v", now, was)
	}

	if _, err := journal.Repair(g.dir, journal.RepairOptions{Do: true, AcceptLoss: true}); err != nil {
		t.Fatal(err)
	}
	g.start()
	taken := g.running(second)
	if taken.Name != "newer" || taken.Image != "train" || len(taken.Attempts) != 1 {
		t.Errorf("taken in as %+v", taken)
	}
	g.running(first)
	if third := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)}); third != "3" {
		t.Errorf("the next task is %s, want 3", third)
	}
	g.running("3")
	g.restart() // an ordinary restart after the accepted loss
	close(p.gate)
	for _, ref := range []string{first, second, "3"} {
		if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 {
			t.Errorf("task %s: %s (%v) after %d attempts", ref, task.Phase, task.Reason, len(task.Attempts))
		}
	}
	if out := g.output(second); !slices.Equal(out, []string{"stdout:before", "stdout:after"}) {
		t.Errorf("output of the task that was taken in: %q", out)
	}
	if n := p.starts.Load(); n != 3 {
		t.Errorf("%d starts, want 3", n)
	}
	g.stop()
	if v, err := verify.Journal(g.dir, ""); err != nil || len(v.Faults) > 0 {
		t.Errorf("history verify: %v, %v", err, v.Faults)
	}
}

// TestNothingLeft: the whole journal is deleted. The witness file still contains the identity
// of the data folder, which containers have as a label.
func TestNothingLeft(t *testing.T) {
	g := newRig(t, byMemory)
	p := g.gated("train")
	ref := g.run(api.Submit{Image: "train", Mem: int64(4 * units.GiB)})
	g.running(ref)
	g.stop()
	if err := os.Remove(filepath.Join(g.dir, "carma.db")); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(g.dir); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("without its database: %v", err)
	}
	if _, err := journal.Repair(g.dir, journal.RepairOptions{Do: true, AcceptLoss: true}); err != nil {
		t.Fatal(err)
	}
	g.start()
	g.running(ref)
	close(p.gate)
	if task := g.finished(ref); task.Phase != "succeeded" || p.starts.Load() != 1 {
		t.Errorf("%s (%v), %d starts", task.Phase, task.Reason, p.starts.Load())
	}
}

// TestLostEventsKeptRecords: events are cut off, the records of tasks are not.
// Finished tasks are not run again, waiting ones are submitted again.
func TestLostEventsKeptRecords(t *testing.T) {
	g := newRig(t, byMemory)
	p := g.gated("train")
	g.script("quick", printing(0, "done"))
	quick := g.run(api.Submit{Image: "quick", Mem: int64(units.GiB)})
	g.finished(quick)
	runs := g.run(api.Submit{Image: "train", Mem: int64(4 * units.GiB)})
	g.running(runs)
	waits := g.run(api.Submit{Image: "train", Mem: int64(units.GiB), Delay: time.Hour})
	g.stop()
	db, err := sql.Open("sqlite", filepath.Join(g.dir, "carma.db"))
	if err != nil {
		t.Fatal(err)
	}
	// The first submission is damaged, and so is every snapshot.
	for _, q := range []string{"UPDATE events SET body = x'00' WHERE seq > 3", "UPDATE snapshots SET body = x'00'"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(g.dir); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("damaged: %v", err)
	}
	if _, err := journal.Repair(g.dir, journal.RepairOptions{Do: true, AcceptLoss: true}); err != nil {
		t.Fatal(err)
	}
	g.start()
	g.running(runs)
	phases := map[string]string{}
	for _, ref := range []string{quick, runs, waits} {
		task, err := g.api.Task(g.ctx(), ref)
		if err != nil {
			t.Fatal(err)
		}
		phases[ref] = task.Phase
	}
	if want := map[string]string{quick: "succeeded", runs: "running", waits: "held"}; !maps.Equal(phases, want) {
		t.Errorf("after the repair: %v, want %v", phases, want)
	}
	close(p.gate)
	g.finished(runs)
	if n := p.starts.Load(); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

// reopened returns the journal of a stopped rig.
func (g *rig) reopened() *journal.Journal {
	g.t.Helper()
	j, err := journal.Open(g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	return j
}

func (g *rig) lastStartOf() (*clock.Start, error) {
	j := g.reopened()
	defer j.Close()
	return lastStart(j)
}
