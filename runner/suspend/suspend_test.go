//go:build cgo

package suspend

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSuspendResume: off the GPU and back, in the order that the driver needs, with its
// output ignored.
func TestSuspendResume(t *testing.T) {
	b := newBench(t)
	b.fault(CallInit, "print")
	c, p := b.cuda(1, Running)
	f := facts
	f.Uses, f.Bytes = []Use{{p.PID, gpuA}, {77, gpuB}}, 1<<30
	r := b.ok(b.s.Suspend(t.Context(), c, f))
	b.is(c, r, Suspended, Checkpointed, true)
	if r.Process != p {
		t.Errorf("%+v", r.Process)
	}
	b.is(c, b.ok(b.s.Resume(t.Context(), c, p, Target{Bytes: 1 << 30})), Runs, Running, false)
	if got := b.changes(); got != "lock checkpoint restore unlock" {
		t.Error(got)
	}
	if want := []string{"freeze", "thaw"}; !slices.Equal(b.freezer.log, want) {
		t.Error(b.freezer.log)
	}
	if cuda, err := b.helper.CUDA(t.Context()); cuda != 13000 || err != nil {
		t.Errorf("%d, %v", cuda, err)
	}
}

// TestMove checks a resume on another GPU. If the driver refuses the move, the task stays
// suspended.
func TestMove(t *testing.T) {
	b := newBench(t)
	c, p := b.cuda(1, Running)
	b.ok(b.s.Suspend(t.Context(), c, facts))
	for name, tt := range map[string]struct {
		target Target
		reason Reason
	}{
		"driver":  {Target{Pairs: []Pair{{gpuA, gpuB}}, Driver: "570.86.10"}, ReasonMoving},
		"unknown": {Target{Pairs: []Pair{{gpuA, gpuB}}}, ReasonDriver},
		"MIG":     {Target{Pairs: []Pair{{gpuA, "MIG-ffeeddcc-bbaa-9988-7766-554433221100"}}, Driver: "580"}, ReasonGPU},
		"twice":   {Target{Pairs: []Pair{{gpuA, gpuB}, {gpuB, gpuB}}, Driver: "580"}, ReasonGPU},
		"from":    {Target{Pairs: []Pair{{gpuA, gpuB}, {strings.Replace(gpuA, "aabb", "AABB", 1), gpuA}}, Driver: "580"}, ReasonGPU},
		"short":   {Target{Pairs: []Pair{{gpuA, gpuB[:39]}}, Driver: "580"}, ReasonGPU},
		"many":    {Target{Pairs: make([]Pair, 33), Driver: "580"}, ReasonGPU},
	} {
		r, err := b.s.Resume(t.Context(), c, p, tt.target)
		var refusal *Refusal
		if r.Outcome != Unchanged || !errors.As(err, &refusal) || refusal.Reason != tt.reason {
			t.Errorf("%s: %v, %v", name, r.Outcome, err)
		}
	}
	r, err := b.s.Resume(t.Context(), c, p, Target{Pairs: []Pair{{gpuB, gpuA}}, Driver: "580.1"})
	if codeOf(err) != CodeInvalidValue {
		t.Error(err)
	}
	b.is(c, r, Suspended, Checkpointed, true)
	b.is(c, b.ok(b.s.Resume(t.Context(), c, p, Target{Pairs: []Pair{{gpuA, gpuB}}, Driver: "580.1"})), Runs, Running, false)
	if _, gpu := b.now(p.PID); gpu != gpuB {
		t.Error(gpu)
	}
}

// TestStates: every operation on a process in every state, frozen or not.
func TestStates(t *testing.T) {
	for _, tt := range []struct {
		from           State
		suspend        Outcome
		suspended      State
		resume         Outcome
		resumed        State
		recoverToSleep Outcome
	}{
		{Running, Suspended, Checkpointed, Runs, Running, Suspended},
		{Locked, Suspended, Checkpointed, Runs, Running, Suspended},
		{Checkpointed, Suspended, Checkpointed, Runs, Running, Suspended},
		{Failed, Unchanged, Failed, Lost, Failed, Lost},
	} {
		t.Run(tt.from.String(), func(t *testing.T) {
			b := newBench(t)
			for n, frozen := range []bool{false, true} {
				again := func() (Container, Process) {
					c, p := b.cuda(n+1, tt.from)
					b.remove("frozen.1010")
					b.remove("frozen.1020")
					if frozen {
						b.freezer.Freeze(t.Context(), c)
					}
					return c, p
				}
				c, p := again()
				r, err := b.s.Suspend(t.Context(), c, facts)
				if !frozen {
					b.is(c, r, tt.suspend, tt.suspended, tt.suspend == Suspended)
				} else if b.is(c, r, Unchanged, tt.from, true); !errors.As(err, new(*Refusal)) {
					t.Error(err)
				}
				c, _ = again()
				r, _ = b.s.Resume(t.Context(), c, p, Target{})
				b.is(c, r, tt.resume, tt.resumed, false)
				c, _ = again()
				r, _ = b.s.Recover(t.Context(), c, Runs, facts, Target{})
				b.is(c, r, tt.resume, tt.resumed, false)
				c, _ = again()
				r, _ = b.s.Recover(t.Context(), c, Suspended, facts, Target{})
				b.is(c, r, tt.recoverToSleep, tt.suspended, tt.recoverToSleep == Suspended)
			}
		})
	}
}

// TestBetween checks that the suspender waits while a newer driver reports an intermediate
// state, and makes no assumption about unknown states.
func TestBetween(t *testing.T) {
	b := newBench(t)
	c, p := b.cuda(1, Running)
	for _, state := range []string{"state 4 once", "state 5 once"} {
		b.set(p.PID, Running)
		b.fault(CallState, state)
		r := b.ok(b.s.Resume(t.Context(), c, p, Target{}))
		b.is(c, r, Runs, Running, false)
	}
	b.fault(CallState, "state 6")
	r, err := b.s.Suspend(t.Context(), c, facts)
	if b.is(c, r, Unchanged, Running, false); err == nil || !strings.Contains(err.Error(), "state 6, which this version of carma does not know") {
		t.Error(err)
	}
	b.s.opt.Limits.Copy = time.Millisecond
	b.fault(CallState, "state 4")
	r, err = b.s.Resume(t.Context(), c, p, Target{})
	if b.is(c, r, Lost, Running, false); err == nil || !strings.Contains(err.Error(), "still checkpointing") {
		t.Error(err)
	}
}

// TestFreezing tests a container that cannot be frozen or thawed.
func TestFreezing(t *testing.T) {
	b := newBench(t)
	no := errors.New("no")
	c, p := b.cuda(1, Running)
	fail := func(what ...string) {
		b.freezer.fail = map[string]error{}
		for _, w := range what {
			b.freezer.fail[w] = no
		}
	}
	fail("freeze")
	r, err := b.s.Suspend(t.Context(), c, facts)
	if b.is(c, r, Runs, Running, false); !errors.Is(err, no) || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	fail("freeze", "thaw")
	r, err = b.s.Suspend(t.Context(), c, facts)
	if b.is(c, r, Lost, Checkpointed, false); !errors.Is(err, no) {
		t.Error(err)
	}
	b.set(p.PID, Running)
	fail()
	b.ok(b.s.Suspend(t.Context(), c, facts))
	fail("thaw")
	r, err = b.s.Resume(t.Context(), c, p, Target{})
	if b.is(c, r, Suspended, Checkpointed, true); !errors.Is(err, no) {
		t.Error(err)
	}
	r, err = b.s.Recover(t.Context(), c, Runs, facts, Target{})
	if b.is(c, r, Lost, Checkpointed, true); !errors.Is(err, no) {
		t.Error(err)
	}
	fail("freeze") // it is suspended nevertheless
	b.fault(CallRestore, "code 2")
	r, err = b.s.Resume(t.Context(), c, p, Target{})
	if b.is(c, r, Suspended, Checkpointed, false); !errors.Is(err, no) || codeOf(err) != CodeOutOfMemory {
		t.Error(err)
	}
}

// TestBusy checks that a process that does not become idle continues to run.
func TestBusy(t *testing.T) {
	b := newBench(t)
	b.s.opt.Limits.Lock = 10 * time.Millisecond
	b.s.margin = patience
	b.fault(CallLock, "busy")
	c, _ := b.cuda(1, Running)
	r, err := b.s.Suspend(t.Context(), c, facts)
	if b.is(c, r, Runs, Running, false); codeOf(err) != CodeNotReady {
		t.Error(err)
	}
	want := "suspend: lock process 1010: CUDA error 600, NOT_READY: the process did not come to rest in time: the task runs on"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// stopping ends a context when a call begins.
type stopping struct {
	Caller
	at   Call
	stop context.CancelFunc
}

func (s stopping) Call(ctx context.Context, r Request) (State, error) {
	if r.Call == s.at {
		s.stop()
	}
	return s.Caller.Call(ctx, r)
}

// TestContext: a cancelled operation is undone, also half-way.
func TestContext(t *testing.T) {
	for _, at := range []Call{CallState, CallLock, CallCheckpoint} {
		b := newBench(t)
		c, _ := b.cuda(1, Running)
		ctx, stop := context.WithCancel(t.Context())
		b.s.opt.Driver = stopping{b.helper, at, stop}
		r, err := b.s.Suspend(ctx, c, facts)
		want := Runs
		if at == CallState {
			want = Unchanged
		}
		if b.is(c, r, want, Running, false); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", at, err)
		}
		r, err = b.s.Suspend(ctx, c, facts)
		if r.Outcome != Unchanged || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", r.Outcome, err)
		}
	}
	for at, want := range map[Call]Outcome{CallRestore: Suspended, CallUnlock: Runs} {
		b := newBench(t)
		c, p := b.cuda(1, Checkpointed)
		ctx, stop := context.WithCancel(t.Context())
		b.s.opt.Driver = stopping{b.helper, at, stop}
		r, err := b.s.Resume(ctx, c, p, Target{})
		state := map[Outcome]State{Suspended: Checkpointed, Runs: Running}[want]
		if b.is(c, r, want, state, want == Suspended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestFoundFrozen: a task was suspended, and the next daemon does not know it. It finds the
// task frozen, finishes the suspension, and the task can resume.
func TestFoundFrozen(t *testing.T) {
	b := newBench(t)
	c, _ := b.cuda(1, Running)
	frozen := func(want bool) {
		t.Helper()
		if got, err := b.s.Frozen(t.Context(), c); got != want || err != nil {
			t.Fatalf("frozen: %v, %v", got, err)
		}
	}
	frozen(false)
	b.ok(b.s.Suspend(t.Context(), c, facts))
	frozen(true)
	r := b.ok(b.s.Recover(t.Context(), c, Suspended, facts, Target{}))
	b.is(c, r, Suspended, Checkpointed, true)
	r = b.ok(b.s.Resume(t.Context(), c, r.Process, Target{}))
	b.is(c, r, Runs, Running, false)
	frozen(false)
	if got := b.changes(); got != "lock checkpoint restore unlock" {
		t.Errorf("calls: %s", got)
	}
}
