//go:build e2e

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/runner/api"
)

// result is the outcome of a command.
type result struct {
	args     []string
	out, err string
	code     int
}

func (r result) String() string {
	return fmt.Sprintf("carma %s: exit code %d\nstdout: %q\nstderr: %q", strings.Join(r.args, " "), r.code, r.out, r.err)
}

// command is a running carma command.
type command struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err stream
	done     chan struct{}
}

// environment returns the environment of every carma process. It hides the configuration of the
// machine and the user.
func environment(socket string) []string {
	return append(os.Environ(), "CARMA_CONFIG=/dev/null", "CARMA_SOCKET="+socket, "TZ=UTC")
}

// begin starts a command. as is the user who runs it, or the server's user if nil.
func (s *server) begin(as *syscall.Credential, args ...string) *command {
	s.t.Helper()
	c := &command{t: s.t, cmd: exec.Command(s.cli, args...), done: make(chan struct{})}
	c.cmd.Env = environment(s.socket)
	c.cmd.Dir = "/"
	if as == nil {
		as = s.who
	}
	if as != nil {
		c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		c.cmd.Env = append(c.cmd.Env, "HOME=/nonexistent")
	}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	if err := c.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.done)
	}()
	s.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.done
	})
	return c
}

// wait waits for the command's end and returns its outcome.
func (c *command) wait() result {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatalf("carma %s does not end; so far %q %q", strings.Join(c.cmd.Args[1:], " "), &c.out, &c.err)
	}
	return result{args: c.cmd.Args[1:], out: c.out.String(), err: c.err.String(), code: c.cmd.ProcessState.ExitCode()}
}

func (c *command) signal(sig os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// carma runs a command to its end.
func (s *server) carma(args ...string) result {
	s.t.Helper()
	return s.begin(nil, args...).wait()
}

// ok runs a command that must succeed and returns its output.
func (s *server) ok(args ...string) string {
	s.t.Helper()
	r := s.carma(args...)
	if r.code != 0 {
		s.t.Fatal(r)
	}
	return r.out
}

// submit runs carma run -d and returns the task's number.
func (s *server) submit(args ...string) string {
	s.t.Helper()
	id := strings.TrimSpace(s.ok(append([]string{"run", "-d"}, args...)...))
	if _, err := strconv.Atoi(id); err != nil {
		s.t.Fatalf("carma run -d printed %q, not a number", id)
	}
	return id
}

// inspect returns the output of carma inspect.
func (s *server) inspect(ref string) api.Task {
	s.t.Helper()
	var list []api.Task
	s.decode(&list, "inspect", ref)
	if len(list) != 1 {
		s.t.Fatalf("carma inspect %s tells of %d tasks", ref, len(list))
	}
	return list[0]
}

// decode runs a command that prints JSON, and decodes that.
func (s *server) decode(into any, args ...string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.ok(args...)), into); err != nil {
		s.t.Fatalf("carma %s: %v", strings.Join(args, " "), err)
	}
}

// lines returns the output of a task, as carma logs prints it.
func (s *server) lines(ref string) (stdout, stderr []string) {
	s.t.Helper()
	r := s.carma("logs", ref)
	if r.code != 0 {
		s.t.Fatal(r)
	}
	return split(r.out), split(r.err)
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// refused checks that a command was refused in the usual form: one line on stderr
// with these words, this exit code, nothing on stdout.
func (r result) refused(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code || r.out != "" || strings.Count(r.err, "\n") != 1 || !strings.HasSuffix(r.err, "\n") {
		t.Errorf("want one line and exit code %d: %v", code, r)
	}
	for _, w := range words {
		if !strings.Contains(r.err, w) {
			t.Errorf("%q is not in the message: %v", w, r)
		}
	}
}

// await waits for words in a stream of the command.
func (c *command) await(s *stream, words string) {
	c.t.Helper()
	s.await(c.t, words, 0, c.done)
}
