package elsewhere

const (
	oneMachine = "carma serves one machine; processes of one task are torchrun's"
	noParts    = "there is one machine and no partitions; --priority and reservations order its tasks"
	noMail     = "carma notify --help says where messages go"
)

// flags lists flags of other programs that users type by habit, by carma's command. Flags
// of docker run are in configs/dockerflags.
var flags = map[string][]Word{
	"run": {
		// Slurm.
		{Name: "gres", Write: "--gpus 2"}, {Name: "gpus-per-node", Write: "--gpus 2"}, {Name: "gpus-per-task", Write: "--gpus 2"}, {Name: "G", Write: "--gpus 2"},
		{Name: "mem-per-gpu", Write: "--host-mem 32G", Say: "GPU memory is --mem 12G"}, {Name: "mem-per-cpu", Write: "--host-mem 32G"}, {Name: "cpus-per-task", Write: "--cpus 4"}, {Name: "cpus-per-gpu", Write: "--cpus 4"},
		{Name: "ntasks", Say: oneMachine}, {Name: "ntasks-per-node", Say: oneMachine}, {Name: "n", Say: oneMachine}, {Name: "nodes", Say: oneMachine}, {Name: "N", Say: oneMachine},
		{Name: "nodelist", Say: oneMachine}, {Name: "exclude", Say: oneMachine}, {Name: "constraint", Say: oneMachine}, {Name: "C", Say: oneMachine},
		{Name: "partition", Say: noParts}, {Name: "qos", Write: "--priority low"}, {Name: "Q", Write: "--priority low"}, {Name: "nice", Write: "--priority low"}, {Name: "job-name", Write: "--name mine"}, {Name: "J", Write: "--name mine"}, {Name: "A", Write: "--account lab"},
		{Name: "output", Say: "carma keeps the output: carma logs 17 > FILE"}, {Name: "o", Say: "carma keeps the output: carma logs 17 > FILE"}, {Name: "error", Say: "carma keeps the output: carma logs 17 2> FILE"}, {Name: "open-mode", Say: "carma keeps the output of each attempt: carma logs --attempt 1 17"},
		{Name: "dependency", Write: "--after 17", Say: "afterany is 17:any, after 17:started"}, {Name: "begin", Write: "--delay 10m"}, {Name: "wrap", Write: "--host -- sh -c 'python train.py'"}, {Name: "pty", Write: "-it"}, {Name: "jobid", Write: "carma exec -it 17 bash"},
		{Name: "requeue", Say: "a failure that is not the program's costs no attempt; --retries 3 is for the program's own"}, {Name: "no-requeue", Write: "--retries 0"}, {Name: "mail-type", Write: "--notify finished,failed", Say: noMail}, {Name: "mail-user", Write: "--notify finished,failed", Say: noMail},
		{Name: "hold", Write: "carma hold 20", Say: "behind carma run -d, which prints the number"}, {Name: "H", Write: "carma hold 20", Say: "behind carma run -d, which prints the number"}, {Name: "parsable", Write: "-d", Say: "it prints the number alone"},
		{Name: "chdir", Write: "--workdir /work"}, {Name: "D", Write: "--workdir /work"}, {Name: "export", Write: "-e NAME", Say: "once for each variable"}, {Name: "test-only", Write: "--dry-run"}, {Name: "wait", Say: "without -d carma run waits and exits with the task's code"}, {Name: "W", Say: "without -d carma run waits and exits with the task's code"},
		{Name: "time-min", Write: "--time 2h"}, {Name: "signal", Write: "--stop-signal USR1", Say: "--stop-grace 60s is the time after it"}, {Name: "comment", Write: "-l note=text"}, {Name: "reservation", Say: "a reservation is for a user; their tasks use it by themselves"}, {Name: "overcommit", Say: "tasks share GPUs unless --exclusive"},
		// gflow, task-spooler, pueue.
		{Name: "shared", Say: "tasks share GPUs unless --exclusive; --mem 20G says how much of one"}, {Name: "gpu-memory", Write: "--mem 20G"}, {Name: "conda-env", Write: "--conda exp"}, {Name: "param", Write: "--sweep lr=0.1,0.01"}, {Name: "max-concurrent", Write: "--parallel 2"},
		{Name: "depends-on", Write: "--after 17"}, {Name: "depends-on-all", Write: "--after 17", Say: "once for each"}, {Name: "depends-on-any", Say: "a task waits for all that --after names"}, {Name: "auto-close-tmux", Say: "tasks are containers; carma attach takes a terminal again"},
		{Name: "immediate", Say: "a task starts as soon as it fits; carma top 20 puts it before your others"}, {Name: "stashed", Write: "carma hold 20", Say: "behind carma run -d, which prints the number"}, {Name: "print-task-id", Write: "-d"}, {Name: "working-directory", Write: "--workdir /work"},
	},
	"ps": {
		{Name: "u", Write: "--user ann"}, {Name: "me", Write: "--mine"}, {Name: "j", Write: "carma ps 17"}, {Name: "jobs", Write: "carma ps 17"}, {Name: "job", Write: "carma ps 17"},
		{Name: "t", Write: "--filter status=pending"}, {Name: "states", Write: "--filter status=pending"}, {Name: "state", Write: "--filter status=pending"}, {Name: "s", Write: "--filter status=running"}, {Name: "status", Write: "--filter status=running"},
		{Name: "o", Write: "--format ID,NAME,PHASE"}, {Name: "sort", Say: "the newest is first; carma ps --format ID,NAME,TIME | sort"}, {Name: "start", Write: "carma why 20", Say: "it says when a waiting task is expected to start"}, {Name: "name", Write: "--filter name=llama"},
		{Name: "S", Write: "--since yesterday"}, {Name: "starttime", Write: "--since yesterday"}, {Name: "E", Write: "--until today"}, {Name: "endtime", Write: "--until today"}, {Name: "p", Say: noParts}, {Name: "partition", Say: noParts},
		{Name: "A", Write: "carma report --by account"}, {Name: "account", Write: "carma report --by account"}, {Name: "g", Write: "--group exp"}, {Name: "long", Write: "--format ID,NAME,USER,PHASE,START,END,COMMAND"}, {Name: "noheader", Write: "--format ID,NAME,PHASE", Say: "it prints no titles"},
		{Name: "i", Write: "--watch=5s", Say: "or carma events"}, {Name: "iterate", Write: "--watch=5s", Say: "or carma events"}, {Name: "w", Write: "--watch", Say: "or carma events"},
		{Name: "size", Say: "carma keeps no sizes of containers"},
	},
	"stop": {
		{Name: "me", Write: "--mine"}, {Name: "u", Write: "--user ann"}, {Name: "n", Write: "--filter name=llama"}, {Name: "name", Write: "--filter name=llama"}, {Name: "jobname", Write: "--filter name=llama"}, {Name: "state", Write: "--filter status=pending"}, {Name: "p", Say: noParts}, {Name: "g", Write: "--group exp"},
		{Name: "s", Write: "carma run --stop-signal INT my-image:1", Say: "a task's signal is set when it is submitted; carma exec 17 kill -INT 1 sends one"}, {Name: "signal", Write: "carma run --stop-signal INT my-image:1", Say: "a task's signal is set when it is submitted; carma exec 17 kill -INT 1 sends one"},
	},
	"history": {
		{Name: "u", Write: "--user ann"}, {Name: "S", Write: "--since yesterday"}, {Name: "starttime", Write: "--since yesterday"}, {Name: "E", Write: "--until today"}, {Name: "endtime", Write: "--until today"}, {Name: "s", Write: "--filter status=failed"}, {Name: "state", Write: "--filter status=failed"},
		{Name: "j", Write: "carma ps 12"}, {Name: "o", Write: "--format ID,NAME,START,END,CODE"}, {Name: "A", Write: "carma report --by account"}, {Name: "X", Say: "a task is one row anyway"},
	},
	"logs": {
		{Name: "until", Write: "-t", Say: "it prints the time before each line"},
		{Name: "lines", Write: "--tail 100"}, {Name: "details", Write: "carma inspect 12"},
	},
	"exec": {
		{Name: "u", Say: "a command runs as the task's user"}, {Name: "user", Say: "a command runs as the task's user"}, {Name: "d", Write: "carma exec 17 sh -c 'CMD &'"}, {Name: "detach", Write: "carma exec 17 sh -c 'CMD &'"}, {Name: "privileged", Say: "tasks get no extra privileges"},
	},
	"attach": {
		{Name: "no-stdin", Write: "carma logs -f 17"}, {Name: "sig-proxy", Say: "all keys go to the program; ctrl-p ctrl-q leaves"},
	},
	"rerun": {
		{Name: "d", Say: "it never waits; carma wait @ does"}, {Name: "detach", Say: "it never waits; carma wait @ does"}, {Name: "in-place", Say: "an ended task keeps its number and output; the new one has its own"},
	},
	"update": {
		{Name: "label", Write: "-l key=value", Say: "--filter label=key=value chooses by a label"}, {Name: "label-add", Write: "-l key=value"}, {Name: "label-rm", Write: "--unlabel key"},
		{Name: "time-limit", Write: "--time 2d"}, {Name: "nice", Write: "--priority low"}, {Name: "qos", Write: "--priority low"}, {Name: "dependency", Write: "--after 17"}, {Name: "depends-on", Write: "--after 17"}, {Name: "gpu-memory", Write: "--mem 20G"},
		{Name: "restart", Write: "--retries 3"}, {Name: "env", Write: "carma rerun -e KEY=value 17", Say: "a task's environment and command stay; a new one has others"}, {Name: "e", Write: "carma rerun -e KEY=value 17", Say: "a task's environment and command stay; a new one has others"}, {Name: "image", Write: "carma run -d my-image:1"},
		{Name: "hold", Write: "carma hold 20"},
	},
	"drain": {
		{Name: "to", Write: "--until 22:00"}, {Name: "duration", Write: "--for 2h"}, {Name: "time", Write: "--for 2h"}, {Name: "gpus", Write: "carma drain 0,1", Say: "their numbers stand behind it"},
	},
	"pause": {
		{Name: "to", Write: "--until 22:00"}, {Name: "duration", Write: "--for 2h"}, {Name: "time", Write: "--for 2h"}, {Name: "group", Write: "carma hold --group exp"}, {Name: "g", Write: "carma hold --group exp"},
	},
	"reserve": {
		{Name: "duration", Write: "--to 2h"}, {Name: "until", Write: "--to 8:00"}, {Name: "time", Write: "--to 2h"}, {Name: "user", Write: "--for ann"}, {Name: "users", Write: "--for ann"}, {Name: "group", Write: "--for @students"}, {Name: "accounts", Write: "--for @students"}, {Name: "start", Write: "--from 22:00"}, {Name: "starttime", Write: "--from 22:00"}, {Name: "end", Write: "--to 8:00"}, {Name: "endtime", Write: "--to 8:00"},
	},
	"rm": {
		{Name: "v", Say: "volumes of suites go with carma suite down -v"}, {Name: "volumes", Say: "volumes of suites go with carma suite down -v"},
	},
}
