package containerstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"carma/containers"
	"carma/containers/option"
)

// The contents of the suite's image, in any engine: the program of package tool
// (see [Proc]) at ToolPath, and these settings.
const (
	ToolPath    = "/tool"
	ToolUser    = "1234:1234"
	ToolWorkDir = "/work"
	ToolEnv     = "IMAGE=yes"
	ToolDefault = "out:default" // the image's command
	ToolLabel   = "carma.suite" // its value is "tool"
)

// ToolImage returns the suite's image for the [Fake].
func ToolImage() Image {
	return Image{
		Labels: map[string]string{ToolLabel: "tool"}, User: ToolUser, WorkDir: ToolWorkDir,
		Entrypoint: []string{ToolPath}, Command: []string{ToolDefault}, Env: []string{ToolEnv},
		Programs: []string{ToolPath}, Run: RunTool,
	}
}

// RunTool is the suite's program as a script of the [Fake].
func RunTool(ctx context.Context, p *Process) int {
	args := append(p.Spec.Entrypoint[1:len(p.Spec.Entrypoint):len(p.Spec.Entrypoint)], p.Spec.Command...)
	scratch := map[string][]byte{}
	inScratch := func(name string) bool {
		for _, t := range option.Each(p.Spec.Tmpfs, option.ParseTmpfs) { // the deepest folder comes first
			if strings.HasPrefix(name, t.Target+"/") {
				return !t.ReadOnly
			}
		}
		return p.Spec.Sandbox != nil && strings.HasPrefix(name, containers.ScratchDir+"/")
	}
	proc := Proc{
		Args: args, Env: p.Spec.Env, Dir: p.Spec.WorkDir, User: p.Spec.User,
		Stdin: p.Stdin(), Stdout: p.Stdout, Stderr: p.Stderr, Term: ctx.Done(), Kill: p.Killed, Size: p.Size,
		Interfaces: func() []string {
			if p.Spec.Sandbox != nil {
				return []string{"lo"}
			}
			return []string{"lo", "eth0"}
		},
		Capabilities: func() string {
			if p.Spec.Sandbox != nil {
				return "0000000000000000"
			}
			return "00000000a80425fb"
		},
		Devices: func() []string { return nil },
		Look:    func(what string) string { return look(p.Spec, what) },
		Signal:  func() string { return cmp.Or(p.Spec.StopSignal, "SIGTERM") },
		Serve:   func(string) error { return nil }, // a port of the fake is only a number
		Fork:    forks(p.Spec.Pids),
		ReadFile: func(name string) ([]byte, error) {
			if data, ok := scratch[name]; ok {
				return data, nil
			}
			if name == "/proc/self/status" {
				return []byte("Name:\tprogram\nCpus_allowed_list:\t" + p.Spec.CPUSet + "\n"), nil
			}
			host, _, err := p.HostPath(name)
			if err != nil {
				return nil, err
			}
			return os.ReadFile(host)
		},
		WriteFile: func(name string, data []byte) error {
			if inScratch(name) {
				scratch[name] = data
				return nil
			}
			host, readOnly, err := p.HostPath(name)
			if err != nil {
				return err
			}
			if readOnly {
				return fs.ErrPermission
			}
			return os.WriteFile(host, data, 0o666)
		},
	}
	return proc.Run()
}

// look is [Proc.Look] for a container of the fake.
func look(spec containers.Spec, what string) string {
	what, of, _ := strings.Cut(what, ":")
	switch what {
	case "hostname":
		return cmp.Or(spec.Hostname, spec.Name)
	case "address":
		return "loopback"
	case "groups":
		return strings.Join(spec.Groups, " ")
	case "first":
		if spec.Init {
			return "another"
		}
		return "this"
	case "node":
		for _, d := range option.Each(spec.Devices, option.ParseDevice) {
			if d.Target == of {
				return "1:3"
			}
		}
		return "0:0"
	case "ipc":
		if own, _ := os.Readlink("/proc/self/ns/ipc"); spec.IPC == containers.IPCHost {
			return own
		}
		return "ipc:[1]"
	case "size":
		if of == "/dev/shm" {
			return fmt.Sprint(spec.ShmSize)
		}
		for _, t := range option.Each(spec.Tmpfs, option.ParseTmpfs) {
			if t.Target == of {
				return fmt.Sprint(t.Size)
			}
		}
	case "core":
		for _, u := range option.Each(spec.Ulimits, option.ParseUlimit) {
			return fmt.Sprintf("%d:%d", u.Soft, u.Hard)
		}
	}
	return ""
}

// forks is [Proc.Fork] of a container of the fake with a limit of processes.
func forks(limit int64) func() error {
	running := int64(1)
	return func() error {
		if running++; limit > 0 && running > limit {
			return syscall.EAGAIN
		}
		return nil
	}
}

var errNoMount = errors.New("not on a mount")

// HostPath translates a path in the container to a path on the host, by the container's
// mounts. If several mounts cover the path, the last one counts.
func (p *Process) HostPath(name string) (host string, readOnly bool, err error) {
	for i := len(p.Spec.Mounts) - 1; i >= 0; i-- {
		m := p.Spec.Mounts[i]
		if name == m.Target {
			return m.Source, m.ReadOnly, nil
		}
		if rest, ok := strings.CutPrefix(name, m.Target+"/"); ok {
			return path.Join(m.Source, rest), m.ReadOnly, nil
		}
	}
	return "", false, errNoMount
}
