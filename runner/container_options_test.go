package runner

import (
	"context"
	"os/user"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/admission"
	"carma/runner/api"
	"carma/runner/machine"
	"carma/runner/mps"
	"carma/runner/request"
	"carma/runner/sharing"
)

// rootGroup returns the name of group 0 on this machine.
func rootGroup(t *testing.T) string {
	g, err := user.LookupGroupId("0")
	if err != nil {
		t.Fatal(err)
	}
	return g.Name
}

// TestFittingsRefused checks that no flag of docker run gives users additional rights.
func TestFittingsRefused(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.opt.Fittings = admission.Fittings{Devices: []string{"/dev/infiniband/*", "/dev/full", "/dev/nvidia*"}, Ulimits: []string{"memlock", "nofile=4096"}}
		g.opt.MPS = &sharing.MPS{Groups: &mps.Groups{Dir: "/run/carma/mps"}}
	})
	live := *g.live()
	live.Bounds, _ = machine.Bounds{}.On(machine.Share{HostMem: 100 * units.GiB, CPUs: 8, Pids: 1000})
	g.set.Store(&live)
	g.script("ok", printing(0))
	for words, s := range map[string]api.Submit{
		"/dev/sda: the administrator allows /dev/infiniband/*": {ContainerOptions: api.ContainerOptions{Devices: []string{"/dev/sda"}}},
		"/dev/kmsg: the administrator allows":                  {ContainerOptions: api.ContainerOptions{Devices: []string{"/dev/kmsg"}}},
		"is not a path below /dev":                             {ContainerOptions: api.ContainerOptions{Devices: []string{"/dev/infiniband/../mem"}}},
		"/dev/nvidia0":                                         {ContainerOptions: api.ContainerOptions{Devices: []string{"/dev/nvidia0"}}},
		"GPUs":                                                 {ContainerOptions: api.ContainerOptions{Devices: []string{"nvidia.com/gpu=0"}}},
		"--publish 80:8080: ports below 1024 are root's; write 8080": {ContainerOptions: api.ContainerOptions{Ports: []string{"80:8080"}}},
		"on 127.0.0.1 only": {ContainerOptions: api.ContainerOptions{Ports: []string{"0.0.0.0:8080:8080"}}},
		`"[::1]:8080:8080": ports are opened on 127.0.0.1 only`:                        {ContainerOptions: api.ContainerOptions{Ports: []string{"[::1]:8080:8080"}}},
		"you are not in that group on this machine":                                    {ContainerOptions: api.ContainerOptions{Groups: []string{"0"}}},
		rootGroup(t) + ": you are not in that group":                                   {ContainerOptions: api.ContainerOptions{Groups: []string{rootGroup(t)}}},
		"this machine has no such group":                                               {ContainerOptions: api.ContainerOptions{Groups: []string{"nosuchgroup-x"}}},
		"is not the name or number of a group":                                         {ContainerOptions: api.ContainerOptions{Groups: []string{"-1"}}},
		"--ulimit nofile=4097: at most nofile=4096 is allowed here (allowed-ulimits)":  {ContainerOptions: api.ContainerOptions{Ulimits: []string{"nofile=4097"}}},
		"--ulimit nofile=1:-1: at most nofile=4096":                                    {ContainerOptions: api.ContainerOptions{Ulimits: []string{"nofile=1:-1"}}},
		"--ulimit rtprio=1: the administrator allows memlock, nofile":                  {ContainerOptions: api.ContainerOptions{Ulimits: []string{"rtprio=1"}}},
		"carma mounts /run/carma/mps in every task":                                    {ContainerOptions: api.ContainerOptions{Tmpfs: []string{"/run/carma"}}},
		"carma mounts /run/carma/mps in every task; choose another folder, for exampl": {ContainerOptions: api.ContainerOptions{Tmpfs: []string{"/run/carma/mps/20001/x"}}},
		"/.carma belongs to the engine":                                                {ContainerOptions: api.ContainerOptions{Tmpfs: []string{"/x/../.carma/hold"}}},
		"/proc belongs to the engine":                                                  {ContainerOptions: api.ContainerOptions{Tmpfs: []string{"/proc/self"}}},
		"set-uid programs and devices have no effect":                                  {ContainerOptions: api.ContainerOptions{Tmpfs: []string{"/x:suid"}}},
		"is 3.0 GiB; all of it counts as the task's memory, which is 2.0 GiB":          {ContainerOptions: api.ContainerOptions{Tmpfs: []string{"/x:size=1G", "/y:size=2G"}}, HostMem: 2 << 30},
		"is 2.0 GiB; all of it counts as the task's memory, which is 1.5 GiB":          {ContainerOptions: api.ContainerOptions{Tmpfs: []string{"/x:size=1G"}, ShmSize: 1 << 30}, HostMem: 3 << 29},
	} {
		s.Image = "ok"
		_, err := g.admission.Submit(g.ctx(), ann, s)
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", s, err, words)
		}
	}
	// Root may use any group and port, but only the devices and limits of the settings.
	root := request.Caller{Name: "root"}
	g.refusedAs(root, api.Submit{Image: "ok", ContainerOptions: api.ContainerOptions{Devices: []string{"/dev/kmsg"}}}, 403, "the administrator allows")
	g.refusedAs(root, api.Submit{Image: "ok", ContainerOptions: api.ContainerOptions{Ulimits: []string{"nofile=-1"}}}, 403, "at most")
	if _, err := g.admission.Submit(g.ctx(), root, api.Submit{Image: "ok", ContainerOptions: api.ContainerOptions{Groups: []string{"4242"}, Ports: []string{"80:80"}}}); err != nil {
		t.Error(err)
	}
}

// TestFittings: requested options reach the container, with groups by number; a group that
// is lost before the launch stops it.
func TestFittings(t *testing.T) {
	who := ann
	who.GIDs = []int{20001, 4242}
	g := newRig(t, func(g *rig) {
		g.opt.Fittings = admission.Fittings{Devices: []string{"/dev/null"}, Ulimits: []string{"memlock"}}
	})
	got := make(chan containers.Spec, 1)
	g.script("show", func(_ context.Context, p *containerstest.Process) int { got <- p.Spec; return 0 })
	g.Runner.users = func(int, int) request.Caller { return who }
	task := g.runAs(who, api.Submit{
		Image: "show", Mem: int64(units.GiB), HostMem: 4 << 30, ContainerOptions: api.ContainerOptions{Init: true, Hostname: "box", StopSignal: "SIGINT", IPC: "shareable", Groups: []string{"4242"}, Ulimits: []string{"memlock=-1", "core=0"}, Tmpfs: []string{"/scratch", "/small:size=1M,mode=700"}, Ports: []string{"8888"}, Devices: []string{"/dev/null:/dev/own:r"}},
	})
	spec := <-got
	g.finished(task)
	want := containers.ContainerOptions{
		ShmSize: 2 << 30, Pids: spec.Pids, Init: true, Hostname: "box", StopSignal: "SIGINT", IPC: "shareable",
		Groups: []string{"4242"}, Ulimits: []string{"memlock=-1", "core=0"}, Tmpfs: []string{"/scratch:size=2147483648B", "/small:size=1048576B,mode=700"},
		Ports: []string{"8888"}, Devices: []string{"/dev/null:/dev/own:r"},
	}
	if !reflect.DeepEqual(spec.ContainerOptions, want) {
		t.Errorf("%+v, want %+v", spec.ContainerOptions, want)
	}

	now := ann // the group is lost
	g.Runner.users = func(int, int) request.Caller { return now }
	ended := g.finished(g.runAs(who, api.Submit{Image: "show", Mem: int64(units.GiB), ContainerOptions: api.ContainerOptions{Groups: []string{strconv.Itoa(4242)}}}))
	if ended.Phase != "failed" || !strings.Contains(ended.Reason, "you are not in that group") {
		t.Errorf("%s: %s", ended.Phase, ended.Reason)
	}
}

// TestPortsShown checks that the address of a port is shown while the task runs.
func TestPortsShown(t *testing.T) {
	g := newRig(t)
	g.script("serve", untilStopped)
	task := g.runAs(ann, api.Submit{Image: "serve", Mem: int64(units.GiB), ContainerOptions: api.ContainerOptions{Ports: []string{"8888", "9999:80"}}})
	g.until(task, "with ports", func(v api.Task) bool {
		return len(v.Ports) == 2 && v.Ports[0].Port == "8888/tcp" && strings.HasPrefix(v.Ports[0].URL(), "http://127.0.0.1:4") && v.Ports[1].Address == "127.0.0.1:9999"
	})
	if _, err := g.control.Stop(g.ctx(), ann, task, api.StopRequest{Now: true}); err != nil {
		t.Fatal(err)
	}
	if v := g.finished(task); len(v.Ports) != 0 {
		t.Errorf("ports of an ended task: %v", v.Ports)
	}
}

// TestHostIPC checks that --ipc host, which the documented commands of vLLM and NGC contain, is
// not refused. The task gets its own IPC namespace and a warning, if the daemon does not give
// the machine's.
func TestHostIPC(t *testing.T) {
	got := make(chan containers.Spec, 1)
	g := newRig(t)
	g.script("show", func(_ context.Context, p *containerstest.Process) int { got <- p.Spec; return 0 })
	sub, err := g.api.Submit(g.ctx(), api.Submit{Image: "show", ContainerOptions: api.ContainerOptions{IPC: "host"}})
	if err != nil {
		t.Fatal(err)
	}
	if spec := <-got; spec.IPC != "" || !strings.HasPrefix(strings.Join(sub.Warnings, "\n"), "--ipc host: not honoured: a task has its own, and a /dev/shm of half of its host memory; --shm-size 8G makes it larger.") {
		t.Errorf("%q, said %q", spec.IPC, sub.Warnings)
	}
}

// limited is a driver that supports few options.
type limited struct {
	containers.Driver
	support containers.Support
}

func (d limited) Supports() containers.Support { return d.support }

// TestUnsupportedOptions: options that the driver does not support are refused at
// submission, with the option's name, the driver and what to do instead.
func TestUnsupportedOptions(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.driver = limited{g.engine, containers.Support{
			"WorkDir": nil, "IPC": nil, "Pids": nil, "ShmSize": nil,
			"StopSignal": containers.Never("it sends the image's"),
		}}
	})
	g.script("ok", printing(0))
	for words, o := range map[string]api.ContainerOptions{
		"--init: not possible on fake":                              {Init: true},
		"--hostname: not possible on fake":                          {WorkDir: "/x", Hostname: "box"},
		"--publish: not possible on fake":                           {Ports: []string{"8888"}},
		"--ulimit: not possible on fake":                            {Ulimits: []string{"core=0"}},
		"--stop-signal: not possible on fake: it sends the image's": {StopSignal: "SIGINT"},
	} {
		g.refusedAs(ann, api.Submit{Image: "ok", ContainerOptions: o}, 422, words)
	}
	g.finished(g.runAs(ann, api.Submit{Image: "ok", Mem: int64(units.GiB), ContainerOptions: api.ContainerOptions{WorkDir: "/x", IPC: "private"}}))
}
