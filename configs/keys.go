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

// key is one setting: its name in files and flags, its usage text, its field and
// its check.
type key struct {
	name  string
	usage string
	// at returns a pointer to the field.
	at func(*Config) any
	// check refuses a value of the field; nil: every value of the type is valid.
	check func(*Config) error
}

// keys are in the order of the documentation and of carma config.
var keys = []key{
	{"socket", "path of the daemon's unix `socket`", func(c *Config) any { return &c.Socket }, func(c *Config) error {
		return validSocket(c.Socket)
	}},
	{"data-dir", "`folder` of the journal and the tasks' output", func(c *Config) any { return &c.DataDir }, func(c *Config) error {
		return absolute(c.DataDir)
	}},
	{"journal-reserve", "spare room on the data folder's disk; it is given up when the disk is full, so that tasks can still be stopped and removed; 0: none", func(c *Config) any { return &c.JournalReserve }, func(c *Config) error {
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
	{"activity", "how readings of activity become one figure: mean, or risk (high readings count more)", func(c *Config) any { return &c.Activity }, func(c *Config) error {
		return oneOf("activity", c.Activity, Activities)
	}},
	{"dcgm-exporter", "`URL` of a dcgm-exporter's page, for the activity of GPUs before Hopper", func(c *Config) any { return &c.DCGMExporter }, func(c *Config) error {
		return validPage(c.DCGMExporter)
	}},

	{"driver", "engine that runs the containers: docker or containerd", func(c *Config) any { return &c.Driver }, func(c *Config) error {
		return oneOf("driver", c.Driver, Drivers)
	}},
	{"docker-host", "`address` of the Docker engine; empty: DOCKER_HOST, else Docker's default", func(c *Config) any { return &c.DockerHost }, nil},
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
	{"processors", "where tasks with GPUs run: any, or near: only at the NUMA node of their GPUs", func(c *Config) any { return &c.Processors }, func(c *Config) error {
		return oneOf("choice of processors", c.Processors, ProcessorChoices)
	}},
	{"pull", "when images are fetched: missing, always or never", func(c *Config) any { return &c.Pull }, func(c *Config) error {
		return oneOf("pull rule", c.Pull, PullRules)
	}},
	{"environment", "software and GPU that memory estimates assume; empty: chosen by the GPUs; carma estimate --help lists them", func(c *Config) any { return &c.Environment }, nil},
	{"probe", "tasks that are probed before they are queued: asked (those with --probe), unknown (also those of which nothing is known) or never", func(c *Config) any { return &c.Probe }, func(c *Config) error {
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
	{"mps", "sharing by NVIDIA's Multi-Process Service: auto (as user, where it is installed and works), off, user (each user's tasks among themselves) or shared (all tasks)", func(c *Config) any { return &c.MPS }, func(c *Config) error {
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
	{"mps-threads", "most SMs a task may use at a time under MPS, in percent; 0: no limit", func(c *Config) any { return &c.MPSThreads }, func(c *Config) error {
		if c.MPSThreads < 0 || c.MPSThreads > 100 {
			return fmt.Errorf("%d is not between 0 and 100", c.MPSThreads)
		}
		return nil
	}},
	{"mps-memory-limit", "under MPS, refuse a task more memory than its grant", func(c *Config) any { return &c.MPSMemoryLimit }, nil},
	{"mps-ipc", "the IPC namespace of tasks under MPS: private, or host if the driver needs it", func(c *Config) any { return &c.MPSIPC }, func(c *Config) error {
		return oneOf("choice", c.MPSIPC, MPSIPCs)
	}},
	{"memory-limit", "limit of the GPU memory of tasks that may share: auto (the driver's if there is one, and MPS's if MPS is on), driver (the daemon does not start without the driver's), mps (only MPS's) or off", func(c *Config) any { return &c.MemoryLimit }, func(c *Config) error {
		if c.MemoryLimit == "mps" && c.MPS == "off" {
			return errors.New("mps needs MPS, which is off; write mps: user, or memory-limit: auto")
		}
		return oneOf("choice", c.MemoryLimit, MemoryLimits)
	}},
	{"memory-burst", "under the driver's limit, let a task use all memory that is free on its GPUs at its start, not only its grant", func(c *Config) any { return &c.MemoryBurst }, nil},
	{"nvidia-smi", "the `program` that sets the driver's memory limits", func(c *Config) any { return &c.NVIDIASMI }, func(c *Config) error {
		if c.NVIDIASMI == "" {
			return errors.New("no program named; the NVIDIA driver's is nvidia-smi")
		}
		return nil
	}},
	{"memory-caps", "settings of frameworks for their GPU memory beside other tasks: growth (take memory as needed), fractions (also stop at the grant) or off", func(c *Config) any { return &c.MemoryCaps }, func(c *Config) error {
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
	{"output-total", "output kept of all tasks; 0: a tenth of the disk", func(c *Config) any { return &c.OutputTotal }, func(c *Config) error {
		return output(c.OutputTotal)
	}},
	{"output-free", "disk space that output leaves free; 0: a twentieth of the disk, at most 1G", func(c *Config) any { return &c.OutputFree }, nil},
	{"keep-tasks", "number of finished tasks that are kept; 0: all", func(c *Config) any { return &c.KeepTasks }, func(c *Config) error {
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
	{"host-tasks", "who may run tasks without an image: all, admins, none or the name of a group", func(c *Config) any { return &c.HostTasks }, func(c *Config) error {
		if c.HostTasks == "" {
			return errors.New("nobody named; write all, admins, none or the name of a group")
		}
		return nil
	}},
	{"host-folders", "`folders` of the machine that tasks without an image see, read-only", func(c *Config) any { return &c.HostFolders }, func(c *Config) error {
		return hostFolders(c.HostFolders)
	}},
	{"allowed-devices", "`patterns` of the devices that tasks may have besides their GPUs", func(c *Config) any { return &c.AllowedDevices }, func(c *Config) error {
		return devicePatterns(c.AllowedDevices)
	}},
	{"allowed-ulimits", "highest `limits` of processes that tasks may set, each name=most, or name for no limit", func(c *Config) any { return &c.AllowedUlimits }, func(c *Config) error {
		return ulimits(c.AllowedUlimits)
	}},
	{"admin-group", "`group` of the admins, who may see, stop and remove the tasks of others", func(c *Config) any { return &c.AdminGroup }, nil},

	{"visibility", "who sees a task's environment and output, if the task does not say: private (its owner and admins) or open (all)", func(c *Config) any { return &c.Visibility }, func(c *Config) error {
		return oneOf("choice", c.Visibility, Visibilities)
	}},
	{"all-host-mem", "host `memory` that all tasks together may book; 0: nine tenths of the machine's, and on a simulated server nothing is booked", func(c *Config) any { return &c.AllHostMem }, nil},
	{"all-cpus", "processors that all tasks together may book; 0: the machine's, and on a simulated server none are booked", func(c *Config) any { return &c.AllCPUs }, func(c *Config) error {
		return between(c.AllCPUs, 0, 1e6, "0 is the machine's")
	}},
	{"host-mem", "most host `memory` of a task that does not ask for an amount; 0: what nobody has booked", func(c *Config) any { return &c.HostMem }, nil},
	{"max-host-mem", "most host `memory` a task may ask for; 0: nine tenths of the machine's", func(c *Config) any { return &c.MaxHostMem }, nil},
	{"cpus", "processors of a task that does not ask for another number; 0: all", func(c *Config) any { return &c.CPUs }, func(c *Config) error {
		return between(c.CPUs, 0, 1e6, "0 is all")
	}},
	{"max-cpus", "most processors a task may ask for; 0: the machine's", func(c *Config) any { return &c.MaxCPUs }, func(c *Config) error {
		return between(c.MaxCPUs, 0, 1e6, "0 is the machine's")
	}},
	{"pids", "processes and threads of a task that does not ask for another number; 0: max-pids", func(c *Config) any { return &c.Pids }, func(c *Config) error {
		return notBelow0(c.Pids)
	}},
	{"max-pids", "most processes and threads a task may ask for; 0: half of the machine's limit", func(c *Config) any { return &c.MaxPids }, func(c *Config) error {
		return notBelow0(c.MaxPids)
	}},
	{"shm-size", "`size` of /dev/shm of a task that does not ask for another size; 0: half of its host memory", func(c *Config) any { return &c.ShmSize }, nil},
	{"max-shm-size", "largest /dev/shm a task may ask for; 0: its host memory", func(c *Config) any { return &c.MaxShmSize }, nil},
	{"helper-host-mem", "most host `memory` of a suite's helper that does not ask for an amount; 0: an eighth of max-host-mem, at least 512M", func(c *Config) any { return &c.HelperHostMem }, nil},
	{"helper-reserve", "host `memory` that is booked for a helper that does not ask; 0: an eighth of the most that it may use, at least 256M", func(c *Config) any { return &c.HelperReserve }, nil},
	{"helper-cpus", "processors of a helper that does not ask for another number; 0: cpus, else a quarter of max-cpus, at least 1", func(c *Config) any { return &c.HelperCPUs }, func(c *Config) error {
		return between(c.HelperCPUs, 0, 1e6, "0 is a quarter of max-cpus")
	}},
	{"user-tasks", "most unfinished tasks of one user; 0: no limit", func(c *Config) any { return &c.UserTasks }, func(c *Config) error {
		return notBelow0(c.UserTasks)
	}},
	{"user-bytes", "most bytes of the submissions of one user's unfinished tasks; 0: no limit", func(c *Config) any { return &c.UserBytes }, nil},
	{"user-connections", "most open connections of one user to the daemon; 0: no limit", func(c *Config) any { return &c.UserConnections }, func(c *Config) error {
		return notBelow0(c.UserConnections)
	}},
	{"user-suites", "most suites with helpers of one user at a time; 0: no limit", func(c *Config) any { return &c.UserSuites }, func(c *Config) error {
		return notBelow0(c.UserSuites)
	}},
	{"user-helpers", "most helpers of one user's suites together; 0: no limit", func(c *Config) any { return &c.UserHelpers }, func(c *Config) error {
		return notBelow0(c.UserHelpers)
	}},
	{"user-volumes", "most volumes in one user's suites that are up; 0: no limit", func(c *Config) any { return &c.UserVolumes }, func(c *Config) error {
		return notBelow0(c.UserVolumes)
	}},
	{"high-priority", "who may use priority high: all, admins, or the names of users and groups; admins always may", func(c *Config) any { return &c.HighPriority }, func(c *Config) error {
		if c.HighPriority == "" {
			return errors.New("nobody named; write all, admins, or the names of users and groups")
		}
		return nil
	}},
	{"user-high", "most unfinished tasks of one user with priority high; 0: no limit", func(c *Config) any { return &c.UserHigh }, func(c *Config) error {
		return notBelow0(c.UserHigh)
	}},

	{"policy", "the `policy` that picks GPUs", func(c *Config) any { return &c.Mapper.Policy }, func(c *Config) error {
		return oneOf("policy", c.Mapper.Policy, mapper.PolicyNames())
	}},
	{"booking", "memory that counts as taken: grants (booked) or samples (in use)", func(c *Config) any { return &c.Mapper.Booking }, func(c *Config) error {
		return oneOf("booking", c.Mapper.Booking, mapper.Bookings)
	}},
	{"headroom", "`memory` on every GPU that is never booked", func(c *Config) any { return &c.Mapper.Headroom }, nil},
	{"margin", "`memory` that must be free beside a task's grant when it is placed", func(c *Config) any { return &c.Mapper.Margin }, nil},
	{"min-free", "least free `memory` of a GPU that gets a task; 0: off", func(c *Config) any { return &c.Mapper.MinFree }, nil},
	{"smact-cap", "SM activity (0 to 1) at which a GPU gets no further task; 0: off", func(c *Config) any { return &c.Mapper.SMACTCap }, func(c *Config) error {
		return between(c.Mapper.SMACTCap, 0, 1, "0 is off")
	}},
	{"smocc-cap", "smact-cap applies only if SM occupancy is at least this, or DRAM activity at least drama-cap; 0: off", func(c *Config) any { return &c.Mapper.SMOCCCap }, func(c *Config) error {
		return between(c.Mapper.SMOCCCap, 0, 1, "0 is off")
	}},
	{"drama-cap", "smact-cap applies only if DRAM activity is at least this, or SM occupancy at least smocc-cap; 0: off", func(c *Config) any { return &c.Mapper.DRAMACap }, func(c *Config) error {
		return between(c.Mapper.DRAMACap, 0, 1, "0 is off")
	}},
	{"slowdown-cap", "largest slowdown that policy carma accepts for any task, relative to running alone; 0: 1.6", func(c *Config) any { return &c.Mapper.SlowdownCap }, func(c *Config) error {
		if c.Mapper.SlowdownCap == 0 {
			return nil
		}
		return between(c.Mapper.SlowdownCap, 1, 100, "0 is policy carma's own cap")
	}},
	{"max-tasks", "most tasks on one GPU; 0: no limit", func(c *Config) any { return &c.Mapper.MaxTasks }, nil},
	{"warm-up", "`time` for which a GPU gets no further task after one has started on it", func(c *Config) any { return &c.Mapper.WarmUp }, nil},
	{"interval", "least `time` between two launches", func(c *Config) any { return &c.Mapper.Interval }, func(c *Config) error {
		return notNegative(c.Mapper.Interval)
	}},
	{"idle-first", "prefer idle GPUs, whatever the policy's order", func(c *Config) any { return &c.Mapper.IdleFirst }, nil},
	{"order", "`order` of the queue: fifo, sjf (shortest expected run first), fair (users take turns by use) or fair-sjf (the same, and each user's shortest first)", func(c *Config) any { return &c.Mapper.Order }, func(c *Config) error {
		return oneOf("order", c.Mapper.Order, mapper.Orders)
	}},
	{"fair-half-life", "with order fair or fair-sjf: `time` after which a GPU-second of use counts half; 0: 24h", func(c *Config) any { return &c.Mapper.FairHalfLife }, nil},
	{"fair-weights", "with order fair or fair-sjf: `shares` of users, for example ada=2; the others have 1", func(c *Config) any { return &c.Mapper.FairWeights }, nil},
	{"fair-accounts", "with order fair or fair-sjf: `shares` of accounts (unix groups) that take turns as one user does, for example students=3; *=1: all", func(c *Config) any { return &c.Mapper.FairAccounts }, nil},
	{"quota-tasks", "most running tasks per user; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaTasks }, nil},
	{"quota-gpus", "most GPUs per user, added over the user's tasks; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaGPUs }, nil},
	{"quota-memory", "most `memory` reserved per user, over all GPUs; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaMemory }, nil},
	{"quotas", "`limits` of single users, and of accounts together (@GROUP), for example ada:gpus=4; what is not named is as for all, none is no limit", func(c *Config) any { return &c.Mapper.Quotas }, nil},
	{"slot", "`time` after which a running task makes way for waiting ones; 0: off", func(c *Config) any { return &c.Mapper.Slot }, nil},
	{"learn", "book the memory that earlier runs of the same image and command have used", func(c *Config) any { return &c.Mapper.Learn }, nil},
	{"learn-memory", "`time` without growth after which others may join a task of unknown memory; 0: it gets whole GPUs", func(c *Config) any { return &c.Mapper.LearnMemory }, func(c *Config) error {
		return notNegative(c.Mapper.LearnMemory)
	}},
	{"shrink", "`time` without growth after which a grant is cut to its use; 0: never", func(c *Config) any { return &c.Mapper.Shrink }, func(c *Config) error {
		return notNegative(c.Mapper.Shrink)
	}},
	{"watchdog", "what happens to a task that uses more than its grant: off (nothing), warn (and book more if there is room) or relaunch (also run it again with more, if others need the room)", func(c *Config) any { return &c.Mapper.Watchdog }, func(c *Config) error {
		return oneOf("watchdog", c.Mapper.Watchdog, mapper.Watchdogs)
	}},
	{"idle-report", "`time` after which a running task that holds GPU memory and does nothing is reported; 0: never", func(c *Config) any { return &c.Mapper.IdleReport }, func(c *Config) error {
		return notNegative(c.Mapper.IdleReport)
	}},
	{"idle-stop", "idle `time` after which a task with a terminal (run -t) is stopped: nothing typed, and its GPUs do nothing; 0: never", func(c *Config) any { return &c.Mapper.IdleStop }, func(c *Config) error {
		return notNegative(c.Mapper.IdleStop)
	}},
	{"idle-yield", "idle `time` after which any other task is stopped that holds GPU memory and does nothing; 0: never", func(c *Config) any { return &c.Mapper.IdleYield }, func(c *Config) error {
		return notNegative(c.Mapper.IdleYield)
	}},
	{"look-ahead", "queued tasks tried at a time; 1: strictly first come, first served", func(c *Config) any { return &c.Mapper.LookAhead }, nil},
	{"ageing", "`time` for which other tasks may overtake the first one that does not fit", func(c *Config) any { return &c.Mapper.Ageing }, nil},
	{"recovery", "recovery after a GPU OOM: ladder (more memory, at last alone), staged (AEGIS's) or original (CARMA's: on an idle GPU)", func(c *Config) any { return &c.Mapper.Recovery }, func(c *Config) error {
		return oneOf("recovery", c.Mapper.Recovery, mapper.Recoveries)
	}},
	{"attempts", "launches of a task that runs out of GPU memory", func(c *Config) any { return &c.Mapper.Attempts }, nil},
	{"blameless-retries", "relaunches after failures that are not the task's own", func(c *Config) any { return &c.Mapper.BlamelessRetries }, nil},
	{"backoff", "`time` to wait after a failure of the engine or the driver; it doubles", func(c *Config) any { return &c.Mapper.Backoff }, nil},

	{"log-level", "least important messages in the log: debug, info, warn or error", func(c *Config) any { return &c.LogLevel }, func(c *Config) error {
		return oneOf("log level", c.LogLevel, LogLevels)
	}},
	{"log-format", "format of the log: auto, console or json", func(c *Config) any { return &c.LogFormat }, func(c *Config) error {
		return oneOf("log format", c.LogFormat, LogFormats)
	}},
}

// The words of keys with a fixed choice.
var (
	Activities       = []string{"mean", "risk"}
	Drivers          = []string{"docker", "containerd"}
	ProcessorChoices = []string{"any", "near"}
	Attachments      = []string{"auto", "device-request", "runtime", "cdi", "simulated"}
	MPSGroups        = []string{"auto", "off", "user", "shared"}
	MPSIPCs          = []string{"private", "host"}
	// The next two are of memory-limit and memory-caps.
	MemoryLimits = []string{"auto", "driver", "mps", "off"}
	MemoryCaps   = []string{"growth", "fractions", "off"}
	Probes       = []string{"asked", "unknown", "never"}
	Visibilities = []string{"private", "open"}
	PullRules    = []string{"missing", "always", "never"}
	LogLevels    = []string{"debug", "info", "warn", "error"}
	LogFormats   = []string{"auto", "console", "json"}
)

var namespaceName = regexp.MustCompile(`^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$`)

// firstKeys matter most when a server is set up. The other keys have defaults
// that few people need to change.
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

// output refuses limits that are too small for any output.
func output(b units.Bytes) error {
	if b != 0 && b < units.MiB {
		return fmt.Errorf("%d bytes is too small; write for example 10G, or 0 for the default", b)
	}
	return nil
}
