package containers

import (
	"context"
	"time"

	"carma/containers/option"
)

// Hoster is a [Driver] that can run the containers of a suite: with networks in which
// they resolve each other's names, volumes that outlive them, and restarts by the engine.
// All its methods may be repeated: making what exists, or removing what does not exist,
// succeeds.
type Hoster interface {
	// CanHost returns the reason why suites with helpers cannot run here, or nil if they
	// can. It does not ask the engine.
	CanHost() error
	// MakeNetwork makes a network. An existing one of the same name is reused if it has all
	// the labels; otherwise the error wraps [ErrTaken].
	MakeNetwork(ctx context.Context, n Network) error
	// MakeVolume makes an empty volume under the same rule. made is false if it existed.
	// folder is the path of its files on the engine's machine.
	MakeVolume(ctx context.Context, v Volume) (folder string, made bool, err error)
	RemoveNetwork(ctx context.Context, name string) error
	RemoveVolume(ctx context.Context, name string) error
	// Networks and Volumes list the names of networks and volumes with all the labels.
	Networks(ctx context.Context, labels map[string]string) ([]string, error)
	Volumes(ctx context.Context, labels map[string]string) ([]string, error)
	// Look returns the state of a container.
	Look(ctx context.Context, id string) (Look, error)
	// Halt ends a container permanently: with its stop signal, and with a kill after the
	// grace period. It returns when the container has ended. The engine does not restart the
	// container.
	Halt(ctx context.Context, id string, grace time.Duration) error
}

// Network is a network that contains only the containers joined to it.
type Network struct {
	Name   string
	Labels map[string]string
	// Internal cuts the network off from all other networks.
	Internal bool
}

// Volume is a folder managed by the engine.
type Volume struct {
	Name   string
	Labels map[string]string
}

// Hosted has the settings of a suite's container that [Spec] and its options lack.
type Hosted struct {
	// Networks replace the driver's network. With none the container has only its own
	// loopback.
	Networks []Join
	// Within names a running container whose network namespace this container shares,
	// loopback and ports included. Then Networks, Hosts and the spec's Ports and Hostname
	// are empty.
	Within  string
	Volumes []VolumeMount
	// Hosts lists lines name:address for the container's /etc/hosts.
	Hosts []string
	// Health replaces the image's health check, unless nil.
	Health *Health
	// Restart is the engine's restart policy: never (empty), [RestartAlways] or
	// [RestartFailed]. Tries bounds the restarts of RestartFailed; 0 means no bound.
	Restart string
	Tries   int
	// Reduced limits the container to Capabilities. Otherwise it has the engine's default.
	Reduced      bool
	Capabilities []string
	Sysctls      map[string]string
	// ReadOnly lets the container write only to its mounts, volumes and memory.
	ReadOnly bool
	// Tmpfs maps folders in memory to mount options. It takes options that
	// [ContainerOptions].Tmpfs does not take.
	Tmpfs map[string]string
	// Groups lists numbers or, unlike in [ContainerOptions], names of groups of the image.
	Groups []string
}

// Restart policies of a suite's container.
const (
	RestartAlways = "always"
	RestartFailed = "on-failure"
)

// Join connects a container to a network.
type Join struct {
	Network string
	Aliases []string // further names of the container in the network
}

// VolumeMount is a volume in a container. Without a name the volume belongs to the
// container, and is removed with it.
type VolumeMount struct {
	Volume, Target   string
	ReadOnly, NoCopy bool
}

// Health is a container's health check. Test has the form of an image's: CMD or CMD-SHELL
// and its words, or NONE. 0 means the engine's default.
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
	Code     int    // of its last exit
	Error    string // the engine's error, if it could not start
	Health   string
	Restarts int // restarts by the engine
	Started  time.Time
	Ports    []option.Port
}
