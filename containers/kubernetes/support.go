package kubernetes

import (
	"carma/containers"
	"carma/containers/kubernetes/manifest"
	"carma/containers/option"
)

// Supports returns the container options that a pod supports.
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
		"Devices":    containers.Never(manifest.NoDevices),
	}
}

// plainTmpfs refuses tmpfs options that a volume in memory does not have.
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
