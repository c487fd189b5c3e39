// Package containers runs a task's attempt as a container and reports how it ended. It
// has no queues or policies: package mapper decides, package runner starts the
// containers.
//
// Each engine has a sub-package with a [Driver]; containerstest.Fake is another driver.
// All of them pass one test suite, containerstest.Suite.
package containers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that callers branch on with [errors.Is]. An error that wraps none of them, and
// is not an error of the context, is a fault of the machine, such as a full disk or a
// missing runtime.
var (
	// ErrNotFound means that the container or image does not exist.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable means that the container engine does not answer. Whether the request
	// took effect is unknown. The request may be repeated when the engine answers.
	ErrUnavailable = errors.New("container engine unavailable")
	// ErrInvalid means that the request can never succeed as it is (unknown entrypoint,
	// bad mount, bad user). It is the submitter's fault.
	ErrInvalid = errors.New("invalid container")
	// ErrUnsupported means that this engine can never fulfil the request. It wraps
	// ErrInvalid.
	ErrUnsupported = fmt.Errorf("%w: not possible on this engine", ErrInvalid)
	// ErrTaken means that another container has the name. It is not the submitter's
	// fault.
	ErrTaken = errors.New("name taken by another container")
)

// Driver runs containers on one engine. All methods may be called from several goroutines
// at once. Every method that changes something may be repeated. Creating, starting,
// stopping or removing a container that is already in that state succeeds.
//
// The order for one container is Create, Start, then Wait and Logs in parallel. Signal
// and Kill end it early. Remove comes last. Create and Start are separate so that the
// caller can journal the container before it runs.
type Driver interface {
	// Name returns the driver's name in configuration and output, such as "docker".
	Name() string
	// Supports returns the options that containers can have here. It does not ask the
	// engine. Create refuses all others, see [CheckOptions].
	Supports() Support
	// Ping returns the engine's version, or an error that wraps ErrUnavailable.
	Ping(ctx context.Context) (Engine, error)
	// Image looks up an image on this machine, and returns ErrNotFound if the image is
	// missing.
	Image(ctx context.Context, ref string) (Image, error)
	// Pull fetches an image from its registry, with the credential.
	Pull(ctx context.Context, ref string, by Credential) error
	// Create makes the container without starting it. If a container of the same name exists
	// and has spec's Identity, Create returns its id, even if it was made from another spec.
	// Task and attempt determine the name, so no attempt can exist twice. If another
	// container has the name, the error wraps ErrTaken.
	Create(ctx context.Context, spec Spec) (id string, err error)
	// Start runs a created container. It never runs a container twice: if the container runs
	// or has run, Start does nothing and returns nil. After an error that wraps ErrInvalid
	// the container has not run and will not.
	Start(ctx context.Context, id string) error
	// Wait blocks until the container has ended, however long that takes, and returns the
	// exit. It also waits for a container that is not started yet. It returns at once if the
	// container has ended already, or if its start failed (then Exit.Error is set). If the
	// engine stops meanwhile, the error wraps ErrUnavailable. If the container is removed
	// meanwhile, the error wraps ErrNotFound, because the end of the program is unknown.
	Wait(ctx context.Context, id string) (Exit, error)
	// Logs streams the output after since, or all output if since is zero, to sink, in
	// order. With follow it returns when the container has ended, otherwise at the end of
	// the present output. It returns at once for a container that has not been started.
	//
	// The times given to the sink strictly increase and are the same at every reading. So a
	// caller can pass the time of the last line or piece that it received, and receives
	// everything after it exactly once. This also holds in the middle of a long line, after
	// an error, and in another process. The engine may have deleted old lines to bound its
	// log. If the driver can detect that, the sink gets a mark whose stream is [Missing].
	Logs(ctx context.Context, id string, since time.Time, follow bool, sink LogSink) error
	// Signal sends the stop signal of the container's image, or SIGTERM. Kill ends the
	// container by force, even a paused one. Neither waits for the end. Both do nothing for
	// a container that does not run or does not exist.
	Signal(ctx context.Context, id string) error
	Kill(ctx context.Context, id string) error
	// Remove deletes a container with its anonymous volumes. A running container is killed
	// first.
	Remove(ctx context.Context, id string) error
	// Attached returns the GPUs that a started container really got.
	Attached(ctx context.Context, id string) (Attachment, error)
	// List returns the containers, in any state, that have all the labels.
	List(ctx context.Context, labels map[string]string) ([]Container, error)
	// Close closes the connection to the engine; containers keep running.
	Close() error
}

// Checker is a driver that can detect a fault of the machine while the engine still
// answers: something is missing that containers need to start.
type Checker interface {
	// Check returns the fault, or nil if it finds none. It is called every few seconds and
	// must be cheap.
	Check(ctx context.Context) *StartFault
}

// Ender is a driver whose engine may end its containers while it shuts down.
// During that time the engine still answers on old connections.
type Ender interface {
	// Ending reports whether the engine refuses new connections.
	Ending(ctx context.Context) bool
}

// LogSink receives one line of output without its newline. line is only valid during the
// call. A long line arrives in pieces of at most 64 KiB (Docker cuts at 16 KiB); all but
// the last have partial set. Pieces of the two streams may alternate. The last piece may
// be empty if the container ended without a newline.
type LogSink func(at time.Time, stream Stream, line []byte, partial bool)

// Stream is standard output or standard error.
type Stream uint8

// The two streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Engine describes the container engine behind a driver.
type Engine struct {
	Version    string `json:"version"`
	APIVersion string `json:"api_version"`
	// Runtimes lists the names of the engine's OCI runtimes.
	Runtimes []string `json:"runtimes,omitempty"`
	// CDIDirs lists the folders in which the engine looks for CDI files. An engine without
	// such folders does not inject CDI devices.
	CDIDirs []string `json:"cdi_dirs,omitempty"`
	// CgroupDriver names the manager of the containers' control groups, "cgroupfs" or
	// "systemd", or is empty if unknown.
	CgroupDriver string `json:"cgroup_driver,omitempty"`
	// Root is the folder in which the engine keeps containers and volumes, or empty if
	// unknown.
	Root string `json:"root,omitempty"`
	// Notes lists warnings for the operator, a sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Image describes an image on this machine.
type Image struct {
	ID     string
	Labels map[string]string
	User   string
	Env    []string // KEY=value
	// Entrypoint and Command are the default command line of its containers.
	Entrypoint, Command []string
	// Unseen is set if the engine has not examined the image, and fetches it only when a
	// container starts. Then only ID is set, to the image's name.
	Unseen bool
}

// Attach is the way in which a container gets its GPUs.
type Attach string

// The GPU attachment modes.
const (
	// AttachDeviceRequest is Docker's --gpus, by UUID.
	AttachDeviceRequest Attach = "device-request"
	// AttachRuntime selects the nvidia runtime with NVIDIA_VISIBLE_DEVICES.
	AttachRuntime Attach = "runtime"
	// AttachCDI injects the devices nvidia.com/gpu=UUID of the machine's CDI
	// files.
	AttachCDI Attach = "cdi"
	// AttachNodes gives the container the device nodes listed in [Spec].Nodes, and no
	// libraries. It is for containers that have the machine's own libraries, into whose
	// read-only folders nothing can be injected.
	AttachNodes Attach = "nodes"
	// AttachSimulated attaches no device. NVIDIA_VISIBLE_DEVICES is set, and the simulated
	// server's socket is mounted.
	AttachSimulated Attach = "simulated"
	// AttachClaim is for a cluster: a resource claim names the GPUs, and the cluster
	// attaches them.
	AttachClaim Attach = "claim"
)

// Mount is a bind mount of a folder or file of the host.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Spec is a complete description of a container.
type Spec struct {
	// Name is unique on the engine.
	Name  string
	Image string
	// Namespace is the part of the engine in which the container is made, for an engine that
	// has namespaces. The default is the driver's own namespace. Account is the service
	// account of the program in that namespace, or empty if it has none.
	Namespace, Account string
	// Labels describe the container to users and other programs. Identity contains further
	// labels, by which [Driver.Create] recognizes a container of this name.
	Labels, Identity map[string]string
	// Entrypoint and Command replace the image's if they are not empty. If Entrypoint is
	// set, the image's command is not used.
	Entrypoint []string
	Command    []string
	// Env is a list of KEY=value. NVIDIA_VISIBLE_DEVICES in it is ignored: the driver sets
	// that variable to GPUs, or to "void" if there are none.
	Env  []string
	User string // uid:gid; the default is the image's
	ContainerOptions
	Mounts []Mount
	// Limits; 0 means no limit. Memory is host memory in bytes, without swap, including the
	// content of /dev/shm. CPUs is a number of processors, like 1.5. If the kernel cannot
	// enforce a limit, the engine omits it, also the limit of processes.
	Memory int64
	CPUs   float64
	// CPUSet lists the processors that the container may use, like 0-15,32-47. Empty means
	// all.
	CPUSet string
	// CPUWeight is the container's share of scarce processors, in thousandths of a
	// processor, or 0 for the engine's default. OOMScore, from 0 to 1000, raises its chance
	// of being killed by the kernel when memory runs out.
	CPUWeight int64
	OOMScore  int
	// StopGrace is the time between stop signal and kill, for an engine that needs it with
	// the signal, or 0 for the driver's default.
	StopGrace time.Duration
	// Park allows the container to be parked at its start, see [Parker].
	Park bool
	GPUs []string
	// GPUMemory is the number of bytes to allocate on each GPU, on an engine that accounts
	// for it, or 0 for all.
	GPUMemory int64
	Attach    Attach
	Nodes     []string // paths of device nodes, with AttachNodes
	// NoNewPrivileges keeps set-uid programs from raising privileges.
	NoNewPrivileges bool
	// LogBytes is the least number of output bytes that the engine should keep until they
	// are read, or 0 for the driver's default.
	LogBytes int64
	// Sandbox isolates the container, or is nil for an ordinary container.
	Sandbox *Sandbox
	// Job names the job whose pod is the container, on a driver that is a [Jobber]. The pod
	// gets its image, command and settings from the job; only Name, Labels, Identity and the
	// GPU fields of the spec count. If Job is nil, the driver makes the pod.
	Job *JobID
	// Hosted is set for a container of a suite, otherwise nil. Only a driver that is a
	// [Hoster] accepts it.
	Hosted *Hosted
}

// CPUShares converts CPUWeight to the kernel's unit. It returns 0 if CPUWeight is not
// set.
func (s *Spec) CPUShares() int64 {
	if s.CPUWeight <= 0 {
		return 0
	}
	return max(2, min(s.CPUWeight*1024/1000, 1<<18))
}

// State is a container's position in its life cycle.
type State string

// The states.
const (
	StateCreated State = "created"
	StateRunning State = "running"
	StateExited  State = "exited"
)

// Container is a container found by [Driver.List].
type Container struct {
	ID    string
	Name  string
	State State
	// Paused is set if somebody has paused the container through the engine. It is false on
	// engines that cannot distinguish a pause from a frozen control group.
	Paused bool
	Labels map[string]string
}

// Exit describes the end of a container.
type Exit struct {
	Code int
	// OOMKilled is set if the kernel killed a process because host memory ran out.
	OOMKilled bool
	// Error is the engine's message if the container could not run.
	Error string
	// Lost is set if the engine does not know how the container ended, because the machine
	// or the container's supervisor died. Then Code is 255, and Finished is the last time at
	// which the container certainly ran.
	Lost     bool
	Started  time.Time
	Finished time.Time
}
