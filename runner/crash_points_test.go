//go:build failpoints

package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"carma/internal/failpoint"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/request"
	"carma/runner/tasklog"
	"carma/runner/verify"
)

var everyWrite = flag.Int("write", 1, "of how many writes TestEveryWrite fails one")

// TestEveryWrite runs one history again and again, in virtual time: submit, stop, restart,
// remove, kill, and the end of all tasks. In each round another write fails because the disk is
// full: the n-th write of SQLite or of the output, for each n up to the number of writes.
// Either only that write fails, or all writes fail for a minute from it on. Nothing may be lost
// or duplicated.
func TestEveryWrite(t *testing.T) {
	defer failpoint.Set(func(string, bool) error { return nil })
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for what, span := range map[string]time.Duration{"once": 0, "for a minute": time.Minute} {
		t.Run(what, func(t *testing.T) {
			n, refused, ended := 1, 0, 0
			for ; ; n += *everyWrite {
				d := &tightDisk{first: n, span: span}
				if !t.Run(fmt.Sprint(n), func(t *testing.T) { d.history(t) }) || !d.met {
					break
				}
				refused, ended = refused+d.refused, ended+d.ended
			}
			t.Logf("%d writes failed, the last is the %dth; %d requests refused and asked again, %d starts and ends of a daemon refused", (n-1) / *everyWrite, n-*everyWrite, refused, ended)
		})
	}
}

// tightDisk is a disk that is full for some time.
type tightDisk struct {
	first int           // the number of the first write that finds no room
	span  time.Duration // the time for which later writes fail too
	seen  int
	until time.Time
	met   bool // a write found no room
	over  bool // all writes find room

	stopping bool // the test ends the daemon

	refused, ended int
}

// fails counts a write, and reports whether it finds no room.
func (d *tightDisk) fails() bool {
	if d.over {
		return false
	}
	d.seen++
	if d.seen == d.first {
		d.met, d.until = true, time.Now().Add(d.span)
		return true
	}
	return d.met && time.Now().Before(d.until)
}

func (d *tightDisk) history(t *testing.T) {
	dir, err := os.MkdirTemp(shm(), "everywrite")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	failSQLite(t, d.fails)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir, 1, nil)
		defer w.engine.Shutdown()
		w.fault = func(point string) error {
			if point == "output-write-begins" && d.fails() {
				return &fs.PathError{Op: "write", Path: point, Err: syscall.ENOSPC}
			}
			return nil
		}
		w.excuses = func(err error) bool {
			d.ended++
			if w.life.Runner != nil && !d.stopping { // a running daemon continues
				return false
			}
			return d.met && (errors.Is(err, journal.ErrFull) || strings.Contains(err.Error(), "disk I/O error"))
		}
		d.play(w)
	})
}

// play runs the history.
func (d *tightDisk) play(w *world) {
	d.submit(w, "short")
	deaf, bad := d.submit(w, "deaf"), d.submit(w, "bad")
	time.Sleep(30 * time.Second)
	d.insist(w, func(ctx context.Context, l *life) error {
		_, err := l.control.Stop(ctx, root, deaf.String(), api.StopRequest{})
		return err
	})
	w.stopped[int64(deaf)] = time.Now()
	time.Sleep(time.Minute)
	d.stopping = true
	w.end()
	w.life, d.stopping = nil, false
	d.up(w)
	d.insist(w, func(ctx context.Context, l *life) error { return l.control.Remove(ctx, root, bad.String()) })
	w.removed[int64(bad)] = true
	d.submit(w, "short")
	w.life.die()
	d.up(w)
	time.Sleep(2 * time.Minute)
	d.up(w)
	w.check()
	time.Sleep(5 * time.Minute) // until the missing notes are written
	d.complete(w)
	d.over = true
	w.end()
	if v, err := verify.Journal(w.dir, "test-0"); err != nil || len(v.Faults) > 0 {
		w.t.Errorf("the journal is not sound: %v %q", err, v.Faults)
	}
}

// up starts a daemon if none runs, and again if the daemon finds no room.
func (d *tightDisk) up(w *world) {
	for range 20 {
		if w.life != nil && !w.life.dead.Load() {
			return
		}
		if w.life != nil {
			w.end()
		}
		w.start("", 0)
		if !w.life.dead.Load() {
			return
		}
		time.Sleep(10 * time.Second)
	}
	w.t.Fatal("no daemon starts")
}

// insist repeats a request until it is not refused for lack of room.
func (d *tightDisk) insist(w *world, ask func(ctx context.Context, l *life) error) {
	for range 100 {
		d.up(w)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		err := ask(ctx, w.life)
		cancel()
		if err == nil {
			return
		}
		var r *request.Error
		if !d.met || !w.life.dead.Load() && (!errors.As(err, &r) || r.Status != 507) {
			w.t.Errorf("refused: %v", err)
			return
		}
		d.refused++
		time.Sleep(time.Second)
	}
	w.t.Error("refused for ever")
}

func (d *tightDisk) submit(w *world, image string) (id model.TaskID) {
	d.insist(w, func(ctx context.Context, l *life) error {
		made, err := l.admission.Submit(ctx, root, api.Submit{Image: image, Mem: 1 << 30})
		if err == nil {
			w.acked[made.ID], id = image, model.TaskID(made.ID)
		}
		return err
	})
	return id
}

// complete checks that exactly the accepted tasks exist, and that each has its output or a note
// about missing output.
func (d *tightDisk) complete(w *world) {
	rows, err := w.life.Journal.Tasks(journal.Filter{})
	if err != nil {
		w.t.Error(err)
	}
	if len(rows) != len(w.acked)-len(w.removed) {
		w.t.Errorf("%d tasks are there, accepted %v, removed %v", len(rows), w.acked, w.removed)
	}
	for _, row := range rows {
		rec, err := w.life.find.Find(model.TaskID(row.ID).String())
		if err != nil {
			w.t.Error(err)
			continue
		}
		for _, a := range rec.Task.Attempts {
			lines, err := w.life.Logs.Tail(row.ID, a.N, 10)
			if err != nil || !slices.ContainsFunc(lines, func(l tasklog.Line) bool { return len(l.Text) > 0 }) {
				w.t.Errorf("task %d, attempt %d has no output and no note: %v", row.ID, a.N, err)
			}
		}
	}
}
