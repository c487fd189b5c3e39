package containers

import (
	"context"
	"time"
)

// Hoster is a [Driver] that can run the containers of a suite: with networks in
// which they find each other by name, volumes that outlive them, and programs that
// the engine starts again. All its methods may be repeated: it is a success to
// make what exists, or to remove what is gone.
type Hoster interface {
	// CanHost says why suites with helpers cannot run here, or returns nil if they can.
	// It does not ask the engine.
	CanHost() error
	// MakeNetwork makes a network. An existing one of the same name is used as it is if
	// it has all the labels; otherwise the error wraps [ErrTaken].
	MakeNetwork(ctx context.Context, n Network) error
	// MakeVolume makes an empty volume under the same rule. made is false if it existed.
	// folder contains its files on the engine's machine.
	MakeVolume(ctx context.Context, v Volume) (folder string, made bool, err error)
	RemoveNetwork(ctx context.Context, name string) error
	RemoveVolume(ctx context.Context, name string) error
	// Networks and Volumes list the names of networks and volumes with all the labels.
	Networks(ctx context.Context, labels map[string]string) ([]string, error)
	Volumes(ctx context.Context, labels map[string]string) ([]string, error)
	// Look returns the state of a container.
	Look(ctx context.Context, id string) (Look, error)
	// Halt ends a container for good: with its stop signal, after grace with a
	// kill. It returns when the container has ended. The engine does not start it
	// again.
	Halt(ctx context.Context, id string, grace time.Duration) error
}

// Network is a network that only the containers joined to it are in.
type Network struct {
	Name   string
	Labels map[string]string
	// Internal cuts the network off from all other networks.
	Internal bool
}

// Volume is a folder that the engine keeps.
type Volume struct {
	Name   string
	Labels map[string]string
}

// Hosted has the settings of a suite's container that [Spec] lacks.
type Hosted struct {
	// Networks replace the driver's network. With none the container has only its own
	// loopback.
	Networks []Join
	// Within names a container whose network it shares, loopback and ports included;
	// that container must run. Then Networks, Ports, Hosts and Hostname are empty.
	Within  string
	Volumes []VolumeMount
	// Ports are reached from this machine only, through 127.0.0.1.
	Ports []Port
	// Hosts are lines name:address for its /etc/hosts.
	Hosts []string
	// Health replaces the image's check, unless nil.
	Health *Health
	// Restart says when the engine starts it again: never (empty), [RestartAlways] or
	// [RestartFailed]. Tries bounds the restarts of RestartFailed; 0 is no bound.
	Restart string
	Tries   int
	// Reduced limits the container to Capabilities. Otherwise it has the engine's
	// default.
	Reduced      bool
	Capabilities []string
	Sysctls      map[string]string
	// ReadOnly lets the container write only to its mounts, volumes and memory.
	ReadOnly bool
	// Tmpfs are folders in memory, with their options.
	Tmpfs   map[string]string
	Ulimits []Ulimit
	// Init runs a small init as the first process.
	Init                 bool
	StopSignal, Hostname string
	Groups               []string // numbers or names of more groups
	Terminal, Stdin      bool     // a terminal; an open standard input
}

// When the engine starts a container of a suite again.
const (
	RestartAlways = "always"
	RestartFailed = "on-failure"
)

// Join is a container's place in a network.
type Join struct {
	Network string
	Aliases []string // by which the others there find it
}

// VolumeMount is a volume in a container. Without a name the volume belongs to the
// container, and is removed with it.
type VolumeMount struct {
	Volume, Target   string
	ReadOnly, NoCopy bool
}

// Health is a check of a container's health. Test is as in an image: CMD or CMD-SHELL and
// its words, or NONE. 0 means the engine's default.
type Health struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
	Retries                        int
}

// The states of a container's health. A container without a check has none.
const (
	HealthStarting  = "starting"
	HealthGood      = "healthy"
	HealthUnhealthy = "unhealthy"
)

// Look is the observed state of a container.
type Look struct {
	State    State
	Code     int    // of its last end
	Error    string // the engine's, if it could not start
	Health   string
	Restarts int // by the engine
	Started  time.Time
	Ports    []Port
}
