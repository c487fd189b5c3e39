package runner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/verify"
)

// TestRemovedAtItsEnd checks that a task stays removed if it is removed right after its end,
// before its record is written (finding F3).
func TestRemovedAtItsEnd(t *testing.T) {
	long(t)
	g := newRig(t)
	g.script("ok", printing(0, "done"))
	var refs []string
	for range 30 {
		ref := g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})
		refs = append(refs, ref)
		g.finished(ref)
		if err := g.api.Remove(g.ctx(), ref); err != nil {
			t.Fatal(err)
		}
	}
	last := g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})
	g.finished(last)
	g.restart()
	for _, ref := range refs {
		var status *api.StatusError
		if _, err := g.api.Task(g.ctx(), ref); !errors.As(err, &status) || status.Status != 404 {
			t.Errorf("task %s after rm and a restart: %v", ref, err)
		}
	}
	if task := g.finished(last); task.Phase != "succeeded" {
		t.Errorf("the one that was not removed: %+v", task)
	}
	g.stop()
	v, err := verify.Journal(g.dir, "test")
	if err != nil || len(v.Faults) > 0 || v.Submitted != 31 || v.Succeeded != 31 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// TestRemovedOutputIsSwept checks that, if a daemon is killed between the removal of a task and
// the deletion of its output, the next daemon deletes this output, and nothing else.
func TestRemovedOutputIsSwept(t *testing.T) {
	g := newRig(t)
	g.script("ok", printing(0, "done"))
	removed, kept := g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)}), g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})
	g.finished(removed)
	g.finished(kept)
	g.stop()
	j, err := journal.Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Commit(journal.Batch{Removed: []int64{1}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	folder := func(ref string) string { return filepath.Join(g.dir, "logs", ref) }
	for _, other := range []string{"99", "notes"} { // newer than the journal, or not of a task
		if err := os.MkdirAll(folder(other), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g.start()
	g.eventually("the output is deleted", func() bool { _, err := os.Stat(folder(removed)); return os.IsNotExist(err) })
	for _, other := range []string{kept, "99", "notes"} {
		if _, err := os.Stat(folder(other)); err != nil {
			t.Errorf("output of another: %v", err)
		}
	}
	if got := g.output(kept); len(got) != 1 {
		t.Errorf("the other's output is %q", got)
	}
	// The number is not used again.
	if next := g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)}); next != "3" {
		t.Errorf("the next task has number %s", next)
	}
}
