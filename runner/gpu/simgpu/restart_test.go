package simgpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"carma/internal/units"
	"carma/runner/gpu/simgpu/wire"
	"carma/runner/suspend"
)

// idOf returns the number of a State.
func idOf(line []byte) (string, bool) {
	var m wire.Reply
	err := json.Unmarshal(line, &m)
	return strconv.FormatInt(m.ID, 10), err == nil && m.Op == wire.State
}

// stopper freezes tasks by signals.
type stopper struct{ tasks map[int]*task }

func (f stopper) each(c suspend.Container, do func(*task)) error {
	for _, pid := range c.PIDs {
		if p := f.tasks[pid]; p != nil && stateOf(pid) != 'Z' {
			do(p)
		}
	}
	return nil
}

func (f stopper) Freeze(_ context.Context, c suspend.Container) error { return f.each(c, (*task).stop) }
func (f stopper) Thaw(_ context.Context, c suspend.Container) error   { return f.each(c, (*task).cont) }
func (f stopper) Frozen(_ context.Context, c suspend.Container) (bool, error) {
	return stateOf(c.PIDs[len(c.PIDs)-1]) == 'T', nil
}

// withSuspender is a suspender on a server, and a container with a task and a process
// that does not use a GPU.
func withSuspender(t testing.TB, s *Server, all ...*task) (*suspend.Suspender, []suspend.Container) {
	t.Helper()
	f := stopper{map[int]*task{}}
	var cs []suspend.Container
	for _, p := range all {
		f.tasks[p.pid()] = p
		cs = append(cs, suspend.Container{PIDs: []int{os.Getpid(), p.pid()}})
	}
	return suspend.New(suspend.Options{Driver: s.Driver(), Freezer: f, Root: root(t, cs), Log: zerolog.Nop()}), cs
}

// root is a machine with the processes of containers alone. They may be in a PID
// namespace of their own, as this test is.
func root(t testing.TB, cs []suspend.Container) string {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/proc", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		for _, pid := range c.PIDs {
			link := fmt.Sprintf("/proc/%d", pid)
			if err := os.Symlink(link, dir+link); err != nil && !errors.Is(err, os.ErrExist) {
				t.Fatal(err)
			}
		}
	}
	return dir
}

var facts = suspend.Facts{Driver: "580.95.05", Arch: "amd64"}

// TestSuspender: package suspend suspends a task on a simulated GPU, moves it and resumes it,
// and that the task has trained for as long as an undisturbed one.
func TestSuspender(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	s := serve(t, dir)
	p := newTask(t, dir, 4)
	sus, cs := withSuspender(t, s, p)
	r, err := sus.Suspend(t.Context(), cs[0], facts)
	if err != nil || r.Outcome != suspend.Suspended || r.Process.PID != p.pid() {
		t.Fatalf("%+v, %v", r, err)
	}
	if took := r.Took[checkpoint]; took < time.Second || took > 20*time.Second { // 4 GiB at 5 GB/s, and 0.2 s
		t.Errorf("checkpoint took %v", took)
	}
	if stateOf(p.pid()) != 'T' || sample(t, s).Used != 0 {
		t.Errorf("%c, %+v", stateOf(p.pid()), sample(t, s))
	}
	gpus := station(t).GPUs
	r, err = sus.Resume(t.Context(), cs[0], r.Process, suspend.Target{Pairs: []suspend.Pair{{Old: gpus[0].UUID, New: gpus[3].UUID}}, Driver: "580"})
	if err != nil || r.Outcome != suspend.Runs {
		t.Fatalf("%+v, %v", r, err)
	}
	if all := mustSample(t, s); all[0].Used != 0 || all[3].Used != 4*units.GiB {
		t.Errorf("%+v", all)
	}
	// Without room it stays suspended, frozen as before.
	if r, err = sus.Suspend(t.Context(), cs[0], facts); err != nil {
		t.Fatal(err)
	}
	other := newTask(t, dir, 37)
	r, err = sus.Resume(t.Context(), cs[0], r.Process, suspend.Target{Pairs: []suspend.Pair{{Old: gpus[3].UUID, New: gpus[0].UUID}}, Driver: "580"})
	if err == nil || r.Outcome != suspend.Suspended || stateOf(p.pid()) != 'T' {
		t.Errorf("%+v, %v", r, err)
	}
	other.kill()
	eventually(t, "the other has left", func() bool { return sample(t, s).Used == 0 })
	r, err = sus.Resume(t.Context(), cs[0], r.Process, suspend.Target{})
	if err != nil || mustSample(t, s)[3].Used != 4*units.GiB {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestDaemonDies: the server ends in each state and in each step. The next one finds
// the process and finishes, in either direction.
func TestDaemonDies(t *testing.T) {
	for _, way := range []struct {
		name  string
		calls []suspend.Call // done before the end; the last one is cut off in its middle
		cut   bool
		stop  bool // the process is frozen
	}{
		{"running", nil, false, false},
		{"locked", []suspend.Call{lock}, false, false},
		{"checkpointing", []suspend.Call{lock, checkpoint}, true, false},
		{"checkpointed", []suspend.Call{lock, checkpoint}, false, false},
		{"frozen", []suspend.Call{lock, checkpoint}, false, true},
		{"restoring", []suspend.Call{lock, checkpoint, restore}, true, false},
		{"restored", []suspend.Call{lock, checkpoint, restore}, false, false},
	} {
		for _, want := range []suspend.Outcome{suspend.Runs, suspend.Suspended} {
			t.Run(way.name+"/"+want.String(), func(t *testing.T) {
				t.Parallel()
				dir := folder(t)
				first := serve(t, dir)
				first.SetSpeed(100)
				p := newTask(t, dir, 10)
				c := calls{t, first, p.pid()}
				for i, call := range way.calls {
					if way.cut && i == len(way.calls)-1 {
						first.SetSpeed(0.01) // minutes
						go first.Driver().Call(context.Background(), suspend.Request{Call: call, PID: p.pid(), Limit: time.Hour})
						eventually(t, "it copies", func() bool {
							s := stateNow(first, p.pid())
							return s == suspend.Checkpointing || s == suspend.Restoring
						})
						continue
					}
					c.ok(call)
				}
				before := -1.0
				if len(way.calls) > 0 {
					before = p.passed()
				}
				if way.stop {
					p.stop()
				}
				if err := first.Close(); err != nil {
					t.Fatal(err)
				}
				// A child of this test that has not begun its program yet may have the
				// old socket for a moment.
				eventually(t, "the old socket is closed", func() bool {
					c, err := net.Dial("unix", first.path)
					if err == nil {
						c.Close()
					}
					return err != nil
				})
				second := serve(t, dir)
				second.SetSpeed(100)
				if way.stop { // it is asked for long after others have connected
					<-second.admitting
				}
				sus, cs := withSuspender(t, second, p)
				r, err := sus.Recover(t.Context(), cs[0], want, facts, suspend.Target{})
				if err != nil || r.Outcome != want {
					t.Fatalf("%+v, %v", r, err)
				}
				used := map[suspend.Outcome]units.Bytes{suspend.Runs: 10 * units.GiB}[want]
				if got := sample(t, second).Used; got != used {
					t.Errorf("%v used, want %v", got, used)
				}
				if want == suspend.Suspended {
					p.cont()
					if after := p.passed(); before >= 0 && after != before {
						t.Errorf("it has trained %v s while it was suspended", after-before)
					}
					return
				}
				at := p.passed()
				eventually(t, "it trains", func() bool { return p.passed() > at })
			})
		}
	}
}

func stateNow(s *Server, pid int) suspend.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.ledger.programs[pid]; p != nil {
		return p.state
	}
	return suspend.Failed
}

// TestHeardDifferently: after a restart, the clients of a process report different states. The
// server uses the report of the client that is furthest from running, but ignores reports that
// come after a call.
func TestHeardDifferently(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	s.SetSpeed(100)
	c := calls{t, s, os.Getpid()}
	uuid := station(t).GPUs[0].UUID
	hello := func(state int) raw {
		r := dialRaw(t, dir)
		r.say(`{"op":"hello","version":1,"gpus":["0"],"loads":[{}],"holds":{"%s":%d},"state":%d}`, uuid, 8*units.GiB, state)
		r.expect(wire.Welcome)
		r.expect(wire.Pace)
		return r
	}
	hello(wire.Running).answers()
	c.is(running)
	r := hello(wire.Checkpointed)
	c.is(checkpointed)
	r.answers()
	if got := sample(t, s).Used; got != 0 {
		t.Errorf("%v used", got)
	}
	late := hello(wire.Locked)
	if m := late.expect(wire.State); m.ProcessState != wire.Checkpointed {
		t.Errorf("it hears %+v", m)
	}
	late.answers()
	c.ok(restore, unlock)
	if got := sample(t, s).Used; got != 24*units.GiB {
		t.Errorf("%v used", got)
	}
	hello(wire.Checkpointed)
	c.is(running)
	for _, wrong := range []string{`"state":3`, `"state":-1`, `"at":{"` + uuid + `":"GPU-1"}`} {
		r := dialRaw(t, dir)
		r.say(`{"op":"hello","version":1,"gpus":["0"],"loads":[{}],%s}`, wrong)
		r.expect(wire.Error)
	}
	r = dialRaw(t, dir)
	r.say(`{"op":"hello","version":1,"gpus":["0","1"],"loads":[{},{}],"at":{"%s":"%s"}}`, uuid, station(t).GPUs[1].UUID)
	r.expect(wire.Error)
}

// answers confirms each order at once.
func (r raw) answers() {
	go func() {
		for r.lines.Scan() {
			if id, ok := idOf(r.lines.Bytes()); ok {
				fmt.Fprintf(r, `{"op":"done","id":%s}`+"\n", id)
			}
		}
	}()
}

// TestManySuspends is for the race detector, and finds leaked state.
func TestManySuspends(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	s := serve(t, dir)
	s.SetSpeed(5000)
	tasks := []*task{newTask(t, dir, 8), newTask(t, dir, 8), newTask(t, dir, 8)}
	sus, cs := withSuspender(t, s, tasks...)
	routines := runtime.NumGoroutine()
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			for range 50 {
				r, err := sus.Suspend(t.Context(), cs[i], facts)
				if err == nil {
					r, err = sus.Resume(t.Context(), cs[i], r.Process, suspend.Target{})
				}
				if err != nil || r.Outcome != suspend.Runs {
					t.Errorf("%+v, %v", r, err)
					return
				}
			}
		})
	}
	all.Wait()
	if got := sample(t, s); got.Used != 24*units.GiB || len(got.Processes) != 3 {
		t.Errorf("%+v", got)
	}
	eventually(t, "nothing is left running", func() bool { return runtime.NumGoroutine() <= routines })
	if _, err := sus.Suspend(t.Context(), suspend.Container{PIDs: []int{os.Getpid()}}, facts); !errors.As(err, new(*suspend.Refusal)) {
		t.Error(err)
	}
}
