package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
)

// program is a container's program: it prints what it is sent, in capitals, and its size.
type program struct {
	containers.Driver

	mu      sync.Mutex
	current *session
	ended   bool
}

type session struct {
	containers.Session
	p      *program
	out    chan string
	closed chan struct{}
	once   sync.Once
	input  chan struct{} // closed when the input has ended
}

func (p *program) Attach(context.Context, string) (containers.Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, containers.ErrNotFound
	}
	p.current = &session{p: p, out: make(chan string, 16), closed: make(chan struct{}), input: make(chan struct{})}
	return p.current, nil
}

func (p *program) Exec(context.Context, string, containers.Command) (containers.ExecSession, error) {
	return nil, containers.ErrNotFound
}

func (p *program) now() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

func (s *session) Copy(stdout, _ io.Writer) error {
	for {
		select {
		case text := <-s.out:
			if _, err := io.WriteString(stdout, text); err != nil {
				return err
			}
		case <-s.closed:
			return io.EOF
		}
	}
}

func (s *session) Write(b []byte) (int, error) {
	s.out <- strings.ToUpper(string(b))
	return len(b), nil
}

func (s *session) CloseWrite() error { s.out <- "END"; close(s.input); return nil }

func (s *session) Resize(_ context.Context, to containers.Size) error {
	s.out <- fmt.Sprintf("%d x %d;", to.Rows, to.Cols)
	return nil
}

func (s *session) Close() error { s.once.Do(func() { close(s.closed) }); return nil }

// open registers the program of task 1 in a registry.
func open(t *testing.T, r *Registry, p *program, terminal bool, touch func(model.TerminalInput)) (c *Console, end func()) {
	t.Helper()
	end = r.Open(t.Context(), Options{
		Key: gpu.AttemptKey{Task: 1, Attempt: 2}, ID: "id", Terminal: terminal, Input: true,
		Driver: p, Clock: clock.New(1), Log: zerolog.Nop(), Touch: touch,
	})
	c = r.Wait(t.Context(), 1, 2, time.Minute)
	if c == nil {
		t.Fatal("no console")
	}
	return c, end
}

// attach attaches a terminal, and returns its side of the connection.
func attach(t *testing.T, c *Console) *api.Terminal {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Serve(t.Context(), api.NewTerminal(theirs), func() bool { return false })
		theirs.Close()
	}()
	t.Cleanup(func() { ours.Close(); <-done })
	return api.NewTerminal(ours)
}

// reads reads frames until their output contains a text, or there is a frame of a kind.
func reads(t *testing.T, from *api.Terminal, text string, kind api.FrameKind) string {
	t.Helper()
	var all bytes.Buffer
	for {
		f, err := from.Read()
		if err != nil {
			t.Fatalf("%v after %q, want %q", err, all.String(), text)
		}
		if all.Write(f.Data); f.Kind == kind || text != "" && strings.Contains(all.String(), text) {
			return all.String()
		}
	}
}

// TestServe checks input, size and output of two terminals, that the second one gets what
// was shown before, and that both learn of the program's end.
func TestServe(t *testing.T) {
	var touched []model.TerminalInput
	r, p := New(), &program{}
	c, end := open(t, r, p, true, func(ev model.TerminalInput) { touched = append(touched, ev) })
	if c.Key().Task != 1 || c.ID() != "id" || !c.Talks() {
		t.Errorf("%+v, %s, talks %v", c.Key(), c.ID(), c.Talks())
	}
	one := attach(t, c)
	size, _ := json.Marshal(api.TerminalSize{Rows: 24, Cols: 80})
	for _, f := range []api.Frame{{Kind: api.FrameSize, Data: size}, {Kind: api.FrameInput, Data: []byte("hello")}} {
		if err := one.Write(f.Kind, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if got := reads(t, one, "HELLO", 0); got != "24 x 79;24 x 80;HELLO" { // a narrower terminal first: programs draw again
		t.Errorf("the first terminal shows %q", got)
	}
	two := attach(t, c)
	reads(t, two, "HELLO", 0)
	r.Say(1, "a line of carma's")
	r.Say(9, "nobody is there")
	for _, each := range []*api.Terminal{one, two} {
		reads(t, each, "carma: a line of carma's\r\n", 0)
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.now().Close()
	for _, each := range []*api.Terminal{one, two} {
		reads(t, each, "", api.FrameExit)
	}
	if len(touched) != 1 || touched[0].Task != 1 {
		t.Errorf("input is reported as %+v, want once", touched)
	}
	if end(); r.Wait(t.Context(), 1, 2, time.Millisecond) != nil {
		t.Error("the attempt has ended, and its console is there")
	}
}

// TestConnectionIsRestored checks that a broken connection to the program is made again.
func TestConnectionIsRestored(t *testing.T) {
	r, p := New(), &program{}
	c, end := open(t, r, p, true, func(model.TerminalInput) {})
	defer end()
	term := attach(t, c)
	first := p.now()
	first.Close()
	for until := time.Now().Add(time.Minute); p.now() == first; time.Sleep(time.Millisecond) { // what is typed before is lost
		if time.Now().After(until) {
			t.Fatal("the connection is not made again")
		}
	}
	if err := term.Write(api.FrameInput, []byte("again")); err != nil {
		t.Fatal(err)
	}
	reads(t, term, "AGAIN", 0)
}

// TestInputEnds checks that without a terminal the input ends with the caller, and that the
// output is not shown: it is in the log.
func TestInputEnds(t *testing.T) {
	r, p := New(), &program{}
	c, end := open(t, r, p, false, func(model.TerminalInput) {})
	defer end()
	s := p.now()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Serve(t.Context(), api.NewTerminal(theirs), func() bool { return false })
	}()
	ours.Close()
	<-done
	select {
	case <-s.input:
	case <-time.After(time.Minute):
		t.Error("the caller has left, and the program still waits for input")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) > 0 {
		t.Errorf("output without a terminal is kept: %q", c.recent)
	}
}

// TestWait checks that a console of another attempt is not taken, and that a later one is
// waited for.
func TestWait(t *testing.T) {
	r := New()
	r.set(1, &Console{key: gpu.AttemptKey{Task: 1, Attempt: 1}})
	if r.Wait(t.Context(), 1, 2, time.Millisecond) != nil {
		t.Error("the console of an earlier attempt is taken")
	}
	go r.set(1, &Console{key: gpu.AttemptKey{Task: 1, Attempt: 2}})
	if r.Wait(t.Context(), 1, 2, time.Minute) == nil {
		t.Error("the console did not appear")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r.Wait(ctx, 2, 1, time.Minute) != nil {
		t.Error("a caller who has left gets a console")
	}
}

// TestRecent checks that a new terminal gets the end of the output from a whole line on.
func TestRecent(t *testing.T) {
	c := &Console{tty: true, viewers: map[*viewer]bool{}}
	line := strings.Repeat("x", 99) + "\n"
	for range 4 * recentBytes / len(line) {
		if _, err := c.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	v, seen := c.view()
	got := <-v.output
	if !seen || len(got) > recentBytes || len(got) < recentBytes-len(line) || !slices.Equal(got[:len(line)], []byte(line)) {
		t.Errorf("seen %v, %d bytes, from %.20q", seen, len(got), got)
	}
	c.over = true
	if v, _ := c.view(); v != nil {
		t.Error("the program has ended, and a terminal is attached")
	}
}
