package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"carma/containers"
	"carma/containers/cdi"
)

// Create makes the container of spec, or returns the id of the one that has
// its name and its identity.
func (d *Driver) Create(ctx context.Context, spec containers.Spec) (string, error) {
	what := fmt.Sprintf("create container %q", spec.Name)
	if err := spec.Check(); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	host, err := d.hostConfig(spec)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	cli, err := d.client(ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	conf, dir := config(spec), ""
	if spec.Park && d.CanPark() == nil {
		if dir, err = d.makeParked(ctx, cli, spec, conf, host); err != nil {
			if id, taken, _ := existing(ctx, cli, spec); id != "" && taken == nil {
				return id, nil // made when that was possible
			}
			return "", d.fail(ctx, cli, what, err)
		}
	}
	id, made, err := d.create(ctx, cli, what, spec, conf, host)
	if !made {
		err = errors.Join(err, d.forgetParked(dir))
	}
	return id, err
}

// create makes the container; made is false if there was one.
func (d *Driver) create(ctx context.Context, cli *client.Client, what string, spec containers.Spec, conf *container.Config, host *container.HostConfig) (id string, made bool, err error) {
	for try := 0; ; try++ {
		res, err := cli.ContainerCreate(ctx, client.ContainerCreateOptions{Name: spec.Name, Config: conf, HostConfig: host})
		if err == nil {
			return res.ID, true, nil
		}
		conflict := errdefs.IsConflict(err)
		id, taken, lookErr := existing(ctx, cli, spec)
		switch {
		case lookErr == nil && taken == nil:
			return id, false, nil
		case !conflict:
			return "", false, d.fail(ctx, cli, what, err)
		case lookErr == nil:
			return "", false, fmt.Errorf("%s: %w", what, taken)
		case errdefs.IsNotFound(lookErr) && try < 3:
			continue // the one in the way has just been removed
		case errdefs.IsNotFound(lookErr):
			return "", false, d.fail(ctx, cli, what, err)
		}
		return "", false, d.fail(ctx, cli, what, lookErr)
	}
}

// existing looks for the container of a spec's name. taken says that it is not
// the spec's own; err is the client's.
func existing(ctx context.Context, cli *client.Client, spec containers.Spec) (id string, taken, err error) {
	have, err := cli.ContainerInspect(ctx, spec.Name, client.ContainerInspectOptions{})
	if err != nil {
		return "", nil, err
	}
	var labels map[string]string
	if have.Container.Config != nil {
		labels = have.Container.Config.Labels
	}
	return have.Container.ID, spec.Recognize(short(have.Container.ID), labels), nil
}

func config(spec containers.Spec) *container.Config {
	return &container.Config{
		Image:      spec.Image,
		Labels:     spec.AllLabels(),
		Entrypoint: spec.Entrypoint,
		Cmd:        spec.Command,
		Env:        env(spec),
		WorkingDir: spec.WorkDir,
		User:       spec.User,
	}
}

// logSize is where the engine begins a new log file; it keeps three.
var logSize = "16m" // a variable for the tests

// logConfig bounds the engine's own log. An entry takes less than twice the room
// there that it takes in a task's log, which keeps n bytes; without the file that
// is being begun, four are full.
func logConfig(n int64) map[string]string {
	if n == 0 {
		return map[string]string{"max-size": logSize, "max-file": "3"}
	}
	return map[string]string{"max-size": strconv.FormatInt(max(n/2, 1<<20)>>10, 10) + "k", "max-file": "5"}
}

// visible is the variable by which NVIDIA's runtime chooses devices.
const visible = "NVIDIA_VISIBLE_DEVICES"

// env is the spec's environment with the GPUs that were granted and no
// others. The variable is set in every mode: images based on NVIDIA's ask for
// "all", and where the nvidia runtime is the engine's default they would get
// it. "void" means none.
func env(spec containers.Spec) []string {
	out := slices.DeleteFunc(slices.Clone(spec.Env), func(kv string) bool {
		return kv == visible || strings.HasPrefix(kv, visible+"=")
	})
	gpus := "void"
	if len(spec.GPUs) > 0 {
		gpus = strings.Join(spec.GPUs, ",")
	}
	return append(out, visible+"="+gpus)
}

// hostConfig gives the container nothing of the host but mounts and GPUs: no
// privileges, no namespaces, and no removal or restart behind carma's back.
func (d *Driver) hostConfig(spec containers.Spec) (*container.HostConfig, error) {
	h := &container.HostConfig{
		NetworkMode:   container.NetworkMode(d.opts.Network),
		IpcMode:       container.IPCModePrivate,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		ShmSize:       spec.ShmSize,
		LogConfig: container.LogConfig{
			Type:   "json-file",
			Config: logConfig(spec.LogBytes),
		},
	}
	bound(h, spec.Memory, spec.CPUs, spec.Processes)
	if spec.HostIPC {
		h.IpcMode, h.ShmSize = container.IPCModeHost, 0
	}
	if spec.NoNewPrivileges {
		h.SecurityOpt = []string{"no-new-privileges"}
	}
	for _, m := range spec.Mounts {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly,
		})
	}
	if spec.Sandbox != nil {
		shutIn(h, *spec.Sandbox)
	}
	if len(spec.GPUs) == 0 {
		return h, nil
	}
	switch spec.Attach {
	case containers.AttachDeviceRequest:
		h.DeviceRequests = []container.DeviceRequest{{
			DeviceIDs: spec.GPUs, Capabilities: [][]string{{"gpu"}},
		}}
	case containers.AttachCDI:
		h.DeviceRequests = []container.DeviceRequest{{Driver: cdiDriver, DeviceIDs: cdi.Names(spec.GPUs)}}
	case containers.AttachRuntime:
		h.Runtime = "nvidia"
	case containers.AttachSimulated:
	default:
		return nil, fmt.Errorf("%w: unknown GPU attachment %q", containers.ErrInvalid, spec.Attach)
	}
	return h, nil
}

// cdiDriver is the name of the engine's own driver of device requests that
// injects CDI devices, from version 25 on.
const cdiDriver = "cdi"

func shutIn(h *container.HostConfig, s containers.Sandbox) {
	h.NetworkMode = "none"
	h.CapDrop = []string{"ALL"}
	h.ReadonlyRootfs = true
	h.Tmpfs = map[string]string{containers.ScratchDir: fmt.Sprintf("rw,nosuid,nodev,mode=1777,size=%d", s.ScratchSize())}
	bound(h, s.Memory, s.CPUs, s.Processes)
}

// bound sets what the container may use of the machine; 0 is no limit.
func bound(h *container.HostConfig, memory int64, cpus float64, processes int64) {
	h.Memory, h.MemorySwap = memory, memory
	h.NanoCPUs = int64(cpus * 1e9)
	if processes > 0 {
		h.PidsLimit = &processes
	}
}

func checkNetwork(name string) error {
	if name == "host" || strings.HasPrefix(name, "container:") {
		return fmt.Errorf("docker network %q: tasks do not share another's network", name)
	}
	return nil
}
