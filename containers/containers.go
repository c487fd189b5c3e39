// Package containers runs a task's attempt as a container and tells how it
// ended. It knows nothing about queues or policies: package runner asks for a
// container, package mapper decided where.
//
// The [Driver] contract is implemented by sub-packages, one per runtime, and
// by containerstest.Fake; containerstest.Suite is the one test suite that all
// of them pass.
package containers

import (
	"context"
	"errors"
	"time"
)

// Errors that callers branch on with [errors.Is]. An error that wraps none of
// them and not the context's either is the machine's fault: a full disk, a
// missing runtime, a name taken by somebody else's container.
var (
	// ErrNotFound: no such container or image.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the container engine does not answer. The request may
	// be repeated when it does; whether it took effect is not known.
	ErrUnavailable = errors.New("container engine unavailable")
	// ErrInvalid: the request can never succeed as it stands (unknown
	// entrypoint, bad mount, bad user). The fault is the submitter's.
	ErrInvalid = errors.New("invalid container")
	// ErrTaken: another container has the name. The fault is not the
	// submitter's.
	ErrTaken = errors.New("name taken by another container")
)

// Driver runs containers on one engine. All methods may be called from
// several goroutines at once. Every method that changes something may be
// repeated: creating what exists, starting what runs, stopping what has
// stopped and removing what is gone are successes.
//
// The order for one container is Create, Start, then Wait and Logs in
// parallel, Signal and Kill if it must end early, Remove last. Create and Start are
// separate so that the caller can journal the container before it runs.
type Driver interface {
	// Name is the driver's name in configuration and output: "docker".
	Name() string
	// Ping returns the engine's version, or an error wrapping ErrUnavailable.
	Ping(ctx context.Context) (Engine, error)
	// Image looks up an image on this machine; ErrNotFound if it is not there.
	Image(ctx context.Context, ref string) (Image, error)
	// Pull fetches an image from its registry.
	Pull(ctx context.Context, ref string) error
	// Create makes the container, not running. If one of the same name exists
	// already and carries spec's Identity, its id is returned, whatever else it
	// was made from: names are fixed by task and attempt, so that no attempt can
	// exist twice. The name in use by another container is an error, which wraps
	// ErrTaken.
	Create(ctx context.Context, spec Spec) (id string, err error)
	// Start runs a created container; no error if it runs or has run already,
	// and it never runs twice. After an error that wraps ErrInvalid the
	// container has not run and will not.
	Start(ctx context.Context, id string) error
	// Wait blocks until the container has ended, however long that takes, and
	// returns how. It returns at once for one that ended before or whose start
	// failed (then Exit.Error is set), and also waits for one that has yet to
	// start. If the engine goes away meanwhile, the error wraps
	// ErrUnavailable; if the container is removed meanwhile, ErrNotFound: an end
	// by removal says nothing about the program.
	Wait(ctx context.Context, id string) (Exit, error)
	// Logs streams the output after since (zero: from the start) to sink, in
	// order, and returns when the container has ended (follow) or at the end
	// of what there is now. For a container that has not been started it
	// returns at once.
	//
	// The times given to the sink strictly increase and are the same whenever
	// the log is read. Whoever passes the time of the last line or piece they
	// were given gets what comes after it, in full and nothing twice, also in
	// the middle of a long line, after an error, and in another process. Lines
	// that the engine has thrown away for their amount are lost; where that can
	// be known, the sink is told by [Missing] in the place of a stream.
	Logs(ctx context.Context, id string, since time.Time, follow bool, sink LogSink) error
	// Signal sends the container its image's stop signal, SIGTERM if that names
	// none. Kill ends it by force, also one that is paused. Neither waits for the
	// end, which Wait tells; one that does not run, or is gone, is left alone.
	Signal(ctx context.Context, id string) error
	Kill(ctx context.Context, id string) error
	// Remove deletes a container with its anonymous volumes; a running one
	// is killed first.
	Remove(ctx context.Context, id string) error
	// Attached tells what a container that was started got of GPUs.
	Attached(ctx context.Context, id string) (Attachment, error)
	// List returns the containers, in any state, that carry all the labels.
	List(ctx context.Context, labels map[string]string) ([]Container, error)
	// Close lets go of the engine; containers keep running.
	Close() error
}

// Checker is implemented by drivers that can see, beyond an answer, that what
// containers need to start is not there any more.
type Checker interface {
	// Check returns what is missing; nil: nothing that can be seen. It is called
	// every few seconds and must be cheap.
	Check(ctx context.Context) *StartFault
}

// Ender is implemented by drivers whose engine may end its containers when it
// ends itself, and still answers old connections meanwhile.
type Ender interface {
	// Ending reports whether the engine takes no new requests.
	Ending(ctx context.Context) bool
}

// LogSink receives one line of output without its newline. line is only valid
// during the call. A long line arrives in pieces of at most 64 KiB (Docker cuts
// at 16 KiB), all but the last with partial set; pieces of the two streams may
// alternate. The last piece may be empty: it ends a line that the container
// left without a newline.
type LogSink func(at time.Time, stream Stream, line []byte, partial bool)

// Stream tells standard output from standard error.
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
	// Runtimes are the names of the OCI runtimes it knows.
	Runtimes []string `json:"runtimes,omitempty"`
	// CDIDirs are the folders in which it looks for CDI files; none: it does
	// not inject CDI devices.
	CDIDirs []string `json:"cdi_dirs,omitempty"`
	// Notes are what the operator should know of it, a sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Image describes an image on this machine.
type Image struct {
	ID     string
	Labels map[string]string
	User   string
	Env    []string // KEY=value
}

// Attach says how a container gets its GPUs.
type Attach string

// The GPU attachment modes.
const (
	// AttachDeviceRequest is Docker's --gpus, by UUID.
	AttachDeviceRequest Attach = "device-request"
	// AttachRuntime selects the nvidia runtime with NVIDIA_VISIBLE_DEVICES.
	AttachRuntime Attach = "runtime"
	// AttachCDI injects what the machine's CDI files describe for each GPU,
	// named nvidia.com/gpu=UUID.
	AttachCDI Attach = "cdi"
	// AttachSimulated gives no device: only NVIDIA_VISIBLE_DEVICES is set and
	// the simulated server's socket is one of the mounts.
	AttachSimulated Attach = "simulated"
)

// Mount is a bind mount of a folder or file of the host.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Spec is everything a container is made from.
type Spec struct {
	// Name is unique on the engine.
	Name  string
	Image string
	// Labels tell people and other programs about the container. Identity are
	// further labels, by which [Driver.Create] knows a container of this name
	// again.
	Labels, Identity map[string]string
	// Entrypoint and Command replace the image's where not empty. The image's
	// command is not used with another entrypoint.
	Entrypoint []string
	Command    []string
	// Env is KEY=value. NVIDIA_VISIBLE_DEVICES is not taken from it: a driver
	// sets it to GPUs, or to "void" without any.
	Env     []string
	WorkDir string
	User    string // uid:gid; empty: the image's
	Mounts  []Mount
	ShmSize int64 // bytes; 0: the engine's default
	// Memory is how much host memory it may use, in bytes, what is in /dev/shm
	// included and without swap; CPUs of how many processors it may use the time;
	// Processes how many of them and threads it may have. 0 is no limit. An
	// engine on a kernel without such a limit leaves it out.
	Memory    int64
	CPUs      float64
	Processes int64
	// HostIPC gives it the host's IPC namespace in place of its own.
	HostIPC bool
	// Park: the container may be parked when it starts, see [Parker].
	Park   bool
	GPUs   []string
	Attach Attach
	// NoNewPrivileges forbids set-uid binaries to raise privileges.
	NoNewPrivileges bool
	// LogBytes is how much output the engine should keep at least until it is
	// read; 0: the driver's own amount.
	LogBytes int64
	// Sandbox shuts the container in; nil: it is an ordinary one.
	Sandbox *Sandbox
}

// Sandbox is for a container that only looks at something: it has no network
// but its own loopback, no capabilities, and may write only to its mounts and
// to [ScratchDir], which is in its memory. Limits of 0 are no limits.
type Sandbox struct {
	Memory    int64   // bytes, with what is in ScratchDir; there is no swap
	CPUs      float64 // of how many processors it may use the time
	Processes int64   // and threads
	Scratch   int64   // size of ScratchDir in bytes; 0: 64 MiB
}

// ScratchDir is the only folder of its own that a container in a [Sandbox]
// can write to.
const ScratchDir = "/tmp"

// ScratchSize is the size of ScratchDir in bytes.
func (s Sandbox) ScratchSize() int64 {
	if s.Scratch == 0 {
		return 64 << 20
	}
	return s.Scratch
}

// State is where a container is in its life.
type State string

// The states.
const (
	StateCreated State = "created"
	StateRunning State = "running"
	StateExited  State = "exited"
)

// Container is one found by [Driver.List].
type Container struct {
	ID     string
	Name   string
	State  State
	Labels map[string]string
}

// Exit tells how a container ended.
type Exit struct {
	Code int
	// OOMKilled: the kernel killed a process for lack of host memory.
	OOMKilled bool
	// Error is the engine's own message when the container could not run.
	Error string
	// Lost: the engine does not know how it ended, because the machine or the
	// container's supervisor died. Code is 255 then, and Finished the last time
	// at which it is known to have run.
	Lost     bool
	Started  time.Time
	Finished time.Time
}
