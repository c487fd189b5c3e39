package containers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Choice is what [ChooseAttach] looks at.
type Choice struct {
	// Driver is the driver's name, Engine what it found.
	Driver string
	Engine Engine
	// Hook: nvidia-container-runtime-hook is in PATH, by which Docker carries
	// out a device request.
	Hook bool
	// CDI says why a GPU is not to be had by CDI; nil: all are.
	CDI error
}

// ChooseAttach picks how containers get their GPUs on this machine, and says
// why. The error tells what to install.
//
// Docker: a device request where Docker can carry it out, because that is
// what docker run --gpus does and newer engines turn it into CDI by
// themselves; else CDI, else the nvidia runtime. containerd: CDI, which needs
// no other runtime, else the nvidia runtime.
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
	case c.Hook:
		return AttachDeviceRequest, "Docker has NVIDIA's hook for --gpus", nil
	case byCDI:
		return AttachCDI, cdiWhy + " and Docker injects them", nil
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
	return "", "", &NoAttachError{"neither NVIDIA's hook nor the nvidia runtime was found, and " + cdi, "install the NVIDIA Container Toolkit and run: nvidia-ctk runtime configure --runtime=docker"}
}

// NoAttachError: containers cannot get GPUs on this machine.
type NoAttachError struct {
	Text string
	Mend string // what to do about it
}

func (e *NoAttachError) Error() string { return e.Text + "; to mend it: " + e.Mend }

// Attachment is what a container got of GPUs, as its engine and the kernel
// tell.
type Attachment struct {
	// Visible is its NVIDIA_VISIBLE_DEVICES.
	Visible string
	// Requested are the device ids its engine was asked for, or the files of
	// devices that its specification has; nil where the mode has neither.
	Requested []string
	// Nodes are the GPUs' device nodes in the running container, see
	// [DeviceNodes]; nil: it does not run any more, or may not be looked into.
	Nodes []string
}

// ErrWrongGPUs is wrapped by the errors of [CheckGPUs].
var ErrWrongGPUs = errors.New("the container has not the GPUs it was given")

// CheckGPUs compares what a container of spec got with what it was given.
// nodes are the device nodes of its GPUs; nil: not known, and then nodes are
// not compared.
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

var gpuNode = regexp.MustCompile(`^nvidia\d+$`)

// OnlyGPUNodes leaves of device paths those that are one GPU's, /dev/nvidia0 and
// so on: the others are shared by all.
func OnlyGPUNodes(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return filepath.Dir(p) != "/dev" || !gpuNode.MatchString(filepath.Base(p))
	})
}

// DeviceNodes lists the GPUs' device nodes in the /dev of a process, which
// root may look into; nil if that cannot be done, empty if there are none.
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

// driverFolder is where NVIDIA's driver describes its GPUs.
const driverFolder = "/proc/driver/nvidia/gpus"

// NodesOf are the device nodes of the GPUs with these UUIDs, as NVIDIA's
// driver tells; nil if it does not know all of them (no driver, MIG).
func NodesOf(uuids []string) []string { return nodesOf(os.DirFS(driverFolder), uuids) }
