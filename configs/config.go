package configs

import (
	_ "embed" // the example file
	"os"
	"path/filepath"
	"strconv"
	"time"

	"carma/mapper/units"

	"carma/mapper"
)

// Config is everything that can be configured.
type Config struct {
	// Socket is the path of the daemon's unix socket.
	Socket string
	// DataDir holds the journal and the tasks' output.
	DataDir string
	// JournalReserve is the room on the data folder's disk that is kept for the
	// journal, for when there is no other.
	JournalReserve units.Bytes
	// GPUs is where the GPUs come from: auto, nvml, nvml:GPU,... or sim:SERVER.
	GPUs string
	// Speed is simulated time per clock time; 1 on real GPUs.
	Speed float64
	// SampleEvery is the time between two readings of the GPUs.
	SampleEvery time.Duration
	// Activity is how the readings of the last 30 s become one figure: mean or
	// risk.
	Activity string
	// DCGMExporter is the page of a dcgm-exporter, asked for the activity of
	// GPUs that NVML cannot tell it of; empty: none.
	DCGMExporter string

	// Driver runs the containers: docker or containerd.
	Driver string
	// DockerHost is the engine's address; empty: DOCKER_HOST, else the
	// engine's own default.
	DockerHost string
	// ContainerdAddress is the path of containerd's socket, empty:
	// CONTAINERD_ADDRESS, else containerd's default. ContainerdNamespace holds
	// our images and containers.
	ContainerdAddress, ContainerdNamespace string
	// Network is the containers' network; empty: the engine's default. The
	// host's is refused.
	Network string
	// Attach is how a container gets its GPUs: auto, device-request, runtime,
	// cdi or simulated.
	Attach string
	// Environment is the software and GPU that estimates of memory assume; empty:
	// the one measured on the GPUs there are, else its default.
	Environment string
	// Probe is which tasks are probed before they are queued: asked, unknown
	// or never. ProbeTimeout and ProbeMemory bound a probe.
	Probe        string
	ProbeTimeout time.Duration
	ProbeMemory  units.Bytes
	// MPS is who shares GPUs with whom by NVIDIA's Multi-Process Service: off,
	// user or shared. MPSControl is its control program, MPSDir the folder of
	// the control daemons; MPSThreads and MPSMemoryLimit bound each task, and
	// MPSIPC is the IPC namespace its clients need: private or host.
	MPS            string
	MPSControl     string
	MPSDir         string
	MPSThreads     int
	MPSMemoryLimit bool
	MPSIPC         string
	// MemoryCaps is how frameworks are made to bound their own GPU memory where
	// a task may share its GPUs: growth, fractions or off.
	MemoryCaps string
	// MemoryLimit is what else bounds it: auto, driver, mps or off. MemoryBurst
	// lets tasks use free memory above their grants under the driver's limit,
	// which NVIDIASMI sets.
	MemoryLimit string
	MemoryBurst bool
	NVIDIASMI   string
	// Pull is when images are fetched unless the task says so itself:
	// missing, always or never.
	Pull string
	// StopGrace is the time between the stop signal and the kill.
	StopGrace time.Duration
	// LogBytes bounds the output kept per attempt.
	LogBytes units.Bytes
	// OutputDir holds the tasks' output; empty: folder logs of DataDir.
	OutputDir string
	// OutputTask, OutputUser and OutputTotal bound the output kept of one task,
	// of one user's tasks and of all; OutputFree stays free on its disk. 0: a
	// default that depends on LogBytes and the disk.
	OutputTask, OutputUser, OutputTotal, OutputFree units.Bytes
	// KeepTasks is how many finished tasks are kept, KeepTasksFor and
	// KeepOutputFor how long they and their output are; 0: no limit.
	KeepTasks                   int
	KeepTasksFor, KeepOutputFor time.Duration

	// AllowedMounts are the folders a task may mount, with all below them. ~
	// is the submitter's home.
	AllowedMounts []string
	// AdminGroup is the group whose members may stop and remove the tasks of
	// others; root always may.
	AdminGroup string

	// Visibility is who sees the environment and output of tasks whose
	// submitters do not say: private (their owner and admins) or open.
	Visibility string
	// HostMem, CPUs, Pids and ShmSize are what a task may use of the machine if
	// it does not ask; the others the most it may ask for. 0: by the machine.
	HostMem, MaxHostMem, ShmSize, MaxShmSize units.Bytes
	CPUs, MaxCPUs                            float64
	Pids, MaxPids                            int
	// What one user may have of the daemon; 0: no limit. HighPriority is who
	// may use priority high: all, admins or a group.
	UserConnections, UserTasks, UserHigh int
	UserBytes                            units.Bytes
	HighPriority                         string

	// Mapper are the rules tasks are placed by. Their defaults depend on the
	// policy.
	Mapper mapper.Options

	// LogLevel: debug, info, warn or error.
	LogLevel string
	// LogFormat: auto (console on a terminal, else json), console or json.
	LogFormat string
}

// SystemSocket is where root's daemon listens.
const SystemSocket = "/run/carma/carma.sock"

// Example is a configuration file with every key, its default and what it does.
//
//go:embed carma.example.yaml
var Example string

// Default returns the configuration when nothing is configured, the policy
// included. Socket and DataDir depend on who asks.
func Default() Config {
	return Config{
		Socket:  defaultSocket(),
		DataDir: defaultDataDir(),

		JournalReserve: 16 * units.MiB,

		GPUs:        "auto",
		Speed:       1,
		SampleEvery: time.Second,
		Activity:    "mean",
		Driver:      "docker",
		Attach:      "auto",

		ContainerdNamespace: "carma",

		Probe:          "asked",
		ProbeTimeout:   2 * time.Minute,
		ProbeMemory:    8 * units.GiB,
		MPS:            "off",
		MPSControl:     "nvidia-cuda-mps-control",
		MPSDir:         defaultMPSDir(),
		MPSMemoryLimit: true,
		MPSIPC:         "private",
		MemoryCaps:     "growth",
		MemoryLimit:    "auto",
		NVIDIASMI:      "nvidia-smi",
		Pull:           "missing",
		StopGrace:      10 * time.Second,
		LogBytes:       64 * units.MiB,
		KeepTasks:      100_000,
		AllowedMounts:  []string{"~"},
		AdminGroup:     "carma",

		Visibility:      "private",
		Pids:            16384,
		UserConnections: 512,
		UserTasks:       10_000,
		UserBytes:       64 * units.MiB,
		UserHigh:        10,
		HighPriority:    "all",

		Mapper:    mapperDefaults(mapper.DefaultOptions().Policy),
		LogLevel:  "info",
		LogFormat: "auto",
	}
}

func defaultSocket() string {
	if os.Geteuid() == 0 {
		return SystemSocket
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "carma", "carma.sock")
	}
	return filepath.Join("/tmp", "carma-"+strconv.Itoa(os.Geteuid()), "carma.sock")
}

// defaultMPSDir is short: the control daemons make sockets in it.
func defaultMPSDir() string { return filepath.Join(filepath.Dir(defaultSocket()), "mps") }

func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/carma"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "carma")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "carma")
	}
	return filepath.Join("/tmp", "carma-"+strconv.Itoa(os.Geteuid()), "data")
}

// ClientSocket returns the socket a client connects to: the configured one,
// or the system's when the user has configured none and runs no daemon.
func ClientSocket(c Config, from Origins) string {
	if from["socket"].Kind != FromDefault || exists(c.Socket) || !exists(SystemSocket) {
		return c.Socket
	}
	return SystemSocket
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
