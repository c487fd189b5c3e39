//go:build kubernetes

package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/internal/failpoint"
	"carma/runner/api"
	"carma/runner/verify"
)

// launch lists the failpoints of a launch. With -short, only these are tested.
var launch = []string{
	"decisions-stored", "engine-after-attached", "engine-after-create", "engine-after-start", "engine-before-attached", "engine-before-create", "engine-before-start",
	"worker-begins", "worker-begun", "worker-start-posted",
}

// never returns the reason why a failpoint is not reached on a cluster, or empty if it is
// reached.
func never(point string) string {
	for prefix, why := range map[string]string{
		"containerd-": "containerd's own", "engine-before-pull": "the kubelet pulls", "engine-after-pull": "the kubelet pulls", "suspend-": "a cluster suspends nothing", "resume-": "a cluster suspends nothing", "resize-": "a claim cannot be changed",
	} {
		if strings.HasPrefix(point, prefix) {
			return why
		}
	}
	return ""
}

// nth returns the visit of a failpoint at which the daemon dies. Some failpoints are also
// visited when the daemon starts.
func nth(point string) int {
	switch {
	case strings.HasPrefix(point, "journal-"):
		return 9
	case point == "events-stored", point == "decisions-stored":
		return 3
	}
	return 1
}

// TestFailpoints kills the daemon at each failpoint while tasks start and end, and restarts it.
// One task runs all the time. The node's containerd must have started each attempt once, all
// tasks must end, and no pod or claim may be left. The environment variable POINT selects
// failpoints by their prefix.
func TestFailpoints(t *testing.T) {
	points, err := failpoint.Points("../../..")
	if err != nil {
		t.Fatal(err)
	}
	program := os.Getenv("TEST_CARMA_POINTS") // this program has the build tag failpoints
	if program == "" {
		program = filepath.Join(t.TempDir(), "carma")
		if out, err := exec.Command("go", "build", "-trimpath", "-tags", "failpoints", "-o", program, "carma/containers/kubernetes/cmd/carma-kubernetes").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v: %s", err, out)
		}
	}
	c, _, d := bench(t)
	d.args[0] = program
	d.args = append(d.args, "--keep-tasks", "10")
	starts := c.watchStarts()
	d.submit(block("always", "failpoints-always"))
	d.runs("always")
	for _, p := range points {
		if !strings.HasPrefix(p.Name, os.Getenv("POINT")) || never(p.Name) != "" || testing.Short() && !slices.Contains(launch, p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			outer := d.t
			d.t, d.process.t = t, t
			defer func() { d.t, d.process.t = outer, outer }()
			d.dies(p.Name)
			if task := d.runs("always"); len(task.Attempts) != 1 {
				t.Errorf("always has %d attempts", len(task.Attempts))
			}
			for attempt, n := range starts() {
				if n != 1 {
					t.Errorf("%s was started %d times", attempt, n)
				}
			}
		})
	}
	c.finish("failpoints-always")
	d.ends("always", 1)
	c.empty("lab")
	d.end(syscall.SIGTERM)
	if v, err := verify.Journal(filepath.Join(d.root, "d"), ""); err != nil || len(v.Faults) > 0 {
		t.Errorf("the journal is not sound: %v %q", err, v.Faults)
	}
}

// dies makes the daemon die at a failpoint while tasks start and end.
func (d *daemon) dies(point string) {
	d.t.Helper()
	d.end(syscall.SIGTERM)
	at := fmt.Sprintf("%s:kill:%d", point, nth(point))
	if point == "sweep-removes" { // there is something to remove only after the daemon has died elsewhere
		d.env = []string{"CARMA_FAILPOINT=worker-end-stored:kill:1"}
		d.start(ready)
		d.work(point + "-before")
		d.end(syscall.SIGKILL)
	}
	d.env, d.deaths = []string{"CARMA_FAILPOINT=" + at}, 0
	if !d.start(ready) {
		d.died()
	}
	for i := 0; d.deaths == 0 && i < 3; i++ {
		d.work(fmt.Sprint(point, "-", i))
		if d.deaths == 0 { // the failpoint is at the end of a daemon, or at its next start
			_ = d.cmd.Process.Signal(syscall.SIGTERM)
			<-d.exited
			if !d.cmd.ProcessState.Success() || !d.start(ready) {
				d.died()
			}
		}
	}
	if d.deaths == 0 {
		d.t.Errorf("the daemon never came to %s", point)
		d.env = nil
		d.end(syscall.SIGTERM)
		d.start(ready)
	}
}

// died checks that the failpoint killed the daemon, and restarts it without the failpoint.
func (d *daemon) died() {
	d.t.Helper()
	<-d.exited
	status, _ := d.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL {
		log := d.log.String()[d.life:]
		d.t.Fatalf("the daemon ended with %v: %s", d.cmd.ProcessState, log[max(0, len(log)-4<<10):])
	}
	d.deaths++
	d.env = nil
	if !d.start(ready) {
		d.t.Fatal("the daemon does not start after its death")
	}
}

// again repeats f until the daemon has done it. The daemon may die of it.
func (d *daemon) again(what string, f func(ctx context.Context) error) error {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
		err := f(ctx)
		cancel()
		var status *api.StatusError
		if err == nil || errors.As(err, &status) && status.Status < 500 {
			return err
		}
		select {
		case <-d.exited:
			d.died()
		default:
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s: %v", what, err)
		}
	}
}

// work submits tasks: one ends, one is stopped, one is removed.
func (d *daemon) work(name string) {
	d.t.Helper()
	quick := block(name+"-quick", name)
	quick.Command = []string{"out:hello", "exit:0"}
	stopped := block(name+"-stopped", name)
	deaf := block(name+"-deaf", name)
	deaf.Command = []string{"stubborn"}
	for _, s := range []api.Submit{quick, stopped, deaf} {
		if err := d.again("submit "+s.Name, func(ctx context.Context) error {
			_, err := d.api.Task(ctx, s.Name)
			var status *api.StatusError
			if errors.As(err, &status) && status.Status == 404 {
				_, err = d.api.Submit(ctx, s)
			}
			return err
		}); err != nil {
			d.t.Fatalf("submit %s: %v", s.Name, err)
		}
	}
	d.comes(quick.Name, "succeeded")
	if err := d.again("rm", func(ctx context.Context) error { return d.api.Remove(ctx, quick.Name) }); err != nil && !strings.Contains(err.Error(), "no task") {
		d.t.Errorf("rm: %v", err)
	}
	for _, s := range []api.Submit{stopped, deaf} {
		d.comes(s.Name, "running")
		if err := d.again("stop", func(ctx context.Context) error {
			_, err := d.api.Stop(ctx, s.Name, api.StopRequest{Grace: time.Second})
			return err
		}); err != nil {
			d.t.Errorf("stop: %v", err)
		}
		d.comes(s.Name, "cancelled")
	}
}

// comes waits until a task is in a phase, in its first attempt. The daemon may die in the
// meantime.
func (d *daemon) comes(name, phase string) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var task api.Task
		if err := d.again(name, func(ctx context.Context) (err error) { task, err = d.api.Task(ctx, name); return err }); err != nil {
			d.t.Fatalf("task %s is lost: %v", name, err)
		}
		if task.Phase == phase {
			return
		}
		if task.Finished() || time.Now().After(deadline) {
			d.t.Fatalf("task %s has %s (%s), want %s: %+v", name, task.Phase, task.Reason, phase, task.Attempts)
		}
	}
}
