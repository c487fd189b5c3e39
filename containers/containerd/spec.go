package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
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
)

// maker makes the OCI specification of one container: containerd's default,
// which is Docker's in namespaces, capabilities and masked paths, and what
// Docker adds to it.
type maker struct {
	*Driver
	spec   containers.Spec
	image  client.Image
	dir    string
	config ocispec.ImageConfig
	failed string // why it can never start
}

func (m *maker) opts() []oci.SpecOpts {
	return []oci.SpecOpts{
		oci.WithoutRunMount, // images have files in /run
		m.process, m.user, m.mounts, m.bound, m.shutIn, m.gpus, m.privileges,
	}
}

// keepFailure remembers with the container what makes its start fail.
func (m *maker) keepFailure(_ context.Context, _ *client.Client, c *core.Container) error {
	if m.failed != "" {
		c.Labels[labelFailed] = m.failed
	}
	return nil
}

// defaultPath is PATH where the image has none, as Docker sets it.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// process sets the command, its environment and its folder from the image and
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
	p.Env = merge([]string{defaultPath, "HOSTNAME=" + hostname(m.spec.Name)}, c.Env, m.spec.Env)
	p.Cwd = "/"
	for _, dir := range []string{c.WorkingDir, m.spec.WorkDir} {
		if dir != "" {
			p.Cwd = path.Join("/", dir)
		}
	}
	p.Rlimits = nil // containerd's own, as with Docker; its default of 1024 files is few
	zero := 0
	p.OOMScoreAdj = &zero // not that of the shim, which the kernel spares
	p.NoNewPrivileges = m.spec.NoNewPrivileges
	s.Hostname = hostname(m.spec.Name)
	return nil
}

// merge joins environments; of two values of a variable the later one counts.
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
	// notThere: the start fails because there is no such program.
	notThere = regexp.MustCompile(`no such file|not found`)
	// badUser: the image does not know the user. Anything else that happens
	// while the image is looked into is the machine's fault.
	badUser = regexp.MustCompile(`no users found|no groups found|etc/(passwd|group): no such file|invalid USER value|out of range`)
)

// user sets who the program runs as. That the image does not know them shows
// at the start, as with Docker, not now.
func (m *maker) user(ctx context.Context, c oci.Client, container *core.Container, s *oci.Spec) error {
	name := m.config.User
	if m.spec.User != "" {
		name = m.spec.User
	}
	if name == "" {
		name = "0"
	}
	err := oci.WithUser(name)(ctx, c, container, s)
	if err == nil && !strings.Contains(name, ":") { // Docker adds the user's groups unless one is named
		err = oci.WithAdditionalGIDs(name)(ctx, c, container, s)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist) || badUser.MatchString(err.Error()):
		m.failed = fmt.Sprintf("unable to find user %s in the image: %s", name, containers.CleanMessage(err.Error()))
		s.Process.User = specs.User{UID: nobody, GID: nobody} // it will not run; if it did, not as root
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
	if m.spec.HostIPC {
		s.Linux.Namespaces = slices.DeleteFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.IPCNamespace })
		s.Mounts = slices.DeleteFunc(s.Mounts, func(t specs.Mount) bool { return t.Destination == "/dev/shm" })
		bind("/dev/shm", "/dev/shm", false)
	}
	shm := m.spec.ShmSize
	if shm == 0 {
		shm = 64 << 20
	}
	for i := range s.Mounts {
		if s.Mounts[i].Destination == "/dev/shm" && !m.spec.HostIPC {
			o := slices.DeleteFunc(s.Mounts[i].Options, func(o string) bool { return strings.HasPrefix(o, "size=") })
			s.Mounts[i].Options = append(o, fmt.Sprintf("size=%d", shm))
		}
	}
	for target, file := range map[string]string{"/etc/hostname": "hostname", "/etc/hosts": "hosts", "/etc/resolv.conf": "resolv"} {
		mounted := slices.ContainsFunc(m.spec.Mounts, func(t containers.Mount) bool { return path.Clean(t.Target) == target })
		if !mounted {
			bind(filepath.Join(m.dir, file), target, m.spec.Sandbox != nil)
		}
	}
	for _, t := range m.spec.Mounts {
		bind(t.Source, path.Clean(t.Target), t.ReadOnly)
	}
	return nil
}

// shutIn sets the limits of a sandbox. That it has no network is seen to at
// the start.
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

// bound sets what the container may use of the machine, as far as the kernel has
// the control groups for it.
func (m *maker) bound(_ context.Context, _ oci.Client, _ *core.Container, s *oci.Spec) error {
	only := func(controller string) int64 {
		if controls(controller) {
			return 1
		}
		return 0
	}
	limitTo(s.Linux.Resources, m.spec.Memory*only("memory"), m.spec.CPUs*float64(only("cpu")), m.spec.Processes*only("pids"))
	return nil
}

// limitTo sets limits; 0 is none.
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

// visibleGPUs is the variable by which NVIDIA's runtime chooses devices.
const visibleGPUs = "NVIDIA_VISIBLE_DEVICES"

// gpus gives the container its GPUs and sets the variable that names them,
// after the CDI files, which set it to "void".
func (m *maker) gpus(_ context.Context, _ oci.Client, _ *core.Container, s *oci.Spec) error {
	names := "void"
	if len(m.spec.GPUs) > 0 {
		names = strings.Join(m.spec.GPUs, ",")
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

// privileges sets what depends on the user and the capabilities.
func (m *maker) privileges(ctx context.Context, c oci.Client, container *core.Container, s *oci.Spec) error {
	if s.Process.User.UID != 0 {
		// As after an execve of anybody but root.
		s.Process.Capabilities.Effective, s.Process.Capabilities.Permitted = nil, nil
	}
	return seccomp.WithDefaultProfile()(ctx, c, container, s)
}

// runtime is runc, or NVIDIA's in front of it.
func (d *Driver) runtime(spec containers.Spec) (client.NewContainerOpts, error) {
	if len(spec.GPUs) == 0 {
		return client.WithRuntime(runtimeName, nil), nil
	}
	switch spec.Attach {
	case containers.AttachCDI, containers.AttachSimulated:
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
