package runner

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/request"
	"carma/runner/server"
)

// The name of a task that is a program, if it is interpreted as HTML. The API refuses it as
// a name, so it is also printed, and given as an argument and a label.
const script = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">`

// lab is a daemon with the page on a port and on a socket, and tasks of several users.
type lab struct {
	*rig
	port, socket string
}

// newLab returns a lab with GPUs of 80 GiB, each with two tasks if there are enough tasks. The
// remaining tasks wait.
func newLab(t *testing.T, gpus, tasks int) *lab {
	t.Helper()
	l := &lab{}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newRig(t, func(g *rig) {
		g.cards = newCards(gpus, 80*units.GiB)
		for i := range g.cards.devices {
			g.cards.devices[i].Model = "NVIDIA A100-SXM4-80GB"
		}
		g.opt.SampleEvery = time.Second
		l.socket = filepath.Join(g.dir, "w")
		unix, err := server.Listen(l.socket)
		if err != nil {
			t.Fatal(err)
		}
		g.page = server.Page{Listeners: []net.Listener{unix, port}, Address: port.Addr().String(), Socket: l.socket}
	})
	l.rig, l.port = g, port.Addr().String()
	g.script("train:1", labTraining)
	g.script("oom:1", printing(1, "step 1", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"))
	g.script("broken:1", printing(3, "Traceback (most recent call last):", "ValueError: "+script))
	g.script("quick:1", printing(0, "done"))
	if tasks > 0 {
		l.submit(gpus, tasks)
	}
	return l
}

// labTraining prints lines like a training program, then waits.
func labTraining(ctx context.Context, p *containerstest.Process) int {
	for i := range 40 {
		p.Out("Epoch 1/10: step %d/400 loss %.3f", i, 4/float64(i+1))
	}
	p.Out("\x1b[31m%s\x1b[0m", script)
	return untilStopped(ctx, p)
}

var people = []struct {
	uid  int
	name string
}{{0, "root"}, {4001, "ada"}, {4002, "bela"}, {4003, "chen"}, {4004, "dorothea"}}

// submit fills the GPUs, two tasks to each, and the queue.
func (l *lab) submit(gpus, tasks int) {
	l.t.Helper()
	who := func(i int) request.Caller {
		p := people[i%len(people)]
		return request.Caller{UID: p.uid, GID: p.uid, Name: p.name, Home: "/tmp"}
	}
	add := func(i int, s api.Submit) model.TaskID {
		sub, err := l.admission.Submit(l.ctx(), who(i), s)
		if err != nil {
			l.t.Fatal(err)
		}
		return model.TaskID(sub.ID)
	}
	for i, image := range []string{"quick:1", "broken:1", "quick:1"} {
		l.finished(add(i, api.Submit{Image: image, Mem: int64(2 * units.GiB), Name: fmt.Sprintf("ended-%d", i)}).String())
	}
	for i := range tasks {
		add(i, api.Submit{
			Image: "train:1", Name: fmt.Sprintf("%s-bs%d-%03d", []string{"resnet50", "gpt2-large", "unet", "a-very-long-name-for-a-task-that-somebody-has-given"}[i%4], 16<<(i%4), i),
			Mem: int64(38 * units.GiB), HostReserve: int64(32 * units.MiB), HostMem: int64(32 * units.MiB), Command: []string{"python", "train.py", script}, Env: []string{"TOKEN=secret-of-" + who(i).Name}, Labels: map[string]string{"note": script},
		})
	}
	l.until("4", "running", func(t api.Task) bool { return t.Phase == "running" })
	held := add(0, api.Submit{Image: "train:1", Name: "held-back", Mem: int64(4 * units.GiB)})
	if _, err := l.control.Hold(l.ctx(), who(0), held.String(), api.Note{Why: "until Monday"}); err != nil {
		l.t.Fatal(err)
	}
	l.until(held.String(), "held", func(t api.Task) bool { return t.Phase == "held" })
	l.sample(gpus, 0)
}

// sample makes every task use most of its grant, a little more each time.
func (l *lab) sample(gpus, turn int) {
	list, err := l.overview.ListGPUs(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	for i, g := range list[:gpus] {
		s := gpu.Sample{UUID: g.UUID, SMACT: 0.1 + 0.8*float64(i)/float64(gpus), PowerW: 120 + 15*float64(i) + float64(turn), TemperatureC: 55, Used: units.GiB}
		for j, r := range g.Tasks {
			used := units.Bytes(20+6*j+i%5)*units.GiB + units.Bytes(turn%40)*256*units.MiB
			s.Used += used
			s.Processes = append(s.Processes, gpu.Process{PID: 1, Task: model.TaskID(r.Task), Attempt: 1, Used: used})
		}
		l.cards.set(s)
	}
}

// address signs in, once.
func (l *lab) address() string {
	l.t.Helper()
	login, err := l.api.Web(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	return "http://" + login.Address + "/#login=" + login.Ticket
}
