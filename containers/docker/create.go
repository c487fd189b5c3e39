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
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"carma/containers"
	"carma/containers/cdi"
	"carma/containers/option"
)

// Create makes the container of spec. If a container with the same name and identity
// exists, Create returns its id.
func (d *Driver) Create(ctx context.Context, spec containers.Spec) (string, error) {
	what := fmt.Sprintf("create container %q", spec.Name)
	if err := spec.Check(d); err != nil {
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
	networking, err := d.hosting.host(spec, conf, host)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if spec.Park && d.parking.CanPark() == nil {
		if dir, err = d.parking.makeParked(ctx, cli, spec, conf, host); err != nil {
			if id, taken, _ := existing(ctx, cli, spec); id != "" && taken == nil {
				return id, nil // the image existed when the container was made
			}
			return "", d.fail(ctx, cli, what, err)
		}
	}
	id, made, err := d.create(ctx, cli, what, spec, client.ContainerCreateOptions{Name: spec.Name, Config: conf, HostConfig: host, NetworkingConfig: networking})
	if !made {
		err = errors.Join(err, d.parking.forgetParked(dir))
	}
	if err == nil {
		err = d.hosting.furnish(ctx, cli, what, id, spec.Hosted)
	}
	return id, err
}

// create makes the container; made is false if the container exists already.
func (d *Driver) create(ctx context.Context, cli *client.Client, what string, spec containers.Spec, options client.ContainerCreateOptions) (id string, made bool, err error) {
	for try := 0; ; try++ {
		res, err := cli.ContainerCreate(ctx, options)
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
			continue // the container with this name has just been removed
		case errdefs.IsNotFound(lookErr):
			return "", false, d.fail(ctx, cli, what, err)
		}
		return "", false, d.fail(ctx, cli, what, lookErr)
	}
}

// existing searches for the container with a spec's name. taken is set if the container
// is not the spec's own. err is the client's.
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
	exposed := network.PortSet{}
	for _, p := range option.Each(spec.Ports, option.ParsePort) {
		exposed[portOf(p)] = struct{}{}
	}
	return &container.Config{
		Hostname:     hostname(spec),
		StopSignal:   spec.StopSignal,
		ExposedPorts: exposed,
		Image:        spec.Image,
		Labels:       spec.AllLabels(),
		Entrypoint:   spec.Entrypoint,
		Cmd:          spec.Command,
		Env:          env(spec),
		WorkingDir:   spec.WorkDir,
		User:         spec.User,
		Tty:          spec.TTY,
		OpenStdin:    spec.Interactive || spec.TTY,
		StdinOnce:    spec.Interactive && !spec.TTY && spec.Hosted == nil, // otherwise the engine never ends the input
	}
}

// hostname returns the container's own name, or "" to let the engine choose one. A
// sandbox needs a name that is known in advance.
func hostname(spec containers.Spec) string {
	if spec.Hostname == "" && spec.Sandbox != nil {
		return "sandbox"
	}
	return spec.Hostname
}

// logSize is the size at which the engine begins a new log file. It keeps three files.
var logSize = "16m" // variable for tests

// logConfig configures the engine's own log so that at least n bytes of output are kept,
// or the default amount if n is 0. n counts bytes of a task's log, whose entries are more
// than half as large as the engine's. Of five files of n/2 bytes, four are always full.
func logConfig(n int64) map[string]string {
	if n == 0 {
		return map[string]string{"max-size": logSize, "max-file": "3"}
	}
	return map[string]string{"max-size": strconv.FormatInt(max(n/2, 1<<20)>>10, 10) + "k", "max-file": "5"}
}

// visible is the variable by which NVIDIA's runtime selects devices.
const visible = "NVIDIA_VISIBLE_DEVICES"

// env returns the spec's environment with NVIDIA_VISIBLE_DEVICES set to the granted GPUs,
// or "void" for none. The variable is set in every mode, because NVIDIA's base images set
// it to "all". They would get all GPUs if the nvidia runtime is the engine's default.
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

// hostConfig gives the container nothing of the host except mounts and GPUs: no
// privileges and no namespaces. The engine must not remove or restart the container on
// its own.
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
	bound(h, spec.Memory, spec.CPUs, spec.Pids)
	h.CpusetCpus = spec.CPUSet
	h.CPUShares, h.OomScoreAdj = spec.CPUShares(), spec.OOMScore
	if spec.IPC == containers.IPCHost {
		h.IpcMode, h.ShmSize = container.IPCModeHost, 0
	}
	fit(h, spec)
	if spec.NoNewPrivileges {
		h.SecurityOpt = []string{"no-new-privileges"}
	}
	for _, m := range spec.Mounts {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly,
		})
	}
	if spec.Sandbox != nil {
		shutIn(h, spec)
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
	case containers.AttachNodes:
		h.Runtime = "runc" // if the engine's default is nvidia's runtime, it would inject libraries
		for _, path := range spec.Nodes {
			h.Devices = append(h.Devices, container.DeviceMapping{PathOnHost: path, PathInContainer: path, CgroupPermissions: "rwm"})
		}
	case containers.AttachSimulated:
	default:
		return nil, fmt.Errorf("%w: unknown GPU attachment %q", containers.ErrInvalid, spec.Attach)
	}
	return h, nil
}

// cdiDriver is the name of the engine's device driver that injects CDI devices
// (from version 25 on).
const cdiDriver = "cdi"

// shutIn puts the container into its sandbox. Without a network the engine does not add
// the container's own name to /etc/hosts, where torchrun looks it up, so shutIn adds it.
func shutIn(h *container.HostConfig, spec containers.Spec) {
	s := spec.Sandbox
	h.NetworkMode = "none"
	h.ExtraHosts = []string{hostname(spec) + ":127.0.0.1"}
	h.CapDrop = []string{"ALL"}
	h.ReadonlyRootfs = true
	h.Tmpfs = map[string]string{containers.ScratchDir: fmt.Sprintf("rw,nosuid,nodev,mode=1777,size=%d", s.ScratchSize())}
	bound(h, s.Memory, s.CPUs, s.Processes)
}

// bound sets limits: memory in bytes, CPUs, processes. 0 means no limit.
func bound(h *container.HostConfig, memory int64, cpus float64, processes int64) {
	h.Memory, h.MemorySwap = memory, memory
	h.NanoCPUs = nano(cpus)
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
