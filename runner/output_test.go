package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
	"carma/runner/retention"
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
