// Package engines lists the container engines, and additional drivers that a program
// registers.
package engines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"carma/containers"
	"carma/containers/containerd"
	"carma/containers/docker"
)

// Settings configure an engine's driver. A driver uses the fields that apply to it.
type Settings struct {
	// DataDir is a folder that exists as long as the containers.
	DataDir string
	// Network is the containers' network, or empty for the engine's default.
	Network string
	// Attach is the way in which containers get their GPUs, see [containers.Attach].
	Attach containers.Attach
	// Init is the path of carma-init. If it is empty, Docker's containers cannot be parked,
	// and containerd's containers cannot have it as their first process.
	Init string

	DockerHost                             string
	ContainerdAddress, ContainerdNamespace string

	Kubeconfig, KubernetesNamespace string
	KubernetesNamespaces            []string
	TokenAudience                   string
	KubernetesFolders               []string
}

// Engine is one kind of container engine.
type Engine struct {
	Name string
	// Builds is set if the engine has Docker's API for building images.
	Builds bool
	// Driver opens the engine's driver. It sends nothing yet.
	Driver func(Settings) (containers.Driver, error)
}

// All lists the engines, in the order of the help text. The first is the default. A
// program that has another engine appends its row when it starts.
var All = []Engine{
	{Name: "docker", Builds: true, Driver: openDocker},
	{Name: "containerd", Driver: openContainerd},
}

// Names returns the engines' names, as in the configuration.
func Names() []string {
	names := make([]string, len(All))
	for i := range All {
		names[i] = All[i].Name
	}
	return names
}

// Named finds an engine.
func Named(name string) (Engine, bool) {
	i := slices.IndexFunc(All, func(e Engine) bool { return e.Name == name })
	if i < 0 {
		return Engine{}, false
	}
	return All[i], true
}

// ErrSettings means that the settings contradict each other, or do not suit this machine.
var ErrSettings = errors.New("wrong settings")

// wrong is an error with a hint.
type wrong struct{ what, hint string }

func (w wrong) Error() string {
	if w.hint == "" {
		return w.what
	}
	return w.what + "; " + w.hint
}

func (wrong) Is(target error) bool { return target == ErrSettings }

// Open returns the driver of an engine. It sends nothing yet. If the error wraps
// [ErrSettings], it contains the wrong setting and the fix.
func (e Engine) Open(s Settings) (containers.Driver, error) {
	dir, err := filepath.Abs(s.DataDir)
	if err != nil {
		return nil, err
	}
	s.DataDir = dir
	return e.Driver(s)
}

func openDocker(s Settings) (containers.Driver, error) {
	return docker.New(docker.Options{Host: s.DockerHost, Network: s.Network, Init: s.Init, ParkDir: filepath.Join(s.DataDir, "held")})
}

func openContainerd(s Settings) (containers.Driver, error) {
	if os.Geteuid() != 0 {
		return nil, wrong{"driver containerd: only root can use containerd", "run it as root, or use --driver docker"}
	}
	if s.Attach == containers.AttachDeviceRequest {
		return nil, wrong{fmt.Sprintf("--attach %s: containerd has no device requests", s.Attach), "write --attach auto, cdi or runtime"}
	}
	d, err := containerd.New(containerd.Options{
		Address: s.ContainerdAddress, Namespace: s.ContainerdNamespace, Network: s.Network, Init: s.Init, Dir: filepath.Join(s.DataDir, "containerd"),
	})
	if err != nil {
		return nil, wrong{what: err.Error()}
	}
	return d, nil
}
