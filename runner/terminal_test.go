package runner

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/request"
)

// shell is a program that answers each line of its input, and ends with "exit N".
func shell(ctx context.Context, p *containerstest.Process) int {
	fmt.Fprint(p.Stdout, "$ ")
	lines := bufio.NewScanner(p.Stdin())
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if n, ok := strings.CutPrefix(line, "exit "); ok {
			code, _ := strconv.Atoi(n)
			return code
		}
		if line == "size" {
			size, _, _ := p.Size()
			line = fmt.Sprintf("%d x %d", size.Rows, size.Cols)
		}
		fmt.Fprintf(p.Stdout, "said %s\r\n$ ", line)
	}
	p.Out("the input has ended")
	if len(p.Spec.Command) > 0 && p.Spec.Command[0] == "stay" {
		<-ctx.Done()
	}
	return 0
}

// screen reads the output of a terminal.
type screen struct {
	*api.Terminal
	g    *rig
	text chan string // the output so far
	exit chan string // exit code of the command, or "end" after the attempt's end
	note chan string
}

func (g *rig) screen(t *api.Terminal, err error) *screen {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
	s := &screen{t, g, make(chan string, 1000), make(chan string, 1), make(chan string, 1)}
	g.t.Cleanup(func() { _ = t.Close() })
	go func() {
		defer close(s.text)
		all := ""
		for {
			f, err := t.Read()
			if err != nil {
				return
			}
			switch f.Kind {
			case api.FrameStdout, api.FrameStderr:
				all += string(f.Data)
				s.text <- all
			case api.FrameExit:
				s.exit <- string(f.Data)
			case api.FrameNote:
				s.note <- string(f.Data)
			}
		}
	}()
	return s
}

// shows waits for a text on the screen.
func (s *screen) shows(wants ...string) {
	s.g.t.Helper()
	last, limit := "", time.After(stepTimeout)
	lacks := func(want string) bool { return !strings.Contains(last, want) }
	for slices.ContainsFunc(wants, lacks) {
		select {
		case text, ok := <-s.text:
			if !ok {
				s.g.t.Fatalf("the connection ended without %q: %q", wants, last)
			}
			last = text
		case <-limit:
			s.g.t.Fatalf("no %q: %q", wants, last)
		}
	}
}

func (s *screen) types(text string) {
	s.g.t.Helper()
	if err := s.Write(api.FrameInput, []byte(text)); err != nil {
		s.g.t.Fatal(err)
	}
}

func (s *screen) ends(want string) {
	s.g.t.Helper()
	select {
	case got := <-s.exit:
		if got != want {
			s.g.t.Errorf("it ended with %q, want %q", got, want)
		}
	case <-time.After(stepTimeout):
		s.g.t.Error("it does not end")
	}
}

// TestTerminal: a task with a terminal shows its prompt to attached users, takes input,
// continues when they leave and when the daemon restarts, and its output is kept.
func TestTerminal(t *testing.T) {
	g := newRig(t)
	g.script("sh", shell)
	ref := g.run(api.Submit{Image: "sh", Mem: int64(units.GiB), ContainerOptions: api.ContainerOptions{TTY: true, Interactive: true}})
	g.running(ref)
	s := g.screen(g.api.Attach(g.ctx(), ref))
	s.shows("$ ")
	s.types("hello\n")
	s.shows("said hello")
	if err := s.Resize(api.TerminalSize{Rows: 20, Cols: 70}); err != nil {
		t.Fatal(err)
	}
	s.types("size\n")
	s.shows("said 20 x 70")
	other := g.screen(g.api.Attach(g.ctx(), ref))
	other.shows("said hello")
	_ = s.Close()
	other.types("still\n")
	other.shows("said still")
	g.restart()
	s = g.screen(g.api.Attach(g.ctx(), ref))
	s.shows("said still") // as it was kept
	s.types("again\n")
	s.shows("said again")
	s.types("exit 3\n")
	s.ends("")
	if task := g.finished(ref); task.ExitCode == nil || *task.ExitCode != 3 {
		t.Errorf("its code: %v", task.ExitCode)
	}
	if got := strings.Join(g.output(ref), "\n"); !strings.Contains(got, "said hello") || !strings.Contains(got, "said again") || strings.Contains(got, "\r") {
		t.Errorf("its output: %q", got)
	}
}

// TestInput checks that an input without a terminal is passed on completely, and that it also
// ends when its sender disconnects.
func TestInput(t *testing.T) {
	g := newRig(t)
	g.script("sh", shell)
	for name, leave := range map[string]func(*screen){
		"end":  func(s *screen) { _ = s.Write(api.FrameEnd, nil) },
		"gone": func(s *screen) { _ = s.Close() },
	} {
		ref := g.run(api.Submit{Image: "sh", Mem: int64(units.GiB), ContainerOptions: api.ContainerOptions{Interactive: true}})
		g.running(ref)
		s := g.screen(g.api.Attach(g.ctx(), ref))
		s.types("one\ntwo\n")
		leave(s)
		g.finished(ref)
		got := strings.Join(g.output(ref), "\n")
		if name == "end" && !strings.Contains(got, "said two") || !strings.Contains(got, "the input has ended") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestExec checks that a command in a task has its own output, exit code and input, and that it
// ends when its caller disconnects.
func TestExec(t *testing.T) {
	g := newRig(t)
	ended := make(chan string, 1)
	g.engine.AddImage("train", containerstest.Image{Run: untilStopped, Programs: nil, Exec: func(ctx context.Context, p *containerstest.Process) int {
		switch p.Spec.Entrypoint[0] {
		case "wait":
			p.Out("waiting")
			<-ctx.Done()
			ended <- "hung up"
			return 129
		case "cat":
			_, _ = io.Copy(p.Stdout, p.Stdin())
		}
		p.Err("as %s in %s with %s", p.Spec.User, p.Spec.WorkDir, p.Spec.Env[len(p.Spec.Env)-1])
		return 7
	}})
	ref := g.runAs(ann, api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.running(ref)
	s := g.screen(g.api.Exec(g.ctx(), ref, api.ExecRequest{Command: []string{"cat"}, Env: []string{"A=b"}, WorkDir: "/x", Interactive: true}))
	s.types("to and fro")
	if err := s.Write(api.FrameEnd, nil); err != nil {
		t.Fatal(err)
	}
	s.shows("to and fro", "as 20001:20001 in /x with A=b") // two streams
	s.ends("7")
	s = g.screen(g.api.Exec(g.ctx(), ref, api.ExecRequest{Command: []string{"wait"}}))
	s.shows("waiting")
	_ = s.Close()
	select {
	case <-ended:
	case <-time.After(stepTimeout):
		t.Error("the command goes on without its caller")
	}
	s = g.screen(g.api.Exec(g.ctx(), ref, api.ExecRequest{Command: []string{"wait"}}))
	s.shows("waiting")
	if err := s.Write(api.FrameSignal, []byte(strconv.Itoa(int(syscall.SIGINT)))); err != nil {
		t.Fatal(err)
	}
	s.ends("129")
	<-ended
	s = g.screen(g.api.Exec(g.ctx(), ref, api.ExecRequest{Command: []string{"wait"}}))
	s.shows("waiting")
	g.restart() // a command does not delay the daemon's stop
	select {
	case <-ended:
	case <-time.After(stepTimeout):
		t.Error("the command goes on without its daemon")
	}
	g.running(ref)
}

// TestInsideWalls checks that only the owner and admins can run commands in a task or attach to
// it, and only while it runs.
func TestInsideWalls(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.AdminGroup = "lab" })
	g.script("sh", shell)
	g.script("train", untilStopped)
	open := g.runAs(ann, api.Submit{Image: "sh", Mem: int64(units.GiB), ContainerOptions: api.ContainerOptions{TTY: true}, Visibility: access.VisibilityOpen})
	g.running(open)
	for who, ok := range map[*request.Caller]bool{&ann: true, &oper: true, &bob: false} {
		_, err := g.terminals.Exec(g.as(*who), &api.OnTask[api.ExecRequest]{TaskPath: api.TaskPath{Ref: open}, Body: api.ExecRequest{Command: []string{"sh"}}})
		if ok != (err == nil) {
			t.Errorf("%s: %v", who.Name, err)
		}
		if !ok && !strings.Contains(err.Error(), "belongs to ann; you are bob") {
			t.Errorf("%s: %v", who.Name, err)
		}
	}
	blocker := g.runAs(ann, api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.running(blocker)
	waits := g.runAs(ann, api.Submit{Image: "train", Mem: int64(units.GiB), Delay: time.Hour})
	for ref, want := range map[string]string{waits: "does not run: it is held", "nobody": "no task nobody"} {
		if _, err := g.api.Exec(g.ctx(), ref, api.ExecRequest{Command: []string{"ls"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", ref, err, want)
		}
	}
	if _, err := g.api.Attach(g.ctx(), blocker); err == nil || !strings.Contains(err.Error(), "has no terminal and no input") {
		t.Errorf("attach to a task without: %v", err)
	}
	for _, e := range []api.ExecRequest{{Command: []string{""}}, {Command: []string{"ls"}, WorkDir: "x"}, {Command: []string{"ls"}, Env: []string{"=x"}}, {Command: []string{"a\x00b"}}} {
		if _, err := g.api.Exec(g.ctx(), blocker, e); err == nil || !strings.Contains(err.Error(), "write for example") && !strings.Contains(err.Error(), "absolute") && !strings.Contains(err.Error(), "KEY=value") && !strings.Contains(err.Error(), "zero byte") {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// TestIdleTold: an idle task is shown as such, its terminal gets a note, and input ends the
// idle time.
func TestIdleTold(t *testing.T) {
	long(t)
	g := newRig(t, func(g *rig) { g.opt.Mapper.IdleReport = 50 * time.Millisecond })
	g.script("sh", shell)
	g.cards.set(gpu.Sample{UUID: "GPU-a"})
	g.cards.set(gpu.Sample{UUID: "GPU-b"})
	ref := g.run(api.Submit{Image: "sh", Mem: int64(units.GiB), ContainerOptions: api.ContainerOptions{TTY: true}, IdleStop: 2 * time.Second})
	s := g.screen(func() (*api.Terminal, error) { g.running(ref); return g.api.Attach(g.ctx(), ref) }())
	task := g.until(ref, "idle", func(t api.Task) bool { return t.Idle != nil })
	if task.Idle.Since.IsZero() {
		t.Errorf("%+v", task.Idle)
	}
	s.shows("it is stopped in")
	s.ends("")
	if task := g.finished(ref); task.Phase != "failed" || task.ReasonCode != string(model.ReasonIdle) || !strings.Contains(task.Reason, "it did nothing for 2s") {
		t.Errorf("%s: %s (%s)", task.Phase, task.Reason, task.ReasonCode)
	}
}
