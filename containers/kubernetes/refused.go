package kubernetes

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
	"carma/containers/option"
)

// refused says what of a spec a cluster cannot do.
func refused(spec containers.Spec) error {
	if spec.WorkDir != "" && !path.IsAbs(spec.WorkDir) {
		return fmt.Errorf("%w: working directory %q is not an absolute path", containers.ErrInvalid, spec.WorkDir)
	}
	for _, r := range []struct {
		asked bool
		why   string
	}{
		{spec.CPUSet != "", "processors by number: a node's kubelet chooses them (its static CPU manager)"},
		{len(spec.Ulimits) > 0, "limits of processes (--ulimit): a pod has none; set them in the nodes' container runtime"},
		{len(spec.Devices) > 0 || spec.Attach == containers.AttachNodes && len(spec.Nodes) > 0, "device nodes (--device): a pod gets devices by claims only"},
		{spec.StopSignal != "", "a stop signal of the task's own: a cluster sends the image's STOPSIGNAL, or SIGTERM"},
		{len(spec.Ports) > 0, "ports on this machine (--publish): the pod runs on another; use kubectl port-forward"},
		{spec.IPC == containers.IPCHost, "the node's IPC namespace (MPS): a pod of a user has none"},
		{spec.Sandbox != nil, "a container without network (carma probe): a pod always has one; run the probe on a server"},
		{spec.Hosted != nil, "containers of a suite with helpers: write them as Deployments and Services"},
		{slices.ContainsFunc(option.Each(spec.Tmpfs, option.ParseTmpfs), func(t option.Tmpfs) bool { return t.Mode != "" || t.Exec }), "modes of a folder in memory (--tmpfs): a pod's has mode 777"},
	} {
		if r.asked {
			return fmt.Errorf("%w: %s", containers.ErrUnsupported, r.why)
		}
	}
	return nil
}

// folder checks the source of a mount and returns its kind, if this machine has the same
// folder. The node does not check a folder that this machine lacks.
func (d *Driver) folder(source string) (corev1.HostPathType, error) {
	clean := path.Clean(source)
	allowed := path.IsAbs(source) && slices.ContainsFunc(d.opts.HostPaths, func(p string) bool {
		return clean == path.Clean(p) || strings.HasPrefix(clean, strings.TrimSuffix(path.Clean(p), "/")+"/")
	})
	if !allowed {
		return "", fmt.Errorf("%w: mounting %s: each node has folders of its own, and the administrator has not listed this one as shared by all", containers.ErrUnsupported, source)
	}
	switch info, err := os.Stat(source); {
	case err == nil && info.IsDir():
		return corev1.HostPathDirectory, nil
	case err == nil:
		return corev1.HostPathFile, nil
	}
	return corev1.HostPathUnset, nil
}
