package runner

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
)

// fillDisk fills the disk of a folder.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk: on a full disk tasks can be stopped and removed, their ends are
// written, and the daemon starts (finding F6).
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size=32m"); err != nil {
		t.Skipf("a small file system is needed, which this user may not mount: %v", err)
	}
	g := newRig(t, byMemory, func(g *rig) { g.dir, g.opt.DataDir, g.spare = dir, dir, 16<<20 })
	t.Cleanup(func() {
		if g.stop != nil {
			g.stop()
		}
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p := g.gated("train")
	task := api.Submit{Image: "train", Mem: int64(units.GiB)}
	stopped, ends, goesOn := g.run(task), g.run(task), g.run(task)
	for _, ref := range []string{stopped, ends, goesOn} {
		g.running(ref)
	}
	filler := filepath.Join(dir, "filler")
	fillDisk(t, filler)
	accepted := []string{}
	refused := false
	for range 3000 {
		s, err := g.api.Submit(g.ctx(), api.Submit{Image: "train", Mem: int64(39 * units.GiB)})
		if status, ok := errors.AsType[*api.StatusError](err); ok && status.Status == 507 {
			refused = true
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, model.TaskID(s.ID).String())
	}
	if !refused {
		t.Fatal("it never got full")
	}
	for round := range 2 { // the second: a daemon that was started on the full disk
		fillDisk(t, filler)
		if _, err := g.api.Stop(g.ctx(), stopped, api.StopRequest{}); err != nil {
			t.Fatalf("round %d: stop on a full disk: %v", round, err)
		}
		if done := g.finished(stopped); done.Phase != "cancelled" {
			t.Errorf("round %d: the stopped task is %s", round, done.Phase)
		}
		if err := g.api.Remove(g.ctx(), stopped); err != nil {
			t.Errorf("round %d: rm on a full disk: %v", round, err)
		}
		stopped = ends
		g.restart()
		g.running(goesOn)
		if _, err := g.api.Submit(g.ctx(), task); err == nil {
			t.Errorf("round %d: accepted on a full disk", round)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	again := g.run(task)
	close(p.gate)
	for _, ref := range append(accepted, goesOn, again) {
		if done := g.finished(ref); done.Phase != "succeeded" {
			t.Errorf("task %s: %s (%v)", ref, done.Phase, done.Reason)
		}
	}
}
