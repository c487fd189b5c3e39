//go:build cgo

package suspend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refused checks that nothing was done, for a reason in one line.
func (b *bench) refused(c Container, f Facts, reason Reason, text string) {
	b.Helper()
	r, err := b.s.Suspend(b.Context(), c, f)
	var refusal *Refusal
	if r.Outcome != Unchanged || !errors.As(err, &refusal) || refusal.Reason != reason || !strings.Contains(refusal.Text, text) || strings.Contains(refusal.Text, "\n") {
		b.Errorf("%v, %v; want %s: %s", r.Outcome, err, reason, text)
	}
	if got := b.changes(); got != "" {
		b.Errorf("%s was done", got)
	}
}

// TestRefusals checks the tasks that must not be suspended, with the reasons.
func TestRefusals(t *testing.T) {
	b := newBench(t)
	c, p := b.cuda(1, Running)
	with := func(change func(*Facts)) Facts {
		f := facts
		change(&f)
		return f
	}
	for _, tt := range []struct {
		f      Facts
		reason Reason
		text   string
	}{
		{with(func(f *Facts) { f.Driver = "" }), ReasonDriver, `the version of the NVIDIA driver is not known ("")`},
		{with(func(f *Facts) { f.Driver = "565.57.01" }), ReasonDriver, "the NVIDIA driver is 565.57.01; suspending needs 570 or newer"},
		{with(func(f *Facts) { f.Arch = "arm64" }), ReasonArch, "on x86-64 only; this machine is arm64"},
		{with(func(f *Facts) { f.MIG = true }), ReasonMIG, "MIG instance"},
		{with(func(f *Facts) { f.MPS = true }), ReasonMPS, "client of MPS"},
		{with(func(f *Facts) { f.Managed, f.Driver = true, "570.1" }), ReasonManaged, "which the NVIDIA driver 570.1 cannot suspend"},
		{with(func(f *Facts) { f.Managed = true }), ReasonManaged, "would crash"},
		{with(func(f *Facts) { f.Uses = []Use{{p.PID + 1, gpuA}} }), ReasonUnknown, "process 1011 uses a GPU"},
		{with(func(f *Facts) { f.Uses = []Use{{p.PID, gpuA}, {p.PID, gpuB}} }), ReasonGPUs, "the task uses 2 GPUs"},
	} {
		b.refused(c, tt.f, tt.reason, tt.text)
	}
	b.set(p.PID+1, Running)
	b.refused(c, facts, ReasonSeveral, "2 processes of the task use CUDA (1010, 1011)")
	b.remove("process.1010")
	b.remove("process.1011")
	b.refused(c, facts, ReasonNone, "no process of the task uses CUDA now")
	b.refused(Container{ID: c.ID}, facts, ReasonNone, "no process")
	b.set(p.PID, Failed)
	b.refused(c, facts, ReasonState, "an earlier suspend of process 1010 went wrong")
	b.set(p.PID, Running)
	b.freezer.Freeze(t.Context(), c)
	b.refused(c, facts, ReasonFrozen, "the container is frozen")
	b.freezer.Thaw(t.Context(), c)
	if got, err := b.s.Check(t.Context(), c, facts); got != p || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	ns := filepath.Join(b.root, "proc/self/ns")
	if err := errors.Join(os.MkdirAll(ns, 0o755), os.Symlink("pid:[4026531837]", filepath.Join(ns, "pid"))); err != nil {
		t.Fatal(err)
	}
	b.refused(c, facts, ReasonNamespace, "in a PID namespace of its own")
}

// TestForeign: only processes of the container are ever named to the driver.
func TestForeign(t *testing.T) {
	b := newBench(t)
	_, other := b.cuda(2, Checkpointed)
	c, p := b.cuda(1, Running)

	c.PIDs = append(c.PIDs, other.PID, 1, 0, -5) // its number belonged to another process when the list was made
	if got, err := b.s.Check(t.Context(), c, facts); got != p || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	// A thread of the process has an entry in /proc as well.
	b.process(1, 1019)
	b.write("root/proc/1019/status", "Tgid:\t1010\n")
	b.set(1019, Running)
	c.PIDs = append(c.PIDs, 1019)
	if got, err := b.s.Check(t.Context(), c, facts); got != p || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, q := range []Process{other, {PID: 4}, {PID: 1}, {PID: 1019, Start: 4711}} {
		r, err := b.s.Resume(t.Context(), c, q, Target{})
		var refusal *Refusal
		if r.Outcome != Unchanged || !errors.As(err, &refusal) || refusal.Reason != ReasonUnknown {
			t.Errorf("%d: %v, %v", q.PID, r.Outcome, err)
		}
	}
	if s, _ := b.now(other.PID); s != Checkpointed {
		t.Error(s)
	}
	if got := b.changes(); got != "" {
		t.Error(got)
	}
	b.write("root/proc/1010/stat", "rubbish")
	if r, err := b.s.Suspend(t.Context(), c, facts); r.Outcome != Unchanged || err == nil || !strings.Contains(err.Error(), "1010/stat is not of the known form") {
		t.Errorf("%v, %v", r.Outcome, err)
	}
}

// dying ends a process, in one of several ways, when a call begins.
type dying struct {
	Caller
	at  Call
	end func()
}

func (d dying) Call(ctx context.Context, r Request) (State, error) {
	if r.Call == d.at {
		d.end()
	}
	return d.Caller.Call(ctx, r)
}

// TestEnds: a process that ends during an operation counts as ended, not as lost. Its PID may
// belong to another process by then.
func TestEnds(t *testing.T) {
	for _, at := range []Call{CallState, CallLock, CallCheckpoint, CallRestore, CallUnlock} {
		for way, end := range map[string]func(*bench, int){
			"gone":   func(b *bench, pid int) { b.remove(fmt.Sprintf("root/proc/%d", pid)) },
			"zombie": func(b *bench, pid int) { b.write(fmt.Sprintf("root/proc/%d/stat", pid), stat(pid, "Z", 4711)) },
			"reused": func(b *bench, pid int) { b.write(fmt.Sprintf("root/proc/%d/stat", pid), stat(pid, "S", 4712)) },
			"moved": func(b *bench, pid int) {
				b.write(filepath.Join("root/proc", fmt.Sprint(pid), "cgroup"), "0::/docker/"+id(9)+"\n")
			},
		} {
			b := newBench(t)
			from := Running
			if at == CallRestore || at == CallUnlock {
				from = Checkpointed
			}
			c, p := b.cuda(1, from)
			b.s.opt.Driver = dying{b.helper, at, func() { b.remove("process.1010"); end(b, p.PID) }}
			want := Ended
			var r Result
			var err error
			if from == Running {
				r, err = b.s.Suspend(t.Context(), c, facts)
				if at == CallState {
					want = Unchanged // it is none of the task's CUDA processes
				}
			} else {
				r, err = b.s.Resume(t.Context(), c, p, Target{})
			}
			if r.Outcome != want || err == nil {
				t.Errorf("%s at %s: %v, %v", way, at, r.Outcome, err)
			}
			if got := b.changes(); strings.Contains(got, "unlock ") {
				t.Errorf("%s at %s: %s", way, at, got)
			}
			if way == "reused" {
				continue // by another process of the container
			}
			b.remove("root/proc/1011")
			if r, err := b.s.Recover(t.Context(), c, Runs, facts, Target{}); r.Outcome != Ended || !errors.Is(err, errEnded) {
				t.Errorf("%s at %s: recover: %v, %v", way, at, r.Outcome, err)
			}
		}
	}
}
