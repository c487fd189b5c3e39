package containerd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/types/task"
)

// If a daemon dies while containerd makes its container, containerd undoes its work, in
// several steps. This damages a container of the same name that is made meanwhile: its
// folder is deleted, it gets the old shim and hangs, or containerd forgets it.
const (
	settleLook = 100 * time.Millisecond
	// settled is the number of consecutive checks that must show the same state.
	settled = 5
	// settleFor is the longest time that containerd may take. Its own limit is 5 s for each
	// of two steps.
	settleFor = 15 * time.Second
)

// settle waits until containerd has finished an earlier request to make the container. It
// returns the task if it was made, or nil if it was undone. It kills a shim that still
// exists after settleFor. Call it only for a container whose program has not been
// started, or is about to be ended.
func (d *Driver) settle(ctx context.Context, id string) (*task.Process, error) {
	begun, same, pid := time.Now(), 0, uint32(0)
	for {
		t, err := d.task(ctx, id)
		if err != nil {
			return nil, err
		}
		var shims []int
		if t == nil {
			shims = d.shims(id)
		}
		switch {
		case unmade(t) || len(shims) > 0:
			same = 0
		case t.GetPid() != pid:
			pid, same = t.GetPid(), 1
		default:
			same++
		}
		if same >= settled {
			return t, nil
		}
		if same == 0 && time.Since(begun) > settleFor {
			for _, shim := range d.shims(id) {
				_ = syscall.Kill(shim, syscall.SIGKILL) // containerd cleans up after the shim
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(settleLook):
		}
	}
}

// unmade reports whether a task is being made or undone. Its shim does not report its
// process then.
func unmade(t *task.Process) bool {
	return t != nil && t.Pid == 0 && t.Status == task.Status_UNKNOWN
}

// shims returns the processes with which containerd makes, runs or deletes a container,
// as far as this process can see them.
func (d *Driver) shims(id string) (pids []int) {
	want := []byte("\x00-namespace\x00" + d.opts.Namespace + "\x00")
	name := []byte("\x00-id\x00" + id + "\x00")
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(line, want) || !bytes.Contains(line, name) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// halfMade reports whether making a container failed because an earlier request is still
// being undone. earlier is set if an earlier request is known.
func halfMade(err error, earlier bool) bool {
	text := err.Error()
	if strings.Contains(text, "mkdir ") && strings.HasSuffix(text, ": file exists") {
		return true // containerd 2 reports nothing more specific
	}
	return strings.Contains(text, "failed to start shim") && (earlier || strings.Contains(text, "file exists"))
}
