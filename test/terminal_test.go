//go:build e2e

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carma/runner/api"

	"golang.org/x/sys/unix"
)

// window is a terminal in which a command of carma runs.
type window struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	text string
}

// window opens a terminal of a size and runs a command in it.
func (s *server) window(rows, cols uint16, args ...string) *window {
	s.t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(pty.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer tty.Close()
	w := &window{t: s.t, pty: pty, cmd: exec.Command(s.cli, args...)}
	w.cmd.Env = environment(s.socket)
	w.resize(rows, cols)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = tty, tty, tty
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go w.read()
	s.t.Cleanup(func() { _ = w.cmd.Process.Kill(); _ = pty.Close() })
	return w
}

func (w *window) read() {
	buf := make([]byte, 4096)
	for {
		n, err := w.pty.Read(buf)
		w.mu.Lock()
		w.text += string(buf[:n])
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (w *window) resize(rows, cols uint16) {
	w.t.Helper()
	if err := unix.IoctlSetWinsize(int(w.pty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		w.t.Fatal(err)
	}
}

// shows waits for a text, and forgets what came up to it.
func (w *window) shows(want string) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.t.Logf("the terminal shows %q", w.text)
		}
	}()
	eventually(w.t, fmt.Sprintf("the terminal shows %q", want), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, after, found := strings.Cut(w.text, want)
		if found {
			w.text = after
		}
		return found
	})
}

func (w *window) types(text string) {
	w.t.Helper()
	if _, err := w.pty.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
}

// exits waits for the command's end, and checks its code.
func (w *window) exits(code int) {
	w.t.Helper()
	if got := w.exited(); got != code {
		w.t.Errorf("exit code %d, want %d", got, code)
	}
}

// exited waits for the command's end.
func (w *window) exited() (code int) {
	w.t.Helper()
	done := make(chan error, 1)
	go func() { done <- w.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(patience):
		w.t.Fatalf("it does not end; it shows %q", w.text)
	}
	return w.cmd.ProcessState.ExitCode()
}

// piped runs a command with an input to its end.
func (s *server) piped(input string, args ...string) result {
	s.t.Helper()
	cmd := exec.Command(s.cli, args...)
	var out, errs strings.Builder
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environment(s.socket), strings.NewReader(input), &out, &errs
	_ = cmd.Run()
	return result{args: args, out: out.String(), err: errs.String(), code: cmd.ProcessState.ExitCode()}
}

// TestTerminal: a task with a terminal on the real engine: detached by keys and attached again,
// and attached over a kill of the daemon and a change of the window's size.
func TestTerminal(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--idle-stop", "0s")
	s.start()
	s.terminal()
}

func (s *server) terminal() {
	gate := s.t.TempDir()
	w := s.window(30, 90, "run", "-it", "--mem", "1G", "-v", gate+":/gate", tool,
		"ask:your name? ", "terminal", "ask:ready? ", "resized:41", "gate:/gate/open", "count:30000", "out:meanwhile", "write:/gate/did", "ask:more? ", "terminal", "exit:5")
	w.shows("your name? ")
	w.types("eve\n")
	w.shows("got eve")
	w.shows("30 x 90")
	w.types("\x10\x11")
	w.shows("task 1 goes on without this terminal: carma attach 1 takes it again")
	w.exits(0)
	s.running("1")

	w = s.window(24, 70, "attach")
	w.shows("ready? ") // what came before is shown again
	other := s.window(40, 100, "attach", "--detach-keys", "ctrl-],q", "1")
	other.shows("ready? ")
	other.types("\x10\x11") // not its keys
	other.types("yes\n")
	w.shows("yes") // both show the same
	other.shows("yes")
	other.types("\x1dq")
	other.shows("goes on without this terminal")
	other.exits(0)
	w.resize(41, 71) // the program waits for it
	w.shows("41 x 71")
	s.kill()
	w.shows("lost the daemon")
	if err := os.WriteFile(filepath.Join(gate, "open"), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "the program goes on without a daemon", func() bool {
		_, err := os.Stat(filepath.Join(gate, "did"))
		return err == nil
	})
	s.start()
	w.shows("the daemon is back")
	w.shows("30000") // as it was kept: the prompt has no end of line yet
	w.shows("meanwhile")
	w.types("done\n")
	w.shows("got done")
	w.shows("41 x 71")
	w.exits(5)
	kept := s.carma("logs", "1")
	for _, want := range []string{"got eve", "30 x 90", "41 x 71", "\n1\n", "\n30000\n", "meanwhile", "got done"} {
		if !strings.Contains(kept.out, want) {
			s.t.Errorf("its output of %d bytes lacks %q", len(kept.out), want)
		}
	}
	if strings.Contains(kept.out, "\r") || strings.Count(kept.out, "meanwhile") != 1 {
		s.t.Errorf("its output begins with %.200q", kept.out)
	}
	if task := s.finished("1"); len(task.Attempts) != 1 {
		s.t.Errorf("%d attempts", len(task.Attempts))
	}
}

// TestInside: input from a pipe; a server in a task like a notebook's, reached by exec; a
// command ends with its caller, and only its owner can use it.
func TestInside(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--idle-stop", "0s")
	s.start()
	s.inside()
}

func (s *server) inside() {
	r := s.piped("one\ntwo", "run", "-i", "--mem", "1G", tool, "input", "exit:3")
	if r.code != 3 || r.out != "got one\ngot two\nended\n" {
		s.t.Errorf("input from a pipe: %v", r)
	}
	notebook := s.submit("--mem", "1G", "-e", "TOKEN=secret", tool, "notebook:127.0.0.1:8888")
	s.until(notebook, "its server", func(*api.Task) bool { out, _ := s.lines(notebook); return len(out) == 1 })
	r = s.carma("exec", "-e", "OWN=1", notebook, "/tool", "get:127.0.0.1:8888", "env:TOKEN", "env:OWN", "exit:9")
	if r.code != 9 || r.out != "a notebook\nTOKEN=secret\nOWN=1\n" {
		s.t.Errorf("exec: %v", r)
	}
	if r = s.piped("x", "exec", "-i", "@", "/tool", "input"); r.code != 0 || r.out != "got x\nended\n" {
		s.t.Errorf("exec -i: %v", r)
	}
	if r = s.carma("exec", notebook, "/no/such"); r.code != 126 && r.code != 127 {
		s.t.Errorf("no such program: %v", r)
	}
	w := s.window(20, 60, "exec", "-it", notebook, "/tool", "ask:ready? ", "terminal", "resized:25", "block:0")
	w.shows("ready? ")
	w.types("y\n")
	w.shows("got y")
	w.shows("20 x 60")
	w.resize(25, 61)
	w.shows("25 x 61")
	w.types("\x03")                                                       // it is the command's: SIGINT ends that
	if code := w.exited(); code != 2 && code != 128+int(syscall.SIGINT) { // as its engine has it
		s.t.Errorf("after Ctrl-C: exit code %d", code)
	}
	s.hungUp(notebook)
	s.ok("stop", notebook)
}

// hungUp checks that a command whose caller is killed gets SIGHUP, and that one whose
// daemon is killed continues, however much it prints.
func (s *server) hungUp(notebook string) {
	s.t.Helper()
	gone := s.begin(nil, "exec", notebook, "/tool", "out:here", "gate:/never")
	gone.await(&gone.out, "here\n")
	gone.signal(syscall.SIGKILL)
	gone.wait()
	eventually(s.t, "the command ends", func() bool { return !s.runs("gate:/never") })

	left := s.begin(nil, "exec", notebook, "/tool", "out:here", "gate:/never")
	left.await(&left.out, "here\n")
	s.kill()
	left.wait()
	s.start()
	s.running(notebook)
	if !s.runs("gate:/never") {
		s.t.Error("the command ended with its daemon")
	}
}

// runs reports whether a process of this machine has an argument.
func (s *server) runs(arg string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(lines, func(path string) bool {
		line, _ := os.ReadFile(path)
		return strings.HasPrefix(string(line), "/tool\x00") && slices.Contains(strings.Split(string(line), "\x00"), arg)
	})
}
