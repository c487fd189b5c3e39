// Package mps starts, queries and stops NVIDIA's Multi-Process Service, which lets the
// kernels of several processes run on one GPU at the same time.
//
// There is one control daemon for each trust group and set of GPUs: a fault of one client
// takes down all clients of its server, and by default a server accepts clients of one
// user only. The package uses the command line of the daemon's own program,
// nvidia-cuda-mps-control, as its manual describes (interface version 2).
package mps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Errors that callers distinguish.
var (
	// ErrNotRunning means that no control daemon listens in the pipe folder.
	ErrNotRunning = errors.New("no MPS control daemon")
	// ErrNotInstalled means that the control program does not exist.
	ErrNotInstalled = errors.New("not installed")
)

// Binary is the control program's name.
const Binary = "nvidia-cuda-mps-control"

// Control is one control daemon. Its zero Credential runs it as this process.
type Control struct {
	Binary string // path or name; empty means Binary
	// Pipe and Log are the control daemon's folders. Clients find the daemon by Pipe.
	Pipe, Log string
	// GPUs are the UUIDs of the devices that the control daemon shows its clients.
	GPUs []string
	// Credential is the user that the control daemon runs as, which must be the clients'
	// user.
	Credential *syscall.Credential
	// MultiUser serves clients of all users from one server.
	MultiUser bool
}

// answerLimit bounds one command, so that a hanging control daemon does not block carma.
const answerLimit = 15 * time.Second

// Start starts the control daemon unless it runs. The daemon continues after this process
// ends.
func (c *Control) Start(ctx context.Context) error {
	if err := c.Ping(ctx); err == nil || !errors.Is(err, ErrNotRunning) {
		return err
	}
	for _, dir := range []string{c.Pipe, c.Log} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if cred := c.Credential; cred != nil {
			if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
				return err
			}
		}
		if c.MultiUser {
			if err := os.Chmod(dir, 0o755); err != nil {
				return err
			}
		}
	}
	if err := c.launch(ctx); err != nil {
		return err
	}
	for end := time.Now().Add(answerLimit); ; time.Sleep(20 * time.Millisecond) {
		if err := c.Ping(ctx); !errors.Is(err, ErrNotRunning) || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

// multiUser are the spellings of the option that serves all users. It is unknown which
// spelling a driver accepts, so the second is tried if the first is refused.
var multiUser = []string{"--multiuser-server", "-multiuser-server"}

// launch runs the control program in the background.
func (c *Control) launch(ctx context.Context) error {
	options := []string{""}
	if c.MultiUser {
		options = multiUser
	}
	first := error(nil)
	for _, option := range options {
		args := []string{"-d"}
		if option != "" {
			args = append(args, option)
		}
		cmd := c.command(ctx, args...)
		cmd.SysProcAttr.Setsid = true
		out, err := output(cmd)
		if err == nil {
			return nil
		}
		if first == nil {
			first = fmt.Errorf("start the MPS control daemon: %s", brief(out, err))
		}
	}
	return first
}

// Ping returns nil if the control daemon answers, and ErrNotRunning if there is none.
func (c *Control) Ping(ctx context.Context) error {
	_, err := c.Ask(ctx, "get_default_active_thread_percentage")
	return err
}

// Quit ends the control daemon and its servers, and returns when it is gone. It returns
// nil if no control daemon runs.
func (c *Control) Quit(ctx context.Context) error {
	if _, err := c.Ask(ctx, "quit"); err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	for end := time.Now().Add(answerLimit); ; time.Sleep(20 * time.Millisecond) {
		if err := c.Ping(ctx); errors.Is(err, ErrNotRunning) {
			return nil
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end):
			return fmt.Errorf("MPS quit: the control daemon is still there after %s", answerLimit)
		}
	}
}

// Ask sends one command to the control daemon and returns the output.
func (c *Control) Ask(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	cmd := c.command(ctx)
	cmd.Stdin = strings.NewReader(command + "\n")
	out, err := output(cmd)
	switch {
	case strings.Contains(out, "Cannot find MPS control daemon process"):
		return "", ErrNotRunning
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s is %w; the NVIDIA driver brings its own", cmd.Path, ErrNotInstalled)
	case ctx.Err() != nil:
		return "", fmt.Errorf("MPS %s: no answer in %s", verb(command), answerLimit)
	case err != nil:
		return "", fmt.Errorf("MPS %s: %s", verb(command), brief(out, err))
	}
	return strings.TrimSpace(out), nil
}

// verb returns the first word of a command.
func verb(command string) string {
	v, _, _ := strings.Cut(command, " ")
	return v
}

func (c *Control) command(ctx context.Context, args ...string) *exec.Cmd {
	name := c.Binary
	if name == "" {
		name = Binary
	}
	cmd := exec.CommandContext(ctx, name, args...)
	path := os.Getenv("PATH")
	if filepath.IsAbs(name) { // the server's program is beside it
		path = strings.TrimSuffix(filepath.Dir(name)+string(filepath.ListSeparator)+path, string(filepath.ListSeparator))
	}
	cmd.Env = []string{
		"PATH=" + path, "LC_ALL=C",
		"CUDA_MPS_PIPE_DIRECTORY=" + c.Pipe, "CUDA_MPS_LOG_DIRECTORY=" + c.Log,
		"CUDA_VISIBLE_DEVICES=" + strings.Join(c.GPUs, ","),
	}
	if libraries := os.Getenv("LD_LIBRARY_PATH"); libraries != "" { // the libraries of a mounted driver
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libraries)
	}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.Credential}
	return cmd
}

// maxAnswer is the largest number of bytes kept of an answer.
const maxAnswer = 1 << 20

// output runs cmd and returns the beginning of its output. It uses a file and not a pipe,
// because a process that cmd leaves in the background may keep a pipe open.
func output(cmd *exec.Cmd) (string, error) {
	f, err := os.CreateTemp("", "carma-mps-*")
	if err != nil {
		return "", err
	}
	defer f.Close()
	defer os.Remove(f.Name())
	cmd.Stdout, cmd.Stderr = f, f
	err = cmd.Run()
	text := make([]byte, maxAnswer)
	n, _ := f.ReadAt(text, 0)
	return string(text[:n]), err
}

// PID returns the control daemon's process number, or 0 if unknown.
func (c *Control) PID() int {
	text, err := os.ReadFile(filepath.Join(c.Pipe, Binary+".pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
