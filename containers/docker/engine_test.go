//go:build docker

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
)

// proxy forwards the connections of a driver to the engine, and can break them.
type proxy struct {
	t      *testing.T
	path   string
	engine string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
}

func newProxy(t *testing.T) *proxy {
	engine := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if engine == "" {
		engine = "/var/run/docker.sock"
	}
	dir, err := os.MkdirTemp("", "carma") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, path: filepath.Join(dir, "s"), engine: engine, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		p.cut()
		_ = os.RemoveAll(dir)
	})
	return p
}

func (p *proxy) host() string { return "unix://" + p.path }

func (p *proxy) join() {
	l, err := net.Listen("unix", p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.listener = l
	p.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", p.engine)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns[in], p.conns[out] = true, true
			p.mu.Unlock()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = pair[0].Close(), pair[1].Close()
				}()
			}
		}
	}()
}

// cut breaks all connections and refuses new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

// launch starts the tool through a separate driver.
func launch(t *testing.T, mounts []containers.Mount, args ...string) string {
	t.Helper()
	d := newDriver(t, "")
	t.Cleanup(func() { _ = d.Close() })
	id, err := d.Create(t.Context(), containers.Spec{
		Name:  fmt.Sprintf("carma-suite-%d-%d", os.Getpid(), time.Now().UnixNano()),
		Image: toolRef, Command: args, User: "0:0", Mounts: mounts,
		Labels: map[string]string{"carma.suite.test": "engine"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
	})
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestEngineComesLater(t *testing.T) {
	p := newProxy(t)
	d := newDriver(t, p.host())
	defer func() { _ = d.Close() }()
	ctx := t.Context()
	_, pingErr := d.Ping(ctx)
	_, imageErr := d.Image(ctx, toolRef)
	_, createErr := d.Create(ctx, containers.Spec{Name: "carma-suite-never", Image: toolRef})
	_, listErr := d.List(ctx, nil)
	for _, err := range []error{pingErr, imageErr, createErr, listErr, d.Pull(ctx, toolRef, containers.Credential{}), d.Start(ctx, "x"),
		d.Signal(ctx, "x"), d.Kill(ctx, "x"), d.Remove(ctx, "x")} {
		if !errors.Is(err, containers.ErrUnavailable) {
			t.Errorf("without an engine: %v, want ErrUnavailable", err)
		}
	}
	p.join()
	if e, err := d.Ping(ctx); err != nil || e.Version == "" {
		t.Errorf("Ping = %+v, %v", e, err)
	}
	if _, err := d.Image(ctx, toolRef); err != nil {
		t.Errorf("Image: %v", err)
	}
}

func TestWaitBroken(t *testing.T) {
	p := newProxy(t)
	p.join()
	d := newDriver(t, p.host())
	id := launch(t, nil, "out:ready", "block:6")
	done := make(chan error, 1)
	go func() {
		_, err := d.Wait(t.Context(), id)
		done <- err
	}()
	// Logs and Wait are blocked in the engine when the line arrives.
	err := d.Logs(t.Context(), id, time.Time{}, true, func(_ time.Time, _ containers.Stream, line []byte, _ bool) {
		if string(line) == "ready" {
			p.cut()
		}
	})
	if !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("Logs: %v, want ErrUnavailable", err)
	}
	if err := <-done; !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("Wait: %v, want ErrUnavailable", err)
	}
	p.join()
	if err := d.Signal(t.Context(), id); err != nil {
		t.Errorf("stop: %v", err)
	}
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 6 {
		t.Errorf("Wait = %+v, %v, want code 6", exit, err)
	}
}

func TestLogsBroken(t *testing.T) {
	p := newProxy(t)
	d := newDriver(t, p.host())
	id := launch(t, nil, "lines:1000", "long:200000", "lines:1000", "raw:end")
	var since time.Time
	got := map[containers.Stream][]string{}
	open := map[containers.Stream]string{}
	for cut := 50; ; cut += 150 {
		p.join()
		n := 0
		err := d.Logs(t.Context(), id, since, true, func(at time.Time, st containers.Stream, line []byte, partial bool) {
			since = at
			open[st] += string(line)
			if !partial {
				got[st], open[st] = append(got[st], open[st]), ""
			}
			if n++; n == cut {
				p.cut()
			}
		})
		p.cut()
		if err == nil {
			break
		}
		if !errors.Is(err, containers.ErrUnavailable) {
			t.Fatalf("logs: %v, want ErrUnavailable", err)
		}
	}
	lines := func(word string) (out []string) {
		for i := range 1000 {
			out = append(out, fmt.Sprintf("%s %d", word, i+1))
		}
		return out
	}
	out := slices.Concat(lines("out"), []string{containerstest.LongLine(200000)}, lines("out"), []string{"end"})
	if !slices.Equal(got[containers.Stdout], out) {
		t.Errorf("stdout: %d lines, want the %d that were printed", len(got[containers.Stdout]), len(out))
	}
	if want := append(lines("err"), lines("err")...); !slices.Equal(got[containers.Stderr], want) {
		t.Errorf("stderr: %d lines, want the %d that were printed", len(got[containers.Stderr]), len(want))
	}
}

// TestLogsRotated follows across new log files. Engine 20.10 sends lines twice
// then: without errWentBack this test fails there.
func TestLogsRotated(t *testing.T) {
	old := logSize
	logSize = "1m"
	defer func() { logSize = old }()
	const rounds, perRound = 20, 1500 // 250 KB a round
	folder := t.TempDir()
	args, want := []string{}, []string{}
	for i := range rounds {
		args = append(args, fmt.Sprintf("lines:%d", perRound), fmt.Sprintf("out:done %d", i), fmt.Sprintf("gate:/gate/%d", i))
		for j := range perRound {
			want = append(want, fmt.Sprintf("out %d", j+1))
		}
		want = append(want, fmt.Sprintf("done %d", i))
	}
	id := launch(t, []containers.Mount{{Source: folder, Target: "/gate"}}, args...)
	var got []string
	d := newDriver(t, "")
	defer func() { _ = d.Close() }()
	err := d.Logs(t.Context(), id, time.Time{}, true, func(_ time.Time, st containers.Stream, line []byte, _ bool) {
		if st != containers.Stdout {
			return
		}
		got = append(got, string(line))
		if n, ok := strings.CutPrefix(string(line), "done "); ok {
			if err := os.WriteFile(filepath.Join(folder, n), nil, 0o644); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, want the %d that were printed", len(got), len(want))
	}
}
