package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
	"carma/runner/retention"
	"carma/runner/tasklog"
)

// TestLogsOfNoAttempt: a request for output that will never exist is refused,
// not answered with nothing.
func TestLogsOfNoAttempt(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("one", containerstest.Image{Run: printing(0, "x")})
	ref := g.run(api.Submit{Image: "one"})
	g.finished(ref)
	for _, follow := range []bool{false, true} {
		_, err := g.api.Logs(g.ctx(), ref, api.LogOptions{Attempt: 3, Follow: follow}, func(api.LogLine) error { return nil })
		var status *api.StatusError
		if !errors.As(err, &status) || !status.Usage() || !strings.Contains(err.Error(), "task "+ref+" has no attempt 3: it has only attempt 1") {
			t.Errorf("follow %v: %v", follow, err)
		}
	}
	n := 0
	if _, err := g.api.Logs(g.ctx(), ref, api.LogOptions{Attempt: 1}, func(api.LogLine) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("attempt 1: %d lines, %v", n, err)
	}
}

// TestOutputExpires: old output is replaced by a note, and the task is kept.
func TestOutputExpires(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("one", containerstest.Image{Run: printing(0, "x", "y")})
	ref := g.run(api.Submit{Image: "one"})
	g.finished(ref)
	g.opt.Keep = retention.Keep{OutputFor: time.Nanosecond}
	g.restart()
	g.eventually("the output is a note", func() bool {
		got := g.output(ref)
		return len(got) == 1 && strings.HasPrefix(got[0], "carma:2 lines (") && strings.HasSuffix(got[0], "left out here: output is kept for 1ns after a task's end")
	})
}

// TestEngineThrewAway: if an engine's driver reports missing output, a note takes its
// place.
func TestEngineThrewAway(t *testing.T) {
	s := tasklog.Open(t.TempDir(), 0)
	w, err := s.Writer(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1000, 0)
	line := func(n int, text string) {
		if err := w.Write(at.Add(time.Duration(n)), tasklog.Stdout, []byte(text), false); err != nil {
			t.Fatal(err)
		}
	}
	line(1, "1")
	noteMissing(w, at.Add(2), containers.Lines{Lines: 3}.Text())
	line(3, "5")
	noteMissing(w, at.Add(4), containers.Lines{Before: 10}.Text())
	line(5, "11")
	noteMissing(w, at.Add(6), containers.Lines{Before: 11}.Text()) // nothing is missing
	noteMissing(w, at.Add(6), containers.Lines{Lines: -1}.Text())
	line(7, "x")
	noteMissing(w, at.Add(8), containers.Lines{Before: 13}.Text())
	line(9, "y")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines, err := s.Tail(1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, strings.TrimSuffix(string(l.Text), " left out here: "+thrownAway))
	}
	if want := []string{"1", "3 lines", "5", "5 lines", "11", "an unknown number of lines", "x", "1 lines", "y"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// verbose is an engine whose containers print forever.
type verbose struct{ *containerstest.Fake }

func (v verbose) Logs(ctx context.Context, id string, _ time.Time, _ bool, sink containers.LogSink) error {
	for at := time.Now(); ctx.Err() == nil; at = at.Add(1) {
		sink(at, containers.Stdout, []byte("y"), false)
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

// TestStopUnread: stopping or removing a task does not wait until all of its
// output has been read. The output says that something is missing.
func TestStopUnread(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"stopped while it runs": false, "stopped while its output is read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, func(g *rig) { g.driver = verbose{g.engine} })
			g.script("verbose", untilStopped)
			if ends {
				g.script("verbose", printing(0, "y"))
			}
			ref := g.run(api.Submit{Image: "verbose"})
			g.running(ref)
			g.asksToStop(ref, api.StopRequest{Grace: time.Second})
			if task := g.finished(ref); task.Phase != "cancelled" {
				t.Errorf("the task is %s", task.Phase)
			}
			got := g.output(ref)
			if last := got[len(got)-1]; !strings.HasPrefix(last, "carma:") || !strings.HasSuffix(last, "the task was stopped before the rest had been read") {
				t.Errorf("of %d lines the last is %q", len(got), last)
			}
			if err := g.api.Remove(g.ctx(), ref); err != nil {
				t.Error(err)
			}
		})
	}
}
