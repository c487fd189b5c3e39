package configs

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"carma/mapper/units"

	"carma/mapper"
)

// key is one setting: its name in files and flags, and where it lives.
type key struct {
	name  string
	usage string
	// at returns a pointer to the field.
	at func(*Config) any
	// check is nil when every value of the type is valid.
	check func(*Config) error
}

// keys are in the order in which they are documented and printed.
var keys = []key{
	{"socket", "path of the daemon's unix `socket`", func(c *Config) any { return &c.Socket }, func(c *Config) error {
		return validSocket(c.Socket)
	}},
	{"data-dir", "`folder` of the journal and the tasks' output", func(c *Config) any { return &c.DataDir }, func(c *Config) error {
		return absolute(c.DataDir)
	}},
	{"journal-reserve", "spare room on the data folder's disk; it is given up when the disk is full, so that tasks can be stopped, removed and end; 0: none", func(c *Config) any { return &c.JournalReserve }, func(c *Config) error {
		if c.JournalReserve < 0 {
			return fmt.Errorf("%d is negative; write for example 16M, or 0 for none", c.JournalReserve)
		}
		return nil
	}},
	{"gpus", "where the GPUs come from: auto, nvml, nvml:GPU,... or sim:SERVER", func(c *Config) any { return &c.GPUs }, func(c *Config) error {
		return validSource(c.GPUs)
	}},
	{"speed", "simulated time per clock time, with sim: only", func(c *Config) any { return &c.Speed }, func(c *Config) error {
		if !(c.Speed > 0 && c.Speed <= 100_000) {
			return fmt.Errorf("%v is not above 0 and at most 100000", c.Speed)
		}
		return nil
	}},
	{"sample-every", "`time` between two readings of the GPUs", func(c *Config) any { return &c.SampleEvery }, func(c *Config) error {
		if c.SampleEvery < 10*time.Millisecond {
			return fmt.Errorf("%s is less than 10ms; write for example 1s", c.SampleEvery)
		}
		return nil
	}},
	{"activity", "how readings of activity become one figure: mean or risk (leans to the high ones)", func(c *Config) any { return &c.Activity }, func(c *Config) error {
		return oneOf("activity", c.Activity, Activities)
	}},
	{"dcgm-exporter", "`URL` of a dcgm-exporter's page, for the activity of GPUs before Hopper", func(c *Config) any { return &c.DCGMExporter }, func(c *Config) error {
		return validPage(c.DCGMExporter)
	}},

	{"driver", "what runs the containers: docker or containerd", func(c *Config) any { return &c.Driver }, func(c *Config) error {
		return oneOf("driver", c.Driver, Drivers)
	}},
	{"docker-host", "the engine's `address`; empty: DOCKER_HOST, else Docker's default", func(c *Config) any { return &c.DockerHost }, nil},
	{"containerd-address", "path of containerd's `socket`; empty: CONTAINERD_ADDRESS, else containerd's default", func(c *Config) any { return &c.ContainerdAddress }, func(c *Config) error {
		if c.ContainerdAddress == "" {
			return nil
		}
		return validSocket(c.ContainerdAddress)
	}},
	{"containerd-namespace", "containerd's `namespace` for images and containers", func(c *Config) any { return &c.ContainerdNamespace }, func(c *Config) error {
		if !namespaceName.MatchString(c.ContainerdNamespace) || len(c.ContainerdNamespace) > 76 {
			return fmt.Errorf("%q is not the name of a namespace: letters, digits, and single dots, dashes and underscores between them; write for example carma", c.ContainerdNamespace)
		}
		return nil
	}},
	{"network", "the containers' `network`; empty: the engine's default", func(c *Config) any { return &c.Network }, nil},
	{"attach", "how containers get their GPUs: auto, device-request, runtime, cdi or simulated", func(c *Config) any { return &c.Attach }, func(c *Config) error {
		return oneOf("attachment", c.Attach, Attachments)
	}},
	{"pull", "when images are fetched: missing, always or never", func(c *Config) any { return &c.Pull }, func(c *Config) error {
		return oneOf("pull rule", c.Pull, PullRules)
	}},
	{"environment", "software and GPU that estimates of memory assume; carma estimate --help lists them", func(c *Config) any { return &c.Environment }, nil},
	{"probe", "which tasks are probed before they are queued: asked (with --probe), unknown (also if nothing is known) or never", func(c *Config) any { return &c.Probe }, func(c *Config) error {
		return oneOf("choice", c.Probe, Probes)
	}},
	{"probe-timeout", "`time` a probe may take", func(c *Config) any { return &c.ProbeTimeout }, func(c *Config) error {
		if c.ProbeTimeout < time.Second {
			return fmt.Errorf("%s is less than 1s; write for example 2m", c.ProbeTimeout)
		}
		return nil
	}},
	{"probe-memory", "host `memory` a probe may use", func(c *Config) any { return &c.ProbeMemory }, func(c *Config) error {
		if c.ProbeMemory < 64*units.MiB {
			return fmt.Errorf("%s is too little to start a program in; write for example 8G", c.ProbeMemory)
		}
		return nil
	}},
	{"mps", "tasks share GPUs by NVIDIA's Multi-Process Service: off, user (each user's tasks among themselves) or shared (all)", func(c *Config) any { return &c.MPS }, func(c *Config) error {
		return oneOf("choice", c.MPS, MPSGroups)
	}},
	{"mps-control", "the MPS control `program`", func(c *Config) any { return &c.MPSControl }, func(c *Config) error {
		if c.MPSControl == "" {
			return errors.New("no program named; the NVIDIA driver's is nvidia-cuda-mps-control")
		}
		return nil
	}},
	{"mps-dir", "`folder` of the MPS control daemons", func(c *Config) any { return &c.MPSDir }, func(c *Config) error {
		if len(c.MPSDir) > 60 {
			return fmt.Errorf("%s is too long: a socket is made in it; write for example /run/carma/mps", c.MPSDir)
		}
		return absolute(c.MPSDir)
	}},
	{"mps-threads", "most SMs a task may use at a time, in percent; 0: no limit", func(c *Config) any { return &c.MPSThreads }, func(c *Config) error {
		if c.MPSThreads < 0 || c.MPSThreads > 100 {
			return fmt.Errorf("%d is not between 0 and 100", c.MPSThreads)
		}
		return nil
	}},
	{"mps-memory-limit", "MPS refuses a task more memory than its grant", func(c *Config) any { return &c.MPSMemoryLimit }, nil},
	{"mps-ipc", "the IPC namespace of tasks under MPS: private, or host if the driver needs it", func(c *Config) any { return &c.MPSIPC }, func(c *Config) error {
		return oneOf("choice", c.MPSIPC, MPSIPCs)
	}},
	{"memory-limit", "what bounds the GPU memory of tasks that may share: auto (the driver if it can, and MPS if it is on), driver (without it they do not start), mps (only MPS) or off", func(c *Config) any { return &c.MemoryLimit }, func(c *Config) error {
		if c.MemoryLimit == "mps" && c.MPS == "off" {
			return errors.New("mps needs MPS, which is off; write mps: user, or memory-limit: auto")
		}
		return oneOf("choice", c.MemoryLimit, MemoryLimits)
	}},
	{"memory-burst", "under the driver's limit a task may use what is free on its GPUs at its start, not only its grant", func(c *Config) any { return &c.MemoryBurst }, nil},
	{"nvidia-smi", "the `program` that sets the driver's memory limits", func(c *Config) any { return &c.NVIDIASMI }, func(c *Config) error {
		if c.NVIDIASMI == "" {
			return errors.New("no program named; the NVIDIA driver's is nvidia-smi")
		}
		return nil
	}},
	{"memory-caps", "what makes frameworks bound their GPU memory beside others: growth (they take it as they need it), fractions (and stop at the grant) or off", func(c *Config) any { return &c.MemoryCaps }, func(c *Config) error {
		return oneOf("choice", c.MemoryCaps, MemoryCaps)
	}},
	{"stop-grace", "`time` between a task's stop signal and its kill", func(c *Config) any { return &c.StopGrace }, func(c *Config) error {
		return notNegative(c.StopGrace)
	}},
	{"log-bytes", "output kept per attempt", func(c *Config) any { return &c.LogBytes }, func(c *Config) error {
		if c.LogBytes < units.KiB {
			return fmt.Errorf("%d bytes is too small; write for example 64M", c.LogBytes)
		}
		return nil
	}},
	{"output-dir", "`folder` of the tasks' output; empty: folder logs of data-dir", func(c *Config) any { return &c.OutputDir }, func(c *Config) error {
		if c.OutputDir == "" {
			return nil
		}
		return absolute(c.OutputDir)
	}},
	{"output-task", "output kept per task; 0: four times log-bytes", func(c *Config) any { return &c.OutputTask }, func(c *Config) error {
		return output(c.OutputTask)
	}},
	{"output-user", "output kept per user; 0: half of output-total", func(c *Config) any { return &c.OutputUser }, func(c *Config) error {
		return output(c.OutputUser)
	}},
	{"output-total", "output kept of all tasks; 0: a tenth of its disk", func(c *Config) any { return &c.OutputTotal }, func(c *Config) error {
		return output(c.OutputTotal)
	}},
	{"output-free", "what output leaves free on its disk; 0: a twentieth of it, at most 1G", func(c *Config) any { return &c.OutputFree }, nil},
	{"keep-tasks", "how many finished tasks are kept; 0: all", func(c *Config) any { return &c.KeepTasks }, func(c *Config) error {
		if c.KeepTasks < 0 {
			return fmt.Errorf("%d is negative; write for example 100000, or 0 for all", c.KeepTasks)
		}
		return nil
	}},
	{"keep-tasks-for", "`time` for which finished tasks are kept; 0: no limit", func(c *Config) any { return &c.KeepTasksFor }, func(c *Config) error {
		return notNegative(c.KeepTasksFor)
	}},
	{"keep-output-for", "`time` for which the output of finished tasks is kept; 0: as long as the task", func(c *Config) any { return &c.KeepOutputFor }, func(c *Config) error {
		return notNegative(c.KeepOutputFor)
	}},

	{"allowed-mounts", "`folders` tasks may mount; ~ is the submitter's home", func(c *Config) any { return &c.AllowedMounts }, func(c *Config) error {
		for _, dir := range c.AllowedMounts {
			if dir != "~" && !strings.HasPrefix(dir, "~/") && !filepath.IsAbs(dir) {
				return fmt.Errorf("%q is neither absolute nor below ~", dir)
			}
		}
		return nil
	}},
	{"admin-group", "`group` that may stop and remove the tasks of others", func(c *Config) any { return &c.AdminGroup }, nil},

	{"visibility", "who sees a task's environment and output unless it says so itself: private (its owner and admins) or open (all)", func(c *Config) any { return &c.Visibility }, func(c *Config) error {
		return oneOf("choice", c.Visibility, Visibilities)
	}},
	{"host-mem", "host `memory` a task may use unless it asks for more or less; 0: max-host-mem", func(c *Config) any { return &c.HostMem }, nil},
	{"max-host-mem", "most host `memory` a task may ask for; 0: nine tenths of the machine's", func(c *Config) any { return &c.MaxHostMem }, nil},
	{"cpus", "processors a task may use unless it asks for more or less; 0: all", func(c *Config) any { return &c.CPUs }, func(c *Config) error {
		return between(c.CPUs, 0, 1e6, "0 is all")
	}},
	{"max-cpus", "most processors a task may ask for; 0: the machine's", func(c *Config) any { return &c.MaxCPUs }, func(c *Config) error {
		return between(c.MaxCPUs, 0, 1e6, "0 is the machine's")
	}},
	{"pids", "processes and threads a task may have unless it asks for more or less; 0: max-pids", func(c *Config) any { return &c.Pids }, func(c *Config) error {
		return notBelow0(c.Pids)
	}},
	{"max-pids", "most processes and threads a task may ask for; 0: half of what the machine can have", func(c *Config) any { return &c.MaxPids }, func(c *Config) error {
		return notBelow0(c.MaxPids)
	}},
	{"shm-size", "`size` of a task's /dev/shm unless it asks for more or less; 0: the engine's, often 64M", func(c *Config) any { return &c.ShmSize }, nil},
	{"max-shm-size", "largest /dev/shm a task may ask for; 0: its host memory", func(c *Config) any { return &c.MaxShmSize }, nil},
	{"user-tasks", "most unfinished tasks of one user; 0: no limit", func(c *Config) any { return &c.UserTasks }, func(c *Config) error {
		return notBelow0(c.UserTasks)
	}},
	{"user-bytes", "most bytes of the submissions of one user's unfinished tasks; 0: no limit", func(c *Config) any { return &c.UserBytes }, nil},
	{"user-connections", "most open connections of one user to the daemon; 0: no limit", func(c *Config) any { return &c.UserConnections }, func(c *Config) error {
		return notBelow0(c.UserConnections)
	}},
	{"high-priority", "who may use priority high: all, admins or the name of a group", func(c *Config) any { return &c.HighPriority }, func(c *Config) error {
		if c.HighPriority == "" {
			return errors.New("nobody named; write all, admins or the name of a group")
		}
		return nil
	}},
	{"user-high", "most unfinished tasks of one user with priority high; 0: no limit", func(c *Config) any { return &c.UserHigh }, func(c *Config) error {
		return notBelow0(c.UserHigh)
	}},

	{"policy", "the `policy` that picks GPUs", func(c *Config) any { return &c.Mapper.Policy }, func(c *Config) error {
		return oneOf("policy", c.Mapper.Policy, mapper.PolicyNames())
	}},
	{"booking", "what counts as taken: grants, or samples (what is in use)", func(c *Config) any { return &c.Mapper.Booking }, func(c *Config) error {
		return oneOf("booking", c.Mapper.Booking, mapper.Bookings)
	}},
	{"headroom", "`memory` on every GPU that is never booked", func(c *Config) any { return &c.Mapper.Headroom }, nil},
	{"margin", "`memory` that must be free beside a task's grant when it is placed", func(c *Config) any { return &c.Mapper.Margin }, nil},
	{"min-free", "least free `memory` of a GPU that gets a task; 0: off", func(c *Config) any { return &c.Mapper.MinFree }, nil},
	{"smact-cap", "SM activity (0 to 1) from which a GPU gets no further task; 0: off", func(c *Config) any { return &c.Mapper.SMACTCap }, func(c *Config) error {
		return between(c.Mapper.SMACTCap, 0, 1, "0 is off")
	}},
	{"smocc-cap", "smact-cap counts only from this SM occupancy on, or from drama-cap; 0: off", func(c *Config) any { return &c.Mapper.SMOCCCap }, func(c *Config) error {
		return between(c.Mapper.SMOCCCap, 0, 1, "0 is off")
	}},
	{"drama-cap", "smact-cap counts only from this DRAM activity on, or from smocc-cap; 0: off", func(c *Config) any { return &c.Mapper.DRAMACap }, func(c *Config) error {
		return between(c.Mapper.DRAMACap, 0, 1, "0 is off")
	}},
	{"slowdown-cap", "largest slowdown that policy carma accepts for any task, relative to running alone; 0: 1.6", func(c *Config) any { return &c.Mapper.SlowdownCap }, func(c *Config) error {
		if c.Mapper.SlowdownCap == 0 {
			return nil
		}
		return between(c.Mapper.SlowdownCap, 1, 100, "0 is policy carma's own cap")
	}},
	{"max-tasks", "most tasks on one GPU; 0: no limit", func(c *Config) any { return &c.Mapper.MaxTasks }, nil},
	{"warm-up", "`time` a GPU is closed after a task has started on it", func(c *Config) any { return &c.Mapper.WarmUp }, nil},
	{"interval", "least `time` between two launches", func(c *Config) any { return &c.Mapper.Interval }, func(c *Config) error {
		return notNegative(c.Mapper.Interval)
	}},
	{"idle-first", "prefer idle GPUs, whatever the policy's order", func(c *Config) any { return &c.Mapper.IdleFirst }, nil},
	{"order", "`order` of the queue: fifo, sjf (shortest expected run first) or fair (by use)", func(c *Config) any { return &c.Mapper.Order }, func(c *Config) error {
		return oneOf("order", c.Mapper.Order, mapper.Orders)
	}},
	{"fair-half-life", "order fair: `time` after which use counts half; 0: 24h", func(c *Config) any { return &c.Mapper.FairHalfLife }, nil},
	{"fair-weights", "order fair: `shares` of the users, as ada=2; others have 1", func(c *Config) any { return &c.Mapper.FairWeights }, nil},
	{"quota-tasks", "most running tasks per user; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaTasks }, nil},
	{"quota-gpus", "most GPUs per user, counted for each task; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaGPUs }, nil},
	{"quota-memory", "most `memory` reserved per user, over all GPUs; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaMemory }, nil},
	{"slot", "`time` after which a running task makes way for waiting ones; 0: off", func(c *Config) any { return &c.Mapper.Slot }, nil},
	{"learn", "book what earlier runs of a task have used", func(c *Config) any { return &c.Mapper.Learn }, nil},
	{"shrink", "`time` without growth after which a grant is cut to its use; 0: never", func(c *Config) any { return &c.Mapper.Shrink }, func(c *Config) error {
		return notNegative(c.Mapper.Shrink)
	}},
	{"watchdog", "a task that uses more than its grant: off, warn (and book more if there is room) or relaunch (also run it again with more, where others need the room)", func(c *Config) any { return &c.Mapper.Watchdog }, func(c *Config) error {
		return oneOf("watchdog", c.Mapper.Watchdog, mapper.Watchdogs)
	}},
	{"look-ahead", "queued tasks tried at a time; 1: strictly first come, first served", func(c *Config) any { return &c.Mapper.LookAhead }, nil},
	{"ageing", "`time` after which the first queued task is not overtaken any more", func(c *Config) any { return &c.Mapper.Ageing }, nil},
	{"recovery", "what follows a GPU OOM: ladder, staged or original", func(c *Config) any { return &c.Mapper.Recovery }, func(c *Config) error {
		return oneOf("recovery", c.Mapper.Recovery, mapper.Recoveries)
	}},
	{"attempts", "launches of a task that runs out of GPU memory", func(c *Config) any { return &c.Mapper.Attempts }, nil},
	{"blameless-retries", "relaunches after failures that are not the task's own", func(c *Config) any { return &c.Mapper.BlamelessRetries }, nil},
	{"backoff", "`time` to wait after an engine or driver failure; doubles", func(c *Config) any { return &c.Mapper.Backoff }, nil},

	{"log-level", "debug, info, warn or error", func(c *Config) any { return &c.LogLevel }, func(c *Config) error {
		return oneOf("log level", c.LogLevel, LogLevels)
	}},
	{"log-format", "auto, console or json", func(c *Config) any { return &c.LogFormat }, func(c *Config) error {
		return oneOf("log format", c.LogFormat, LogFormats)
	}},
}

// The words that keys with a fixed choice take.
var (
	Activities  = []string{"mean", "risk"}
	Drivers     = []string{"docker", "containerd"}
	Attachments = []string{"auto", "device-request", "runtime", "cdi", "simulated"}
	MPSGroups   = []string{"off", "user", "shared"}
	MPSIPCs     = []string{"private", "host"}
	// Of memory-limit and memory-caps.
	MemoryLimits = []string{"auto", "driver", "mps", "off"}
	MemoryCaps   = []string{"growth", "fractions", "off"}
	Probes       = []string{"asked", "unknown", "never"}
	Visibilities = []string{"private", "open"}
	PullRules    = []string{"missing", "always", "never"}
	LogLevels    = []string{"debug", "info", "warn", "error"}
	LogFormats   = []string{"auto", "console", "json"}
)

var namespaceName = regexp.MustCompile(`^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$`)

// firstKeys are those that whoever sets up a server wants to know first; the
// others have defaults that few need to change.
var firstKeys = []string{
	"data-dir", "gpus", "driver", "attach", "policy", "mps", "memory-limit", "probe", "pull", "admin-group", "allowed-mounts", "visibility",
	"host-mem", "cpus", "quota-tasks", "quota-gpus", "output-total", "keep-tasks-for", "log-level",
}

// Keys returns the names of all settings in their documented order.
func Keys() []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

func find(name string) (key, bool) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

// output refuses limits that no log fits into.
func output(b units.Bytes) error {
	if b != 0 && b < units.MiB {
		return fmt.Errorf("%d bytes is too small; write for example 10G, or 0 for the default", b)
	}
	return nil
}
