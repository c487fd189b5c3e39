//go:build load

package test

import (
	"context"
	"encoding/json"
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

// The load tests print figures. They assert only that nothing fails and that the
// daemon stays small, because fast enough depends on the machine. They need no
// engine. Their engine never answers, so that tasks stay queued. Finished tasks
// are made by stopping queued ones.
//
// The environment changes their size: CLIENTS, DURATION and FINISHED; WAITING is the
// number of tasks that are pending from the start.

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

// start starts the daemon and returns how long it took until it answers.
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

// resident returns the daemon's memory now and at its peak, in MB.
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

// syncTime measures how long the disk takes to make 4 KiB durable: median and p99.
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

// clientSaw is the result of one client: how long each request took, by kind, and
// the failures.
type clientSaw struct {
	Times  map[string][]time.Duration `json:"times"`
	Failed int                        `json:"failed"`
	Last   string                     `json:"last,omitempty"`
}

func (c *clientSaw) add(o clientSaw) {
	for kind, times := range o.Times {
		c.Times[kind] = append(c.Times[kind], times...)
	}
	if c.Failed += o.Failed; o.Last != "" {
		c.Last = o.Last
	}
}

// TestLoad: for five minutes 200 clients submit, list, read logs and stop, each with
// about three requests a second. Nothing may fail, and the daemon stays small. Each
// client is its own process, as for users, so that one client's reading does not delay
// another's sending.
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
	if n := size("WAITING", 0); n > 0 {
		filled := api.Submission{Tasks: slices.Repeat([]api.Submit{{Image: "carma/load:none", Mem: 1 << 30, Pull: "never"}}, n)}
		if _, err := l.api.SubmitAll(t.Context(), filled); err != nil {
			t.Fatal(err)
		}
	}
	results := t.TempDir()
	begin := time.Now().Add(time.Duration(clients) * 20 * time.Millisecond) // until then all have started
	end := begin.Add(duration)
	var all sync.WaitGroup
	for i := range clients {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestLoadClient$")
		cmd.Env = append(os.Environ(), "LOAD_SOCKET="+l.socket, "LOAD_RESULT="+filepath.Join(results, strconv.Itoa(i)),
			fmt.Sprintf("LOAD_BEGIN=%d", begin.UnixNano()), fmt.Sprintf("LOAD_END=%d", end.UnixNano()))
		cmd.Stderr = os.Stderr
		all.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	most, waiting := 0.0, 0
	for time.Now().Before(end) {
		time.Sleep(time.Second)
		now, _ := l.resident()
		most = max(most, now)
	}
	if info, err := l.api.Info(t.Context()); err == nil {
		waiting = info.Queued
	}
	all.Wait()
	seen := clientSaw{Times: map[string][]time.Duration{}}
	for i := range clients {
		var one clientSaw
		b, err := os.ReadFile(filepath.Join(results, strconv.Itoa(i)))
		if err == nil {
			err = json.Unmarshal(b, &one)
		}
		if err != nil {
			t.Error(err)
		}
		seen.add(one)
	}
	fmt.Printf("%d clients for %s: %d errors; %d tasks waited at the end; memory at most %.0f MB resident; load of the machine %s\n",
		clients, duration, seen.Failed, waiting, most, machineLoad())
	for _, kind := range []string{"submit", "list", "logs", "stop"} {
		p50, p99 := percentiles(seen.Times[kind])
		fmt.Printf("%-7s %7d requests, p50 %s, p99 %s\n", kind, len(seen.Times[kind]), p50.Round(100*time.Microsecond), p99.Round(100*time.Microsecond))
	}
	if most > 200 {
		t.Errorf("the daemon took %.0f MB, more than 200", most)
	}
	if seen.Failed > 0 {
		t.Errorf("%d requests failed, at last %v", seen.Failed, seen.Last)
	}
	l.stop()
}

// TestLoadClient is one client of TestLoad. By itself it does nothing.
func TestLoadClient(t *testing.T) {
	socket := os.Getenv("LOAD_SOCKET")
	if socket == "" {
		t.Skip("a part of TestLoad")
	}
	at := func(key string) time.Time { return time.Unix(0, int64(size(key, 0))) }
	saw, end := clientSaw{Times: map[string][]time.Duration{}}, at("LOAD_END")
	c := api.NewClient(socket)
	var mine []string
	time.Sleep(time.Until(at("LOAD_BEGIN")) + time.Duration(rand.IntN(600))*time.Millisecond)
	for time.Now().Before(end) {
		begun := time.Now()
		kind, err := oneRequest(t.Context(), c, &mine)
		saw.Times[kind] = append(saw.Times[kind], time.Since(begun))
		if err != nil {
			saw.Failed, saw.Last = saw.Failed+1, kind+": "+err.Error()
		}
		time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
	}
	for _, ref := range mine {
		_, _ = c.Stop(t.Context(), ref, api.StopRequest{})
	}
	b, err := json.Marshal(saw)
	if err == nil {
		err = os.WriteFile(os.Getenv("LOAD_RESULT"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// oneRequest submits in two of five cases; in one each it lists, reads logs, or
// stops.
func oneRequest(ctx context.Context, c *api.Client, mine *[]string) (kind string, err error) {
	n := rand.IntN(5)
	if len(*mine) == 0 {
		n = 0
	}
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

// TestManyFinished measures how long a daemon takes to start, and history verify
// to run, with many finished tasks in the journal.
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
