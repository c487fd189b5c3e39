package containers

import (
	"context"

	"carma/containers/option"
)

// ContainerOptions are the options of docker run that go unchanged from a submission to
// the container. A submission and a [Spec] embed the same struct, so no field is lost on
// the way. A zero value leaves the option to the engine and the image.
//
// Options with a syntax stay texts, in the words of docker run, because the submission's
// texts are in the journal and in answers; package option parses them. In a Spec the
// daemon has checked and completed them: Groups are numbers, each of Tmpfs has a size,
// Devices are no folders, IPC is host only if the daemon allows it.
//
// The tags make each field a flag, a key of task files and a part of the API; see Field in
// package api.
type ContainerOptions struct {
	WorkDir string `json:"workdir,omitempty" maxLength:"4096" letter:"w" value:"folder" help:"working folder in the container"`
	ShmSize int64  `json:"shm_size,omitempty" minimum:"0" unit:"memory" help:"size of /dev/shm (default: half of its host memory)" doc:"size of /dev/shm in bytes; 0: the daemon's default"`
	// Pids counts threads too.
	Pids       int64    `json:"pids,omitempty" minimum:"0" value:"processes" help:"processes and threads it may have (default: the daemon's)" doc:"processes and threads it may have; 0: the daemon's default"`
	Ulimits    []string `json:"ulimits,omitempty" maxItems:"64" name:"ulimit" unit:"ulimit" value:"name=soft[:hard]" help:"limit of its processes, for example memlock=-1 or nofile=65536; may be repeated"`
	Tmpfs      []string `json:"tmpfs,omitempty" maxItems:"64" unit:"tmpfs" value:"folder[:options]" help:"folder in memory, for example /scratch:size=2G; its content counts as host memory; may be repeated"`
	Init       bool     `json:"init,omitempty" help:"a small first process takes in the children that its program leaves behind, and passes signals on"`
	IPC        string   `json:"ipc,omitempty" enum:"private,shareable,host" help:"private (default), shareable (the same here), or host if the daemon allows it"`
	Groups     []string `json:"group_add,omitempty" maxItems:"64" unit:"group" value:"group" help:"a further group of yours that it has, by the name or number of this machine; may be repeated"`
	Hostname   string   `json:"hostname,omitempty" unit:"hostname" value:"name" help:"its own name in the container (default: the engine's choice)"`
	StopSignal string   `json:"stop_signal,omitempty" unit:"signal" value:"signal" help:"signal that stops it, for example SIGINT (default: the image's, else SIGTERM)"`
	Ports      []string `json:"publish,omitempty" maxItems:"64" letter:"p" unit:"port" value:"[port:]port" help:"open a port of it on 127.0.0.1, for example 8888; may be repeated; carma port shows where"`
	Devices    []string `json:"devices,omitempty" maxItems:"64" name:"device" unit:"device" value:"path[:path]" help:"device of this machine that the administrator allows, for example /dev/infiniband/uverbs0; may be repeated"`
	// Interactive and TTY are docker's -i and -t: the program has an input, and a terminal,
	// see [Terminals]. Without either its input ends at once. On some engines, the input of
	// a program without a terminal ends when the first attached session is closed.
	Interactive bool `json:"interactive,omitempty" letter:"i" help:"it has an input: yours, while you are attached"`
	TTY         bool `json:"tty,omitempty" letter:"t" help:"it has a terminal; with -i yours, and carma attach takes it again"`
}

// IPCHost is the value of IPC that gives the container the host's IPC namespace.
const IPCHost = "host"

// Publisher is a driver that opens the ports of containers.
type Publisher interface {
	// CanPublish returns the reason why a port of this protocol cannot be opened here, or
	// nil if it can.
	CanPublish(protocol string) error
	// Ports returns the open ports of a running container, with the host port of each. If
	// the engine opens no ports, the driver opens them, and keeps them open until it is
	// closed or the container has ended. Ports may be called again, also by another process.
	Ports(ctx context.Context, id string) ([]option.Port, error)
}

// InitTarget is the path of carma-init in containers that have it.
const InitTarget = "/.carma/init"
