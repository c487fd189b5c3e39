package relay

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listen starts a host in a folder whose path is too long for a socket's address.
func listen(t *testing.T, tty bool) (*Host, string) {
	t.Helper()
	dir := t.TempDir() + "/" + strings.Repeat("long", 30)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(InputPath(dir), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := Listen(dir, tty)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h, dir
}

func dial(t *testing.T, dir string) *Conn {
	t.Helper()
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// copied collects what a session has printed when it ends.
type copied struct {
	out, errs bytes.Buffer
	over      chan error
}

func copying(c *Conn) *copied {
	s := &copied{over: make(chan error, 1)}
	go func() { s.over <- c.Copy(&s.out, &s.errs) }()
	return s
}

func (s *copied) want(t *testing.T, out, errs string) {
	t.Helper()
	if err := <-s.over; err != nil || s.out.String() != out || s.errs.String() != errs {
		t.Errorf("it showed %.60q and %.60q, %v; want %.60q and %.60q", s.out.String(), s.errs.String(), err, out, errs)
	}
}

// TestFirstSession checks that the first session gets all output, and a later one only the
// output from then on.
func TestFirstSession(t *testing.T) {
	h, dir := listen(t, false)
	write(t, h.Output(1), "before ")
	write(t, h.Output(2), "oops")
	first := dial(t, dir)
	<-h.joined
	one := copying(first)
	write(t, h.Output(1), "between ")
	second := dial(t, dir)
	two := copying(second)
	h.await(t, 2)
	long := strings.Repeat("0123456789", maxFrame/5) // two frames
	write(t, h.Output(1), long)
	h.Close()
	one.want(t, "before between "+long, "oops")
	two.want(t, long, "")
	if _, err := Dial(dir); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a session after the end: %v", err)
	}
}

// await waits until a number of sessions get output.
func (h *Host) await(t *testing.T, n int) {
	t.Helper()
	for t.Context().Err() == nil {
		h.mu.Lock()
		got := 0
		for _, joined := range h.sessions {
			if joined {
				got++
			}
		}
		h.mu.Unlock()
		if got == n {
			return
		}
	}
	t.Fatalf("no %d sessions", n)
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// TestNobody checks that a program without a session continues for any amount of output. A
// session that comes later gets the latest output.
func TestNobody(t *testing.T) {
	h, dir := listen(t, true)
	h.waited = true // the first session is late
	for range 5 {
		write(t, h.Output(1), strings.Repeat("x", headBytes/2))
	}
	s := copying(dial(t, dir))
	h.await(t, 1)
	write(t, h.Output(1), "y")
	h.Close()
	if err := <-s.over; err != nil || s.out.Len() > headBytes+1 || !strings.HasSuffix(s.out.String(), "xy") {
		t.Errorf("%d bytes, %v", s.out.Len(), err)
	}
}

// TestWaitsForFirst: a program that has printed too much to keep waits for its first
// session, which gets all.
func TestWaitsForFirst(t *testing.T) {
	h, dir := listen(t, true)
	write(t, h.Output(1), strings.Repeat("x", headBytes))
	go func() { write(t, h.Output(1), "y"); h.Close() }()
	s := copying(dial(t, dir))
	if err := <-s.over; err != nil || s.out.String() != strings.Repeat("x", headBytes)+"y" {
		t.Errorf("%d bytes, %v", s.out.Len(), err)
	}
}

// TestInput checks that an input without a terminal ends with its session or when the session
// closes it. The input of a terminal does not end.
func TestInput(t *testing.T) {
	for name, leave := range map[string]func(*Conn){
		"ended":  func(c *Conn) { _ = c.CloseWrite() },
		"closed": func(c *Conn) { _ = c.Close() },
	} {
		h, dir := listen(t, false)
		program, err := os.Open(InputPath(dir))
		if err != nil {
			t.Fatal(err)
		}
		stranger, err := Dial(dir) // it says hello, but nothing else
		if err != nil {
			t.Fatal(err)
		}
		c := dial(t, dir)
		go func() {
			write(t, c, "one ")
			write(t, c, strings.Repeat("x", 300_000)) // more than the pipe takes
			leave(c)
		}()
		got, err := io.ReadAll(program)
		if err != nil || string(got) != "one "+strings.Repeat("x", 300_000) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		h.Close()
		_ = stranger.Close()
	}
	h, dir := listen(t, true)
	program, err := os.OpenFile(InputPath(dir), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		c := dial(t, dir)
		write(t, c, text)
		_ = c.CloseWrite()
		_ = c.Close()
		got := make([]byte, len(text))
		if _, err := io.ReadFull(program, got); err != nil || string(got) != text {
			t.Fatalf("the terminal got %q, want %q: %v", got, text, err)
		}
	}
	h.Close()
}

// TestStuck: a session that reads no output gets no further output, but can still send input.
// The others get all.
func TestStuck(t *testing.T) {
	h, dir := listen(t, true)
	h.patience = time.Millisecond
	stuck := dial(t, dir)
	h.await(t, 1)
	text := strings.Repeat("x", 8<<20) // more than the connection holds
	write(t, h.Output(1), text)
	h.await(t, 0)
	h.patience = unseenFor
	good := copying(dial(t, dir))
	h.await(t, 1)
	write(t, h.Output(1), text)
	program, err := os.Open(InputPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	write(t, stuck, "ls")
	got := make([]byte, 2)
	if _, err := io.ReadFull(program, got); err != nil || string(got) != "ls" {
		t.Errorf("the program got %q, %v", got, err)
	}
	if err := stuck.Copy(io.Discard, io.Discard); err == nil {
		t.Error("a session that was cut off looks ended")
	}
	h.Close()
	good.want(t, text, "")
}

// TestBroken: a session whose host disappears without a message is broken, not ended. A
// peer that sends anything else than hello is no session.
func TestBroken(t *testing.T) {
	h, dir := listen(t, true)
	s := copying(dial(t, dir))
	h.await(t, 1)
	h.mu.Lock()
	for c := range h.sessions {
		_ = c.Close()
	}
	h.mu.Unlock()
	if err := <-s.over; err == nil {
		t.Error("a broken connection looks like the end")
	}
	h.await(t, 0)
	c := dial(t, dir)
	_ = c.send(input, make([]byte, maxFrame+1)) // the host may not read all of it
	if err := copying(c).over; <-err == nil {
		t.Error("too large a frame is taken")
	}
}
