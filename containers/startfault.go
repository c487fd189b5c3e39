package containers

import (
	"errors"
	"regexp"
	"strings"

	"carma/internal/lazyregexp"
)

// Scope is the part that must be fixed before a container can start.
type Scope string

// The scopes. model.BreakerScope has the same values, except ScopeTask.
const (
	ScopeTask      Scope = "task"      // the task's request
	ScopeEngine    Scope = "engine"    // the container engine, or the parts of the machine that it needs
	ScopeGPU       Scope = "gpu"       // a GPU, its device nodes or the driver
	ScopeUnknown   Scope = "unknown"   // unknown from the message; further evidence decides
	ScopeNamespace Scope = "namespace" // the task's namespace in a cluster accepts no more containers now
)

// HookRefuses is the code of a device request that NVIDIA's toolkit refused because it is
// set to CDI. The GPUs must be attached in another way.
const HookRefuses = "hook-direct"

// StartFault is the reason why a container could not be made or started.
type StartFault struct {
	Scope Scope
	// Code is the code of the table's row, or "unknown" if none matched.
	Code string
	// Cause describes the problem and Remedy its fix, each in a short sentence.
	Cause, Remedy string
	// Device is the GPU named by the engine, a UUID or a device node, or empty.
	Device string
	// Text is the engine's own message.
	Text string
}

// Error returns the engine's message.
func (f *StartFault) Error() string { return f.Text }

// ReadStartFault looks up an engine's message in the table. It returns nil if no row
// matches, that is, if the cause is unknown.
func ReadStartFault(msg string) *StartFault {
	for i := range startRules {
		r := &startRules[i]
		if !r.match().MatchString(msg) {
			continue
		}
		f := &StartFault{Scope: r.scope, Code: r.code, Cause: r.cause, Remedy: r.remedy, Text: msg}
		if r.scope == ScopeGPU {
			if f.Device = gpuDevice().FindString(msg); f.Device != "" {
				f.Cause += " (" + f.Device + ")"
			}
		}
		return f
	}
	return nil
}

// StartFaultOf returns the cause of a failed start, from the error of a driver's Create
// or Start. If the message matches no row, the scope is ScopeUnknown: the message alone
// does not show whether the engine or the task is at fault.
func StartFaultOf(err error) *StartFault {
	if f, ok := errors.AsType[*StartFault](err); ok {
		return f
	}
	msg := err.Error()
	if f := ReadStartFault(msg); f != nil {
		return f
	}
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) {
		return &StartFault{Scope: ScopeTask, Code: "refused", Cause: msg, Text: msg}
	}
	return &StartFault{Scope: ScopeUnknown, Code: "unknown", Cause: line(whichContainer().ReplaceAllString(msg, "")), Remedy: "look at the engine's log", Text: msg}
}

// whichContainer matches a driver's prefix that names the call and the container, which
// are unrelated to the cause.
var whichContainer = lazyregexp.New(`^(create|start) container( [0-9a-f]+)?: `)

// gpuDevice matches a GPU's name in messages.
var gpuDevice = lazyregexp.New(`(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|/dev/nvidia[0-9]+`)

// startRule is a row of the table of failed starts.
type startRule struct {
	scope         Scope
	code          string
	match         func() *regexp.Regexp
	cause, remedy string
}

const restartEngine = "restart the engine: systemctl restart docker (or containerd)"

// startRules are tried in order. The texts are from Docker 20.10 to 29, containerd 1.6 to
// 2, runc 1.0 to 1.3, NVIDIA's container toolkit 1.5 to 1.18 and the CDI library.
// testdata/starts.txt has a sample of each. A row for a task comes before a wider row for
// the machine that would also match its text. A row has ScopeUnknown if both the machine
// and a task's own limits can cause its text.
var startRules = []startRule{
	{ScopeTask, "image-needs-driver", re(`requirement error: `),
		"the image needs a newer NVIDIA driver or CUDA than this machine has", "use an older image, or set NVIDIA_DISABLE_REQUIRE=1"},
	{ScopeTask, "driver-capabilities", re(`unsupported capabilities found in '`),
		"the task or its image asks NVIDIA's toolkit for capabilities that it does not give", "set NVIDIA_DRIVER_CAPABILITIES to some of those that the message allows"},
	{ScopeTask, "image-has-driver", re(`nvidia-container-cli: mount error: file creation failed: .*file exists`),
		"the image has files of the NVIDIA driver in it", "build the image without them"},
	{ScopeTask, "port-taken", re(`port is already allocated|listen (tcp|udp)\d? ?\S*: bind: address already in use|port \d+/(tcp|udp) of this machine is taken`),
		"another program has a port of this machine that the task asks for", "leave the machine's port out, for any that is free: -p 8888"},
	{ScopeTask, "mount-point", re(`value too large for defined data type`),
		"a mount point or the working folder is missing in a mounted folder, where the engine may make nothing; a link may lead there", "make it there yourself, or choose another path"},
	{ScopeTask, "limit-refused", re(`error setting rlimit`),
		"the engine may not set a limit of its processes so high", "ask for less with --ulimit"},

	{ScopeTask, "image-pull", re(`^the node cannot pull the image: .*(?i:not found|no such image|denied|unauthorized|authorization failed|invalid reference|manifest unknown|couldn't parse image)`),
		"the registry has no such image for this cluster", "look at the image's name; for a private registry, give the namespace's default service account an imagePullSecret"},

	{ScopeEngine, "registry", re(`^the node cannot pull the image: `),
		"the registry does not answer the node", "see the pod's events: kubectl describe pod"},
	{ScopeEngine, "pod-refused", re(`^the node refused the pod: `),
		"the node has no room for the pod, or refuses such pods", "kubectl describe node shows what is used there"},
	{ScopeGPU, "node-closed", re(`^no node takes the pod: .*(were unschedulable|untolerated taint|not ready|unreachable)`),
		"the GPU's node takes no pods: it is cordoned, tainted or not ready", "kubectl describe node shows why; kubectl uncordon opens a node"},
	{ScopeGPU, "node-gone", re(`^no node takes the pod: .*(no nodes available|0/0 nodes|didn't match Pod's node affinity)`),
		"the GPU's node is not in the cluster any more", "kubectl get nodes shows which are there"},
	{ScopeGPU, "node-full", re(`^no node takes the pod: .*(Insufficient |Too many pods)`),
		"the GPU's node has no room for the pod beside its GPU", "kubectl describe node shows what is requested there; ask for less with --host-mem or --cpus"},
	{ScopeGPU, "gpu-taken", re(`^no node takes the pod: `),
		"another claim has the GPU's memory", "kubectl get resourceclaims -A shows who has it"},
	{ScopeGPU, "node-stuck", re(`^the node does not start the pod: `),
		"the GPU's node does not start the pod", "kubectl describe pod and kubectl describe node show what it waits for"},
	{ScopeEngine, "keyring", re(`(?i)(session keyring|session key|keyctl\S*): .*disk quota exceeded`),
		"the kernel's quota of keys is used up: each container takes a session keyring", "raise it: sysctl -w kernel.keys.maxkeys=20000 kernel.keys.maxbytes=2000000; for containers of root also kernel.keys.root_maxkeys and kernel.keys.root_maxbytes"},
	{ScopeGPU, "persistenced", re(`nvidia-persistenced/socket"?( to rootfs .*)?: no such file or directory`),
		"the socket of nvidia-persistenced is gone: as a rule the driver was updated, or the service was stopped", "systemctl restart nvidia-persistenced; with CDI files also nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; after an update of the driver restart the machine"},
	{ScopeUnknown, "registry-rate", re(`toomanyrequests: `),
		"the registry takes no more requests from this machine now", "log the engine in at the registry, use a mirror, or bring the image onto the machine: docker load"},
	{ScopeEngine, "disk-full", re(`no space left on device|disk quota exceeded`),
		"the engine's disk is full", "make room there: docker system df shows what uses it"},
	{ScopeUnknown, "machine-full", re(`fork/exec [^:]*: (resource temporarily unavailable|cannot allocate memory)|too many open files|newosproc|pthread_create failed`),
		"the machine, or the task by its own limits, is out of memory, processes or files", "look at the task's --ulimit and --pids; see what takes them; raise the engine's limits (LimitNOFILE, TasksMax)"},
	{ScopeEngine, "bridge-gone", re(`could not find bridge|failed to add the host .* pair interfaces|adding interface \S+ to bridge \S+ failed|no such network interface`),
		"the network bridge of the containers is gone", restartEngine + ", which makes it again"},
	{ScopeEngine, "network-gone", re(`network \S+ not found|network \S+: .*no such file`),
		"the network that containers are to be in is not there", "make it (docker network create), or change the setting network"},
	{ScopeEngine, "addresses", re(`no available (IPv4 )?addresses? on this network|no IP addresses available in range|non-overlapping IPv4 address pool`),
		"the containers' network has no address left", "remove containers that are not needed, or give the network a wider range"},
	{ScopeEngine, "network", re(`failed to create endpoint|driver failed programming external connectivity|failed to set up container networking|CNI: |plugin type="|iptables failed|iptables: No chain`),
		"the containers' network cannot be set up", restartEngine + "; its log has the details"},
	{ScopeEngine, "runtime-unknown", re(`(?i)unknown (or invalid )?runtime|runtime "[^"]*" binary not installed|containerd-shim[^:]*: (executable )?file (not found|does not exist)|no such runtime`),
		"the engine does not know the runtime that containers are to use", "nvidia-ctk runtime configure, then restart the engine; or change attach"},
	{ScopeEngine, "runtime-broken", re(`unable to retrieve OCI runtime error|(exec: |fork/exec )"?(/[^" ]*/)?(runc|crun|youki|nvidia-container-runtime[^" :]*|containerd-shim[^" :]*)"?: |failed to start shim|shim exited|exit status \d+: "?: unknown$|failed to (get|find) runtime`),
		"the program that starts containers (runc or another runtime) is missing or broken", "install it again: apt-get install --reinstall runc"},

	{ScopeGPU, "device-node", re(`"?/dev/nvidia[0-9]+"?: no such (file|device)|(stat|lstat|open) /dev/nvidia[0-9]+|stat failed: /dev/nvidia[^:]*: no such|failed to stat CDI host device "/dev/nvidia`),
		"a GPU's device node is missing", "nvidia-smi makes it again; if it does not, the driver has lost the GPU: see dmesg"},
	{ScopeGPU, "nvml", re(`(?i)failed to initialize nvml|nvml error|driver not loaded|driver/library version mismatch|libnvidia-ml\.so[.0-9]*: cannot open`),
		"the NVIDIA driver does not answer", "nvidia-smi tells why; after an update of the driver the machine has to be restarted"},
	{ScopeGPU, "driver-hangs", re(`nvidia-container-cli: .*(timed out|driver rpc error)`),
		"the NVIDIA driver hangs", "see dmesg for Xid errors; systemctl restart nvidia-persistenced, or restart the machine"},
	{ScopeGPU, "device-unknown", re(`nvidia-container-cli: device error|unknown device\b`),
		"the driver does not know a GPU any more", "nvidia-smi -L shows which are there; see dmesg for Xid errors"},
	{ScopeGPU, "cdi", re(`unresolvable CDI devices|CDI device|failed to inject CDI|unknown CDI`),
		"no CDI file describes a GPU", "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"},

	{ScopeEngine, "cgroups", re(`(?i)\bcgroups?\b|bpf_prog_(query|attach)|BPF_CGROUP`),
		"the control groups of this machine cannot be used", "mount them (systemd does), and see that nothing else moves the engine's own group; " + restartEngine},
	{ScopeEngine, "systemd", re(`unable to start unit|failed to connect to dbus|dbus: |recipient disconnected from message bus`),
		"systemd does not answer the engine", "systemctl daemon-reexec, then " + restartEngine},
	{ScopeEngine, HookRefuses, re(`invoking the NVIDIA Container Runtime Hook directly`),
		"NVIDIA's toolkit is in its CDI mode and refuses --gpus", "set attach: runtime, or cdi"},
	{ScopeEngine, "no-gpu-support", re(`could not select device driver`),
		"the engine cannot give containers GPUs", "install the NVIDIA Container Toolkit, run nvidia-ctk runtime configure and restart the engine"},
	{ScopeEngine, "nvidia-hook", re(`nvidia-container-cli: |nvidia-container-(runtime|toolkit|runtime-hook)\b`),
		"NVIDIA's container toolkit failed", "nvidia-container-cli -k -d /dev/tty info tells more"},
	{ScopeEngine, "hook", re(`error running (prestart |createRuntime |createContainer )?hook`),
		"a hook of the engine failed", "see the engine's log"},
	{ScopeEngine, "storage", re(`error creating overlay mount|failed to mount rootfs component|input/output error|structure needs cleaning|(/var/lib/(docker|containerd)|/run/containerd)/[^ ]*: read-only file system|failed to prepare extraction snapshot|layer does not exist`),
		"the engine's storage is broken", "see dmesg for disk errors; " + restartEngine},
	{ScopeUnknown, "security-module", re(`(?i)apparmor|error adding seccomp filter|failed to set (selinux|file label)`),
		"AppArmor, seccomp or SELinux keep containers from starting", "systemctl restart apparmor, then " + restartEngine},
}

// MachineFault reports whether an engine's message about a failed creation or start is
// about a fault of this machine's set-up. No change to the task fixes that.
func MachineFault(msg string) bool {
	f := ReadStartFault(msg)
	return f != nil && f.Scope != ScopeTask
}

// taskFault reports whether the request is at fault according to a row of the table.
func taskFault(msg string) bool {
	f := ReadStartFault(strings.TrimSpace(msg))
	return f != nil && f.Scope == ScopeTask
}
