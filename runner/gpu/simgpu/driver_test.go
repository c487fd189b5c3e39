package simgpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/gpu/simgpu/client"
	"carma/runner/gpu/simgpu/wire"
	"carma/runner/suspend"
)

// calls makes calls for one process.
type calls struct {
	testing.TB
	s   *Server
	pid int
}

// call returns the code, 0 for success.
func (c calls) call(call suspend.Call, pairs ...suspend.Pair) suspend.Code {
	c.Helper()
	_, err := c.s.Driver().Call(context.Background(), suspend.Request{
		Call: call, PID: c.pid, Pairs: pairs, Wait: 2 * time.Second, Limit: 20 * time.Second,
	})
	return c.code(err)
}

func (c calls) code(err error) suspend.Code {
	c.Helper()
	var e *suspend.CallError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &e) || e.Fault != suspend.Answered:
		c.Fatal(err)
	}
	return e.Code
}

func (c calls) ok(all ...suspend.Call) {
	c.Helper()
	for _, call := range all {
		if code := c.call(call); code != 0 {
			c.Fatalf("%s: %v", call, code)
		}
	}
}

func (c calls) is(want suspend.State) {
	c.Helper()
	state, err := c.s.Driver().Call(context.Background(), suspend.Request{Call: suspend.CallState, PID: c.pid, Limit: 20 * time.Second})
	if err != nil || state != want {
		c.Errorf("%v, %v; want %v", state, err, want)
	}
}

const (
	lock, checkpoint, restore, unlock = suspend.CallLock, suspend.CallCheckpoint, suspend.CallRestore, suspend.CallUnlock
	running, locked, checkpointed     = suspend.Running, suspend.Locked, suspend.Checkpointed
)

// TestDriverStates: each call in each state, with the driver's codes.
func TestDriverStates(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	s := serve(t, dir)
	c := calls{t, s, newTask(t, dir, 1).pid()}
	for _, step := range []struct {
		state suspend.State
		right suspend.Call
	}{{running, lock}, {locked, checkpoint}, {checkpointed, restore}, {locked, unlock}} {
		c.is(step.state)
		for _, call := range []suspend.Call{lock, checkpoint, restore, unlock} {
			if call == step.right || step.state == locked && (call == checkpoint || call == unlock) {
				continue
			}
			if code := c.call(call); code != suspend.CodeIllegalState {
				t.Errorf("%s while %v: %v", call, step.state, code)
			}
			c.is(step.state)
		}
		c.ok(step.right)
	}
	c.is(running)
	if code := c.call("dance"); code != suspend.CodeInvalidValue {
		t.Errorf("an unknown call: %v", code)
	}
	for _, call := range []suspend.Call{suspend.CallState, lock, checkpoint, restore, unlock} {
		if code := (calls{t, s, os.Getpid()}).call(call); code != suspend.CodeNotInitialized {
			t.Errorf("%s of a process without GPU: %v", call, code)
		}
	}
	if marks, _ := os.ReadDir(filepath.Join(dir, marks)); len(marks) != 0 {
		t.Errorf("marks are left: %v", marks)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Driver().Call(ctx, suspend.Request{Call: lock, PID: c.pid}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call without time: %v", err)
	}
	c.is(running)
}

// TestSuspended: a suspended process trains nothing and is not on the GPU. Its allocations
// wait, and its neighbour runs faster.
func TestSuspended(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	p := newTask(t, dir, 30)
	c := calls{t, s, p.pid()}
	neighbour := join(t, dir, client.Options{Task: 2})
	eventually(t, "they slow each other", func() bool { return neighbour.Pace().Training < 1 })
	c.ok(lock)
	before := p.passed()
	if got := sample(t, s); got.Used != 30*units.GiB || len(got.Processes) != 1 {
		t.Errorf("locked: %+v", got)
	}
	eventually(t, "the neighbour is alone", func() bool { return neighbour.Pace().Training == 1 })
	if got := p.ask("later 5"); got != "asked" {
		t.Fatal(got)
	}
	begin := time.Now()
	s.SetSpeed(100) // 30 GiB in 64 ms, and 2 ms
	c.ok(checkpoint)
	if took := time.Since(begin); took < 66*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	if got := sample(t, s); got.Used != 0 || len(got.Processes) != 0 {
		t.Errorf("checkpointed: %+v", got)
	}
	take(t, neighbour, 39*units.GiB)
	if code := c.call(restore); code != suspend.CodeOutOfMemory {
		t.Errorf("without room: %v", code)
	}
	c.is(checkpointed)
	neighbour.Free(0, 10*units.GiB)
	eventually(t, "there is room", func() bool { return sample(t, s).Used == 29*units.GiB })
	if code := c.call(restore); code != suspend.CodeOutOfMemory {
		t.Errorf("with a GiB too little: %v", code)
	}
	neighbour.Free(0, 29*units.GiB)
	eventually(t, "there is room", func() bool { return sample(t, s).Used == 0 })
	c.ok(restore)
	if got := sample(t, s); got.Used != 30*units.GiB || got.Processes[0].PID != p.pid() {
		t.Errorf("restored: %+v", got)
	}
	if after := p.passed(); after != before {
		t.Errorf("it has trained %v s while it was suspended", after-before)
	}
	select {
	case got := <-p.out:
		t.Errorf("a locked process was answered %q", got)
	default:
	}
	c.ok(unlock)
	if got := p.answer(); got != "<nil>" {
		t.Errorf("its allocation: %s", got)
	}
	eventually(t, "it trains on", func() bool { return p.passed() > before })
	if got := sample(t, s).Used; got != 35*units.GiB {
		t.Errorf("%v used", got)
	}
}

// TestMoved: restored onto another GPU, a process stays there, also for the next daemon.
func TestMoved(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	s := serve(t, dir)
	s.SetSpeed(100)
	p := newTask(t, dir, 10)
	c := calls{t, s, p.pid()}
	gpus := station(t).GPUs
	to := func(old, new int) suspend.Pair { return suspend.Pair{Old: gpus[old].UUID, New: gpus[new].UUID} }
	c.ok(lock, checkpoint)
	other := join(t, dir, client.Options{GPUs: []string{"2"}})
	take(t, other, 31*units.GiB)
	for _, wrong := range []struct {
		pairs []suspend.Pair
		code  suspend.Code
	}{
		{[]suspend.Pair{to(1, 2)}, suspend.CodeInvalidValue},           // not its GPU
		{[]suspend.Pair{to(0, 1), to(3, 2)}, suspend.CodeInvalidValue}, // the second is not
		{[]suspend.Pair{to(0, 1), to(0, 1)}, suspend.CodeInvalidValue},
		{[]suspend.Pair{{Old: gpus[0].UUID, New: "GPU-1"}}, suspend.CodeInvalidValue},
		{[]suspend.Pair{to(0, 2)}, suspend.CodeOutOfMemory},
	} {
		if code := c.call(restore, wrong.pairs...); code != wrong.code {
			t.Errorf("%v: %v", wrong.pairs, code)
		}
		c.is(checkpointed)
	}
	if code := c.call(restore, to(0, 1)); code != 0 {
		t.Fatal(code)
	}
	c.ok(unlock)
	if got := p.ask("alloc 2"); got != "<nil>" {
		t.Fatal(got)
	}
	check := func() {
		t.Helper()
		if all := mustSample(t, s); all[0].Used != 0 || all[1].Used != 12*units.GiB || all[1].Processes[0].PID != p.pid() {
			t.Errorf("%+v", all)
		}
	}
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = serve(t, dir)
	s.SetSpeed(100)
	c.s = s
	c.is(running)
	check()
	c.ok(lock, checkpoint)
	if code := c.call(restore, to(0, 1)); code != suspend.CodeInvalidValue {
		t.Errorf("it is on GPU 1 now: %v", code)
	}
	if code := c.call(restore, to(1, 0)); code != 0 {
		t.Fatal(code)
	}
	c.ok(unlock)
	if all := mustSample(t, s); all[0].Used != 12*units.GiB || all[1].Used != 0 {
		t.Errorf("%+v", all)
	}
}

// TestSeveralClients: all clients of a process are suspended together.
func TestSeveralClients(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	s.SetSpeed(100)
	c := calls{t, s, os.Getpid()}
	first := join(t, dir, client.Options{})
	second := join(t, dir, client.Options{GPUs: []string{"1"}})
	take(t, first, 20*units.GiB)
	take(t, second, 10*units.GiB)
	c.ok(lock, checkpoint)
	late := join(t, dir, client.Options{GPUs: []string{"2"}})
	for _, cl := range []*client.Client{first, second, late} {
		if cl.Pace().Training != 0 {
			t.Errorf("one goes at %+v", cl.Pace())
		}
	}
	done := make(chan error, 1)
	go func() { done <- late.Alloc(context.Background(), 0, units.GiB) }()
	for i, g := range mustSample(t, s) {
		if g.Used != 0 || len(g.Processes) != 0 {
			t.Errorf("GPU %d: %+v", i, g)
		}
	}
	second.Close() // its memory is gone with it
	eventually(t, "it has left", func() bool { return clients(s) == 2 })
	c.ok(restore)
	select {
	case err := <-done:
		t.Errorf("a locked process was answered %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	c.ok(unlock)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if all := mustSample(t, s); all[0].Used != 20*units.GiB || all[1].Used != 0 || all[2].Used != units.GiB {
		t.Errorf("%+v", all)
	}
	first.Close()
	late.Close()
	eventually(t, "all have left", func() bool { return clients(s) == 0 })
	if code := c.call(suspend.CallState); code != suspend.CodeNotInitialized {
		t.Error(code)
	}
}

// TestFrozen: a stopped process cannot be locked, and continues afterwards.
func TestFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	s := serve(t, dir)
	p := newTask(t, dir, 1)
	c := calls{t, s, p.pid()}
	p.stop()
	if code := c.call(lock); code != suspend.CodeNotReady {
		t.Errorf("lock: %v", code)
	}
	c.is(running)
	p.cont()
	before := p.passed()
	eventually(t, "it trains", func() bool { return p.passed() > before })
	c.ok(lock)
	p.stop()
	for _, call := range []suspend.Call{checkpoint, unlock} {
		_, err := s.Driver().Call(context.Background(), suspend.Request{Call: call, PID: p.pid(), Limit: 500 * time.Millisecond})
		var e *suspend.CallError
		if !errors.As(err, &e) || e.Fault != suspend.Hung {
			t.Errorf("%s: %v", call, err)
		}
		c.is(locked)
	}
	p.cont()
	c.ok(checkpoint)
	// If copying takes longer than the limit of the call, everything is undone.
	_, err := s.Driver().Call(context.Background(), suspend.Request{Call: restore, PID: p.pid(), Limit: 100 * time.Millisecond})
	var e *suspend.CallError
	if !errors.As(err, &e) || e.Fault != suspend.Hung {
		t.Error(err)
	}
	c.is(checkpointed)
	if got := sample(t, s).Used; got != 0 {
		t.Errorf("%v used", got)
	}
	c.ok(restore, unlock)
}

// TestKilledWhileSuspended checks that nothing is left of a killed process, for any earlier
// requests.
func TestKilledWhileSuspended(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	for _, last := range []suspend.Call{lock, checkpoint} {
		dir := folder(t)
		s := serve(t, dir)
		p := newTask(t, dir, 10)
		c := calls{t, s, p.pid()}
		for _, call := range []suspend.Call{lock, checkpoint} {
			if c.ok(call); call == last {
				break
			}
		}
		if got := p.ask("later 5"); got != "asked" {
			t.Fatal(got)
		}
		p.kill()
		eventually(t, "it has left", func() bool { return clients(s) == 0 })
		if got := sample(t, s).Used; got != 0 {
			t.Errorf("%v used", got)
		}
		begin := time.Now()
		if code := c.call(suspend.CallState); code != suspend.CodeInvalidValue || time.Since(begin) > 10*time.Second {
			t.Errorf("%v after %v", code, time.Since(begin))
		}
		if left, _ := os.ReadDir(filepath.Join(dir, marks)); len(left) != 0 {
			t.Errorf("marks are left: %v", left)
		}
	}
}

// TestFloodWhileLocked: a locked client that keeps asking is disconnected.
func TestFloodWhileLocked(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	s := serve(t, dir)
	c := calls{t, s, os.Getpid()}
	flood := dialRaw(t, dir)
	flood.say(`{"op":"hello","version":1,"gpus":["0"],"loads":[{}]}`)
	flood.expect(wire.Welcome)
	flood.expect(wire.Pace)
	if code := c.call(lock); code != suspend.CodeNotReady { // it does not answer
		t.Error(code)
	}
	for _, want := range []wire.Reply{{Op: wire.Pace, Speed: 1}, {Op: wire.State, ProcessState: wire.Locked}, {Op: wire.Pace, Pace: 1, Speed: 1}, {Op: wire.State}} {
		if m := flood.expect(want.Op); m.Pace != want.Pace || m.Speed != want.Speed || m.ProcessState != want.ProcessState {
			t.Errorf("it hears %+v, want %+v", m, want)
		}
	}
	go func() {
		for flood.lines.Scan() {
			if id, ok := idOf(flood.lines.Bytes()); ok {
				flood.Write([]byte(`{"op":"done","id":` + id + "}\n"))
			}
		}
	}()
	c.ok(lock)
	go func() {
		for range 1000 {
			if _, err := flood.Write([]byte(`{"op":"loads","loads":[{}]}` + "\n")); err != nil {
				return
			}
		}
	}()
	eventually(t, "it is cut off", func() bool { return clients(s) == 0 })
}

// clients returns the number of clients.
func clients(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ledger.processes)
}
