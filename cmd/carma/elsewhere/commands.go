package elsewhere

const (
	byEngine  = "images are the engine's: docker build, docker pull; with driver containerd carma image"
	noAccount = "accounts are unix groups; their limits are quotas in the daemon's configuration"
)

var commands = []Word{
	// Common names.
	{Name: "list", Write: "carma ps"}, {Name: "ls", Write: "carma ps"}, {Name: "status", Write: "carma ps"}, {Name: "queue", Write: "carma ps"}, {Name: "jobs", Write: "carma ps"},
	{Name: "cancel", Write: "carma stop 17"}, {Name: "delete", Write: "carma rm 12"}, {Name: "submit", Write: "carma run -d my-image:1"},
	{Name: "nvidia-smi", Write: "carma gpus"}, {Name: "gpu", Write: "carma gpus"}, {Name: "nodes", Write: "carma gpus"}, {Name: "show", Write: "carma inspect 17"},

	// docker.
	{Name: "docker run", Write: "carma run my-image:1"}, {Name: "docker", Write: "carma run my-image:1", Say: "the commands of docker stand directly behind carma"},
	{Name: "kill", Write: "carma stop --now 17"}, {Name: "create", Write: "carma run -d my-image:1", Say: "carma hold keeps it from being started"}, {Name: "start", Write: "carma release 17", Say: "carma rerun 12 runs an ended task again"},
	{Name: "restart", Write: "carma requeue 17", Say: "carma rerun 12 runs an ended task again"}, {Name: "rename", Write: "carma update --name better 17"}, {Name: "stats", Write: "carma gpus", Say: "carma inspect 17 has what a task uses"},
	{Name: "cp", Say: "mount a folder: carma run -v ./data:/data; what a container holds beside its mounts goes with it"}, {Name: "commit", Say: "containers are removed at their end; build an image: docker build"},
	{Name: "export", Say: "containers are removed at their end; write to a mounted folder"}, {Name: "diff", Say: "containers are removed at their end; write to a mounted folder"},
	{Name: "images", Say: byEngine}, {Name: "build", Say: byEngine}, {Name: "pull", Say: byEngine}, {Name: "push", Say: byEngine}, {Name: "tag", Say: byEngine}, {Name: "rmi", Say: byEngine}, {Name: "login", Say: byEngine},
	{Name: "container", Write: "carma ps", Say: "the commands of docker container stand directly behind carma"}, {Name: "compose", Say: "carma suite has its commands: carma suite up compose.yaml"}, {Name: "system", Write: "carma info"},
	{Name: "network", Say: "the networks of tasks are the administrator's: carma daemon --network"}, {Name: "volume", Say: "carma mounts folders of the host: carma run -v ./data:/data; suites have volumes"},

	// docker compose.
	{Name: "suite exec", Say: "carma exec takes a task by its name, for example mixed-train-1; there is none for helpers"}, {Name: "suite run", Say: "carma run submits a task; --after waits for those of a suite"},
	{Name: "suite config", Say: "carma suite up --dry-run shows what would run"}, {Name: "suite start", Say: "carma suite up runs it anew"}, {Name: "suite restart", Say: "carma suite up runs it anew, once carma suite down has ended it"}, {Name: "suite create", Say: "carma suite up --dry-run shows what would run"},
	{Name: "suite stop", Say: "carma suite down stops it; volumes and output stay"}, {Name: "suite kill", Say: "carma suite down stops it; volumes and output stay"}, {Name: "suite rm", Say: "carma suite down removes its helpers, with -v its volumes"}, {Name: "suite pause", Say: "carma hold --group holds the tasks that wait"},
	{Name: "suite build", Say: "carma suite up --build builds and submits"}, {Name: "suite pull", Say: "carma suite up pulls what is missing"}, {Name: "suite push", Say: byEngine}, {Name: "suite top", Say: "carma ps, carma gpus"}, {Name: "suite stats", Say: "carma ps, carma gpus"},
	{Name: "suite port", Say: "carma suite ps shows the ports"}, {Name: "suite events", Say: "carma events --group tells what happens to its tasks"}, {Name: "suite ls", Say: "carma ps -a has a row for each suite's tasks"}, {Name: "suite images", Say: "carma suite up --dry-run names them"},

	// Slurm.
	{Name: "squeue", Write: "carma ps", Say: "--mine, --user ann, --filter status=pending, --format COLUMNS; carma why 20 says when it starts"},
	{Name: "sbatch", Write: "carma run -d my-image:1 python train.py", Say: "carma run -d --host -- bash job.sh runs a script without an image; carma does not read its #SBATCH lines"},
	{Name: "srun", Write: "carma run my-image:1 python train.py", Say: "-it for a terminal; carma exec -it 17 bash is one in a running task"}, {Name: "salloc", Write: "carma run -it my-image:1 bash"}, {Name: "sattach", Write: "carma attach 17"},
	{Name: "scancel", Write: "carma stop 17", Say: "--mine, --user ann, --filter name='exp-*', --filter status=pending"}, {Name: "sacct", Write: "carma history", Say: "--since, --until; carma report sums up"},
	{Name: "sreport", Write: "carma report"}, {Name: "seff", Write: "carma report --mine", Say: "WASTED is what was booked and not used"}, {Name: "sstat", Write: "carma inspect 17"}, {Name: "sinfo", Write: "carma gpus"},
	{Name: "sprio", Write: "carma why 20"}, {Name: "sshare", Write: "carma quota"}, {Name: "sacctmgr", Write: "carma quota", Say: noAccount}, {Name: "sdiag", Write: "carma info"}, {Name: "strigger", Write: "carma events --help"},
	{Name: "scontrol", Write: "carma inspect 17", Say: "also carma hold, release, suspend, resume, requeue, update, top, drain, undrain, reserve"},
	{Name: "scontrol show", Write: "carma inspect 17"}, {Name: "scontrol show job", Write: "carma inspect 17"}, {Name: "scontrol show node", Write: "carma gpus"}, {Name: "scontrol show nodes", Write: "carma gpus"}, {Name: "scontrol show partition", Write: "carma gpus"},
	{Name: "scontrol show res", Write: "carma reservations"}, {Name: "scontrol show reservation", Write: "carma reservations"}, {Name: "scontrol show config", Write: "carma config"},
	{Name: "scontrol hold", Write: "carma hold 20"}, {Name: "scontrol release", Write: "carma release 20"}, {Name: "scontrol requeue", Write: "carma requeue 17"}, {Name: "scontrol requeuehold", Write: "carma requeue --hold 17"},
	{Name: "scontrol update", Write: "carma update --time 2d --priority low 20", Say: "carma drain 1 for a GPU"}, {Name: "scontrol top", Write: "carma top 20"}, {Name: "scontrol create", Write: "carma reserve --gpus 2 --for ann --from 22:00 --to 8:00"},
	{Name: "scontrol delete", Write: "carma unreserve 1"}, {Name: "scontrol wait_job", Write: "carma wait 12"}, {Name: "scontrol ping", Write: "carma info"}, {Name: "scontrol reconfigure", Say: "send the daemon SIGHUP"},
	{Name: "scontrol suspend", Write: "carma suspend 17", Say: "its GPU memory goes to host memory"}, {Name: "scontrol resume", Write: "carma resume 22"},

	// gflow.
	{Name: "gflowd", Write: "carma daemon"}, {Name: "gbatch", Write: "carma run -d --gpus 1 my-image:1 python train.py"}, {Name: "gqueue", Write: "carma ps"}, {Name: "gcancel", Write: "carma stop 17"}, {Name: "ginfo", Write: "carma gpus"}, {Name: "gstats", Write: "carma report"},
	{Name: "gctl", Write: "carma drain 1 --reason fan"}, {Name: "gjob", Write: "carma inspect 17", Say: "also carma hold, release, rerun, update, attach, logs"}, {Name: "gjob show", Write: "carma inspect 17"}, {Name: "gjob hold", Write: "carma hold 20"},
	{Name: "gjob release", Write: "carma release 20"}, {Name: "gjob redo", Write: "carma rerun 12"}, {Name: "gjob update", Write: "carma update --time 2h 20"}, {Name: "gjob attach", Write: "carma attach 17"}, {Name: "gjob log", Write: "carma logs 12"},

	// task-spooler and pueue.
	{Name: "tsp", Write: "carma run -d my-image:1 python train.py", Say: "carma ps for the list"}, {Name: "ts", Write: "carma run -d my-image:1 python train.py", Say: "carma ps for the list"},
	{Name: "pueue", Write: "carma ps", Say: "the commands of pueue stand directly behind carma"}, {Name: "pueue add", Write: "carma run -d my-image:1 python train.py"}, {Name: "add", Write: "carma run -d my-image:1 python train.py"},
	{Name: "follow", Write: "carma logs -f 12"}, {Name: "log", Write: "carma logs 12"}, {Name: "clean", Write: "carma rm --finished"}, {Name: "stash", Write: "carma hold 20"}, {Name: "enqueue", Write: "carma release 20"}, {Name: "switch", Write: "carma top 20"}, {Name: "edit", Write: "carma update --time 2h 20"},
	{Name: "group", Write: "carma run -d --group exp my-image:1"}, {Name: "parallel", Say: "carma runs what fits; carma run --array 1-10%2 and --parallel limit a group, quotas a user"}, {Name: "reset", Write: "carma stop --mine", Say: "then carma rm --finished"}, {Name: "shutdown", Write: "carma daemon --drain"},

	// PBS, Grid Engine, LSF, Kubernetes.
	{Name: "qsub", Write: "carma run -d my-image:1 python train.py", Say: "carma run -d --host -- bash job.sh runs a script without an image"}, {Name: "qstat", Write: "carma ps"}, {Name: "qdel", Write: "carma stop 17"}, {Name: "qhold", Write: "carma hold 20"}, {Name: "qrls", Write: "carma release 20"}, {Name: "qalter", Write: "carma update --time 2h 20"},
	{Name: "bsub", Write: "carma run -d my-image:1 python train.py", Say: "carma run -d --host -- bash job.sh runs a script without an image"}, {Name: "bjobs", Write: "carma ps"}, {Name: "bkill", Write: "carma stop 17"}, {Name: "bpeek", Write: "carma logs 12"}, {Name: "bhosts", Write: "carma gpus"},
	{Name: "kubectl", Write: "carma ps", Say: "also carma run, logs, exec, inspect, stop"}, {Name: "kubectl get", Write: "carma ps"}, {Name: "kubectl logs", Write: "carma logs 12"}, {Name: "kubectl exec", Write: "carma exec 17 ps"}, {Name: "kubectl delete", Write: "carma stop 17"}, {Name: "kubectl describe", Write: "carma inspect 17"},
	{Name: "nvtop", Write: "carma gpus", Say: "carma top is live"}, {Name: "gpustat", Write: "carma gpus", Say: "carma top is live"}, {Name: "nvitop", Write: "carma gpus", Say: "carma top is live"},
}
