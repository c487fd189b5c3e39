package containerstest

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"testing"

	"carma/containers"
)

// screenText collects a session's output and lets tests wait for it.
type screenText struct {
	mu   sync.Mutex
	text []byte
	more chan struct{} // closed and replaced when output was added
}

func newScreenText() *screenText { return &screenText{more: make(chan struct{})} }

func (w *screenText) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	close(w.more)
	w.more = make(chan struct{})
	return len(p), nil
}

func (w *screenText) now() (string, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text), w.more
}

// shows waits until the output contains a text.
func (s *suite) shows(w *screenText, want string) {
	s.Helper()
	for {
		text, more := w.now()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-more:
		case <-s.ctx.Done():
			s.Fatalf("the output has no %q: %q", want, text)
		}
	}
}

// terminals returns the driver as a Terminals, or skips the test if it is none.
func (s *suite) terminals() containers.Terminals {
	s.Helper()
	t, ok := s.d.(containers.Terminals)
	if !ok {
		s.Skip("no terminals")
	}
	return t
}

// attached connects to a container and copies its output until it ends.
func (s *suite) attached(id string) (containers.Session, *screenText, <-chan error) {
	s.Helper()
	session, err := s.terminals().Attach(s.ctx, id)
	if err != nil {
		s.Fatalf("attach: %v", err)
	}
	s.Cleanup(func() { _ = session.Close() })
	text, over := newScreenText(), make(chan error, 1)
	go func() { over <- session.Copy(text, text) }()
	return session, text, over
}

func (s *suite) over(ended <-chan error) {
	s.Helper()
	select {
	case err := <-ended:
		if err != nil {
			s.Errorf("the session broke: %v", err)
		}
	case <-s.ctx.Done():
		s.Fatal("the session does not end")
	}
}

func (s *suite) types(w io.Writer, text string) {
	s.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		s.Fatalf("input: %v", err)
	}
}

// testAttach checks that input without a terminal arrives completely and ends, and that
// the output is also kept in the log.
func testAttach(t *testing.T, s *suite) {
	s.terminals()
	spec := s.spec("input", "terminal", "exit:3")
	spec.Interactive = true
	id := s.create(spec)
	session, text, over := s.attached(id)
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	s.types(session, "one\ntwo\n")
	s.shows(text, "got two")
	s.types(session, "rest")
	if err := session.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if exit := s.wait(id); exit.Code != 3 {
		t.Errorf("exit = %+v, want 3", exit)
	}
	s.over(over)
	want := []string{"got one", "got two", "got rest", "ended", "no terminal"}
	if got, _ := text.now(); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("it showed %q", got)
	}
	if got := s.logs(id, time.Time{}, false).lines(containers.Stdout); !slices.Equal(got, want) {
		t.Errorf("its log: %q", got)
	}
	_, err := s.terminals().Attach(s.ctx, id)
	s.failsWith("attach to one that has ended", err, containers.ErrNotFound)
	_, err = s.terminals().Attach(s.ctx, "no-such-container")
	s.failsWith("attach to nothing", err, containers.ErrNotFound)
}

// testInputEnds checks that an input without a terminal ends when its session is closed.
func testInputEnds(t *testing.T, s *suite) {
	s.terminals()
	spec := s.spec("input", "exit:5")
	spec.Interactive, spec.Init = true, true
	id := s.create(spec)
	session, text, _ := s.attached(id)
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	s.types(session, "one\ntwo")
	s.shows(text, "got one")
	_ = session.Close()
	if exit := s.wait(id); exit.Code != 5 {
		t.Errorf("exit = %+v, want 5", exit)
	}
	s.equal("its log", s.logs(id, time.Time{}, false).lines(containers.Stdout), []string{"got one", "got two", "ended"})
}

// testInputEarly checks input that is sent, and ended, before the program runs.
func testInputEarly(t *testing.T, s *suite) {
	s.terminals()
	spec := s.spec("input", "err:oops", "exit:0")
	spec.Interactive = true
	spec.User, spec.NoNewPrivileges = "1001:1002", true
	id := s.create(spec)
	session, text, over := s.attached(id)
	given := make(chan error, 1)
	go func() { // Write may wait for the program
		_, err := io.WriteString(session, "a\nb\n")
		given <- errors.Join(err, session.CloseWrite())
	}()
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := <-given; err != nil {
		t.Fatalf("input: %v", err)
	}
	if exit := s.wait(id); exit.Code != 0 {
		t.Errorf("exit = %+v, want 0", exit)
	}
	s.over(over)
	got, _ := text.now() // lines of two streams, in any order relative to each other
	if rest := strings.Replace(got, "oops\n", "", 1); rest == got || rest != "got a\ngot b\nended\n" {
		t.Errorf("it showed %q", got)
	}
}

// testNoInput checks that without Stdin and TTY the input ends at once.
func testNoInput(t *testing.T, s *suite) {
	if got := s.output(s.spec("input", "terminal")); !slices.Equal(got, []string{"ended", "no terminal"}) {
		t.Errorf("output %q", got)
	}
}

// testTerminal checks that a prompt arrives at once, the program sees size changes, a
// session can be closed and opened again, also by another driver, and the output is kept.
func testTerminal(t *testing.T, s *suite) {
	s.terminals()
	later := s.newDriver(t)
	t.Cleanup(func() { _ = later.Close() })
	spec := s.spec("ask:your name? ", "resized", "ask:more? ", "env:TERM", "exit:4")
	spec.TTY, spec.Init = true, true
	id := s.create(spec)
	session, text, _ := s.attached(id)
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	if !s.img.Lacks.Prompt {
		s.shows(text, "your name? ")
	}
	s.types(session, "\x10\x11") // keys that detach from other tools are passed to the program
	s.types(session, "eve\n")
	s.shows(text, "got")
	s.shows(text, "eve")
	if err := session.Resize(s.ctx, containers.Size{Rows: 33, Cols: 101}); err != nil {
		t.Fatal(err)
	}
	s.shows(text, "33 x 101")
	s.shows(text, "more? ")
	_ = session.Close()
	s.d = later
	session, text, over := s.attached(id)
	if err := session.CloseWrite(); err != nil { // a terminal has no end
		t.Fatal(err)
	}
	s.types(session, "again\n")
	s.shows(text, "got again")
	if exit := s.wait(id); exit.Code != 4 {
		t.Errorf("exit = %+v, want 4", exit)
	}
	s.over(over)
	if err := session.Resize(s.ctx, containers.Size{Rows: 1, Cols: 1}); err != nil {
		t.Errorf("resize after the end: %v", err)
	}
	kept := strings.Join(s.logs(id, time.Time{}, false).lines(containers.Stdout), "\n")
	for _, want := range []string{"eve", "33 x 101", "got again", "TERM=xterm"} {
		if !strings.Contains(kept, want) {
			t.Errorf("its log has no %q: %q", want, kept)
		}
	}
}
