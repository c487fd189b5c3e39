package containerstest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"testing"

	"carma/containers"
)

// exec runs a command to its end.
func (s *suite) exec(id string, c containers.Command, input string) (stdout, stderr string, code int) {
	s.Helper()
	session, err := s.terminals().Exec(s.ctx, id, c)
	if err != nil {
		s.Fatalf("exec: %v", err)
	}
	defer session.Close()
	if c.Stdin {
		s.types(session, input)
		if err := session.CloseWrite(); err != nil {
			s.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if err := session.Copy(&out, &errs); err != nil {
		s.Fatalf("copy: %v", err)
	}
	if code, err = session.Wait(s.ctx); err != nil {
		s.Fatalf("wait: %v", err)
	}
	return out.String(), errs.String(), code
}

// testExec checks that a command has the user, environment, folder and rights of the
// container's program.
func testExec(t *testing.T, s *suite) {
	s.terminals()
	// The rights that the kernel grants: user and groups, capabilities, limits, control
	// groups.
	rights := []string{"user", "look:groups", "privileges", "read:/proc/self/limits", "read:/proc/self/cgroup", "devices"}
	asked := containers.ContainerOptions{Ulimits: []string{"core=512:600"}, Devices: []string{"/dev/null:/dev/own:r"}}
	all := s.supports(asked) // else it is a cluster, which also decides on oom_score_adj
	if all {
		rights = append(rights, "read:/proc/self/oom_score_adj", "look:node:/dev/own")
	}
	spec := s.spec(append(slices.Clone(rights), "out:up", "block:0")...)
	spec.Env, spec.User = []string{"FROM=spec"}, "1001:1002"
	if all {
		spec.OOMScore, spec.ContainerOptions = 321, asked
	}
	spec.NoNewPrivileges, spec.Groups = true, []string{"4242"}
	id := s.startSpec(spec)
	s.follow(id).until("up")
	run := func(c containers.Command) (string, string, int) { return s.exec(id, c, "") }
	own, want := containers.Command{Env: []string{"OWN=1"}}, "OWN=1"
	if s.img.Lacks.Shell {
		own, want = containers.Command{}, "OWN="
		for what, c := range map[string]containers.Command{"environment": {Env: []string{"OWN=1"}}, "folder": {WorkDir: "/"}} {
			c.Args = []string{ToolPath}
			_, err := s.terminals().Exec(s.ctx, id, c)
			s.failsWith("a command with its own "+what, err, containers.ErrUnsupported)
		}
	}
	own.Args = []string{ToolPath, "user", "dir", "env:FROM", "env:IMAGE", "env:OWN", "terminal", "err:oops", "exit:7"}
	out, errs, code := run(own)
	if want := "1001:1002\n/work\nFROM=spec\nIMAGE=yes\n" + want + "\nno terminal\n"; out != want || errs != "oops\n" || code != 7 {
		t.Errorf("it printed %q and %q, and exited with %d", out, errs, code)
	}
	if !s.img.Lacks.Shell {
		if out, _, _ := run(containers.Command{Args: []string{ToolPath, "dir", "input"}, WorkDir: "/"}); out != "/\nended\n" {
			t.Errorf("in another folder: %q", out)
		}
	}
	if out, _, _ := s.exec(id, containers.Command{Args: []string{ToolPath, "input"}, Stdin: true}, "a\nb"); out != "got a\ngot b\nended\n" {
		t.Errorf("with input: %q", out)
	}
	long := strings.Repeat("0123456789abcde\n", 20_000)
	if out, _, _ := s.exec(id, containers.Command{Args: []string{ToolPath, "lines:50000"}}, ""); strings.Count(out, "\n") != 50_000 {
		t.Errorf("%d lines of long output", strings.Count(out, "\n"))
	}
	if out, _, _ := s.exec(id, containers.Command{Args: []string{ToolPath, "count-input"}, Stdin: true}, long); out != "20000\n" {
		t.Errorf("long input: %q", out)
	}
	mine, _, _ := run(containers.Command{Args: append([]string{ToolPath}, rights...)})
	theirs := s.logs(id, time.Time{}, false).lines(containers.Stdout)
	s.equal("its rights", strings.Split(mine+"up", "\n"), theirs)
}

// testExecClosed checks that a command continues after its session is closed, even if it
// prints much.
func testExecClosed(t *testing.T, s *suite) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	spec := s.spec("gate:/shared/done", "exit:3")
	spec.Mounts = []containers.Mount{{Source: dir, Target: "/shared"}}
	id := s.startSpec(spec)
	session, err := s.terminals().Exec(s.ctx, id, containers.Command{Args: []string{ToolPath, "count:200000", "write:/shared/done"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = session.Close()
	if exit := s.wait(id); exit.Code != 3 {
		t.Errorf("exit = %+v, want 3", exit)
	}
}

// testExecFails checks commands that cannot be run.
func testExecFails(t *testing.T, s *suite) {
	s.terminals()
	id := s.start("block:0")
	session, err := s.terminals().Exec(s.ctx, id, containers.Command{Args: []string{"/no/such/program"}})
	if err == nil {
		_ = session.Copy(io.Discard, io.Discard)
		code, err := session.Wait(s.ctx)
		if err != nil || code != 126 && code != 127 {
			t.Errorf("code %d, %v, want 126 or 127", code, err)
		}
		_ = session.Close()
	} else if !errors.Is(err, containers.ErrInvalid) {
		t.Errorf("no such program: %v", err)
	}
	if err := s.d.Kill(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	s.wait(id)
	_, err = s.terminals().Exec(s.ctx, id, containers.Command{Args: []string{ToolPath}})
	s.failsWith("exec in one that has ended", err, containers.ErrNotFound)
	_, err = s.terminals().Exec(s.ctx, "no-such-container", containers.Command{Args: []string{ToolPath}})
	s.failsWith("exec in nothing", err, containers.ErrNotFound)
}

// testExecTerminal checks that a command's terminal has its size at once, and that a
// signal ends the command.
func testExecTerminal(t *testing.T, s *suite) {
	s.terminals()
	last := "block:9" // blocks until its signal
	if s.img.Lacks.Shell {
		last = "ask:more? "
	}
	id := s.start("block:0")
	session, err := s.terminals().Exec(s.ctx, id, containers.Command{
		Args: []string{ToolPath, "resized", "ask:go? ", last, "exit:9"}, Stdin: true, TTY: true, Size: containers.Size{Rows: 10, Cols: 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	text, over := newScreenText(), make(chan error, 1)
	go func() { over <- session.Copy(text, text) }()
	s.shows(text, "10 x 20")
	s.shows(text, "go? ")
	s.types(session, "\x10\x11")
	s.types(session, "yes\n")
	s.shows(text, "got")
	s.shows(text, "yes")
	if s.img.Lacks.Shell {
		if err := session.Signal(s.ctx, syscall.SIGTERM); err == nil {
			t.Error("a signal without a shell")
		}
		s.types(session, "on\n")
	} else if err := session.Signal(s.ctx, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.over(over)
	if code, err := session.Wait(s.ctx); err != nil || code != 9 {
		t.Errorf("code %d, %v, want 9", code, err)
	}
	if err := session.Signal(s.ctx, syscall.SIGKILL); err != nil {
		t.Errorf("signal after the end: %v", err)
	}
	if got := s.state(id); got != containers.StateRunning {
		t.Errorf("the container is %s", got)
	}
}
