//go:build e2e && failpoints

package test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/internal/units"

	"carma/internal/failpoint"
	"carma/runner/api"
)

// before names, for points that are reached only after a death elsewhere, the
// failpoint of that death.
var before = map[string]string{"sweep-removes": "worker-end-stored:kill"}

// keepFew makes the daemon remove old tasks at most of its starts.
var keepFew = []string{"--keep-tasks", "10"}

// elsewhere returns the reason why a failpoint is never reached with a driver or with simulated
// GPUs, or empty if it is reached.
func elsewhere(point, driver string) string {
	switch {
	case driver == "docker" && strings.HasPrefix(point, "containerd-"):
		return "containerd's own"
	}
	return ""
}

// nth returns the visit of a failpoint at which the daemon dies. The journal's failpoints are
// also visited when the daemon starts.
func nth(point string) string {
	for _, often := range []string{"journal-", "events-", "decisions-"} {
		if strings.HasPrefix(point, often) {
			return ":9"
		}
	}
	return ":1"
}

// sweep is the table of points and drivers.
type sweep struct {
	mu     sync.Mutex
	deaths map[string]int // number of deaths, by driver/point
}

func (s *sweep) add(driver, point string, deaths int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaths[driver+"/"+point] += deaths
}

// TestFailpoints kills the daemon at every point in the program, with each
// driver. A second build with other options takes over. Each attempt must be
// started once, as the engine's own events show. Nothing may be lost, and all
// tasks must end. POINT in the environment selects points by prefix, DRIVER a
// driver.
func TestFailpoints(t *testing.T) {
	points, err := failpoint.Points("..")
	if err != nil {
		t.Fatal(err)
	}
	drivers := sweepDrivers()
	table := &sweep{deaths: map[string]int{}}
	t.Run("all", func(t *testing.T) {
		for _, driver := range drivers {
			if only := os.Getenv("DRIVER"); only != "" && only != driver.name {
				continue
			}
			t.Run(driver.name, func(t *testing.T) {
				t.Parallel()
				driver.sweep(t, points, table)
			})
		}
	})
	table.print(t, points, drivers)
}

// sweep kills one daemon again and again, at another point each time. Two tasks with changed
// grants run all the time, and others start and end.
func (d sweepDriver) sweep(t *testing.T, points []failpoint.Point, table *sweep) {
	l := d.prepare(t)
	for i := range l.options {
		l.options[i] = append(l.options[i], keepFew...)
	}
	l.up()
	l.submit(train("shrinks", 30*units.GiB, "resnet50-imagenet-bs64", "--time", "9000h"))
	l.submit(train("grows", 5*units.GiB, "mnist-cnn-bs64-14e", "--peak", "12G", "--time", "9000h"))
	l.sees("shrinks", "its grant shrinks", func(t api.Task) bool { return grant(t) < 10*units.GiB })
	l.sees("grows", "its grant grows", func(t api.Task) bool { return grant(t) > 12*units.GiB })
	for _, p := range points {
		if !strings.HasPrefix(p.Name, os.Getenv("POINT")) || elsewhere(p.Name, d.name) != "" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			outer := l.server.t
			l.server.t = t
			defer func() { l.server.t = outer }()
			table.add(d.name, p.Name, l.dieAt(p.Name))
			l.isRunning("shrinks", "grows")
			l.startedOnce()
		})
	}
	for _, name := range []string{"shrinks", "grows"} {
		if err := l.again("stop", func(ctx context.Context) error { _, err := l.api.Stop(ctx, name, api.StopRequest{}); return err }); err != nil {
			t.Error(err)
		}
		l.ends(name, "cancelled")
	}
	l.startedOnce()
	l.term()
	l.verify()
}

// dieAt makes the daemon die at a point, in the middle of work. It returns how
// often it died.
func (l *lab) dieAt(point string) (deaths int) {
	l.t.Helper()
	was := l.deaths
	if first := before[point]; first != "" {
		was++
		l.next = []string{"CARMA_FAILPOINT=" + point + ":kill"}
		l.restart(first)
	} else {
		l.restart(point + ":kill" + nth(point))
	}
	for range 3 {
		if l.deaths > was {
			break
		}
		l.work(point)
		l.term()
		l.up()
	}
	l.env, l.next = nil, nil
	return l.deaths - was
}

// restart stops the daemon and starts it again with a failpoint.
func (l *lab) restart(point string) {
	l.t.Helper()
	l.term()
	l.env = []string{"CARMA_FAILPOINT=" + point}
	l.up()
}

// work submits tasks: one runs, one depends on it, one is stopped, one has no image, one is
// removed.
func (l *lab) work(name string) {
	l.t.Helper()
	l.works++
	name = fmt.Sprintf("%s-%d", name, l.works)
	l.submit(program(name+"-quick", "out:hello", "exit:0"))
	after := program(name+"-after", "exit:0")
	after.After = []api.Dependency{{Task: name + "-quick"}}
	l.submit(after)
	l.submit(program(name+"-stopped", "block:143"))
	l.submit(program(name+"-deaf", "stubborn"))
	l.ends(name+"-quick", "succeeded")
	l.ends(name+"-after", "succeeded")
	_ = l.again("an image that is not there", func(ctx context.Context) error {
		_, err := l.api.Submit(ctx, api.Submit{Image: "localhost:1/carma-e2e-none:none", Pull: "always", Mem: 1 << 30})
		return err
	})
	err := l.again("rm", func(ctx context.Context) error { return l.api.Remove(ctx, name+"-quick") })
	var status *api.StatusError
	if err != nil && !(errors.As(err, &status) && status.Status == 404) { // removed by an earlier try
		l.t.Errorf("rm: %v", err)
	}
	l.removed++
	l.isRunning(name + "-stopped")
	if err := l.again("stop", func(ctx context.Context) error {
		_, err := l.api.Stop(ctx, name+"-stopped", api.StopRequest{})
		return err
	}); err != nil {
		l.t.Errorf("stop: %v", err)
	}
	l.ends(name+"-stopped", "cancelled")
	l.isRunning(name + "-deaf")
	grace := api.StopRequest{Grace: 100 * time.Millisecond}
	if err := l.again("stop", func(ctx context.Context) error { _, err := l.api.Stop(ctx, name+"-deaf", grace); return err }); err != nil {
		l.t.Errorf("stop: %v", err)
	}
	l.ends(name+"-deaf", "cancelled")
	if strings.HasPrefix(name, "suspend-") || strings.HasPrefix(name, "resume-") {
		l.leaves(name + "-away")
	}
	l.tell()
}

// leaves makes a task vacate its GPU and return.
func (l *lab) leaves(name string) {
	l.t.Helper()
	l.submit(train(name, 2*units.GiB, "resnet18_cifar100_20e_1", "--time", "9000h"))
	l.sees(name, "its start", func(t api.Task) bool { return t.Phase == "running" })
	away := func(t api.Task) bool { return t.Phase == "suspended" }
	if err := l.again("suspend", func(ctx context.Context) error {
		_, err := l.api.Suspend(ctx, name, api.Note{})
		return l.unless(ctx, name, err, func(t api.Task) bool { return away(t) || t.Phase == "suspending" })
	}); err != nil {
		l.t.Errorf("suspend: %v", err)
	}
	l.sees(name, "it leaves its GPU", away)
	back := func(t api.Task) bool { return t.Phase == "running" }
	if err := l.again("resume", func(ctx context.Context) error {
		_, err := l.api.Resume(ctx, name)
		return l.unless(ctx, name, err, func(t api.Task) bool { return back(t) || t.Phase == "resuming" })
	}); err != nil {
		l.t.Errorf("resume: %v", err)
	}
	if task := l.sees(name, "it comes back", back); len(task.Attempts) != 1 {
		l.t.Errorf("%s has %d attempts", name, len(task.Attempts))
	}
	if err := l.again("stop", func(ctx context.Context) error { _, err := l.api.Stop(ctx, name, api.StopRequest{}); return err }); err != nil {
		l.t.Errorf("stop: %v", err)
	}
	l.ends(name, "cancelled")
}

// unless accepts a refusal if an earlier try has already had the requested effect.
func (l *lab) unless(ctx context.Context, name string, err error, so func(api.Task) bool) error {
	if err == nil {
		return nil
	}
	if task, e := l.api.Task(ctx, name); e == nil && so(task) {
		return nil
	}
	return err
}

// print prints the table, and fails the test for points at which nobody was
// killed.
func (s *sweep) print(t *testing.T, points []failpoint.Point, drivers []sweepDriver) {
	w := bufio.NewWriter(os.Stdout)
	defer func() { _ = w.Flush() }()
	fmt.Fprintf(w, "\n%-28s", "failpoint")
	for _, d := range drivers {
		fmt.Fprintf(w, " %-14s", d.name)
	}
	fmt.Fprintln(w, " at")
	for _, p := range points {
		if !strings.HasPrefix(p.Name, os.Getenv("POINT")) {
			continue
		}
		fmt.Fprintf(w, "%-28s", p.Name)
		for _, d := range drivers {
			cell := fmt.Sprintf("%d deaths", s.deaths[d.name+"/"+p.Name])
			if why := elsewhere(p.Name, d.name); why != "" {
				cell = "-"
			} else if s.deaths[d.name+"/"+p.Name] == 0 && (os.Getenv("DRIVER") == "" || os.Getenv("DRIVER") == d.name) {
				cell = "NOT COVERED"
				t.Errorf("failpoint %s is not covered on %s", p.Name, d.name)
			}
			fmt.Fprintf(w, " %-14s", cell)
		}
		fmt.Fprintln(w, " "+strings.TrimPrefix(p.At, "../"))
	}
}

// sweepDriver is a driver to sweep on; prepare gives a lab its engine.
type sweepDriver struct {
	name    string
	prepare func(t *testing.T) *lab
}

func sweepDrivers() []sweepDriver {
	list := []sweepDriver{{"docker", func(t *testing.T) *lab { return newLab(t) }}}
	if onContainerd != nil {
		list = append(list, sweepDriver{"containerd", onContainerd})
	}
	return list
}

// onContainerd is set with the build tag containerd.
var onContainerd func(t *testing.T) *lab
