package command

import (
	"slices"
	"strconv"
	"strings"

	"carma/estimator/shell"

	"go.yaml.in/yaml/v3"
)

// launcher is a program that starts several processes of another program.
type launcher struct {
	// names lists the first one or two words of the launcher's command. modules are
	// arguments of python -m.
	names, modules []string
	// switches lists the options without a value, pairs the options with two values.
	switches, pairs string
	// processes lists the options, and variables the environment variables, that set the
	// number of processes. nodes lists the options that set the number of machines.
	processes, variables, nodes []string
	// devices lists the options with GPU indexes or a number of GPUs.
	devices []string
	// cpu lists the options that make the processes run without GPUs.
	cpu []string
	// single is set if the launcher starts one process by default. Other launchers start one
	// process per GPU.
	single bool
	// shares is set if the processes often share a GPU unless they are Python programs.
	shares bool
	// own is set if the launcher is also the training program: all arguments are its own,
	// and no other program follows.
	own bool
}

// launchers has the options that the tools' documentation listed in November 2026.
var launchers = []launcher{
	{
		names: []string{"torchrun"}, modules: []string{"torch.distributed.run", "torch.distributed.launch", "torch.distributed.launcher", "oneflow.distributed.launch", "bagua.distributed.launch", "torch_npu.distributed.launch"},
		switches:  "--standalone -m --module --no-python --no_python --run-path --run_path --use-env --use_env --virtual-local-rank",
		processes: []string{"nproc_per_node"}, variables: []string{"PET_NPROC_PER_NODE"}, nodes: []string{"nnodes"}, single: true,
	},
	{
		names: []string{"accelerate launch", "accelerate-launch"}, modules: []string{"accelerate.commands.launch", "accelerate.commands.accelerate_cli launch", "accelerate launch"},
		switches:  "--multi_gpu --multi-gpu --cpu --tpu --mps --ipex --xpu --use_xpu --use_deepspeed --use-deepspeed --use_fsdp --use-fsdp --use_megatron_lm --use_parallelism_config --debug -q --quiet --no_python --module -m --same_network --enable_cpu_affinity --dynamo_use_fullgraph --dynamo_use_dynamic --dynamo_use_regional_compilation --tpu_use_cluster --fp8_use_autocast_during_eval --fp8_override_linear_precision",
		processes: []string{"num_processes"}, devices: []string{"gpu_ids"}, nodes: []string{"num_machines"}, cpu: []string{"cpu", "tpu", "mps"},
	},
	{
		names: []string{"deepspeed", "ds"}, modules: []string{"deepspeed.launcher.runner", "deepspeed.launcher.launch"},
		switches:  "--no_python --no_local_rank --no_ssh --module --force_multi --save_pid --bind_cores_to_rank --no_ssh_check",
		processes: []string{"num_gpus"}, nodes: []string{"num_nodes"},
	},
	{
		names: []string{"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prun", "prterun", "mpirun_rsh"}, pairs: "-mca --mca -gmca --gmca -genv -env",
		switches:  "--allow-run-as-root -allow-run-as-root --oversubscribe -oversubscribe --report-bindings -report-bindings --tag-output -tag-output -v -q --use-hwthread-cpus -l --timestamp-output --display-map -display-map --nooversubscribe",
		processes: []string{"np", "n", "c"}, shares: true,
	},
	{
		names: []string{"srun"}, switches: "-l --label --unbuffered -u --exclusive --pty -v --overlap --export-all -K -O --overcommit",
		processes: []string{"ntasks_per_node", "n", "ntasks"}, devices: []string{"gpus", "gpus_per_node", "G"}, nodes: []string{"N", "nodes"}, shares: true, single: true,
	},
	{names: []string{"horovodrun"}, modules: []string{"horovod.runner", "horovod.runner.launch"}, switches: "--gloo --mpi --verbose --disable-cache --check-build", processes: []string{"np", "num_proc"}},
	{names: []string{"colossalai run"}, processes: []string{"nproc_per_node"}, switches: "-m", single: true},
	{names: []string{"composer"}, modules: []string{"composer", "composer.cli.launcher"}, switches: "-m --module_mode -v --verbose -c --command_mode", processes: []string{"n", "nproc"}},
	{names: []string{"tune run"}, switches: "--standalone", processes: []string{"nproc_per_node"}, nodes: []string{"nnodes"}, single: true},
	{names: []string{"fabric run", "lightning run", "lightning fabric"}, processes: []string{"devices"}, nodes: []string{"num_nodes", "num-nodes"}},
	{names: []string{"fleetrun"}, modules: []string{"paddle.distributed.launch", "paddle.distributed.fleet.launch"}, processes: []string{"nproc_per_node"}, devices: []string{"gpus", "devices", "selected_gpus"}, nodes: []string{"nnodes"}},
	{names: []string{"torchx run"}, switches: "--dryrun --wait --log", own: true},
	{names: []string{"dist_train.sh", "dist_test.sh"}, own: true},
	{names: []string{"trl", "axolotl"}, own: true, processes: []string{"num_processes", "nproc_per_node"}},
	{names: []string{"swift", "megatron", "xtuner", "llamafactory-cli", "NPROC_PER_NODE"}, own: true, variables: []string{"NPROC_PER_NODE"}},
}

// also maps a launcher's first name to a function for arguments that do not fit into the
// table.
var also = map[string]func(r *reader, c *shell.Command, l *launched){
	"accelerate launch": accelerate, "deepspeed": include, "mpirun": perNode, "srun": gres, "torchx run": torchx, "dist_train.sh": openmmlab,
}

// launched is a call of a launcher.
type launched struct {
	*launcher
	title   string
	options []option
	rest    []string // the launched program, or the launcher's own arguments
}

// launcherOf returns the launcher that a program is, or nil. from is the index of the
// launcher's first argument in p.args.
func launcherOf(p *program) (l *launcher, from int) {
	for i := range launchers {
		l := &launchers[i]
		if p.module && slices.Contains(l.modules, p.name) {
			return l, 0
		}
		if p.module && len(p.args) > 0 && slices.Contains(l.modules, p.name+" "+p.args[0]) {
			return l, 1
		}
		if p.module || p.python && !strings.HasSuffix(p.name, ".sh") {
			continue
		}
		if i := slices.IndexFunc(l.names, p.is); i >= 0 {
			return l, strings.Count(l.names[i], " ")
		}
	}
	if slices.Contains([]string{"sh", "bash"}, p.name) && len(p.args) > 0 { // bash tools/dist_train.sh
		inner := programOf(p.args)
		if l, _ := launcherOf(&inner); l != nil && l.own {
			return l, 1
		}
	}
	return nil, 0
}

// launch reads a launcher and the program that it launches.
func (r *reader) launch(c *shell.Command, l *launcher, p *program, from int) {
	title := p.title
	if from == 1 {
		title += " " + p.args[0]
	}
	call := &launched{launcher: l, title: title}
	call.options, call.rest = optionsOf(p.args[from:], l.switches, l.pairs)
	if l.own {
		call.rest = p.args[from:]
		call.options = argumentsOf(call.rest)
	}
	if !r.cpuOnly(call) {
		r.processes(c, call)
	}
	if o, ok := named(call.options, l.nodes...); ok {
		first, _, _ := strings.Cut(o.value, ":")
		if n, fine := number(first); fine && n > 1 && c.Sure {
			r.Nodes = &Fact{first, title + " " + o.String()}
		}
	}
	r.behind(c, call)
}

// behind reads the launched program.
func (r *reader) behind(c *shell.Command, l *launched) {
	if len(l.rest) == 0 {
		return
	}
	if l.own {
		r.folders("", l.rest)
		return
	}
	if l.shares { // l can launch any command
		inner := shell.Parse(l.rest, c.Env)
		for i := range inner.Commands {
			r.program(c, programOf(inner.Commands[i].Words))
		}
		return
	}
	_, module := named(l.options, "m", "module")
	args := l.rest[1:]
	r.folders(l.rest[0], args)
	r.devices(c, &program{name: l.rest[0], python: true, module: module, args: args, title: l.rest[0]}, Processes)
}

// cpuOnly reports whether a launcher's processes use no GPU.
func (r *reader) cpuOnly(l *launched) bool {
	if _, is := named(l.options, l.cpu...); is && len(l.cpu) > 0 {
		return true
	}
	return slices.ContainsFunc(argumentsOf(l.rest), onCPU)
}

// onCPU reports whether an argument makes a program use no GPU.
func onCPU(a option) bool {
	value := strings.ToLower(a.value)
	switch a.name {
	case "no_cuda", "cpu", "use_cpu", "cpu_only":
		return value == "" || value == "true" || value == "1"
	case "backend", "dist_backend", "ddp_backend":
		return value == "gloo"
	case "device", "accelerator":
		return value == "cpu"
	}
	return false
}

// processes reads the number of processes that a launcher starts.
func (r *reader) processes(c *shell.Command, l *launched) {
	certain := Sure
	if l.shares {
		if certain = Possible; startsPython(l.rest) {
			certain = Likely
		}
	}
	before := len(r.Demands)
	said := false
	for _, name := range l.launcher.processes {
		o, ok := named(l.options, name)
		if !ok {
			continue
		}
		said = true
		n, fine := number(o.value)
		switch {
		case fine && n > 0:
			total := name == "num_processes" || name == "n" || name == "ntasks"
			if nodes, ok := named(l.options, l.nodes...); ok && total { // the option counts the processes of all machines
				if m, fine := number(nodes.value); fine && m > 1 {
					n = (n + m - 1) / m
				}
			}
			r.add(c, count(Processes, l.title, o, n, certain))
		case o.value == "gpu" || o.value == "auto" || o.value == "-1":
			r.add(c, Demand{Kind: Processes, All: true, Highest: -1, From: l.title + " " + o.String()})
		default:
			if set, ok := listOf(o.value); ok {
				r.add(c, indexes(Index, l.title, o, set, certain))
			}
		}
		break
	}
	for _, name := range l.variables {
		if value, ok := c.Lookup(r.env, name); ok && !said {
			if n, fine := number(value); fine && n > 0 {
				said = true
				r.add(c, count(Processes, "", option{word: name, glue: "=", value: value}, n, certain))
			}
		}
	}
	for _, name := range l.launcher.devices {
		if o, ok := named(l.options, name); ok && o.value != "all" {
			said = true
			if n, fine := number(o.value); fine && name != "gpu_ids" && name != "selected_gpus" && !(name == "devices" || name == "gpus" && !l.shares) {
				r.add(c, count(Number, l.title, o, n, certain))
			} else if set, ok := listOf(o.value); ok {
				r.add(c, indexes(Index, l.title, o, set, certain))
			}
		}
	}
	if more := also[l.names[0]]; more != nil {
		more(r, c, l)
	}
	if !said && l.single && !l.shares && len(r.Demands) == before {
		r.add(c, Demand{Kind: Processes, Count: 1, Highest: -1, Default: true, From: l.title, Certainty: certain, write: func(n int) string {
			return "--" + l.launcher.processes[0] + " " + strconv.Itoa(n)
		}})
	}
}

func startsPython(words []string) bool {
	line := shell.Parse(words, nil)
	for i := range line.Commands {
		p := programOf(line.Commands[i].Words)
		if l, _ := launcherOf(&p); p.python || l != nil {
			return true
		}
	}
	return false
}

// accelerate reads the number of processes from accelerate's configuration file if no
// option sets it.
func accelerate(r *reader, c *shell.Command, l *launched) {
	o, ok := named(l.options, "config_file")
	_, said := named(l.options, "num_processes")
	if !ok || said || r.p.File == nil {
		return
	}
	data, err := r.p.File(o.value)
	if err != nil || len(data) > 1<<20 {
		return
	}
	var file struct {
		Processes int    `yaml:"num_processes"`
		Machines  int    `yaml:"num_machines"`
		CPU       bool   `yaml:"use_cpu"`
		Kind      string `yaml:"distributed_type"`
	}
	if yaml.Unmarshal(data, &file) != nil || file.CPU || file.Processes < 1 || file.Processes > maxGPUs {
		return
	}
	n := file.Processes / max(1, file.Machines)
	r.add(c, count(Processes, l.title+" "+o.String()+",", option{word: "num_processes:", glue: " ", value: strconv.Itoa(n)}, n, Sure))
}

// include reads deepspeed's --include localhost:0,1.
func include(r *reader, c *shell.Command, l *launched) {
	o, ok := named(l.options, "include", "i")
	if !ok {
		return
	}
	hosts := strings.Split(o.value, "@")
	if len(hosts) > 1 && c.Sure {
		r.Nodes = &Fact{strconv.Itoa(len(hosts)), l.title + " " + o.String()}
	}
	_, list, found := strings.Cut(hosts[0], ":")
	if set, fine := listOf(list); found && fine {
		d := indexes(Index, l.title, o, set, Sure)
		host, _, _ := strings.Cut(hosts[0], ":")
		d.write = func(n int) string { return o.with(host + ":" + relisted("0,1", min(n, len(set)))) }
		r.add(c, d)
	}
}

// perNode reads --map-by ppr:4:node and -npernode 4 of mpirun.
func perNode(r *reader, c *shell.Command, l *launched) {
	certain := Possible
	if startsPython(l.rest) {
		certain = Likely
	}
	if o, ok := named(l.options, "npernode", "ppn", "ranks_per_node"); ok {
		if n, fine := number(o.value); fine {
			r.add(c, count(Processes, l.title, o, n, certain))
		}
	}
	if o, ok := named(l.options, "map_by"); ok {
		parts := strings.Split(o.value, ":")
		if len(parts) >= 3 && parts[0] == "ppr" && parts[2] == "node" {
			if n, fine := number(parts[1]); fine {
				d := count(Processes, l.title, o, n, certain)
				d.write = func(n int) string { return o.with("ppr:" + strconv.Itoa(n) + ":node") }
				r.add(c, d)
			}
		}
	}
}

// gres reads --gres=gpu:4 of srun.
func gres(r *reader, c *shell.Command, l *launched) {
	if o, ok := named(l.options, "gres"); ok && strings.HasPrefix(o.value, "gpu:") {
		parts := strings.Split(o.value, ":")
		if n, fine := number(parts[len(parts)-1]); fine {
			d := count(Number, l.title, o, n, Likely)
			d.write = func(n int) string { return o.with("gpu:" + strconv.Itoa(n)) }
			r.add(c, d)
		}
	}
}

// torchx reads -j NODESxPROCESSES, such as -j 1x4.
func torchx(r *reader, c *shell.Command, l *launched) {
	for i, w := range l.rest {
		if (w == "-j" || w == "--j") && i+1 < len(l.rest) {
			nodes, each, ok := strings.Cut(l.rest[i+1], "x")
			if n, fine := number(each); ok && fine {
				d := count(Processes, l.title, option{word: "-j", glue: " ", value: l.rest[i+1]}, n, Sure)
				d.write = func(n int) string { return "-j " + nodes + "x" + strconv.Itoa(n) }
				r.add(c, d)
			}
		}
	}
}

// openmmlab reads tools/dist_train.sh CONFIG GPUS and tools/dist_test.sh CONFIG FILE GPUS.
func openmmlab(r *reader, c *shell.Command, l *launched) {
	for i, w := range l.rest {
		if n, fine := number(w); fine && n > 0 && i >= 1 && i <= 2 {
			r.add(c, count(Processes, l.title, option{word: strings.Join(l.rest[:i], " "), glue: " ", value: w}, n, Sure))
			return
		}
		if strings.HasPrefix(w, "-") {
			return
		}
	}
}
