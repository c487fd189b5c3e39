//go:build cgo

package suspend

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// trial is an operation on a process in a state, with a fault, and its end.
type trial struct {
	op      string
	from    State
	call    Call
	fault   string
	outcome Outcome
	state   State
	err     bool
}

func (b *bench) try(tt trial) {
	b.Helper()
	c, p := b.cuda(1, tt.from)
	if tt.from == Checkpointed {
		b.freezer.Freeze(b.Context(), c)
	}
	b.fault(tt.call, tt.fault)
	var r Result
	var err error
	switch tt.op {
	case "suspend":
		r, err = b.s.Suspend(b.Context(), c, facts)
	case "resume":
		r, err = b.s.Resume(b.Context(), c, p, Target{})
	case "wake":
		r, err = b.s.Recover(b.Context(), c, Runs, facts, Target{})
	case "sleep":
		r, err = b.s.Recover(b.Context(), c, Suspended, facts, Target{})
	}
	b.is(c, r, tt.outcome, tt.state, tt.outcome == Suspended)
	var failed *Error
	switch {
	case (err != nil) != tt.err:
		b.Errorf("error: %v", err)
	case tt.err && (!errors.As(err, &failed) || failed.Outcome != tt.outcome || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), what[tt.outcome])):
		b.Errorf("%v", err)
	}
	// Whatever happened, the helper is there again and the next task is served.
	b.remove("fault." + string(tt.call))
	other, q := b.cuda(2, Running)
	b.is(other, b.ok(b.s.Suspend(b.Context(), other, facts)), Suspended, Checkpointed, true)
	b.is(other, b.ok(b.s.Resume(b.Context(), other, q, Target{})), Runs, Running, false)
}

// TestCodes: every error code that the functions are documented or known to return, at every
// call, with and without an effect of the call.
func TestCodes(t *testing.T) {
	b := newBench(t)
	codes := []Code{CodeInvalidValue, CodeOutOfMemory, CodeNotInitialized, CodeIllegalState, CodeNotReady, CodeNotSupported, CodeSystem, CodeNotPermitted, CodeUnknown, 719}
	for _, code := range codes {
		n := fmt.Sprint(int(code))
		for _, tt := range []trial{
			{"suspend", Running, CallState, "code " + n, Unchanged, Running, true},
			{"suspend", Running, CallLock, "code " + n, Runs, Running, true},
			{"suspend", Running, CallLock, "late " + n, Runs, Running, true},
			{"suspend", Running, CallLock, "half " + n, Lost, Failed, true},
			{"suspend", Running, CallCheckpoint, "code " + n, Runs, Running, true},
			{"suspend", Running, CallCheckpoint, "late " + n, Runs, Running, true},
			{"suspend", Running, CallCheckpoint, "half " + n, Lost, Failed, true},
			{"sleep", Locked, CallCheckpoint, "code " + n, Runs, Running, true},
			{"resume", Checkpointed, CallState, "code " + n, Lost, Checkpointed, true},
			{"resume", Checkpointed, CallRestore, "code " + n, Suspended, Checkpointed, true},
			{"resume", Checkpointed, CallRestore, "late " + n, Runs, Running, true},
			{"resume", Checkpointed, CallRestore, "half " + n, Lost, Failed, true},
			{"resume", Checkpointed, CallUnlock, "code " + n, Lost, Locked, true},
			{"resume", Checkpointed, CallUnlock, "code " + n + " once", Runs, Running, true},
			{"resume", Checkpointed, CallUnlock, "late " + n, Runs, Running, true},
			{"resume", Checkpointed, CallUnlock, "half " + n, Lost, Failed, true},
			{"wake", Checkpointed, CallRestore, "code " + n, Suspended, Checkpointed, true},
			{"wake", Locked, CallUnlock, "code " + n, Lost, Locked, true},
		} {
			b.try(tt)
			if b.Failed() {
				t.Fatalf("%+v", tt)
			}
		}
	}
	if b.helper.starts != 1 {
		t.Errorf("%d helpers were started", b.helper.starts)
	}
}

// TestHangAndCrash tests a hang and a crash at every call, once or each time, before and after
// the call has an effect.
func TestHangAndCrash(t *testing.T) {
	for _, tt := range []trial{
		{"suspend", Running, CallState, "* 0 once", Suspended, Checkpointed, false},
		{"suspend", Running, CallState, "*", Unchanged, Running, true},
		{"suspend", Running, CallLock, "* 0 once", Runs, Running, true},
		{"suspend", Running, CallLock, "*", Runs, Running, true},
		{"suspend", Running, CallLock, "late*", Runs, Running, true},
		{"suspend", Running, CallCheckpoint, "*", Runs, Running, true},
		{"suspend", Running, CallCheckpoint, "late*", Runs, Running, true},
		{"resume", Checkpointed, CallState, "* 0 once", Runs, Running, false},
		{"resume", Checkpointed, CallState, "*", Lost, Checkpointed, true},
		{"resume", Checkpointed, CallRestore, "* 0 once", Runs, Running, false},
		{"resume", Checkpointed, CallRestore, "*", Suspended, Checkpointed, true},
		{"resume", Checkpointed, CallRestore, "late*", Runs, Running, false},
		{"resume", Checkpointed, CallUnlock, "* 0 once", Runs, Running, false},
		{"resume", Checkpointed, CallUnlock, "*", Lost, Locked, true},
		{"resume", Checkpointed, CallUnlock, "late*", Runs, Running, false},
		{"wake", Checkpointed, CallState, "*", Lost, Checkpointed, true},
		{"wake", Checkpointed, CallRestore, "*", Suspended, Checkpointed, true},
		{"wake", Locked, CallUnlock, "* 0 once", Runs, Running, false},
		{"sleep", Locked, CallCheckpoint, "*", Runs, Running, true},
		{"sleep", Running, CallLock, "late*", Runs, Running, true},
	} {
		for _, kind := range []string{"hang", "crash"} {
			tt := tt
			tt.fault = strings.Replace(tt.fault, "*", kind, 1)
			t.Run(fmt.Sprintf("%s/%s/%s", tt.op, tt.call, tt.fault), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				if kind == "hang" {
					b.limit(tt.call, 2*time.Second)
				}
				b.try(tt)
				if b.helper.starts < 2 {
					t.Errorf("%d helpers were started", b.helper.starts)
				}
			})
		}
	}
}

// limit shortens the limit of the call that hangs. All others have patience.
func (b *bench) limit(call Call, limit time.Duration) {
	l := &b.s.opt.Limits
	switch call {
	case CallState:
		l.State = limit
	case CallLock:
		l.Lock, b.s.margin = time.Second, limit-time.Second
	case CallCheckpoint, CallRestore:
		l.Copy = limit
	case CallUnlock:
		l.Unlock = limit
	}
}

// TestUnlockAfterFailure tests a failure of the call that undoes a failed operation.
func TestUnlockAfterFailure(t *testing.T) {
	b := newBench(t)
	c, p := b.cuda(1, Running)
	b.fault(CallCheckpoint, "code 801")
	b.fault(CallUnlock, "code 999")
	r, err := b.s.Suspend(t.Context(), c, facts)
	b.is(c, r, Lost, Locked, false)
	want := "suspend: checkpoint process 1010: CUDA error 801, NOT_SUPPORTED: the driver cannot do this for the process; and back: unlock process 1010: CUDA error 999, UNKNOWN: the driver gives no reason; look at dmesg: the task is lost, its process is locked"
	if err == nil || err.Error() != want {
		t.Error(err)
	}
	if !r.Sure || r.State != Locked || r.Process != p {
		t.Errorf("%+v", r)
	}
	if got := b.changes(); got != "lock checkpoint unlock unlock unlock" {
		t.Error(got)
	}
}
