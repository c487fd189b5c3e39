package probing

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/mapper/model"
	"carma/runner/loop/looptest"
	"carma/runner/record"
)

// TestTurns: one probe runs at a time, the others wait for it. A probe that is ended while it
// waits does not run.
func TestTurns(t *testing.T) {
	l := looptest.New(t)
	var side sync.WaitGroup
	p := New(Config{Loop: l.Loop, Records: l.Records, Clock: l.Clock, Work: context.Background(), Side: &side})
	rec := &record.Record{Task: model.Task{Request: model.Request{ID: 7}, Phase: model.Estimating}}
	p.turn <- struct{}{} // another task's probe runs
	p.start(rec)
	p.start(rec) // has begun already
	if got := p.Doing(7); got != "its probe waits until another task's is done" {
		t.Errorf("a probe that waits: %q", got)
	}
	if got := p.Doing(8); got != "" {
		t.Errorf("a task without a probe: %q", got)
	}
	p.End(8)
	p.End(7)
	side.Wait()
	if got := p.Doing(7); got != "" {
		t.Errorf("after its end: %q", got)
	}
	p.tasks[9] = &running{since: l.Clock.Time().Add(-time.Minute)}
	if got := p.Doing(9); !strings.HasPrefix(got, "its first steps run on the CPU, to see what memory it needs, for 1m") {
		t.Errorf("a probe that runs: %q", got)
	}
}

// TestStartIfDue: only a task whose memory is being estimated is probed.
func TestStartIfDue(t *testing.T) {
	l := looptest.New(t)
	var side sync.WaitGroup
	p := New(Config{Loop: l.Loop, Records: l.Records, Clock: l.Clock, Work: context.Background(), Side: &side})
	rec := &record.Record{Name: "a", Task: model.Task{Request: model.Request{ID: 1}}}
	l.Submit(rec) // with an estimate
	p.turn <- struct{}{}
	p.StartIfDue(rec)
	if got := p.Doing(1); got != "" {
		t.Errorf("a task with an estimate: %q", got)
	}
}
