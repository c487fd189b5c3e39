//go:build e2e

package test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"
)

// inspectNothing asks for the state only, without sizes.
var inspectNothing = client.ContainerInspectOptions{}

// dockerd is a Docker engine for one test, which may kill it. It runs in its own
// network namespace. In the machine's namespace a second dockerd would use the
// first one's bridge docker0 as its own, and with --bridge=none delete it.
type dockerd struct {
	t      *testing.T
	root   string
	inside chan func() // runs functions in the namespace
	before []string    // a command that starts it, or none to start it directly
	args   []string    // additional arguments
	cmd    *exec.Cmd
	exited chan struct{}
	seen   *watcher
	all    []*watcher // of all its starts
}

func newDockerd(t *testing.T) *dockerd {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil {
		t.Skip("no dockerd here")
	}
	root, err := os.MkdirTemp("/tmp", "e")
	if err != nil {
		t.Fatal(err)
	}
	e := &dockerd{t: t, root: root, inside: make(chan func())}
	bridge := bridgeIndex()
	t.Cleanup(func() {
		e.cleanUp()
		if after := bridgeIndex(); after != bridge {
			t.Errorf("the machine's docker0 was number %d and is %d: this test has changed it", bridge, after)
		}
	})
	isolated := make(chan error)
	go func() {
		runtime.LockOSThread() // without unlock: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			isolated <- err
			return
		}
		isolated <- nil
		for f := range e.inside {
			f()
		}
	}()
	if err := <-isolated; err != nil {
		close(e.inside)
		t.Skipf("no network namespace for a second engine: %v", err)
	}
	t.Cleanup(func() { close(e.inside) })
	return e
}

// bridgeIndex returns the index of the machine's docker0, or 0 if there is none.
func bridgeIndex() int {
	i, err := net.InterfaceByName("docker0")
	if err != nil {
		return 0
	}
	return i.Index
}

func (e *dockerd) host() string { return "unix://" + e.root + "/s" }

// start starts it and waits until it answers and has the image.
func (e *dockerd) start() {
	e.t.Helper()
	log, err := os.OpenFile(filepath.Join(e.root, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	args := append([]string{"--host", e.host(), "--data-root", e.root + "/d", "--exec-root", e.root + "/x", "--pidfile", e.root + "/p",
		"--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false"}, e.args...)
	args = slices.Concat(e.before, []string{"dockerd"}, args)
	e.cmd = exec.Command(args[0], args[1:]...)
	e.cmd.Stdout, e.cmd.Stderr = log, log
	started := make(chan error)
	e.inside <- func() { started <- e.cmd.Start() }
	if err := <-started; err != nil {
		e.t.Fatal(err)
	}
	exited := make(chan struct{})
	e.exited = exited
	go func() {
		_ = e.cmd.Wait()
		close(exited)
	}()
	cli, err := client.New(client.WithHost(e.host()))
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = cli.Close() }()
	eventually(e.t, "the engine answers", func() bool {
		select {
		case <-exited:
			e.t.Fatalf("dockerd ended: %s", e.log())
		default:
		}
		_, err := cli.Ping(e.t.Context(), client.PingOptions{})
		return err == nil
	})
	// The stream of events ends with the engine. Earlier events are looked up
	// afterwards.
	if e.seen, err = watch(e.t.Context(), e.host()); err != nil {
		e.t.Fatal(err)
	}
	e.all = append(e.all, e.seen)
	if _, err := e.seen.cli.ImageInspect(e.t.Context(), image); err == nil {
		return
	}
	e.copyImage(image)
}

// copyImage copies an image of the tests' engine into it.
func (e *dockerd) copyImage(ref string) {
	e.t.Helper()
	saved, err := engine.cli.ImageSave(e.t.Context(), []string{ref})
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = saved.Close() }()
	loaded, err := e.seen.cli.ImageLoad(e.t.Context(), saved)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = loaded.Close() }()
	if _, err := io.Copy(io.Discard, loaded); err != nil {
		e.t.Fatal(err)
	}
}

func (e *dockerd) watch() *watcher { return e.seen }

// starts returns the starts of containers seen in all its lives, by task.attempt. Starts before
// it is watched again are missing.
func (e *dockerd) starts(instance string) map[string]int {
	n := map[string]int{}
	for _, w := range e.all {
		for attempt, starts := range w.starts(instance) {
			n[attempt] += starts
		}
	}
	return n
}

func (e *dockerd) log() string {
	b, _ := os.ReadFile(filepath.Join(e.root, "log"))
	return string(b[max(0, len(b)-4<<10):])
}

// kill kills it and its containerd like kill -9. The containers continue.
func (e *dockerd) kill() {
	_ = e.cmd.Process.Kill()
	<-e.exited
	// Its containerd has died with it. If nobody reaps that process, the next
	// dockerd believes that it lives.
	pidfile := filepath.Join(e.root, "x/containerd/containerd.pid")
	if b, err := os.ReadFile(pidfile); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && mentions(pid, e.root) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	if err := os.Remove(pidfile); err != nil && !os.IsNotExist(err) {
		e.t.Error(err)
	}
}

// cleanUp ends it with its containers, and removes its mounts.
func (e *dockerd) cleanUp() {
	if e.t.Failed() {
		e.t.Logf("dockerd's log ends with\n%s", e.log())
	}
	if e.cmd != nil {
		_ = e.cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-e.exited:
		case <-time.After(time.Minute):
			e.kill()
		}
	}
	e.killLeft()
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	lines := strings.Split(string(mounts), "\n")
	for _, line := range slices.Backward(lines) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], e.root+"/") {
			_ = unix.Unmount(f[4], unix.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(e.root); err != nil {
		e.t.Error(err)
	}
}

// killLeft ends processes that a killed dockerd has left: the shims, which have
// its folder in their command lines, and the containers below them.
func (e *dockerd) killLeft() {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !mentions(pid, e.root) {
			continue
		}
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				_ = unix.Kill(n, unix.SIGKILL)
			}
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// mentions reports whether a process has a folder in its command line.
func mentions(pid int, dir string) bool {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return bytes.Contains(cmdline, []byte(dir+"/"))
}

// onOwnEngine starts a daemon on an engine that only this test uses and may
// break.
func onOwnEngine(t *testing.T) (*server, *dockerd) {
	t.Helper()
	e := newDockerd(t)
	e.start()
	s := newServer(t, "--speed", "30", "--backoff", "1s")
	s.useEngine(e)
	s.start()
	return s, e
}
