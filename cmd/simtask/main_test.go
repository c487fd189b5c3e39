package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carma/internal/units"

	"github.com/rs/zerolog"

	"carma/configs/servers"
	"carma/configs/workloads"
	"carma/runner/gpu"
	"carma/runner/gpu/simgpu"
	"carma/runner/gpu/simgpu/client"
	"carma/runner/gpu/simgpu/wire"
)

// bench is a simulated server and the tasks on it.
type bench struct {
	t     *testing.T
	dir   string
	leave string // CARMA_LEAVE of the next tasks
	*simgpu.Server
}

func newBench(t *testing.T, speed float64) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "simtask") // short: a socket's path is at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &bench{t: t, dir: dir}
	b.restart(speed)
	return b
}

func (b *bench) restart(speed float64) {
	b.t.Helper()
	station, err := servers.Find("dgx-station-a100")
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := simgpu.New(station, b.dir, time.Now, zerolog.Nop())
	if err != nil {
		b.t.Fatal(err)
	}
	s.SetSpeed(speed)
	b.t.Cleanup(func() { s.Close() })
	b.Server = s
}

func (b *bench) gpu(i int) gpu.Sample {
	b.t.Helper()
	all, err := b.Sample(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return all[i]
}

func (b *bench) env(visible string) func(string) string {
	leave := b.leave
	return func(name string) string {
		return map[string]string{
			"CARMA_SIM": b.dir, "CARMA_TASK": "7", "CARMA_ATTEMPT": "2", "NVIDIA_VISIBLE_DEVICES": visible,
			"CARMA_LEAVE": leave,
		}[name]
	}
}

// buffer may be read while a task writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// running is a task in the background.
type running struct {
	out, err buffer
	stop     context.CancelCauseFunc
	code     chan int
}

func (b *bench) start(visible string, args ...string) *running {
	ctx, stop := context.WithCancelCause(context.Background())
	r := &running{stop: stop, code: make(chan int, 1)}
	env := b.env(visible)
	go func() { r.code <- run(ctx, args, env, &r.out, &r.err, connectWindow) }()
	b.t.Cleanup(func() { stop(stopped{syscall.SIGTERM}) })
	return r
}

func (b *bench) eventually(what string, f func() bool) {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("never: %s", what)
		}
	}
}

var progressLine = regexp.MustCompile(`^epoch (\d+)/20 step (\d+)/1563 loss (\d+\.\d{4}) (\d+\.\d) samples/s$`)

// trained reports whether a line says that 20 epochs took seven minutes, or more: on a
// busy machine simulated time continues while nothing is simulated.
func trained(line string) bool {
	took, ok := strings.CutPrefix(line, "trained 20 epochs in ")
	d, err := time.ParseDuration(took)
	return ok && err == nil && d >= 7*time.Minute
}

func TestTrainsToTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	b := newBench(t, 600)
	r := b.start("1", "resnet18_cifar100_20e_1")
	if code := <-r.code; code != exitOK {
		t.Fatalf("exit %d: %s", code, r.err.String())
	}
	lines := strings.Split(strings.TrimSpace(r.out.String()), "\n")
	if lines[0] != "resnet18 on cifar100, batch size 32, 1563 steps per epoch" || !strings.HasPrefix(lines[1], "cuda:0 NVIDIA A100-SXM4-40GB GPU-") {
		t.Errorf("%q", lines[:2])
	}
	progress := lines[2 : len(lines)-1]
	var losses []float64
	for _, l := range progress {
		m := progressLine.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("%q is no progress", l)
		}
		loss, _ := strconv.ParseFloat(m[3], 64)
		losses = append(losses, loss)
	}
	if last := progress[len(progress)-1]; !strings.HasPrefix(last, "epoch 20/20 step 1563/1563 ") {
		t.Errorf("last %q", last)
	}
	if losses[0] < 2*losses[len(losses)-1] {
		t.Errorf("losses %v", losses)
	}
	if n := len(progress); n < 2 || n > 20 { // under a second of wall clock
		t.Errorf("%d lines of progress", n)
	}
	if l := lines[len(lines)-1]; !trained(l) {
		t.Errorf("%q", l)
	}
	b.eventually("memory is freed", func() bool { return b.gpu(1).Used == 0 })
}

func TestMemoryAndLoad(t *testing.T) {
	b := newBench(t, 100)
	r := b.start("2,3", "gpt2_large_2")
	var s gpu.Sample
	b.eventually("memory is at its peak", func() bool { s = b.gpu(2); return s.Used == 28356*units.MiB })
	if p := s.Processes[0]; p.Task != 7 || p.Attempt != 2 || p.PID != os.Getpid() {
		t.Errorf("%+v", p)
	}
	b.eventually("the second GPU too", func() bool { return b.gpu(3).Used == 28356*16458/28330*units.MiB })
	b.eventually("both are busy", func() bool { return b.gpu(2).SMACT > 0.84 && b.gpu(3).SMACT > 0.79 })
	r.stop(stopped{syscall.SIGTERM})
	if code := <-r.code; code != 143 {
		t.Errorf("exit %d", code)
	}
	if !regexp.MustCompile(`(?m)^SIGTERM in epoch 1, step \d+: stopping$`).MatchString(r.out.String()) {
		t.Errorf("%s", r.out.String())
	}
}

// occupy allocates memory of GPU 0 as another user's process.
func (b *bench) occupy(n units.Bytes) {
	b.t.Helper()
	c, err := client.Dial(context.Background(), client.Options{Dir: b.dir, GPUs: []string{"0"}, Loads: []wire.Load{{}}, Window: connectWindow})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	if err := c.Alloc(context.Background(), 0, n); err != nil {
		b.t.Fatal(err)
	}
}

// torchOOM is PyTorch's message as tools parse it.
var torchOOM = regexp.MustCompile(`(?m)^torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate (\S+ \S+)\. GPU (\d+) has a total capacity of (\S+ \S+) of which (\S+ \S+) is free\. ` +
	`Including non-PyTorch memory, this process has (\S+ \S+) memory in use\. Of the allocated memory (\S+ \S+) is allocated by PyTorch, and (\S+ \S+) is reserved by PyTorch but unallocated\. `)

func TestOutOfMemory(t *testing.T) {
	b := newBench(t, 2000)
	b.occupy(36 * units.GiB)
	r := b.start("0", "resnet50-imagenet-bs64")
	if code := <-r.code; code != exitFailed {
		t.Fatalf("exit %d", code)
	}
	m := torchOOM.FindStringSubmatch(r.err.String())
	if m == nil || !strings.HasPrefix(r.err.String(), "Traceback (most recent call last):\n  File \"") {
		t.Fatalf("%s", r.err.String())
	}
	var size [8]units.Bytes
	for _, i := range []int{1, 3, 4, 5, 6, 7} {
		n, err := units.ParseBytes(m[i])
		if err != nil {
			t.Fatal(err)
		}
		size[i] = n
	}
	asked, total, free, held, tensors, unused := size[1], size[3], size[4], size[5], size[6], size[7]
	if m[2] != "0" || total != 40*units.GiB || asked <= free {
		t.Errorf("%s", m[0])
	}
	const rounding = 20 * units.MiB // two decimals of GiB
	if d := 4*units.GiB - free - held; d < -rounding || d > rounding {
		t.Errorf("free %v and held %v of 4 GiB", free, held)
	}
	if d := held - tensors - unused - workloads.Context("v2"); d < -rounding || d > rounding {
		t.Errorf("held %v is not tensors %v, unused %v and the context", held, tensors, unused)
	}
	b.eventually("memory is freed", func() bool { return b.gpu(0).Used == 36*units.GiB })
}

func TestProgramBug(t *testing.T) {
	b := newBench(t, 5000)
	r := b.start("0", "vgg", "--fail-at", "40%")
	if code := <-r.code; code != exitFailed {
		t.Errorf("exit %d", code)
	}
	if e := r.err.String(); !strings.Contains(e, "\nValueError: expected input batch size (32)") || strings.Contains(strings.ToLower(e), "memory") {
		t.Errorf("%s", e)
	}
	if !regexp.MustCompile(`(?m)^epoch 1/1 step 160\d\d/40037 `).MatchString(r.out.String()) {
		t.Errorf("%s", r.out.String())
	}
}

func TestHang(t *testing.T) {
	b := newBench(t, 600)
	r := b.start("0", "--hang", "resnet2", "--campaign", "v1")
	b.eventually("it hangs", func() bool { return strings.Contains(r.out.String(), "waiting for the next batch") })
	b.eventually("the GPU is idle", func() bool { s := b.gpu(0); return s.SMACT == 0 && s.Used == 8536*units.MiB })
	r.stop(stopped{syscall.SIGINT})
	if code := <-r.code; code != 130 {
		t.Errorf("exit %d", code)
	}
}

// TestDaemonRestarts checks that a task continues to train without a server, waits only for
// allocations, and succeeds.
func TestDaemonRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	b := newBench(t, 400)
	r := b.start("0", "resnet18_cifar100_20e_1", "--time", "20m")
	b.eventually("it holds its memory", func() bool { return b.gpu(0).Used == 788*units.MiB })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	steps := func() int { return strings.Count(r.out.String(), "epoch") }
	before := steps()
	b.eventually("it goes on without a server", func() bool { return steps() > before })
	b.restart(4000)
	b.eventually("it is there again", func() bool { return b.gpu(0).Used == 788*units.MiB })
	if p := b.gpu(0).Processes; len(p) == 1 && (p[0].Task != 7 || p[0].Attempt != 2) {
		t.Errorf("%+v", p)
	}
	if code := <-r.code; code != exitOK {
		t.Errorf("exit %d: %s", code, r.err.String())
	}
}

func TestFewerGPUsThanAsked(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	b := newBench(t, 5000)
	r := b.start("3", "xlnet_base_cased_2", "--time", "1:00:00")
	if code := <-r.code; code != exitOK {
		t.Errorf("exit %d: %s", code, r.err.String())
	}
	if !strings.Contains(r.out.String(), "1 GPU is visible, the job was written for 2\n") {
		t.Errorf("%s", r.out.String())
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "simtask: " + usage + "\n"},
		{[]string{"vgg", "vgg2"}, "simtask: " + usage + "\n"},
		{[]string{"resnt2"}, "simtask: unknown workload \"resnt2\"; nearest: resnet2, "},
		{[]string{"vgg", "--no"}, "simtask: flag provided but not defined: -no; usage: simtask PROFILE"},
		{[]string{"vgg", "--campaign", "v3"}, `simtask: unknown campaign "v3"; v1 or v2`},
		{[]string{"unet", "--campaign", "v1"}, "simtask: unet-voc-bs8-90e was not measured in campaign v1; v2"},
		{[]string{"vgg", "--peak", "much"}, `simtask: --peak: "much" is not an amount`},
		{[]string{"vgg", "--context", "-1G"}, "simtask: --context: "},
		{[]string{"vgg", "--smact", "2"}, "simtask: --smact 2 is not between 0 and 1"},
		{[]string{"vgg", "--fail-at", "140%"}, `simtask: --fail-at "140%" is not a share of the run`},
		{[]string{"vgg", "--print", "tqmd"}, `simtask: --print: "tqmd" is not one of hf, keras, lightning, none, plain, steps, tqdm`},
		{[]string{"vgg", "--time", "-1m"}, `simtask: invalid value "-1m" for flag -time: -1m is negative; write for example 30s`},
		{[]string{"resnet18_cifar100_20e_1", "--time", "soon"}, `simtask: invalid value "soon" for flag -time: `},
	} {
		var out, err bytes.Buffer
		if code := run(context.Background(), c.args, os.Getenv, &out, &err, 0); code != exitUsage {
			t.Errorf("%q: exit %d", c.args, code)
		}
		if got := err.String(); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != 1 || out.Len() > 0 {
			t.Errorf("%q: %q, %q", c.args, got, out.String())
		}
	}
}

func TestListAndHelp(t *testing.T) {
	for arg, want := range map[string]string{"--list": "resnet50-imagenet-bs64", "--help": "-fail-at 40%"} {
		var out, err bytes.Buffer
		if code := run(context.Background(), []string{arg}, os.Getenv, &out, &err, 0); code != exitOK || err.Len() > 0 {
			t.Errorf("%s: exit %d, %s", arg, code, err.String())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", arg, out.String())
		}
	}
}

func TestNoGPU(t *testing.T) {
	b := newBench(t, 1)
	for _, c := range []struct {
		env  func(string) string
		want string
	}{
		{b.env(""), "simtask: no GPU: NVIDIA_VISIBLE_DEVICES is not set; "},
		{b.env("9"), `simtask: refused by the simulated GPU server: no GPU "9" on this server`},
		{b.env("none"), "simtask: refused by the simulated GPU server: no GPU is visible"},
		{(&bench{dir: "/nowhere"}).env("0"), "simtask: no simulated GPU server at /nowhere/gpu.sock: "},
	} {
		var out, err bytes.Buffer
		window := time.Minute
		if strings.Contains(c.want, "/nowhere") {
			window = 10 * time.Millisecond
		}
		if code := run(context.Background(), []string{"vgg"}, c.env, &out, &err, window); code != exitNoGPU {
			t.Errorf("exit %d", code)
		}
		if got := err.String(); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stopped{syscall.SIGTERM})
	if code := run(ctx, []string{"vgg"}, (&bench{dir: "/nowhere"}).env("0"), &bytes.Buffer{}, &bytes.Buffer{}, time.Minute); code != 143 {
		t.Errorf("stopped while it looks for a server: exit %d", code)
	}
}

func TestTorchSize(t *testing.T) {
	for n, want := range map[units.Bytes]string{
		0: "0 bytes", 1024: "1024 bytes", 1536: "1.50 KiB", 20 * units.MiB: "20.00 MiB",
		units.GiB: "1024.00 MiB", 2560 * units.MiB: "2.50 GiB",
	} {
		if got := torchSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
