//go:build cgo

package suspend

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script makes a helper that is a shell script.
func script(t *testing.T, text string) *Helper {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helper")
	// A process that is forked while the file is written has it open for a moment, and
	// it could not be run ("text file busy").
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	h := NewHelper(HelperOptions{Program: path, Start: patience})
	t.Cleanup(func() { h.Close() })
	return h
}

// TestStrangeHelper: a helper with an invalid answer is ended, and the error contains the
// answer.
func TestStrangeHelper(t *testing.T) {
	hello := `echo '{"id":0}'; read line; `
	for name, tt := range map[string]struct{ text, want string }{
		"garbage":       {hello + `echo 'what?'; cat`, `the suspend helper ended: it answered with not a line of the helper's: "what?\n"`},
		"long line":     {hello + `head -c 10000000 /dev/zero; cat`, "it answered with a line of more than 4096 bytes"},
		"no question":   {hello + `echo '{"id":7}'; cat`, "it answered with an answer to no question (7)"},
		"twice":         {hello + `echo '{"id":0}'; cat`, "it answered with an answer to no question (0)"},
		"half":          {hello + `printf '{"id":1'`, `it answered with half a line: "{\"id\":1"`},
		"words":         {hello + `echo 'oh dear' >&2; echo more >&2; exit 3`, "the suspend helper ended: oh dear"},
		"no words":      {hello + `exit 3`, "the suspend helper ended: exit status 3"},
		"nothing":       {hello + `exit 0`, "the suspend helper ended: it ended by itself"},
		"killed":        {hello + `kill -9 $$`, "the suspend helper ended: signal: killed"},
		"no start":      {`echo no >&2; exit 1`, "suspending is not possible here: the suspend helper did not start: no"},
		"a false start": {`echo '<html>'; cat`, `suspending is not possible here: the suspend helper did not start: it answered with not a line of the helper's: "<html>\n"`},
		"an error":      {`echo '{"error":"no driver"}'; cat`, "suspending is not possible here: no driver"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := script(t, tt.text)
			for range 2 { // the second is a new one
				_, err := h.Call(t.Context(), Request{Call: CallState, PID: 123, Limit: patience})
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// TestSilentHelper checks that a helper that does not report its start is ended.
func TestSilentHelper(t *testing.T) {
	h := script(t, "exec sleep 1000")
	h.opt.Start = 100 * time.Millisecond
	for range 2 {
		_, err := h.Call(t.Context(), Request{Call: CallState, PID: 123, Limit: patience})
		if !errors.As(err, new(*Unavailable)) || !strings.Contains(err.Error(), "has not loaded the NVIDIA driver's library within 100ms") {
			t.Error(err)
		}
	}
	h = NewHelper(HelperOptions{Program: "/nonexistent/carma"})
	if _, err := h.CUDA(t.Context()); !errors.As(err, new(*Unavailable)) {
		t.Error(err)
	}
}

// TestNoDriver tests libraries that cannot be used.
func TestNoDriver(t *testing.T) {
	for name, tt := range map[string]struct{ library, init, want string }{
		"missing": {"/nonexistent/libcuda.so.1", "", "the NVIDIA driver's library cannot be loaded: /nonexistent/libcuda.so.1: cannot open shared object file"},
		"old":     {libraries["old"], "", " has no cuCheckpointProcess"},
		"no GPU":  {libraries["new"], "code 100", "cuInit: CUDA error 100, NO_DEVICE: the driver finds no GPU"},
		"crash":   {libraries["new"], "crash", "the suspend helper did not start: SIGABRT: abort"},
	} {
		b := benchIn(t, t.TempDir(), tt.library)
		c, _ := b.cuda(1, Running)
		if tt.init != "" {
			b.fault(CallInit, tt.init)
		}
		r, err := b.s.Suspend(t.Context(), c, facts)
		b.is(c, r, Unchanged, Running, false)
		if !errors.As(err, new(*Unavailable)) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		r, err = b.s.Recover(t.Context(), c, Runs, facts, Target{})
		if r.Outcome != Lost || !errors.As(err, new(*Unavailable)) {
			t.Errorf("%s: %v, %v", name, r.Outcome, err)
		}
		b.remove("fault.init") // mended while the daemon runs
		if tt.init != "" {
			b.ok(b.s.Suspend(t.Context(), c, facts))
		}
	}
}

// TestUsage checks that the helper refuses to run as an ordinary command.
func TestUsage(t *testing.T) {
	if RunHelper(nil) != 2 || RunHelper([]string{"a", "b", "c"}) != 2 {
		t.Error("it runs without arguments")
	}
}

// TestRequests: the helper itself refuses wrong requests, and continues.
func TestRequests(t *testing.T) {
	b := newBench(t)
	for want, r := range map[string]Request{
		"a lock without a time limit":    {Call: CallLock, PID: 5},
		"no call \"boil\"":               {Call: "boil", PID: 5},
		"a line of more than 4096 bytes": {Call: CallRestore, PID: 5, Pairs: []Pair{{strings.Repeat("x", 5000), gpuA}}},
		"is not the UUID of a whole GPU": {Call: CallRestore, PID: 5, Pairs: []Pair{{"x", gpuA}}},
	} {
		r.Limit = patience
		if _, err := b.helper.Call(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	if b.helper.starts != 1 {
		t.Errorf("%d helpers were started", b.helper.starts)
	}
}

// TestClose: the helper ends, a running call is finished, and no further one begins.
func TestClose(t *testing.T) {
	b := newBench(t)
	_, p := b.cuda(1, Running)
	b.fault(CallLock, "delay 300")
	begun := make(chan error)
	go func() {
		_, err := b.helper.Call(context.Background(), Request{Call: CallLock, PID: p.PID, Wait: time.Second, Limit: patience})
		begun <- err
	}()
	for !b.reached("lock") {
		time.Sleep(time.Millisecond)
	}
	if err := b.helper.Close(); err != nil {
		t.Error(err)
	}
	if err := <-begun; err != nil {
		t.Error(err)
	}
	if s, _ := b.now(p.PID); s != Locked {
		t.Error(s)
	}
	if _, err := b.helper.Call(t.Context(), Request{Call: CallState, PID: p.PID, Limit: patience}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := b.helper.Close(); err != nil {
		t.Error(err)
	}
}
