//go:build cgo

package suspend

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// entries counts the entries of a folder of /proc.
func entries(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// children counts the processes of this one, zombies included.
func children(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// TestThousand: 1,000 suspends in a row leave nothing behind, neither here nor in the
// helper. One in a hundred crashes the helper.
func TestThousand(t *testing.T) {
	b := newBench(t)
	c, p := b.cuda(1, Running)
	round := func() {
		b.ok(b.s.Suspend(t.Context(), c, facts))
		b.ok(b.s.Resume(t.Context(), c, p, Target{}))
	}
	helper := func() int {
		return entries(t, fmt.Sprintf("/proc/%d/fd", b.helper.child.cmd.Process.Pid))
	}
	round()
	files, routines, below, inHelper := entries(t, "/proc/self/fd"), runtime.NumGoroutine(), children(t), helper()
	for n := range 1000 {
		if n%100 == 50 {
			b.fault(CallState, "crash 0 once")
		}
		round()
	}
	if got := entries(t, "/proc/self/fd"); got != files {
		t.Errorf("%d open files, %d before", got, files)
	}
	if got := children(t); got != below {
		t.Errorf("%d child processes, %d before", got, below)
	}
	if got := helper(); got != inHelper {
		t.Errorf("%d open files in the helper, %d before", got, inHelper)
	}
	if b.helper.starts != 11 {
		t.Errorf("%d helpers were started", b.helper.starts)
	}
	// A goroutine that has done its work may not have left yet.
	for end := time.Now().Add(patience); runtime.NumGoroutine() > routines; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), routines)
		}
	}
	if len(b.s.busy) != 0 {
		t.Errorf("%d containers are busy", len(b.s.busy))
	}
}

// crowd suspends and resumes many tasks at once, some several times.
func (b *bench) crowd(n int, each func(n int, r Result, err error)) {
	var all sync.WaitGroup
	for i := range n {
		c, p := b.cuda(i, Running)
		all.Go(func() {
			r, err := b.s.Suspend(b.Context(), c, facts)
			each(i, r, err)
			if err == nil {
				r, err = b.s.Resume(b.Context(), c, p, Target{})
				b.is(c, r, Runs, Running, false)
				if err != nil {
					b.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}

// TestManyAtOnce: one helper serves all, and calls of different tasks run at the same
// time: each of the first 16 waits in its checkpoint until all are there.
func TestManyAtOnce(t *testing.T) {
	b := newBench(t)
	b.fault(CallCheckpoint, "meet 16")
	b.crowd(16, func(n int, _ Result, err error) {
		if err != nil {
			t.Errorf("%d: %v", n, err)
		}
	})
	b.remove("fault.checkpoint")
	b.crowd(100, func(n int, _ Result, err error) {
		if err != nil {
			t.Errorf("%d: %v", n, err)
		}
	})
	if b.helper.starts != 1 {
		t.Errorf("%d helpers were started", b.helper.starts)
	}
}

// TestOneOfMany: one task's call hangs or crashes the helper. Only that task is not suspended.
// All others are, although they used the same helper.
func TestOneOfMany(t *testing.T) {
	for _, kind := range []string{"hang", "crash"} {
		for _, call := range []Call{CallLock, CallCheckpoint} {
			t.Run(kind+"/"+string(call), func(t *testing.T) {
				b := newBench(t)
				if kind == "hang" {
					b.limit(call, 5*time.Second)
				}
				b.fault(Call(fmt.Sprintf("%s.%d", call, 1030)), kind) // container 3's process
				b.crowd(20, func(n int, r Result, err error) {
					switch {
					case n == 3 && (r.Outcome != Runs || err == nil):
						t.Errorf("%v, %v", r.Outcome, err)
					case n != 3 && (r.Outcome != Suspended || err != nil):
						t.Errorf("%d: %v, %v", n, r.Outcome, err)
					}
				})
				if s, _ := b.now(1030); s != Running {
					t.Error(s)
				}
			})
		}
	}
}

// TestHangBesideCopy: a copy that runs when another task's call hangs is not interrupted, and
// no second helper works at the same time.
func TestHangBesideCopy(t *testing.T) {
	b := newBench(t)
	b.helper.opt.LockFile = "" // else that keeps them apart
	b.limit(CallLock, 2*time.Second)
	slow, _ := b.cuda(1, Locked)
	stuck, _ := b.cuda(2, Running)
	b.fault("checkpoint.1010", "delay 5000")
	b.fault("lock.1020", "hang")
	var all sync.WaitGroup
	all.Go(func() {
		r, err := b.s.Recover(t.Context(), slow, Suspended, facts, Target{})
		if b.is(slow, r, Suspended, Checkpointed, true); err != nil {
			t.Error(err)
		}
	})
	for !b.reached("checkpoint") {
		time.Sleep(time.Millisecond)
	}
	all.Go(func() {
		r, err := b.s.Suspend(t.Context(), stuck, facts)
		if b.is(stuck, r, Runs, Running, false); !hung(err) {
			t.Error(err)
		}
	})
	for b.helper.child.alive() {
		time.Sleep(time.Millisecond)
	}
	third, _ := b.cuda(3, Running)
	if _, err := b.s.Check(t.Context(), third, facts); err != nil {
		t.Error(err)
	}
	if s, _ := b.now(1010); s != Checkpointed {
		t.Errorf("a second helper was asked while a process was %v", s)
	}
	all.Wait()
	if got := b.changes(); got != "checkpoint lock" || b.helper.starts != 2 {
		t.Errorf("%s, %d helpers", got, b.helper.starts)
	}
}

// TestSameContainer: operations on one container take turns.
func TestSameContainer(t *testing.T) {
	b := newBench(t)
	c, p := b.cuda(1, Running)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { _, _ = b.s.Suspend(t.Context(), c, facts) })
		all.Go(func() { _, _ = b.s.Resume(t.Context(), c, p, Target{}) })
	}
	all.Wait()
	b.is(c, b.ok(b.s.Recover(t.Context(), c, Runs, facts, Target{})), Runs, Running, false)
	// Each change follows from the state before, so none was made twice.
	for step := range strings.SplitSeq(b.changes(), " lock") {
		if step = strings.TrimSpace(strings.TrimPrefix(step, "lock")); step != "checkpoint restore unlock" {
			t.Errorf("lock %s", step)
		}
	}
}
