package containers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/internal/lazyregexp"
)

// Choice is the input of [ChooseAttach].
type Choice struct {
	// Driver is the driver's name. Engine is the engine's description of itself.
	Driver string
	Engine Engine
	// Hook is set if nvidia-container-runtime-hook is in PATH. Docker needs it for a
	// device request.
	Hook bool
	// Refused is set if the hook has refused a device request, as it does where NVIDIA's
	// toolkit is set to CDI.
	Refused bool
	// CDI is the reason why a GPU cannot be attached by CDI, or nil if all GPUs can be.
	CDI error
}

// ChooseAttach picks the way in which containers get their GPUs on this machine, and
// returns the reason. The error names the software to install.
//
// Docker: CDI if its files name every GPU and Docker injects them, because newer toolkits
// may refuse the device request of docker run --gpus. Otherwise the device request,
// otherwise the nvidia runtime. containerd: CDI, which needs no other runtime, otherwise
// the nvidia runtime.
func ChooseAttach(c Choice) (mode Attach, why string, err error) {
	byCDI := c.CDI == nil && len(c.Engine.CDIDirs) > 0
	const cdiWhy = "CDI files name every GPU"
	runtime := slices.Contains(c.Engine.Runtimes, "nvidia")
	const runtimeWhy = "the nvidia runtime is there"
	if c.Driver == "containerd" {
		switch {
		case byCDI:
			return AttachCDI, cdiWhy, nil
		case runtime:
			return AttachRuntime, runtimeWhy + "; " + c.CDI.Error(), nil
		}
		return "", "", &NoAttachError{c.CDI.Error() + ", and no nvidia-container-runtime is in PATH", "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"}
	}
	switch {
	case byCDI:
		return AttachCDI, cdiWhy + " and Docker injects them", nil
	case c.Hook && !c.Refused:
		return AttachDeviceRequest, "Docker has NVIDIA's hook for --gpus", nil
	case runtime && c.Refused:
		return AttachRuntime, runtimeWhy + "; NVIDIA's hook refuses --gpus", nil
	case runtime:
		return AttachRuntime, runtimeWhy, nil
	}
	var cdi string
	switch {
	case len(c.Engine.CDIDirs) == 0:
		cdi = "Docker injects no CDI devices (from version 25 on it can)"
	default:
		cdi = c.CDI.Error()
	}
	if c.Refused {
		return "", "", &NoAttachError{"NVIDIA's hook refuses --gpus, there is no nvidia runtime, and " + cdi, "nvidia-ctk runtime configure --runtime=docker, then restart Docker"}
	}
	return "", "", &NoAttachError{"neither NVIDIA's hook nor the nvidia runtime was found, and " + cdi, "install the NVIDIA Container Toolkit and run: nvidia-ctk runtime configure --runtime=docker"}
}

// NoAttachError means that containers cannot get GPUs on this machine.
type NoAttachError struct {
	Text string
	Fix  string // the fix
}

// Error returns the problem and its fix.
func (e *NoAttachError) Error() string { return e.Text + "; to mend it: " + e.Fix }

// Attachment describes the GPUs that a container really got, as reported by its engine
// and the kernel.
type Attachment struct {
	// Visible is the container's NVIDIA_VISIBLE_DEVICES.
	Visible string
	// Requested lists the device ids that the engine was asked for, or is nil if the mode
	// makes no such request.
	Requested []string
	// Nodes lists the GPUs' device nodes in the running container (see [DeviceNodes]). It is
	// nil if the container has ended or this process may not read its folder in /proc.
	Nodes []string
}

// ErrWrongGPUs is wrapped by the errors of [CheckGPUs].
var ErrWrongGPUs = errors.New("the container has not the GPUs it was given")

// CheckGPUs compares the attachment of a container with its spec. nodes lists the device
// nodes of the spec's GPUs, or is nil to skip their comparison. The error wraps
// [ErrWrongGPUs].
func CheckGPUs(spec Spec, got Attachment, nodes []string) error {
	want := "void"
	if len(spec.GPUs) > 0 {
		want = strings.Join(spec.GPUs, ",")
	}
	if got.Visible != want {
		return fmt.Errorf("%w: %s is %q, not %q", ErrWrongGPUs, "NVIDIA_VISIBLE_DEVICES", got.Visible, want)
	}
	if spec.Attach == AttachSimulated || len(spec.GPUs) == 0 {
		return nil
	}
	if got.Requested != nil && !slices.Equal(sorted(got.Requested), sorted(spec.GPUs)) {
		return fmt.Errorf("%w: the engine was asked for %s, not %s", ErrWrongGPUs, strings.Join(got.Requested, ", "), strings.Join(spec.GPUs, ", "))
	}
	if got.Nodes != nil && nodes != nil && !slices.Equal(sorted(got.Nodes), sorted(nodes)) {
		return fmt.Errorf("%w: it has %s, not %s", ErrWrongGPUs, list(got.Nodes), list(nodes))
	}
	return nil
}

func list(paths []string) string {
	if len(paths) == 0 {
		return "no device node"
	}
	return strings.Join(sorted(paths), ", ")
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

var gpuNode = lazyregexp.New(`^nvidia\d+$`)

// OnlyGPUNodes keeps the device paths that belong to one GPU, like /dev/nvidia0.
// Other nodes are shared by all GPUs.
func OnlyGPUNodes(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return filepath.Dir(p) != "/dev" || !gpuNode().MatchString(filepath.Base(p))
	})
}

// DeviceNodes lists the GPUs' device nodes in the /dev of a process. It returns nil if it
// cannot read that folder (only root may), and an empty list if there are no nodes.
func DeviceNodes(pid int) []string {
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/dev", pid))
	if err != nil {
		return nil
	}
	paths := make([]string, 0, len(files))
	for _, f := range files {
		paths = append(paths, "/dev/"+f.Name())
	}
	return OnlyGPUNodes(paths)
}

// driverFolder is the folder in which NVIDIA's driver describes its GPUs.
const driverFolder = "/proc/driver/nvidia/gpus"

// NodesOf returns the device nodes of the GPUs with these UUIDs, as NVIDIA's driver names
// them. It returns nil if the driver does not know all of them (no driver, MIG).
func NodesOf(uuids []string) []string { return nodesOf(os.DirFS(driverFolder), uuids) }
