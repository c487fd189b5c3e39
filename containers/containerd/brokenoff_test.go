//go:build containerd

package containerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestStartCutOff: a daemon dies while containerd makes its container, and
// containerd undoes its work. The next daemon may start the container at any
// moment of that. It must run the container once and not hang. Without
// [Driver.settle] some starts hang until their time limit, and some fail with
// "failed to start shim" and "file exists", "getwd: no such file or directory" or
// "connection refused".
func TestStartCutOff(t *testing.T) {
	const lanes, rounds, step = 3, 20, 4 * time.Millisecond
	slowest := time.Duration(0)
	for round := range rounds {
		var all sync.WaitGroup
		var mu sync.Mutex
		for lane := range lanes {
			d := newDriver(t)
			id := launch(t, d, "out:once", "exit:3")
			after := time.Duration(round*lanes+lane) * step
			all.Go(func() {
				took := startCutOff(t, d, id, after)
				mu.Lock()
				slowest = max(slowest, took)
				mu.Unlock()
			})
		}
		all.Wait()
	}
	t.Logf("%d starts were cut off; the next took %s at most", lanes*rounds, slowest)
}

func startCutOff(t *testing.T, d *Driver, id string, after time.Duration) (took time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	_ = d.Start(ctx, id)
	next := newDriver(t)
	defer func() { _ = next.Close() }()
	begun := time.Now()
	limit, end := context.WithTimeout(t.Context(), 2*time.Minute)
	defer end()
	if err := always(func() error { return next.Start(limit, id) }); err != nil {
		t.Errorf("cut off after %s: %v after %s", after, err, time.Since(begun))
		return 0
	}
	took = time.Since(begun)
	if e, err := next.Wait(limit, id); err != nil || e.Code != 3 || e.Lost {
		t.Errorf("cut off after %s: Wait = %+v, %v, want code 3", after, e, err)
	}
	if out := output(t, next, id); len(out) != 1 || out[0] != "once" {
		t.Errorf("cut off after %s: output %q, want one line", after, out)
	}
	return took
}

// TestFolderStays: containerd has given up an earlier request, and the request's folder exists
// for some more seconds, as on a busy machine.
func TestFolderStays(t *testing.T) {
	d := newDriver(t)
	id := launch(t, d, "out:once", "exit:3")
	folder := filepath.Join(daemon.Root, "state/io.containerd.runtime.v2.task/carma", id)
	if err := os.MkdirAll(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(6*time.Second, func() { _ = os.RemoveAll(folder) })
	if err := always(func() error { return d.Start(t.Context(), id) }); err != nil {
		t.Fatal(err)
	}
	if e, err := d.Wait(t.Context(), id); err != nil || e.Code != 3 || e.Lost {
		t.Errorf("Wait = %+v, %v, want code 3", e, err)
	}
}

func TestHalfMade(t *testing.T) {
	for text, want := range map[string][2]bool{ // result without and with an earlier request
		"failed to start shim: mkdir /run/x/carma-1: file exists: unknown":                                               {true, true},
		"mkdir /run/x/io.containerd.runtime.v2.task/carma/carma-1: file exists":                                          {true, true},
		"failed to start shim: start failed: io.containerd.runc.v2: getwd: no such file or directory: exit status 1":     {false, true},
		"failed to start shim: start failed: dial unix /run/containerd/s/6b: connect: connection refused":                {false, true},
		`failed to create shim task: OCI runtime create failed: exec: "no": executable file not found in $PATH: unknown`: {false, false},
	} {
		for i, earlier := range []bool{false, true} {
			if got := halfMade(errors.New(text), earlier); got != want[i] {
				t.Errorf("halfMade(%q, %v) = %v", text, earlier, got)
			}
		}
	}
}
