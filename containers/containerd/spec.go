package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/contrib/seccomp"
	core "github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"carma/containers"
	"carma/containers/cdi"
	"carma/containers/containerd/logfile"
	"carma/containers/option"
	"carma/internal/lazyregexp"
)

// maker makes the OCI specification of one container. It starts from containerd's
// default, which has Docker's namespaces, capabilities and masked paths, and adds
// what Docker adds.
type maker struct {
	*Driver
	spec   containers.Spec
	image  client.Image
	dir    string
	config ocispec.ImageConfig
	failed string // reason why the container can never start
}

func (m *maker) opts() []oci.SpecOpts {
	return []oci.SpecOpts{
		oci.WithoutRunMount, // images have files in /run
		m.process, m.user, m.mounts, m.bound, m.fit, m.shutIn, m.gpus, m.privileges,
	}
}

// keepFailure stores in the container's labels the reason why it can never start.
func (m *maker) keepFailure(_ context.Context, _ *client.Client, c *core.Container) error {
	if m.failed != "" {
		c.Labels[labelFailed] = m.failed
	}
	return nil
}

// defaultPath is PATH if the image sets none. It is the same as Docker's.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// defaultTerm is the terminal type, as Docker sets it.
const defaultTerm = "TERM=xterm"

// process sets the command, environment and working directory from the image and
// the task.
func (m *maker) process(ctx context.Context, _ oci.Client, _ *core.Container, s *oci.Spec) error {
	_, c, err := config(ctx, m.image)
	if err != nil {
		return err
	}
	m.config = c
	entry, args := c.Entrypoint, c.Cmd
	if len(m.spec.Entrypoint) > 0 {
		entry, args = m.spec.Entrypoint, nil
	}
	if len(m.spec.Command) > 0 {
		args = m.spec.Command
	}
	p := s.Process
	p.Args = slices.Concat(entry, args)
	if len(p.Args) == 0 {
		return fmt.Errorf("%w: neither the task nor the image has a command", containers.ErrInvalid)
	}
	if m.spec.Init {
		p.Args = append([]string{initTarget, "reap"}, p.Args...)
	}
	if talkOf(m.spec) == logfile.TalkInput {
		p.Args = append([]string{initTarget, "input", inputTarget}, p.Args...)
	}
	own := []string{defaultPath, "HOSTNAME=" + hostname(m.spec)}
	if m.spec.TTY {
		p.Terminal = true
		own = append(own, defaultTerm)
	}
	p.Env = merge(own, c.Env, m.spec.Env)
	p.Cwd = "/"
	for _, dir := range []string{c.WorkingDir, m.spec.WorkDir} {
		if dir != "" {
			p.Cwd = path.Join("/", dir)
		}
	}
	p.Rlimits = rlimits(option.Each(m.spec.Ulimits, option.ParseUlimit))
	zero := 0
	p.OOMScoreAdj = &zero // the shim's value would protect the program from the OOM killer
	p.NoNewPrivileges = m.spec.NoNewPrivileges
	s.Hostname = hostname(m.spec)
	return nil
}

// merge joins environments. If a variable is set twice, the later value counts.
func merge(envs ...[]string) (out []string) {
	at := map[string]int{}
	for _, kv := range slices.Concat(envs...) {
		key, _, _ := strings.Cut(kv, "=")
		if i, ok := at[key]; ok {
			out[i] = kv
			continue
		}
		at[key] = len(out)
		out = append(out, kv)
	}
	return out
}

var (
	// notThere matches errors of a start that fails because the program does not exist.
	notThere = lazyregexp.New(`no such file|not found`)
	// badUser matches errors of an image that lacks the user. Any other error of reading the
	// image is the machine's fault.
	badUser = lazyregexp.New(`no users found|no groups found|etc/(passwd|group): no such file|invalid USER value|out of range`)
)

// user sets the user of the program. If the image lacks the user, the start fails, not
// the creation, as with Docker.
func (m *maker) user(ctx context.Context, c oci.Client, container *core.Container, s *oci.Spec) error {
	name := m.config.User
	if m.spec.User != "" {
		name = m.spec.User
	}
	if name == "" {
		name = "0"
	}
	err := oci.WithUser(name)(ctx, c, container, s)
	if err == nil && !strings.Contains(name, ":") { // Docker adds the user's groups unless the spec names a group
		err = oci.WithAdditionalGIDs(name)(ctx, c, container, s)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist) || badUser().MatchString(err.Error()):
		m.failed = fmt.Sprintf("unable to find user %s in the image: %s", name, containers.CleanMessage(err.Error()))
		s.Process.User = specs.User{UID: nobody, GID: nobody} // the program will not run; the user makes sure that it would not run as root
		return nil
	}
	return fmt.Errorf("user %s: %w", name, err)
}

const nobody = 65534

func (m *maker) mounts(_ context.Context, _ oci.Client, _ *core.Container, s *oci.Spec) error {
	bind := func(source, target string, readOnly bool) {
		mode := "rw"
		if readOnly {
			mode = "ro"
		}
		s.Mounts = append(s.Mounts, specs.Mount{Type: "bind", Source: source, Destination: target, Options: []string{"rbind", "rprivate", mode}})
	}
	if m.spec.IPC == containers.IPCHost {
		s.Linux.Namespaces = slices.DeleteFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.IPCNamespace })
		s.Mounts = slices.DeleteFunc(s.Mounts, func(t specs.Mount) bool { return t.Destination == "/dev/shm" })
		bind("/dev/shm", "/dev/shm", false)
	}
	shm := m.spec.ShmSize
	if shm == 0 {
		shm = 64 << 20
	}
	for i := range s.Mounts {
		if s.Mounts[i].Destination == "/dev/shm" && m.spec.IPC != containers.IPCHost {
			o := slices.DeleteFunc(s.Mounts[i].Options, func(o string) bool { return strings.HasPrefix(o, "size=") })
			s.Mounts[i].Options = append(o, fmt.Sprintf("size=%d", shm))
		}
	}
	own := len(s.Mounts)
	list := slices.Clone(m.spec.Mounts)
	for target, file := range map[string]string{"/etc/hostname": "hostname", "/etc/hosts": "hosts", "/etc/resolv.conf": "resolv"} {
		mounted := slices.ContainsFunc(m.spec.Mounts, func(t containers.Mount) bool { return path.Clean(t.Target) == target })
		if !mounted {
			list = append(list, containers.Mount{Source: filepath.Join(m.dir, file), Target: target, ReadOnly: m.spec.Sandbox != nil})
		}
	}
	for _, t := range list {
		bind(t.Source, path.Clean(t.Target), t.ReadOnly)
	}
	for _, t := range option.Each(m.spec.Tmpfs, option.ParseTmpfs) {
		s.Mounts = append(s.Mounts, specs.Mount{Type: "tmpfs", Source: "tmpfs", Destination: path.Clean(t.Target), Options: t.Options()})
	}
	// A folder is mounted before mounts inside it, as with Docker.
	slices.SortStableFunc(s.Mounts[own:], func(a, b specs.Mount) int {
		return cmp.Compare(strings.Count(a.Destination, "/"), strings.Count(b.Destination, "/"))
	})
	return nil
}

// shutIn sets the limits of a sandbox. Its network is omitted at the start.
func (m *maker) shutIn(_ context.Context, _ oci.Client, _ *core.Container, s *oci.Spec) error {
	box := m.spec.Sandbox
	if box == nil {
		return nil
	}
	s.Root.Readonly = true
	s.Process.Capabilities = &specs.LinuxCapabilities{}
	s.Mounts = append(s.Mounts, specs.Mount{
		Type: "tmpfs", Source: "tmpfs", Destination: containers.ScratchDir,
		Options: []string{"rw", "nosuid", "nodev", "mode=1777", fmt.Sprintf("size=%d", box.ScratchSize())},
	})
	limitTo(s.Linux.Resources, box.Memory, box.CPUs, box.Processes)
	return nil
}

// bound sets the container's limits of host memory, CPUs and processes. It omits limits
// for which the kernel has no controller.
func (m *maker) bound(_ context.Context, _ oci.Client, _ *core.Container, s *oci.Spec) error {
	only := func(controller string) int64 {
		if controls(controller) {
			return 1
		}
		return 0
	}
	if score := m.spec.OOMScore; score > 0 {
		s.Process.OOMScoreAdj = &score
	}
	limitTo(s.Linux.Resources, m.spec.Memory*only("memory"), m.spec.CPUs*float64(only("cpu")), m.spec.Pids*only("pids"))
	cpu := cmp.Or(s.Linux.Resources.CPU, &specs.LinuxCPU{})
	if shares := uint64(m.spec.CPUShares()); shares > 0 && controls("cpu") {
		cpu.Shares, s.Linux.Resources.CPU = &shares, cpu
	}
	if m.spec.CPUSet != "" && controls("cpuset") {
		cpu.Cpus, s.Linux.Resources.CPU = m.spec.CPUSet, cpu
	}
	return nil
}

// limitTo sets limits: memory in bytes, CPUs, processes. 0 means no limit.
func limitTo(r *specs.LinuxResources, memory int64, cpus float64, processes int64) {
	if memory > 0 {
		r.Memory = &specs.LinuxMemory{Limit: &memory}
		if swapLimits() {
			r.Memory.Swap = &memory
		}
	}
	if cpus > 0 {
		period, quota := uint64(100_000), int64(cpus*100_000)
		r.CPU = &specs.LinuxCPU{Period: &period, Quota: &quota}
	}
	if processes > 0 {
		r.Pids = &specs.LinuxPids{Limit: &processes}
	}
}

// visibleGPUs is the variable by which NVIDIA's runtime selects devices.
const visibleGPUs = "NVIDIA_VISIBLE_DEVICES"

// gpus attaches the container's GPUs and sets the variable that names them. It does so
// after injecting the CDI files, because they set the variable to "void".
func (m *maker) gpus(ctx context.Context, c oci.Client, container *core.Container, s *oci.Spec) error {
	names := "void"
	if len(m.spec.GPUs) > 0 {
		names = strings.Join(m.spec.GPUs, ",")
		if m.spec.Attach == containers.AttachNodes {
			for _, node := range m.spec.Nodes {
				if err := oci.WithDevices(node, node, "rwm")(ctx, c, container, s); err != nil {
					return fmt.Errorf("device node %s: %w", node, err)
				}
			}
		}
		if m.spec.Attach == containers.AttachCDI {
			files, err := cdi.Read(m.Driver.opts.CDIDirs)
			if err != nil {
				return fmt.Errorf("CDI device: %w", err)
			}
			if err := files.Inject(s, m.spec.GPUs); err != nil {
				return err
			}
		}
	}
	s.Process.Env = merge(s.Process.Env, []string{visibleGPUs + "=" + names})
	return nil
}

// privileges sets the fields that depend on the user and the capabilities.
func (m *maker) privileges(ctx context.Context, c oci.Client, container *core.Container, s *oci.Spec) error {
	if s.Process.User.UID != 0 {
		// As after an execve by a user other than root.
		s.Process.Capabilities.Effective, s.Process.Capabilities.Permitted = nil, nil
	}
	return seccomp.WithDefaultProfile()(ctx, c, container, s)
}

// runtime selects runc, or NVIDIA's runtime in front of it.
func (d *Driver) runtime(spec containers.Spec) (client.NewContainerOpts, error) {
	if len(spec.GPUs) == 0 {
		return client.WithRuntime(runtimeName, nil), nil
	}
	switch spec.Attach {
	case containers.AttachCDI, containers.AttachNodes, containers.AttachSimulated:
		return client.WithRuntime(runtimeName, nil), nil
	case containers.AttachRuntime:
		path, err := d.nvidiaRuntime()
		if err != nil {
			return nil, fmt.Errorf("unknown runtime nvidia: nvidia-container-runtime: %w", err)
		}
		return client.WithRuntime(runtimeName, &runcoptions.Options{BinaryName: path}), nil
	case containers.AttachDeviceRequest:
		return nil, fmt.Errorf("%w: containerd has no device requests; attach: cdi or runtime", containers.ErrInvalid)
	}
	return nil, fmt.Errorf("%w: unknown GPU attachment %q", containers.ErrInvalid, spec.Attach)
}
