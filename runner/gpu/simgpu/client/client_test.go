package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/internal/units"

	"carma/runner/gpu/simgpu/wire"
)

// script is a server whose messages the test sends and receives itself.
type script struct {
	t testing.TB
	*net.UnixListener
}

func newScript(t testing.TB, dir string) script {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, wire.Socket), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return script{t, l}
}

type peer struct {
	t testing.TB
	net.Conn
	read func() wire.Request
}

func (s script) accept() peer {
	c, err := s.Accept()
	if err != nil {
		s.t.Error(err)
	}
	s.t.Cleanup(func() { c.Close() })
	lines := wire.Lines(c)
	return peer{s.t, c, func() (m wire.Request) {
		if !lines.Scan() {
			s.t.Error("the client has hung up")
		} else if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			s.t.Error(err)
		}
		return m
	}}
}

func (p peer) say(replies ...wire.Reply) {
	for _, r := range replies {
		if err := wire.Write(p, r); err != nil {
			p.t.Error(err)
		}
	}
}

func (p peer) welcome(pace float64) {
	p.say(wire.Reply{Op: wire.Welcome, GPUs: []wire.GPU{{UUID: "GPU-a"}}}, wire.Reply{Op: wire.Pace, Pace: pace, Speed: 1})
}

func folder(t testing.TB) string {
	dir, err := os.MkdirTemp("", "client") // short: a socket's path is at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func options(dir string) Options {
	return Options{Dir: dir, Task: 5, Attempt: 2, GPUs: []string{"0"}, Loads: []wire.Load{{SMACT: 0.5}}, Window: 10 * time.Second}
}

// connected dials the script and returns both ends, greeted.
func connected(t testing.TB, s script, o Options) (*Client, peer) {
	t.Helper()
	var p peer
	greeted := make(chan struct{})
	go func() {
		defer close(greeted)
		p = s.accept()
		p.read()
		p.welcome(1)
	}()
	c, err := Dial(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	<-greeted
	t.Cleanup(c.Close)
	return c, p
}

func TestNoServer(t *testing.T) {
	o := options(folder(t))
	o.Window = 20 * time.Millisecond
	_, err := Dial(context.Background(), o)
	if !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), filepath.Join(o.Dir, wire.Socket)) {
		t.Errorf("%v", err)
	}
}

func TestRefused(t *testing.T) {
	for _, answer := range []wire.Reply{
		{Op: wire.Error, Message: "not you"},
		{Op: wire.Pace, Pace: 1}, // without welcome
	} {
		dir := folder(t)
		s := newScript(t, dir)
		go func() { s.accept().say(answer) }()
		var refused *RefusedError
		if _, err := Dial(context.Background(), options(dir)); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", answer, err)
		}
	}
}

// TestStuckServer: a server that accepts the connection and then says nothing delays only
// allocations. Later it gets the missed messages.
func TestStuckServer(t *testing.T) {
	dir := folder(t)
	s := newScript(t, dir)
	c, first := connected(t, s, options(dir))
	done := make(chan error, 2)
	go func() { done <- c.Alloc(context.Background(), 0, 3*units.GiB) }()
	first.say(wire.Reply{Op: wire.OK, ID: first.read().ID})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	first.Close()
	stuck := s.accept()
	hello := stuck.read()
	if hello.Holds["GPU-a"] != 3*units.GiB || hello.GPUs[0] != "GPU-a" || hello.Task != 5 || hello.Attempt != 2 {
		t.Errorf("hello %+v", hello)
	}
	// Between hello and welcome:
	if c.Pace().Training != 1 {
		t.Errorf("pace %+v", c.Pace())
	}
	c.Free(0, units.GiB)
	c.SetLoads([]wire.Load{{SMACT: 0.25}})
	go func() { done <- c.Alloc(context.Background(), 0, units.MiB) }()
	for waiting := false; !waiting; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		waiting = c.call != nil
		c.mu.Unlock()
	}
	stuck.welcome(7)
	if m := stuck.read(); m.Op != wire.Loads || m.Loads[0].SMACT != 0.25 {
		t.Errorf("first %+v", m)
	}
	if m := stuck.read(); m.Op != wire.Free || m.Bytes != units.GiB {
		t.Errorf("then %+v", m)
	}
	m := stuck.read()
	if m.Op != wire.Alloc || m.Bytes != units.MiB {
		t.Errorf("then %+v", m)
	}
	stuck.say(wire.Reply{Op: wire.OK, ID: 999}, wire.Reply{Op: wire.OK, ID: m.ID}, wire.Reply{Op: wire.OK, ID: m.ID})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c.Held(0) != 2*units.GiB+units.MiB || c.Pace().Training != 7 {
		t.Errorf("holds %v at %+v", c.Held(0), c.Pace())
	}
}

func TestAllocEndsWithItsContext(t *testing.T) {
	dir := folder(t)
	c, _ := connected(t, newScript(t, dir), options(dir))
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	if err := c.Alloc(ctx, 0, units.GiB); !errors.Is(err, why) || c.Held(0) != 0 {
		t.Errorf("%v, holds %v", err, c.Held(0))
	}
}

// TestServerOfAnotherMind: a server that refuses the client after a restart is asked again;
// the task continues.
func TestServerOfAnotherMind(t *testing.T) {
	dir := folder(t)
	s := newScript(t, dir)
	c, first := connected(t, s, options(dir))
	first.Close()
	other := s.accept()
	other.say(wire.Reply{Op: wire.Error, Message: "who?"})
	other.Close()
	third := s.accept()
	third.read()
	third.welcome(3)
	for c.Pace().Training != 3 {
		<-c.Changed()
	}
}

// TestSuspended: the server's state of the process applies at once at any pace, and the client
// reports it to the next server.
func TestSuspended(t *testing.T) {
	dir := folder(t)
	s := newScript(t, dir)
	c, first := connected(t, s, options(dir))
	at := map[string]string{"GPU-a": "GPU-b"}
	first.say(wire.Reply{Op: wire.State, ID: 7, ProcessState: wire.Checkpointed, At: at}, wire.Reply{Op: wire.Pace, Pace: 9, Speed: 3})
	if m := first.read(); m.Op != wire.Done || m.ID != 7 {
		t.Errorf("answer %+v", m)
	}
	for c.Pace().Speed != 3 {
		<-c.Changed()
	}
	before := c.Passed()
	time.Sleep(time.Millisecond)
	if p, now := c.Pace(), c.Passed(); p.Training != 0 || now.Training != before.Training || before.Training <= 0 || now.Clock <= before.Clock {
		t.Errorf("at %+v, passed %+v, then %+v", p, before, now)
	}
	first.Close()
	second := s.accept()
	if m := second.read(); m.ProcessState != wire.Checkpointed || m.At["GPU-a"] != "GPU-b" || m.GPUs[0] != "GPU-a" {
		t.Errorf("hello %+v", m)
	}
	second.welcome(5)
	second.say(wire.Reply{Op: wire.State, ID: 1})
	for c.Pace().Training != 5 {
		<-c.Changed()
	}
	if c.Passed().Training <= before.Training {
		t.Error("it does not train")
	}
}
