// Package containers runs a task's attempt as a container and reports how it ended. It
// knows nothing about queues or policies: package mapper decides, package runner asks for
// a container.
//
// Each engine has a sub-package with a [Driver]; containerstest.Fake is another
// one. All of them pass one test suite, containerstest.Suite.
package containers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that callers branch on with [errors.Is]. An error that wraps none of
// them, and no error of the context, is the machine's fault: a full disk, a
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
	// ErrUnsupported means that this engine can never do what the request asks for. It
	// wraps ErrInvalid.
	ErrUnsupported = fmt.Errorf("%w: not possible on this engine", ErrInvalid)
	// ErrTaken means that another container has the name. It is not the submitter's
	// fault.
	ErrTaken = errors.New("name taken by another container")
)

// Driver runs containers on one engine. All methods may be called from several
// goroutines at once. Every method that changes something may be repeated. It is
// a success to create what exists, start what runs, stop what has stopped, or
// remove what is gone.
//
// The order for one container is Create, Start, then Wait and Logs in parallel.
// Signal and Kill end it early. Remove comes last. Create and Start are separate
// so that the caller can journal the container before it runs.
type Driver interface {
	// Name is the driver's name in configuration and output: "docker".
	Name() string
	// Ping returns the engine's version, or an error wrapping ErrUnavailable.
	Ping(ctx context.Context) (Engine, error)
	// Image looks up an image on this machine, and returns ErrNotFound if the image is
	// missing.
	Image(ctx context.Context, ref string) (Image, error)
	// Pull fetches an image from its registry, which is shown the credential.
	Pull(ctx context.Context, ref string, by Credential) error
	// Create makes the container without starting it. If a container of the same
	// name exists and has spec's Identity, Create returns its id, whatever spec
	// it was made from: a name is fixed by task and attempt, so no attempt can
	// exist twice. If another container has the name, the error wraps ErrTaken.
	Create(ctx context.Context, spec Spec) (id string, err error)
	// Start runs a created container. It never runs twice: if it runs or has run
	// already, Start does nothing and returns nil. After an error that wraps
	// ErrInvalid it has not run and will not.
	Start(ctx context.Context, id string) error
	// Wait blocks until the container has ended, however long that takes, and returns the
	// exit. It also waits for a container that is not started yet. It returns at once if
	// the container ended before, or if its start failed (then Exit.Error is set). If the
	// engine stops meanwhile, the error wraps ErrUnavailable. If the container is removed
	// meanwhile, it wraps ErrNotFound: a removal says nothing about the program.
	Wait(ctx context.Context, id string) (Exit, error)
	// Logs streams the output after since (zero: from the start) to sink, in
	// order. With follow it returns when the container has ended, otherwise at
	// the end of the present output. For a container that has not been started it
	// returns at once.
	//
	// The times given to the sink strictly increase and are the same at every
	// reading. So a caller can pass the time of the last line or piece that it
	// got, and gets everything after it, in full and nothing twice. This holds
	// also in the middle of a long line, after an error, and in another process.
	// The engine may have deleted old lines to bound its log. If that can be
	// known, the sink gets a mark whose stream is [Missing].
	Logs(ctx context.Context, id string, since time.Time, follow bool, sink LogSink) error
	// Signal sends the stop signal of the container's image, or SIGTERM. Kill
	// ends the container by force, also a paused one. Neither waits for the end;
	// Wait does. For a container that does not run, or is gone, they do nothing.
	Signal(ctx context.Context, id string) error
	Kill(ctx context.Context, id string) error
	// Remove deletes a container with its anonymous volumes; a running one
	// is killed first.
	Remove(ctx context.Context, id string) error
	// Attached returns how a started container really got its GPUs.
	Attached(ctx context.Context, id string) (Attachment, error)
	// List returns the containers, in any state, that carry all the labels.
	List(ctx context.Context, labels map[string]string) ([]Container, error)
	// Close closes the connection to the engine; containers keep running.
	Close() error
}

// Checker is a driver that can notice a fault of the machine although the engine
// answers: something that containers need to start is gone.
type Checker interface {
	// Check returns what is missing, or nil if it finds nothing. It is called every few
	// seconds and must be cheap.
	Check(ctx context.Context) *StartFault
}

// Ender is a driver whose engine may end its containers while it shuts down.
// During that time the engine still answers on old connections.
type Ender interface {
	// Ending reports whether the engine refuses new connections.
	Ending(ctx context.Context) bool
}

// LogSink receives one line of output without its newline. line is only valid
// during the call. A long line arrives in pieces of at most 64 KiB (Docker cuts
// at 16 KiB); all but the last have partial set. Pieces of the two streams may
// alternate. The last piece may be empty: it ends a line that the container left
// without a newline.
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
	// Runtimes are the names of the engine's OCI runtimes.
	Runtimes []string `json:"runtimes,omitempty"`
	// CDIDirs are the folders in which the engine looks for CDI files. An engine with
	// none does not inject CDI devices.
	CDIDirs []string `json:"cdi_dirs,omitempty"`
	// CgroupDriver names the manager of the containers' control groups, "cgroupfs" or
	// "systemd", or is empty if unknown.
	CgroupDriver string `json:"cgroup_driver,omitempty"`
	// Root is the folder in which the engine keeps containers and volumes, or empty if
	// unknown.
	Root string `json:"root,omitempty"`
	// Notes are warnings for the operator, a sentence each.
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
	// Unseen is set if the engine has not examined the image, and fetches it when a
	// container starts. Then only ID is set, to the image's name.
	Unseen bool
}

// Attach says how a container gets its GPUs.
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
	// AttachNodes gives the container the device nodes that [Spec].Nodes names, and
	// no library. It is for containers that have the machine's own libraries, into
	// whose read-only folders nothing can be injected.
	AttachNodes Attach = "nodes"
	// AttachSimulated gives no device. NVIDIA_VISIBLE_DEVICES is set, and the
	// simulated server's socket is one of the mounts.
	AttachSimulated Attach = "simulated"
	// AttachClaim is for a cluster: a claim names the GPUs, and the cluster gives
	// them to the container.
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
	// Namespace is the part of the engine in which the container is made, for an engine
	// with such parts. The default is the driver's own. Account is the service account of
	// the program in that namespace, or empty if it has none.
	Namespace, Account string
	// Labels describe the container to people and other programs. Identity are
	// labels too: [Driver.Create] recognizes a container of this name by them.
	Labels, Identity map[string]string
	// Entrypoint and Command replace the image's if they are not empty. With an own
	// Entrypoint the image's command is not used.
	Entrypoint []string
	Command    []string
	// Env is KEY=value. Its NVIDIA_VISIBLE_DEVICES is ignored: the driver sets
	// that variable to GPUs, or to "void" without any.
	Env     []string
	WorkDir string
	User    string // uid:gid; the default is the image's
	// TTY gives the program a terminal, and Stdin an input, see [Terminals]. Otherwise
	// its input ends at once. Without a terminal the input ends, on some engines, when
	// the first session that was attached is closed.
	TTY, Stdin bool
	Mounts     []Mount
	ShmSize    int64 // bytes; the engine's default if 0
	// Limits; 0 means no limit. Memory is host memory in bytes, without swap and with the
	// content of /dev/shm. CPUs is a number of processors, like 1.5. Processes counts
	// threads too. If the kernel lacks a limit, the engine leaves it out.
	Memory    int64
	CPUs      float64
	Processes int64
	// CPUSet lists the processors that the container may use, like 0-15,32-47, or all if
	// empty.
	CPUSet string
	// CPUWeight is its share of scarce processors, in thousandths of a processor, or 0
	// for the engine's default. OOMScore, from 0 to 1000, raises its chance of being
	// killed by the kernel when memory runs out.
	CPUWeight int64
	OOMScore  int
	// Options of docker run with the same names; a zero value leaves them to the engine
	// and the image.
	Hostname   string
	StopSignal string // like SIGINT, or a number
	// StopGrace is the time between stop signal and kill, for an engine that must know it
	// at the signal; the driver's default if 0.
	StopGrace time.Duration
	Groups    []int // further groups of its user
	Ulimits   []Ulimit
	Tmpfs     []Tmpfs
	Devices   []Device
	// Init adds a small process as the container's first. It starts the program, passes
	// signals on and reaps orphans.
	Init bool
	// Ports are opened on 127.0.0.1; see [Publisher].
	Ports []Port
	// HostIPC gives the container the host's IPC namespace instead of its own.
	HostIPC bool
	// Park allows the container to be parked at its start, see [Parker].
	Park bool
	GPUs []string
	// GPUMemory is the number of bytes to allocate on each GPU, on an engine that keeps
	// account of it; all if 0.
	GPUMemory int64
	Attach    Attach
	Nodes     []string // paths of device nodes, with AttachNodes
	// NoNewPrivileges keeps set-uid programs from raising privileges.
	NoNewPrivileges bool
	// LogBytes is the number of output bytes that the engine should keep at least until
	// they are read; the driver's default if 0.
	LogBytes int64
	// Sandbox isolates the container; nil for an ordinary container.
	Sandbox *Sandbox
	// Job names the job whose pod is the container, on a driver that is a [Jobber]. The
	// pod has its image, command and settings from the job: of the spec only Name,
	// Labels, Identity and the fields about GPUs count. The driver makes the pod if Job
	// is nil.
	Job *JobID
	// Hosted is set for a container of a suite, and nil for others. Only a driver that is
	// a [Hoster] accepts it.
	Hosted *Hosted
}

// CPUShares converts CPUWeight to the kernel's unit. It returns 0 if there is none.
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
	// Paused is set if somebody has paused the container through the engine. It is false
	// on engines that cannot distinguish this from a frozen control group.
	Paused bool
	Labels map[string]string
}

// Exit describes the end of a container.
type Exit struct {
	Code int
	// OOMKilled is set if the kernel killed a process for lack of host memory.
	OOMKilled bool
	// Error is the engine's message if the container could not run.
	Error string
	// Lost is set if the engine does not know how the container ended, because the
	// machine or the container's supervisor died. Then Code is 255, and Finished is the
	// last time at which it surely ran.
	Lost     bool
	Started  time.Time
	Finished time.Time
}
