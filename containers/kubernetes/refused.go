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

const noDevices = "a pod gets devices by claims only"

// Supports returns the options of a pod.
func (d *Driver) Supports() containers.Support {
	return containers.Support{
		"WorkDir": nil, "ShmSize": nil, "Init": nil, "Groups": nil,
		"Hostname": nil, "Interactive": nil, "TTY": nil,
		"Pids":       containers.Never("a node has one limit of processes for all its pods (the kubelet's podPidsLimit)"),
		"Ulimits":    containers.Never("a pod has no limits of processes; set them in the nodes' container runtime"),
		"Tmpfs":      plainTmpfs,
		"IPC":        ownIPC,
		"StopSignal": containers.Never("a cluster sends the image's STOPSIGNAL, or SIGTERM"),
		"Ports":      containers.Never("the pod runs on another machine; use kubectl port-forward"),
		"Devices":    containers.Never(noDevices),
	}
}

// plainTmpfs refuses what a volume in memory cannot have.
func plainTmpfs(o *containers.ContainerOptions) string {
	for _, t := range option.Each(o.Tmpfs, option.ParseTmpfs) {
		if t.Mode != "" || t.Exec || t.UID != 0 || t.GID != 0 {
			return "a pod's folder in memory is root's and has mode 777; leave out mode, exec, uid and gid"
		}
	}
	return ""
}

func ownIPC(o *containers.ContainerOptions) string {
	if o.IPC == containers.IPCHost {
		return "a pod of a user does not get the node's IPC namespace"
	}
	return ""
}

// refused says which parts of a spec beside its options a cluster cannot do.
func refused(spec containers.Spec) error {
	for _, r := range []struct {
		asked bool
		why   string
	}{
		{spec.CPUSet != "", "processors by number: a node's kubelet chooses them (its static CPU manager)"},
		{spec.Attach == containers.AttachNodes && len(spec.Nodes) > 0, noDevices},
		{spec.Sandbox != nil, "a container without network (carma probe): a pod always has one; run the probe on a server"},
		{spec.Hosted != nil, "containers of a suite with helpers: write them as Deployments and Services"},
	} {
		if r.asked {
			return fmt.Errorf("%w: %s", containers.ErrUnsupported, r.why)
		}
	}
	return nil
}

// folder checks the source of a mount and returns its kind, if this machine has the same
// folder. The node does not check a folder that this machine lacks.
func (m *manifests) folder(source string) (corev1.HostPathType, error) {
	clean := path.Clean(source)
	allowed := path.IsAbs(source) && slices.ContainsFunc(m.hostPaths, func(p string) bool {
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
