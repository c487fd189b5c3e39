package settings

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"carma/containers/bare"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

// Config contains all settings.
type Config struct {
	// Socket is the path of the daemon's unix socket.
	Socket string
	// Web is the address of the page: off, auto, or a loopback address with port.
	Web string
	// DataDir is the folder of the journal and the tasks' output.
	DataDir string
	// JournalReserve is the spare space on the data folder's disk, which is freed when the
	// disk fills up.
	JournalReserve units.Bytes
	// GPUs selects the source of the GPUs: auto, nvml, nvml:GPU,..., sim:SERVER or
	// cluster.
	GPUs string
	// Speed is simulated time per wall-clock time, 1 on real GPUs.
	Speed float64
	// SampleEvery is the time between two readings of the GPUs.
	SampleEvery time.Duration
	// Activity selects how 30 s of readings are reduced to one figure: mean or risk.
	Activity string
	// DCGMExporter is the URL of a dcgm-exporter's metrics, or empty. It is read for the
	// activity of GPUs without activity in NVML.
	DCGMExporter string
	// Metrics is the TCP address of the Prometheus endpoint, or off. MetricsNames adds
	// figures of single tasks and users to it.
	Metrics      string
	MetricsNames bool
	// Notify is the file of the administrator's channels for messages, auto or off.
	Notify string

	// Driver selects the containers' engine: docker, containerd or kubernetes.
	Driver string
	// DockerHost is the engine's address, by default DOCKER_HOST, or Docker's default.
	DockerHost string
	// ContainerdAddress is the path of containerd's socket, by default CONTAINERD_ADDRESS,
	// or containerd's default. ContainerdNamespace contains carma's images and containers.
	ContainerdAddress, ContainerdNamespace string
	// Kubeconfig is the file with the cluster's address and credentials. If empty, it is
	// found as kubectl finds it, or as in a pod of the cluster. KubernetesNamespace contains
	// the daemon's Lease and the pods of tasks that name no other namespace; the default is
	// the kubeconfig's. KubernetesNamespaces lists the other namespaces in which tasks may
	// run, or "*" for all. KubernetesFolders lists folders that tasks may mount. They are
	// the same on all nodes and on this machine.
	Kubeconfig, KubernetesNamespace string
	KubernetesNamespaces            []string
	KubernetesFolders               []string
	// KubernetesAdmins lists users of the cluster with the rights of admins. A group has @
	// before its name.
	KubernetesAdmins []string
	// Listen is the TLS address at which users of the cluster reach the daemon, or off.
	// ListenCertificate and ListenKey are files. If they are empty, the daemon makes a
	// certificate for this machine's names and ListenNames. TokenAudience is the required
	// audience of tokens, by default the apiserver.
	Listen, ListenCertificate, ListenKey string
	ListenNames                          []string
	TokenAudience                        string
	// Network is the containers' network, or empty for the engine's default. The host's
	// is refused.
	Network string
	// Attach selects how a container gets its GPUs: auto, device-request, runtime, cdi or
	// simulated.
	Attach string
	// Suspend selects how running tasks may be suspended: auto, here, move or off.
	Suspend string
	// Processors selects the processors that a task with GPUs may use: any, or near them.
	Processors string
	// Environment is the software and GPU that memory estimates assume. If empty, it is the
	// environment measured on the machine's GPUs, or else the default.
	Environment string
	// Probe selects the tasks that are probed before they are queued: asked, unknown or
	// never. ProbeTimeout and ProbeMemory bound a probe.
	Probe        string
	ProbeTimeout time.Duration
	ProbeMemory  units.Bytes
	// MPS selects the tasks that share GPUs through NVIDIA's Multi-Process Service: auto,
	// off, user or shared. MPSControl is its control program, MPSDir the folder of the
	// control daemons. MPSThreads (percent of the SMs) and MPSMemoryLimit bound each task.
	// MPSIPC is the IPC namespace of its clients: private or host.
	MPS            string
	MPSControl     string
	MPSDir         string
	MPSThreads     int
	MPSMemoryLimit bool
	MPSIPC         string
	// MemoryCaps selects the settings with which frameworks bound their own GPU memory if a
	// task may share its GPUs: growth, fractions or off.
	MemoryCaps string
	// MemoryLimit selects the additional limit of tasks' GPU memory: auto, driver, mps or
	// off. MemoryBurst lets tasks use free memory above their grants, up to the driver's
	// limit, which the program NVIDIASMI sets.
	MemoryLimit string
	MemoryBurst bool
	NVIDIASMI   string
	// Pull selects when images are pulled, unless the task selects it: missing, always or
	// never.
	Pull string
	// StopGrace is the time between the stop signal and the kill.
	StopGrace time.Duration
	// LogBytes bounds the stored output of an attempt.
	LogBytes units.Bytes
	// OutputDir is the folder of the tasks' output, by default folder logs of DataDir.
	OutputDir string
	// OutputTask, OutputUser and OutputTotal bound the stored output of one task, of one
	// user's tasks, and of all tasks. OutputFree is the space to leave free on its disk. The
	// defaults depend on LogBytes and the disk.
	OutputTask, OutputUser, OutputTotal, OutputFree units.Bytes
	// KeepTasks is the number of finished tasks to keep. KeepTasksFor is the time to keep
	// them, KeepOutputFor the time to keep their output. 0 means no limit.
	KeepTasks                   int
	KeepTasksFor, KeepOutputFor time.Duration

	// AllowedMounts lists the folders that tasks may mount, with everything below. ~ is the
	// submitter's home.
	AllowedMounts []string
	// HostTasks selects who may run tasks without an image: all, admins, none or a group.
	// HostFolders are the machine's folders that such tasks can read.
	HostTasks   string
	HostFolders []string
	// AllowedDevices lists patterns of devices that tasks may have in addition to their
	// GPUs. AllowedUlimits lists the process limits that they may set and their largest
	// values, each NAME or NAME=MOST.
	AllowedDevices, AllowedUlimits []string
	// AdminGroup is the group that may stop and remove the tasks of others; root
	// always may.
	AdminGroup string

	// OOMTexts lists texts in programs' errors that mean that GPU memory ran out, in
	// addition to carma's own list.
	OOMTexts []string
	// Visibility selects who may see a task's environment and output unless its submitter
	// selects it: private (owner and admins) or open (all).
	Visibility string
	// HostMem, CPUs, Pids and ShmSize limit a task that requests no limits of its own.
	// The fields that begin with Max limit what a task may request. The defaults depend
	// on the machine.
	HostMem, MaxHostMem, ShmSize, MaxShmSize units.Bytes
	CPUs, MaxCPUs                            float64
	// AllHostMem and AllCPUs bound the allocations of all tasks together. The defaults are
	// nine tenths of the memory and all processors. On a simulated server nothing is
	// allocated.
	AllHostMem    units.Bytes
	AllCPUs       float64
	Pids, MaxPids int
	// Limits of one user; 0 means no limit. HighPriority selects who may use priority high:
	// all, admins, or names of users and groups, separated by commas.
	UserConnections, UserTasks, UserHigh int
	UserBytes                            units.Bytes
	// Limits of one user: suites with helpers, helpers in all of them, and volumes of suites
	// that are up; 0 means no limit.
	UserSuites, UserHelpers, UserVolumes int
	// Limits of a helper that requests none, and the memory that is allocated for it. The
	// defaults depend on the machine.
	HelperHostMem, HelperReserve units.Bytes
	HelperCPUs                   float64
	HighPriority                 string

	// Mapper contains the mapper's options. Their defaults depend on the policy.
	Mapper model.Options

	// LogLevel is debug, info, warn or error.
	LogLevel string
	// LogFormat is auto (console on a terminal, otherwise json), console or json.
	LogFormat string
}

// SystemSocket is the socket of root's daemon.
const SystemSocket = "/run/carma/carma.sock"

// Default returns the default configuration, with the default policy. Socket and DataDir
// depend on the user.
func Default() Config {
	return Config{
		Socket:  defaultSocket(),
		Web:     "auto",
		DataDir: defaultDataDir(),

		JournalReserve: 16 * units.MiB,

		GPUs:        "auto",
		Speed:       1,
		SampleEvery: time.Second,
		Activity:    "mean",
		Metrics:     "off",
		Driver:      "docker",
		Attach:      "auto",
		Processors:  "any",
		Suspend:     "auto",

		MetricsNames: true,
		Notify:       "auto",

		ContainerdNamespace:  "carma",
		KubernetesNamespaces: []string{}, KubernetesFolders: []string{}, KubernetesAdmins: []string{},
		Listen: "off", ListenNames: []string{},

		Probe:          "asked",
		ProbeTimeout:   2 * time.Minute,
		ProbeMemory:    8 * units.GiB,
		MPS:            "auto",
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
		HostTasks:      "all",
		HostFolders:    bare.Folders(),
		AllowedDevices: []string{"/dev/infiniband/*"},
		AllowedUlimits: []string{"memlock", "nproc", "stack", "nofile=1048576"},
		AdminGroup:     "carma",

		Visibility:      "private",
		OOMTexts:        []string{},
		Pids:            16384,
		UserConnections: 512,
		UserTasks:       10_000,
		UserBytes:       64 * units.MiB,
		UserHigh:        10,
		UserSuites:      8, // an engine has addresses for some thirty networks
		UserHelpers:     64,
		UserVolumes:     64,
		HighPriority:    "admins",

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

// defaultMPSDir returns the default of MPSDir. The path is short, because the control
// daemons make sockets in the folder.
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

// ClientSocket returns the socket for a client. It is the system's socket if the user has
// configured none and runs no daemon, otherwise the configured one.
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
