package containerstest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"carma/containers"
)

// What the suite's image must be made of, in any engine: the program of
// package tool (see [Proc]) as ToolPath, and these settings.
const (
	ToolPath    = "/tool"
	ToolUser    = "1234:1234"
	ToolWorkDir = "/work"
	ToolEnv     = "IMAGE=yes"
	ToolDefault = "out:default" // the command
	ToolLabel   = "carma.suite" // with the value "tool"
)

// ToolImage is the suite's image for the [Fake].
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
		return p.Spec.Sandbox != nil && strings.HasPrefix(name, containers.ScratchDir+"/")
	}
	proc := Proc{
		Args: args, Env: p.Spec.Env, Dir: p.Spec.WorkDir, User: p.Spec.User,
		Stdout: p.Stdout, Stderr: p.Stderr, Term: ctx.Done(), Kill: p.Killed,
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
		ReadFile: func(name string) ([]byte, error) {
			if data, ok := scratch[name]; ok {
				return data, nil
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

var errNoMount = errors.New("not on a mount")

// HostPath translates a path in the container by its mounts, the last one
// that covers it first.
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
