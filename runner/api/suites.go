package api

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Limits of one suite's helpers. The daemon limits all helpers of one user.
const (
	MaxHelpers      = 64
	MaxSuiteVolumes = 64
)

// Suite is the part of a suite other than its tasks: the helpers that run beside them,
// and the networks and volumes of tasks and helpers. Its tasks are the group of the same
// name that its owner submits while the suite is up.
type Suite struct {
	// Keep is set if the suite stays until it is taken down. Otherwise it ends with its last
	// task.
	Keep    bool     `json:"keep,omitempty" doc:"stay until it is taken down, not only until the last of its tasks has ended"`
	Helpers []Helper `json:"helpers,omitempty" maxItems:"64"`
	// Waits lists the conditions for the suite to be ready. Its tasks wait for them.
	Waits []HelperWait `json:"waits,omitempty" maxItems:"64"`
	// Tasks assigns the tasks of each part their share of the suite.
	Tasks    map[string]Joined `json:"tasks,omitempty" doc:"what the tasks of each part have of the suite"`
	Networks []SuiteNetwork    `json:"networks,omitempty" maxItems:"16"`
	Volumes  []SuiteVolume     `json:"volumes,omitempty" maxItems:"64"`
}

// Helper is a container that runs beside the tasks of a suite. It is in no queue
// and has no GPU.
type Helper struct {
	Name string `json:"name" minLength:"1" maxLength:"64"`
	// Container describes the helper's container. Fields about GPUs, estimates and queues
	// must be empty.
	Container Submit `json:"container"`
	Joined
	// Within names another helper whose network namespace this helper shares.
	Within   string `json:"within,omitempty" doc:"another helper whose network it shares, loopback and ports included"`
	Replicas int    `json:"replicas,omitempty" minimum:"0" maximum:"64" doc:"0: one"`
	// Restart is no (or empty), always, on-failure or on-failure:N.
	Restart string         `json:"restart,omitempty" doc:"no, always, on-failure or on-failure:N"`
	Health  *HelperHealth  `json:"health,omitempty" doc:"replaces the image's check"`
	Waits   []HelperWait   `json:"waits,omitempty" maxItems:"64"`
	Ports   []HelperPort   `json:"ports,omitempty" maxItems:"256"`
	Tmpfs   []string       `json:"tmpfs,omitempty" maxItems:"64" doc:"folders in memory, with options as docker run --tmpfs has them"`
	Ulimits []HelperUlimit `json:"ulimits,omitempty" maxItems:"32"`

	Init       bool              `json:"init,omitempty"`
	ReadOnly   bool              `json:"read_only,omitempty"`
	StopSignal string            `json:"stop_signal,omitempty"`
	Hostname   string            `json:"hostname,omitempty"`
	Groups     []string          `json:"groups,omitempty" maxItems:"32" doc:"numbers or names of more groups"`
	CapAdd     []string          `json:"cap_add,omitempty" maxItems:"64"`
	CapDrop    []string          `json:"cap_drop,omitempty" maxItems:"64"`
	Sysctls    map[string]string `json:"sysctls,omitempty"`
	Terminal   bool              `json:"terminal,omitempty"`
	Stdin      bool              `json:"stdin,omitempty"`
}

// Joined lists the networks, volumes, files and hosts that a container gets from its
// suite.
type Joined struct {
	// Networks lists networks of the suite. Without one the container has no network.
	Networks []NetworkPlace `json:"networks,omitempty" maxItems:"16"`
	Volumes  []VolumePlace  `json:"volumes,omitempty" maxItems:"64"`
	Files    []SuiteFile    `json:"files,omitempty" maxItems:"1000"`
	Hosts    []string       `json:"hosts,omitempty" maxItems:"256" doc:"name:address, for its /etc/hosts"`
}

// SuiteNetwork is a network of a suite.
type SuiteNetwork struct {
	Name string `json:"name" minLength:"1" maxLength:"64"`
	// Shared is set for a network common to all suites of the owner that name it.
	Shared   bool `json:"shared,omitempty"`
	Internal bool `json:"internal,omitempty" doc:"it leads nowhere else"`
}

// SuiteVolume is a volume of a suite. It stays until it is removed.
type SuiteVolume struct {
	Name   string `json:"name" minLength:"1" maxLength:"64"`
	Shared bool   `json:"shared,omitempty"`
}

// NetworkPlace is a container's place in a network.
type NetworkPlace struct {
	Network string   `json:"network"`
	Aliases []string `json:"aliases,omitempty" maxItems:"64"`
}

// VolumePlace is a volume in a container.
type VolumePlace struct {
	Volume   string `json:"volume,omitempty" doc:"empty: one of its own, which goes with the container"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	NoCopy   bool   `json:"no_copy,omitempty"`
}

// SuiteFile is a file that a container gets before it starts.
type SuiteFile struct {
	Path    string `json:"path"`
	Content []byte `json:"content"`
	// UID and GID are the owner. -1 means the container's user, if that is a number,
	// otherwise root.
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	Mode uint32 `json:"mode" maximum:"511"`
	// Writable allows the container to change its copy.
	Writable bool `json:"writable,omitempty" doc:"the container may change its copy"`
}

// HelperPort is a port of a helper that is reachable on this machine at 127.0.0.1.
type HelperPort struct {
	Container int    `json:"container" minimum:"1" maximum:"65535"`
	Host      int    `json:"host,omitempty" minimum:"0" maximum:"65535" doc:"0: a free one"`
	Protocol  string `json:"protocol,omitempty" enum:"tcp,udp"`
}

// HelperUlimit is a limit of a helper's processes, or -1 for none.
type HelperUlimit struct {
	Name string `json:"name"`
	Soft int64  `json:"soft"`
	Hard int64  `json:"hard"`
}

// HelperHealth is a helper's health check. Times are in nanoseconds; 0 means the engine's
// default.
type HelperHealth struct {
	Test        []string      `json:"test,omitempty" maxItems:"1000" doc:"CMD or CMD-SHELL and its words, or NONE; empty: the image's"`
	Interval    time.Duration `json:"interval,omitempty" minimum:"0"`
	Timeout     time.Duration `json:"timeout,omitempty" minimum:"0"`
	StartPeriod time.Duration `json:"start_period,omitempty" minimum:"0"`
	Retries     int           `json:"retries,omitempty" minimum:"0"`
}

// HelperWait is a condition on another helper: started, healthy, or ended with exit code
// 0.
type HelperWait struct {
	Helper    string `json:"helper"`
	Condition string `json:"condition" enum:"started,healthy,ok"`
}

// SuiteState is the state of a suite with helpers.
type SuiteState struct {
	Name string `json:"name"`
	User string `json:"user"`
	// Phase is starting, ready (all helpers have started, in order), failed (one cannot
	// start), stopping or ended (only output is kept).
	Phase string `json:"phase" enum:"starting,ready,failed,stopping,ended"`
	// Reason is the reason of a failure, or the present step.
	Reason   string        `json:"reason,omitempty"`
	Keep     bool          `json:"keep,omitempty"`
	Since    time.Time     `json:"since"`
	Helpers  []HelperState `json:"helpers"`
	Networks []string      `json:"networks,omitempty"`
	Volumes  []string      `json:"volumes,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
}

// HelperState is the state of one container of a helper.
type HelperState struct {
	Helper    string `json:"helper"`
	Name      string `json:"name" doc:"as people call it: suite, helper and number"`
	Container string `json:"container" doc:"container name"`
	Image     string `json:"image"`
	// State is waiting, created, running, restarting or exited.
	State    string       `json:"state" enum:"waiting,created,running,exited"`
	Health   string       `json:"health,omitempty" enum:",starting,healthy,unhealthy"`
	Restarts int          `json:"restarts,omitempty"`
	ExitCode *int         `json:"exit_code,omitempty"`
	Error    string       `json:"error,omitempty"`
	Started  time.Time    `json:"started,omitzero"`
	Ports    []HelperPort `json:"ports,omitempty"`
	HostMem  int64        `json:"host_mem" doc:"most host memory, in bytes"`
	// HostReserve is the host memory allocated for it.
	HostReserve int64   `json:"host_reserve,omitempty" doc:"host memory booked, in bytes"`
	CPUs        float64 `json:"cpus" doc:"most processors; 0: no limit"`
	CPUsReserve float64 `json:"cpus_reserve,omitempty" doc:"processors booked"`
}

// SuiteRemoved lists the removed parts of a suite.
type SuiteRemoved struct {
	Helpers  []string `json:"helpers"`
	Networks []string `json:"networks"`
	Volumes  []string `json:"volumes"`
}

// HelperCapabilities lists the capabilities that a helper has unless it drops them, and
// that its file may request. Programs of images need them to change to another user and
// prepare their folders. It may request MoreCapabilities in addition, which have no
// effect outside the container; locked memory counts as its memory.
var (
	HelperCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"}
	MoreCapabilities   = []string{"IPC_LOCK", "SETPCAP"}
)

// PutSuite brings the helpers, networks and volumes of a suite up. It returns before the
// helpers run; see [Client.Suite]. With check it only checks whether it could.
func (c *Client) PutSuite(ctx context.Context, name string, s Suite, check bool) (SuiteState, error) {
	return PutSuite.send(ctx, c, SuitePut{SuitePath: SuitePath{name}, Check: check, Body: s})
}

// Suite returns the state of a suite with helpers.
func (c *Client) Suite(ctx context.Context, name string) (SuiteState, error) {
	return GetSuite.send(ctx, c, SuiteQuery{SuitePath: SuitePath{name}})
}

// EndedSuite lists the helpers with stored output after a suite's end.
func (c *Client) EndedSuite(ctx context.Context, name string) (SuiteState, error) {
	return GetSuite.send(ctx, c, SuiteQuery{SuitePath{name}, true})
}

// DropSuite takes a suite's helpers and networks down, and its volumes on request.
func (c *Client) DropSuite(ctx context.Context, name string, volumes bool, grace time.Duration) (SuiteRemoved, error) {
	return DropSuite.send(ctx, c, SuiteDrop{SuitePath{name}, volumes, int64(grace)})
}

// HelperLogs streams the output of one container of a helper to fn, named as in
// [HelperState].Name.
func (c *Client) HelperLogs(ctx context.Context, suite, name string, o LogOptions, fn func(LogLine) error) error {
	ended := false
	err := stream(ctx, c, ReadHelperLogs, LogsOfHelper{SuitePath{suite}, name, o.Follow, o.Tail}, func(event string, data []byte) error {
		switch event {
		case "log":
			var l LogLine
			if err := json.Unmarshal(data, &l); err != nil {
				return err
			}
			return fn(l)
		case "end":
			ended = true
		}
		return nil
	})
	if err == nil && !ended {
		err = &NoDaemonError{Socket: c.socket, Err: io.ErrUnexpectedEOF}
	}
	return err
}
