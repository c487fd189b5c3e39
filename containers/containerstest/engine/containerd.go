// Package engine starts container engines for a single test, which may kill them.
package engine

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Containerd is a containerd with folders of its own.
type Containerd struct {
	Root   string // contains all its files
	cmd    *exec.Cmd
	exited chan struct{}
}

// Forgets reports whether containerd loses the state of a container that ended while
// containerd was down: version 2 does (2.2.9), 1.6 does not.
func (c *Containerd) Forgets() bool {
	out, err := exec.Command("containerd", "--version").Output()
	fields := strings.Fields(string(out)) // prints: containerd MODULE VERSION REVISION
	return err == nil && len(fields) > 2 && !strings.HasPrefix(strings.TrimPrefix(fields[2], "v"), "1.")
}

// NewContainerd starts a containerd. Its folder must be new, or the folder of an earlier
// Containerd.
func NewContainerd(root string) (*Containerd, error) {
	if _, err := exec.LookPath("containerd"); err != nil {
		return nil, fmt.Errorf("no containerd here (Debian: apt-get install containerd runc): %w", err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	c := &Containerd{Root: root}
	config := fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = %q
`, root+"/root", root+"/state", c.Address())
	if err := os.WriteFile(filepath.Join(root, "config.toml"), []byte(config), 0o644); err != nil {
		return nil, err
	}
	return c, c.Start()
}

// Address returns the path of its socket.
func (c *Containerd) Address() string { return filepath.Join(c.Root, "c.sock") }

// Start starts containerd, also after [Containerd.Kill], and waits until it listens.
func (c *Containerd) Start() error {
	log, err := os.OpenFile(filepath.Join(c.Root, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	c.cmd = exec.Command("containerd", "--config", filepath.Join(c.Root, "config.toml"))
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	c.exited = exited
	cmd := c.cmd
	go func() { _ = cmd.Wait(); close(exited) }()
	for end := time.Now().Add(time.Minute); ; {
		conn, err := net.Dial("unix", c.Address())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-exited:
			return fmt.Errorf("containerd ended: %s", c.Log())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("containerd does not listen: %w: %s", err, c.Log())
		}
	}
}

// Kill kills containerd like kill -9; its containers continue.
func (c *Containerd) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
	_ = os.Remove(c.Address())
}

// Log returns the end of containerd's log.
func (c *Containerd) Log() string {
	b, _ := os.ReadFile(filepath.Join(c.Root, "log"))
	return string(b[max(0, len(b)-4<<10):])
}

// Close ends containerd and all its containers, and deletes its folder.
func (c *Containerd) Close() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.exited:
	case <-time.After(20 * time.Second):
		c.Kill()
	}
	KillShims(c.Root)
	Unmount(c.Root)
	return os.RemoveAll(c.Root)
}

// KillShims kills an engine's shims and their containers, and returns how many
// shims there were. It finds the shims by the engine's folder in their command
// lines.
func KillShims(root string) (n int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if !bytes.Contains(cmdline, []byte(root+"/")) || !bytes.Contains(cmdline, []byte("containerd-shim")) {
			continue
		}
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		_ = syscall.Kill(pid, syscall.SIGKILL)
		for _, child := range strings.Fields(string(children)) {
			if c, err := strconv.Atoi(child); err == nil && !isLogger(c) {
				_ = syscall.Kill(c, syscall.SIGKILL)
			}
		}
		n++
	}
	return n
}

// isLogger reports whether a process is a logger. A logger ends without a signal when it
// has read all output.
func isLogger(pid int) bool {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return bytes.Contains(cmdline, []byte("containerd-log"))
}

// Unmount unmounts everything below a folder.
func Unmount(root string) {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], root+"/") {
			_ = syscall.Unmount(f[4], syscall.MNT_DETACH)
		}
	}
}
