//go:build load

package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"carma/runner/api"
)

// The load tests print figures and assert only that nothing fails and that the
// daemon stays small: what is fast enough depends on the machine. They need no engine: the daemon's container
// work is left out by an engine that never answers, so that tasks stay queued,
// or, for finished ones, by stopping them while they are queued.
//
// CLIENTS, DURATION and FINISHED in the environment change their size.

// loaded is a daemon under load.
type loaded struct {
	t      *testing.T
	dir    string
	socket string
	bin    string
	cmd    *exec.Cmd
	api    *api.Client
}

func newLoaded(t *testing.T) *loaded {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("LOAD_DIR"), "cl")
	if err != nil {
		t.Fatal(err)
	}
	l := &loaded{t: t, dir: filepath.Join(dir, "d"), socket: filepath.Join(dir, "s"), bin: os.Getenv("TEST_CARMA")}
	if l.bin == "" {
		l.bin = filepath.Join(dir, "carma")
		if out, err := exec.Command("go", "build", "-o", l.bin, "carma/cmd/carma").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Cleanup(func() {
		if l.cmd != nil {
			_ = l.cmd.Process.Kill()
			_ = l.cmd.Wait()
		}
		_ = os.RemoveAll(dir)
	})
	return l
}

// start starts the daemon and returns how long that took, until it answers.
func (l *loaded) start() time.Duration {
	l.t.Helper()
	begun := time.Now()
	l.cmd = exec.Command(l.bin, "daemon", "--data-dir", l.dir, "--socket", l.socket, "--gpus", "sim:dgx-station-a100", "--log-level", "error",
		"--docker-host", "unix:///nonexistent/carma-load.sock")
	l.cmd.Env = append(os.Environ(), "CARMA_CONFIG=/dev/null")
	l.cmd.Stdout, l.cmd.Stderr = os.Stderr, os.Stderr
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.api = api.NewClient(l.socket)
	for {
		if _, err := l.api.Info(l.t.Context()); err == nil {
			return time.Since(begun)
		}
		if time.Since(begun) > 5*time.Minute {
			l.t.Fatal("the daemon does not answer")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (l *loaded) stop() {
	l.t.Helper()
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	if err := l.cmd.Wait(); err != nil {
		l.t.Errorf("the daemon ended with %v", err)
	}
	l.cmd = nil
}

// resident is the daemon's memory now and at most, in MB.
func (l *loaded) resident() (now, most float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.cmd.Process.Pid))
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			now = kb / 1000
		case "VmHWM:":
			most = kb / 1000
		}
	}
	return now, most
}

// syncTime is how long the disk takes to make 4 KiB durable, median and p99.
func syncTime(t *testing.T, dir string) (p50, p99 time.Duration) {
	t.Helper()
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	times := make([]time.Duration, 200)
	for i := range times {
		begun := time.Now()
		if _, err = f.WriteAt(make([]byte, 4096), 0); err == nil {
			err = syscall.Fdatasync(int(f.Fd()))
		}
		if err != nil {
			t.Fatal(err)
		}
		times[i] = time.Since(begun)
	}
	return percentiles(times)
}

func percentiles(times []time.Duration) (p50, p99 time.Duration) {
	if len(times) == 0 {
		return 0, 0
	}
	slices.Sort(times)
	return times[len(times)/2], times[len(times)*99/100]
}

func machineLoad() string {
	b, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

func size(key string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(key)); err == nil {
		return n
	}
	return otherwise
}

// latencies are of one kind of request.
type latencies struct {
	mu    sync.Mutex
	times map[string][]time.Duration
}

func (l *latencies) add(kind string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times[kind] = append(l.times[kind], d)
}

// TestLoad: 200 clients for five minutes submit, list, read logs and stop, each
// with about three requests a second. Nothing may fail, and the daemon stays small.
func TestLoad(t *testing.T) {
	clients := size("CLIENTS", 200)
	duration := 5 * time.Minute
	if d, err := time.ParseDuration(os.Getenv("DURATION")); err == nil {
		duration = d
	}
	l := newLoaded(t)
	l.start()
	p50, p99 := syncTime(t, l.dir)
	fmt.Printf("disk sync of 4 KiB: median %s, p99 %s; load of the machine %s\n", p50, p99, machineLoad())
	seen := &latencies{times: map[string][]time.Duration{}}
	var failed atomic.Int64
	var last atomic.Value
	end := time.Now().Add(duration)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			c := api.NewClient(l.socket)
			var mine []string
			for time.Now().Before(end) {
				kind, err := oneRequest(t.Context(), c, &mine, seen)
				if err != nil {
					failed.Add(1)
					last.Store(kind + ": " + err.Error())
				}
				time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
			}
			for _, ref := range mine {
				_, _ = c.Stop(t.Context(), ref, api.StopRequest{})
			}
		})
	}
	most := 0.0
	for time.Now().Before(end) {
		time.Sleep(time.Second)
		now, _ := l.resident()
		most = max(most, now)
	}
	all.Wait()
	fmt.Printf("%d clients for %s: %d errors; memory at most %.0f MB resident; load of the machine %s\n", clients, duration, failed.Load(), most, machineLoad())
	for _, kind := range []string{"submit", "list", "logs", "stop"} {
		p50, p99 := percentiles(seen.times[kind])
		fmt.Printf("%-7s %7d requests, p50 %s, p99 %s\n", kind, len(seen.times[kind]), p50.Round(100*time.Microsecond), p99.Round(100*time.Microsecond))
	}
	if most > 200 {
		t.Errorf("the daemon took %.0f MB, more than 200", most)
	}
	if failed.Load() > 0 {
		t.Errorf("%d requests failed, at last %v", failed.Load(), last.Load())
	}
	l.stop()
}

// oneRequest submits in 2 of 5 cases, lists, reads logs or stops in one each.
func oneRequest(ctx context.Context, c *api.Client, mine *[]string, seen *latencies) (kind string, err error) {
	n := rand.IntN(5)
	if len(*mine) == 0 {
		n = 0
	}
	begun := time.Now()
	defer func() { seen.add(kind, time.Since(begun)) }()
	switch n {
	case 0, 1:
		made, err := c.Submit(ctx, api.Submit{Image: "carma/load:none", Mem: 1 << 30, Pull: "never"})
		if err == nil {
			*mine = append(*mine, strconv.FormatInt(made.ID, 10))
		}
		return "submit", err
	case 2:
		_, err := c.Tasks(ctx, api.ListOptions{})
		return "list", err
	case 3:
		_, err := c.Logs(ctx, (*mine)[rand.IntN(len(*mine))], api.LogOptions{}, func(api.LogLine) error { return nil })
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return "logs", err
	}
	i := rand.IntN(len(*mine))
	ref := (*mine)[i]
	*mine = slices.Delete(*mine, i, i+1)
	_, err = c.Stop(ctx, ref, api.StopRequest{})
	return "stop", err
}

// TestManyFinished: how long a daemon takes to start, and history verify takes,
// with many finished tasks in the journal.
func TestManyFinished(t *testing.T) {
	want := size("FINISHED", 100_000)
	l := newLoaded(t)
	l.start()
	begun := time.Now()
	var left atomic.Int64
	left.Store(int64(want))
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			c := api.NewClient(l.socket)
			for left.Add(-1) >= 0 {
				made, err := c.Submit(t.Context(), api.Submit{Image: "carma/load:none", Mem: 1 << 30, Pull: "never"})
				if err == nil {
					_, err = c.Stop(t.Context(), strconv.FormatInt(made.ID, 10), api.StopRequest{})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	fmt.Printf("%d tasks submitted and stopped in %s\n", want, time.Since(begun).Round(time.Second))
	l.stop()
	fmt.Printf("start after a clean stop with %d finished tasks: %s\n", want, l.start().Round(time.Millisecond))
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait()
	fmt.Printf("start after kill -9: %s; load of the machine %s\n", l.start().Round(time.Millisecond), machineLoad())
	now, most := l.resident()
	fmt.Printf("memory after the start: %.0f MB resident, at most %.0f\n", now, most)
	begun = time.Now()
	verify := exec.Command(l.bin, "history", "verify", "--data-dir", l.dir)
	verify.Env = append(os.Environ(), "CARMA_CONFIG=/dev/null")
	out, err := verify.CombinedOutput()
	fmt.Printf("history verify: %s\n%s", time.Since(begun).Round(10*time.Millisecond), out)
	if err != nil {
		t.Error(err)
	}
	l.stop()
}
