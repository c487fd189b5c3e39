//go:build e2e && failpoints

package test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"carma/failpoint"
	"carma/mapper"
	"carma/runner/api"
)

// before has the points that are only reached after a death at another one.
var before = map[string]string{"sweep-removes": "worker-end-stored:kill"}

// elsewhere has the points that one driver, or a daemon on simulated GPUs,
// does not come by, and why.
func elsewhere(point, driver string) string {
	switch {
	case driver == "docker" && strings.HasPrefix(point, "containerd-"):
		return "containerd's own"
	}
	return ""
}

// later are points at which the first time is at the start of the daemon: they
// are killed at again when there is more to lose.
func later(point string) []string {
	switch {
	case testing.Short() && strings.HasPrefix(point, "journal-commit"):
		return []string{":9"}
	case testing.Short():
		return []string{":1"}
	case strings.HasPrefix(point, "journal-"), strings.HasPrefix(point, "loop-"):
		return []string{":1", ":9", ":30"}
	case strings.HasPrefix(point, "engine-"), strings.HasPrefix(point, "worker-"):
		return []string{":1", ":4"}
	}
	return []string{":1"}
}

// sweep is the table of points and drivers.
type sweep struct {
	mu      sync.Mutex
	deaths  map[string]map[string]int // point -> driver -> deaths there
	reached map[string]map[string]bool
}

var swept = &sweep{deaths: map[string]map[string]int{}, reached: map[string]map[string]bool{}}

func (s *sweep) add(point, driver string, deaths int, reached []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range []string{point} {
		if s.deaths[m] == nil {
			s.deaths[m] = map[string]int{}
		}
	}
	s.deaths[point][driver] += deaths
	for _, p := range reached {
		if s.reached[p] == nil {
			s.reached[p] = map[string]bool{}
		}
		s.reached[p][driver] = true
	}
}

// TestFailpoints kills the daemon at every point in the program, on each
// driver, and has a second build of the program with other options go on: each
// attempt is started once, as the engine's own events tell, nothing is lost, all
// ends. POINT in the environment selects points by prefix, DRIVER a driver.
func TestFailpoints(t *testing.T) {
	points, err := failpoint.Points("..")
	if err != nil {
		t.Fatal(err)
	}
	drivers := sweepDrivers()
	t.Run("all", func(t *testing.T) {
		for _, driver := range drivers {
			if only := os.Getenv("DRIVER"); only != "" && only != driver.name {
				continue
			}
			for _, p := range points {
				if !strings.HasPrefix(p.Name, os.Getenv("POINT")) || elsewhere(p.Name, driver.name) != "" {
					continue
				}
				t.Run(driver.name+"/"+p.Name, func(t *testing.T) {
					t.Parallel()
					for _, nth := range later(p.Name) {
						killAt(t, driver, p.Name, nth)
					}
				})
			}
		}
	})
	swept.print(t, points, drivers)
}

// print prints the table, and complains about points that nobody was killed at.
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
			cell := fmt.Sprintf("%d deaths", s.deaths[p.Name][d.name])
			if why := elsewhere(p.Name, d.name); why != "" {
				cell = "-"
			} else if s.deaths[p.Name][d.name] == 0 && (os.Getenv("DRIVER") == "" || os.Getenv("DRIVER") == d.name) {
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

// killAt leads tasks through everything while the daemon dies at a point.
func killAt(t *testing.T, d sweepDriver, point, nth string) {
	t.Helper()
	l := d.prepare(t)
	reached := filepath.Join(l.root, "reached")
	arm := func(what string) {
		l.env = []string{"CARMA_FAILPOINT=" + what, "CARMA_FAILPOINT_LOG=" + reached}
	}
	first, two := before[point]
	if two {
		arm(first)
	} else {
		arm(point + ":kill" + nth)
	}
	rearm := func() {
		if two && l.deaths > 0 {
			two = false
			arm(point + ":kill" + nth)
		}
	}
	l.up()
	l.submit(train("shrinks", 30*mapper.GiB, "resnet50-imagenet-bs64", "--time", "90h"))
	l.submit(train("grows", 5*mapper.GiB, "mnist-cnn-bs64-14e", "--peak", "12G", "--time", "90h"))
	l.submit(program("quick", "out:hello", "exit:0"))
	after := program("after", "exit:0")
	after.After = []api.Dependency{{Task: "quick"}}
	l.submit(after)
	l.submit(program("stopped", "block:143"))
	l.ends("quick", "succeeded")
	rearm()
	l.ends("after", "succeeded")
	_ = l.again("an image that is not there", func(ctx context.Context) error {
		_, err := l.api.Submit(ctx, api.Submit{Image: "localhost:1/carma-e2e-none:none", Pull: "always", Mem: 1 << 30})
		return err
	})
	if err := l.again("rm", func(ctx context.Context) error { return l.api.Remove(ctx, "quick") }); err != nil && !strings.Contains(err.Error(), "no task") {
		t.Errorf("rm: %v", err)
	}
	l.sees("shrinks", "its grant shrinks", func(t api.Task) bool { return grant(t) < 10*mapper.GiB })
	l.sees("grows", "its grant grows", func(t api.Task) bool { return grant(t) > 12*mapper.GiB })
	l.isRunning("stopped")
	if err := l.again("stop", func(ctx context.Context) error { _, err := l.api.Stop(ctx, "stopped", api.StopRequest{}); return err }); err != nil {
		t.Errorf("stop: %v", err)
	}
	l.ends("stopped", "cancelled")
	// Another build, other options. An old failpoint may be waiting still.
	env := l.env
	l.kill()
	l.env = env
	l.up()
	rearm()
	l.submit(program("more", "block:143"))
	l.isRunning("shrinks", "grows", "more")
	l.term()
	l.up()
	rearm()
	l.isRunning("shrinks", "grows", "more")
	if err := l.again("stop", func(ctx context.Context) error { _, err := l.api.Stop(ctx, "more", api.StopRequest{}); return err }); err != nil {
		t.Errorf("stop: %v", err)
	}
	l.ends("more", "cancelled")
	_ = l.again("speed", func(ctx context.Context) error { _, err := l.api.SetSpeed(ctx, 1e6); return err })
	l.ends("shrinks", "succeeded")
	l.ends("grows", "succeeded")
	l.startedOnce(1)
	l.term()
	v := l.verify()
	if l.deaths == 0 {
		t.Errorf("the daemon was never at %s%s", point, nth)
	}
	if t.Failed() {
		t.Logf("journal: %+v", v)
	}
	swept.add(point, d.name, l.deaths, readLines(reached))
}

func readLines(path string) []string {
	b, _ := os.ReadFile(path)
	return slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(b)))))
}

func sweepDrivers() []sweepDriver {
	list := []sweepDriver{{"docker", func(t *testing.T) *lab { return newLab(t) }}}
	if onContainerd != nil {
		list = append(list, sweepDriver{"containerd", onContainerd})
	}
	return list
}

// onContainerd is there with the tag containerd.
var onContainerd func(t *testing.T) *lab
