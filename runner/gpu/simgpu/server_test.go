package simgpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/simgpu/client"
	"carma/runner/gpu/simgpu/wire"

	"github.com/rs/zerolog"
)

func serve(t testing.TB, dir string) *Server {
	t.Helper()
	s, err := New(station(t), dir, time.Now, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// folder is a short temporary folder: a socket's path is at most 107 bytes.
func folder(t testing.TB) string {
	dir, err := os.MkdirTemp("", "simgpu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

var heavy = wire.Load{SMACT: 0.82, SMOCC: 0.42, DRAMA: 0.42}

func join(t testing.TB, dir string, o client.Options) *client.Client {
	t.Helper()
	o.Dir, o.Window = dir, 10*time.Second
	if o.GPUs == nil {
		o.GPUs = []string{"0"}
	}
	if o.Loads == nil {
		o.Loads = []wire.Load{heavy}
	}
	c, err := client.Dial(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func take(t testing.TB, c *client.Client, n units.Bytes) {
	t.Helper()
	if err := c.Alloc(context.Background(), 0, n); err != nil {
		t.Fatal(err)
	}
}

func sample(t testing.TB, s *Server) gpu.Sample {
	t.Helper()
	all, err := s.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// eventually waits for something that happens in another goroutine.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestSource(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	if s.Name() != "sim:dgx-station-a100" {
		t.Error(s.Name())
	}
	devices, err := s.GPUs(context.Background())
	if err != nil || len(devices) != 4 || devices[3].Index != 3 || devices[0].Capacity != 40*units.GiB {
		t.Errorf("%+v %v", devices, err)
	}
	c := join(t, dir, client.Options{Task: 17, Attempt: 2})
	take(t, c, 3*units.GiB)
	take(t, c, units.GiB)
	c.Free(0, 2*units.GiB)
	foreign := join(t, dir, client.Options{})
	take(t, foreign, units.MiB)
	eventually(t, "the free arrives", func() bool { return sample(t, s).Used == 2*units.GiB+units.MiB })
	got := sample(t, s).Processes
	for i := range got {
		if !got[i].Timed || got[i].Active < 0.9 || got[i].Active > 1 { // two heavy ones
			t.Errorf("process %d: its kernels run for %v of the time, known %v", i, got[i].Active, got[i].Timed)
		}
		got[i].Active, got[i].Timed = 0, false
	}
	want := []gpu.Process{
		{PID: os.Getpid(), Task: 17, Attempt: 2, Used: 2 * units.GiB, Peak: 4 * units.GiB},
		{PID: os.Getpid(), Used: units.MiB, Peak: units.MiB},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("processes %+v, want %+v", got, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Sample(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("sample in no time: %v", err)
	}
}

func TestOutOfMemory(t *testing.T) {
	dir := folder(t)
	serve(t, dir)
	a, b := join(t, dir, client.Options{}), join(t, dir, client.Options{})
	take(t, a, 30*units.GiB)
	take(t, b, 9*units.GiB)
	err := b.Alloc(context.Background(), 0, units.GiB+1)
	var oom *client.OOMError
	if !errors.As(err, &oom) {
		t.Fatal(err)
	}
	if want := (client.OOMError{GPU: 0, Asked: units.GiB + 1, Total: 40 * units.GiB, Free: units.GiB, Held: 9 * units.GiB}); *oom != want {
		t.Errorf("%+v, want %+v", *oom, want)
	}
	take(t, b, units.GiB) // to the last byte
}

func TestEndOfConnectionFrees(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	c := join(t, dir, client.Options{Task: 1})
	take(t, c, 39*units.GiB)
	c.Close()
	eventually(t, "memory is freed", func() bool { return sample(t, s).Used == 0 })
	if p := sample(t, s).Processes; len(p) != 0 {
		t.Errorf("processes %+v", p)
	}
	take(t, join(t, dir, client.Options{Task: 2}), 39*units.GiB)
}

func TestPaceFollowsNeighbours(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	c := join(t, dir, client.Options{})
	if p := c.Pace(); p.Training != 1 || p.Speed != 1 {
		t.Errorf("alone at %+v", p)
	}
	s.SetSpeed(600)
	eventually(t, "the speed arrives", func() bool { return c.Pace() == client.Pace{Training: 600, Speed: 600} })
	s.SetSpeed(-1)
	neighbour := join(t, dir, client.Options{})
	if p := neighbour.Pace(); p.Training >= 600 || p.Training <= 0 {
		t.Errorf("the newcomer goes at %+v", p)
	}
	eventually(t, "the neighbour is felt", func() bool { return c.Pace() == neighbour.Pace() })
	neighbour.SetLoads(nil)
	eventually(t, "the idle neighbour is not felt", func() bool { return c.Pace().Training == 600 })
	neighbour.SetLoads([]wire.Load{heavy})
	eventually(t, "the busy neighbour is felt again", func() bool { return c.Pace().Training < 600 })
	elsewhere := join(t, dir, client.Options{GPUs: []string{"1"}})
	if p := elsewhere.Pace(); p.Training != 600 {
		t.Errorf("on another GPU at %+v", p)
	}
	neighbour.Close()
	eventually(t, "the neighbour's end is felt", func() bool { return c.Pace().Training == 600 })
}

// TestServerComesBack: tasks and their memory survive the daemon, and an allocation waits for
// the next daemon.
func TestServerComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	first := serve(t, dir)
	first.SetSpeed(60)
	c := join(t, dir, client.Options{Task: 3, Attempt: 1, GPUs: []string{"1", "2"}, Loads: []wire.Load{heavy, heavy}})
	take(t, c, 10*units.GiB)
	eventually(t, "the speed arrives", func() bool { return c.Pace().Speed == 60 })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c.Free(0, units.GiB) // no server gets it
	if p := c.Pace(); p.Training != 60 {
		t.Errorf("without a server at %+v", p)
	}
	done := make(chan error, 1)
	go func() { done <- c.Alloc(context.Background(), 1, 5*units.GiB) }()
	second := serve(t, dir)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	all, err := second.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if all[1].Used != 9*units.GiB || all[2].Used != 5*units.GiB || all[0].Used != 0 || all[1].Processes[0].Task != 3 {
		t.Errorf("%+v", all)
	}
	eventually(t, "the new server's speed arrives", func() bool { return c.Pace().Speed == 1 })
}

// TestNewcomerAfterARestart: the memory of a task that has not reconnected yet
// is not given to another.
func TestNewcomerAfterARestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	first := serve(t, dir)
	old := join(t, dir, client.Options{Task: 1})
	take(t, old, 30*units.GiB)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := serve(t, dir)
	newcomer := join(t, dir, client.Options{Task: 2})
	var oom *client.OOMError
	if err := newcomer.Alloc(context.Background(), 0, 11*units.GiB); !errors.As(err, &oom) || oom.Free != 10*units.GiB {
		t.Errorf("%v", err)
	}
	if s := sample(t, second); s.Used != 30*units.GiB {
		t.Errorf("%+v", s)
	}
}

// TestDeclaredMemoryIsBelieved checks that a hello is never refused because of missing memory.
// A device never shows more memory in use than it has.
func TestDeclaredMemoryIsBelieved(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	uuid := station(t).GPUs[0].UUID
	for range 2 {
		c := dialRaw(t, dir)
		c.say(`{"op":"hello","version":1,"gpus":["%s"],"loads":[{}],"holds":{"%s":%d}}`, uuid, uuid, 30*units.GiB)
		c.expect(wire.Welcome)
		c.expect(wire.Pace)
	}
	got := sample(t, s)
	if got.Used != 40*units.GiB || len(got.Processes) != 2 || got.Processes[1].Used != 30*units.GiB {
		t.Errorf("%+v", got)
	}
	c := join(t, dir, client.Options{})
	var oom *client.OOMError
	if err := c.Alloc(context.Background(), 0, 1); !errors.As(err, &oom) || oom.Free != 0 {
		t.Errorf("%v", err)
	}
}

// raw is a client that sends any bytes.
type raw struct {
	t testing.TB
	net.Conn
	lines interface {
		Scan() bool
		Bytes() []byte
	}
}

func dialRaw(t testing.TB, dir string) raw {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(dir, wire.Socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return raw{t, c, wire.Lines(c)}
}

func (r raw) say(format string, args ...any) {
	r.t.Helper()
	if _, err := fmt.Fprintf(r, format+"\n", args...); err != nil {
		r.t.Fatal(err)
	}
}

func (r raw) expect(op string) wire.Reply {
	r.t.Helper()
	var m wire.Reply
	if !r.lines.Scan() || json.Unmarshal(r.lines.Bytes(), &m) != nil || m.Op != op {
		r.t.Fatalf("got %s, want %s", r.lines.Bytes(), op)
	}
	return m
}

func TestRefusals(t *testing.T) {
	dir := folder(t)
	serve(t, dir)
	for _, c := range []struct{ say, want string }{
		{"GET / HTTP/1.1", "the first line is no message"},
		{`{"op":"alloc"}`, `"alloc" before hello`},
		{`{"op":"hello","version":2}`, "protocol version 2; this daemon speaks 1"},
		{`{"op":"hello","version":1}`, "no GPU is visible"},
		{`{"op":"hello","version":1,"gpus":["none",""," void"],"loads":[{}]}`, "no GPU is visible"},
		{`{"op":"hello","version":1,"gpus":["0"]}`, "no GPU is visible"},
		{`{"op":"hello","version":1,"gpus":["4"],"loads":[{}]}`, `no GPU "4" on this server`},
		{`{"op":"hello","version":1,"gpus":["GPU-00000000"],"loads":[{}]}`, `no GPU "GPU-00000000" on this server`},
		{`{"op":"hello","version":1,"gpus":["0","0"],"loads":[{},{}]}`, "GPU 0 is listed twice"},
		{`{"op":"hello","version":1,"gpus":["0"],"loads":[{"smact":1.1}]}`, "load 1.1 is not between 0 and 1"},
		{`{"op":"hello","version":1,"gpus":["0"],"loads":[{"step":-1}]}`, "step of -1 seconds"},
		{`{"op":"hello","version":1,"gpus":["0"],"loads":[{}],"task":-1}`, "task and attempt cannot be negative"},
		{`{"op":"hello","version":1,"gpus":["0"],"loads":[{}],"holds":{"` + station(t).GPUs[0].UUID + `":-1}}`, "holds -1 bytes of the 42949672960 of"},
	} {
		r := dialRaw(t, dir)
		r.say("%s", c.say)
		if got := r.expect(wire.Error); !strings.HasPrefix(got.Message, c.want) {
			t.Errorf("%s: %q", c.say, got.Message)
		}
		if r.lines.Scan() {
			t.Errorf("%s: it does not hang up", c.say)
		}
	}
	uuid := station(t).GPUs[0].UUID
	for _, c := range []struct{ say, want string }{
		{"{", "a line is no message"},
		{`{"op":"hello"}`, `unknown operation "hello"`},
		{`{"op":"alloc","gpu":"GPU-1"}`, `no GPU "GPU-1" here`},
		{`{"op":"free","gpu":"` + uuid + `","bytes":-1}`, "free of -1 bytes"},
		{`{"op":"loads","loads":[]}`, "0 loads for 1 GPUs"},
		{`{"op":"loads","loads":[{"drama":-1}]}`, "load -1 is not between"},
	} {
		r := dialRaw(t, dir)
		r.say(`{"op":"hello","version":1,"gpus":["%s","1"],"loads":[{}]}`, uuid[:12])
		r.expect(wire.Welcome)
		r.expect(wire.Pace)
		r.say("%s", c.say)
		if got := r.expect(wire.Error); !strings.HasPrefix(got.Message, c.want) {
			t.Errorf("%s: %q", c.say, got.Message)
		}
	}
}

// TestSilentReader: a client that asks and never reads loses its connection in the end.
// Until then all others continue.
func TestSilentReader(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	dir := folder(t)
	s := serve(t, dir)
	silent := dialRaw(t, dir)
	silent.say(`{"op":"hello","version":1,"gpus":["0"],"loads":[{}]}`)
	uuid := station(t).GPUs[0].UUID
	var flood sync.WaitGroup
	flood.Add(1)
	go func() {
		defer flood.Done()
		line := []byte(`{"op":"alloc","id":1,"gpu":"` + uuid + `","bytes":1}` + "\n")
		for range 100_000 {
			if _, err := silent.Write(line); err != nil {
				return // cut off, as it should be
			}
		}
	}()
	c := join(t, dir, client.Options{Task: 1})
	for i := range 2000 {
		take(t, c, units.MiB)
		s.SetSpeed(float64(1 + i))
	}
	eventually(t, "the last speed arrives", func() bool { return c.Pace().Speed == 2000 })
	eventually(t, "the silent one is cut off", func() bool { return len(sample(t, s).Processes) == 1 })
	flood.Wait()
}

func TestSocket(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, wire.Socket)
	first := serve(t, dir)
	if _, err := New(station(t), dir, time.Now, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "another daemon serves") {
		t.Errorf("a second server: %v", err)
	}
	if mode, err := os.Stat(path); err != nil || mode.Mode().Perm() != 0o666 {
		t.Errorf("%v %v", mode, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	if _, err := first.Sample(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("sample of a closed server: %v", err)
	}
	// A socket that a killed daemon left is replaced.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	second := serve(t, dir)
	// The socket of a newer server is not removed.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	third := serve(t, dir)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	join(t, dir, client.Options{})
	_ = third
	if _, err := New(station(t), filepath.Join(dir, "none"), time.Now, zerolog.Nop()); err == nil {
		t.Error("a folder that is not there")
	}
}

// TestManyClients is for the race detector.
func TestManyClients(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	var all sync.WaitGroup
	for i := range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			c := join(t, dir, client.Options{Task: model.TaskID(i + 1), GPUs: []string{"all"}, Loads: []wire.Load{heavy, heavy}})
			for j := range 20 {
				c.Alloc(context.Background(), j%2, 200*units.MiB) // some are refused
				c.SetLoads([]wire.Load{heavy})
				c.Free(j%2, 100*units.MiB)
				s.SetSpeed(float64(i + j + 1))
				if got := sample(t, s); got.Used > 40*units.GiB {
					t.Errorf("%v used", got.Used)
				}
			}
			c.Close()
		}()
	}
	all.Wait()
	eventually(t, "all is free", func() bool { return sample(t, s).Used == 0 })
}

// FuzzConnection checks that the server still serves other clients after any input of one
// client, before or after a hello.
func FuzzConnection(f *testing.F) {
	dir := folder(f)
	s := serve(f, dir)
	good := join(f, dir, client.Options{Task: 1, GPUs: []string{"3"}})
	hello := `{"op":"hello","version":1,"task":7,"gpus":["0"],"loads":[{"smact":0.5}]}` + "\n"
	f.Add([]byte("hello\n"), false)
	f.Add([]byte(`{"op":"alloc","id":1,"gpu":"`+station(f).GPUs[0].UUID+`","bytes":9223372036854775807}`+"\n"), true)
	f.Add([]byte(`{"op":"loads","loads":[{"smact":1e999}]}`+"\n"), true)
	f.Add([]byte(`{"op":"hello","version":1,"gpus":["all"],"loads":[{},{}],"holds":{"x":-5}}`+"\n"), false)
	f.Add(bytes.Repeat([]byte("x"), wire.MaxLine+1), true)
	f.Fuzz(func(t *testing.T, content []byte, greeted bool) {
		c, err := net.Dial("unix", filepath.Join(dir, wire.Socket))
		if err != nil {
			t.Fatal(err)
		}
		if greeted {
			content = append([]byte(hello), content...)
		}
		c.Write(content) // it may hang up meanwhile
		c.(*net.UnixConn).CloseWrite()
		for lines := wire.Lines(c); lines.Scan(); {
			var m wire.Reply
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.Op == "" {
				t.Errorf("answer %q", lines.Bytes())
			}
		}
		c.Close()
		if err := good.Alloc(context.Background(), 0, units.MiB); err != nil {
			t.Fatal(err)
		}
		good.Free(0, units.MiB)
		for _, g := range mustSample(t, s) {
			if g.Used < 0 || g.Used > 40*units.GiB {
				t.Fatalf("%+v", g)
			}
		}
	})
}

func mustSample(t *testing.T, s *Server) []gpu.Sample {
	all, err := s.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return all
}
