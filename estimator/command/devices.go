package command

import (
	"slices"
	"strings"

	"carma/estimator/shell"
	"carma/internal/lazyregexp"
)

// Names of arguments with a number of GPUs or with indexes. With a prefix, such as
// --vllm_num_gpus, the number may belong to one component, so the demand is only
// [Possible].
var (
	numberName = lazyregexp.New(`^(?:(?:n|num|nr|nb)_?gpus?|gpus?_(?:num|nums|count)|n?gpus_per_node|(?:n|num)_gpus?_per_node|num_devices|n_devices|devices_per_node|nproc_per_node|gpus|devices|tensor_parallel_size|tp_size|distributed_world_size)$`)
	otherName  = lazyregexp.New(`^\w+_(?:(?:n|num)_?gpus?|n?gpus_per_node|(?:n|num)_gpus?_per_node)$`)
	indexName  = lazyregexp.New(`^(?:gpu|gpu_?ids?|gpu_?idx|gpu_?index|gpu_?list|devices?|device_ids?|device_index|device_indices|device_list|g|cuda_device|cuda_devices|cuda_id|cuda_visible_devices|visible_gpus|visible_devices|main_gpu)$`)
	cudaWord   = lazyregexp.New(`^(?:cuda|gpu):(\d{1,4})$`)
	// anyDevices matches the value with which Ultralytics selects several idle GPUs.
	anyDevices = lazyregexp.New(`^-1(?:, ?-1)+$`)
	keyValue   = lazyregexp.New(`^\+{0,2}[A-Za-z_][\w.-]*=`)
)

// argumentsOf reads the arguments of a program: --name value, --name=value, -name value
// and name=value. Only the last part of a dotted name counts.
func argumentsOf(words []string) (all []option) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, value, joined := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "-") && len(w) > 1 && !isNumber(w):
			o := option{word: name, value: value, glue: "="}
			if !joined {
				o.glue = " "
				var values []string
				for i+1 < len(words) && (!strings.HasPrefix(words[i+1], "-") || isNumber(words[i+1])) && (len(values) == 0 || isNumber(words[i+1])) && !keyValue().MatchString(words[i+1]) {
					i++
					values = append(values, words[i])
				}
				o.value = strings.Join(values, " ")
			}
			all = append(all, o)
		case keyValue().MatchString(w):
			all = append(all, option{word: name, value: value, glue: "="})
		}
	}
	for i := range all {
		name := plain(all[i].word)
		all[i].name = strings.ToLower(name[strings.LastIndex(name, ".")+1:])
	}
	return all
}

// devices reads the arguments of a program that name GPUs. If launched is given, a launcher
// has set the number of processes.
func (r *reader) devices(c *shell.Command, p *program, launched ...Kind) {
	if r.special(c, p) {
		return
	}
	weaker := func(certain Certainty) Certainty { // lowers the certainty for an unknown program
		if !p.python && !consoleScript(p.name) {
			return max(Possible, certain-1)
		}
		return certain
	}
	all := argumentsOf(p.args)
	cpu := slices.ContainsFunc(all, onCPU)
	r.inVariables(c)
	for _, w := range p.args {
		if m := cudaWord().FindStringSubmatch(w); m != nil && !slices.ContainsFunc(all, func(o option) bool { return o.value == w }) {
			n, _ := number(m[1])
			prefix, _, _ := strings.Cut(w, ":")
			r.add(c, indexes(Index, "", option{word: prefix, glue: ":", value: m[1]}, []int{n}, weaker(Sure)))
		}
	}
	for _, o := range all {
		value := strings.ToLower(strings.Trim(o.value, `"'`))
		set, isList := listOf(value)
		listed := isList && strings.ContainsAny(value, ",[ ")
		switch m := cudaWord().FindStringSubmatch(value); {
		case m != nil:
			n, _ := number(m[1])
			r.add(c, indexes(Index, "", o, []int{n}, weaker(Sure)))
		case cpu && numberName().MatchString(o.name):
		case numberName().MatchString(o.name) && !listed:
			r.numbered(c, p, o, weaker(Sure), len(launched) > 0)
		case otherName().MatchString(o.name) && !listed:
			r.numbered(c, p, o, Possible, len(launched) > 0)
		case o.name == "g" && listed:
			r.add(c, indexes(Index, p.title, o, set, weaker(Likely)))
		case (numberName().MatchString(o.name) || indexName().MatchString(o.name)) && listed:
			r.add(c, indexes(Index, p.title, o, set, weaker(Sure)))
		case indexName().MatchString(o.name) && anyDevices().MatchString(value):
			r.add(c, count(Number, p.title, o, strings.Count(value, ",")+1, weaker(Sure)))
		case indexName().MatchString(o.name) && isList:
			if certain := indexCertainty(p, o.name); certain >= 0 {
				r.add(c, indexes(Index, p.title, o, set, weaker(certain)))
			}
		case strings.HasPrefix(value, "cuda:") && strings.Contains(value, ","):
			if set, ok := listOf(strings.ReplaceAll(value, "cuda:", "")); ok {
				d := indexes(Index, p.title, o, set, weaker(Sure))
				d.write = func(n int) string { return o.with("cuda:0") }
				r.add(c, d)
			}
		}
	}
}

// indexCertainty returns the certainty with which a single number after an argument's
// name is a GPU index, or -1 if it is not. --gpu 2 may be a number of GPUs, and --device
// 2 a camera.
func indexCertainty(p *program, name string) Certainty {
	switch {
	case name == "g":
		return -1
	case p.name == "yolo", strings.HasPrefix(name, "gpu_id"), strings.HasPrefix(name, "gpu_i"), name == "gpuid", name == "cuda_device", name == "cuda_id", name == "cuda_visible_devices", name == "main_gpu":
		return Sure
	case strings.HasPrefix(name, "device"):
		return Likely
	}
	return Possible
}

// scriptVariables lists environment variables from which scripts often read a number of
// GPUs.
var scriptVariables = strings.Fields("NPROC_PER_NODE NGPUS NGPU N_GPUS N_GPU NUM_GPUS NUM_GPU GPUS GPUS_PER_NODE NGPUS_PER_NODE N_GPUS_PER_NODE NUM_PROCESSES GPU_NUM GPU_COUNT")

// inVariables reads the number of GPUs in scriptVariables.
func (r *reader) inVariables(c *shell.Command) {
	for _, name := range scriptVariables {
		if value, ok := c.Lookup(r.p.Env, name); ok {
			if n, fine := number(value); fine && n > 1 {
				r.add(c, count(Number, "", option{word: name, glue: "=", value: value}, n, Possible))
			}
		}
	}
}

// numbered adds the demand of an argument with a number of GPUs. It adds none for a
// launched program, because the launcher's number counts.
func (r *reader) numbered(c *shell.Command, p *program, o option, certain Certainty, launched bool) {
	n, ok := number(o.value)
	if !ok || n == 0 || launched {
		return
	}
	if o.name == "tensor_parallel_size" || o.name == "tp_size" || o.name == "distributed_world_size" || o.name == "nproc_per_node" {
		certain = min(certain, Likely)
	}
	if o.name == "devices" && !strings.Contains(o.word, ".") && n == 1 {
		return
	}
	r.add(c, count(Number, p.title, o, n, certain))
}

// consoleScript reports whether a program is a known console script of a Python package.
func consoleScript(name string) bool {
	switch name {
	case "yolo", "ray", "ns-train", "trl", "axolotl", "litgpt", "nnUNetv2_train", "fairseq-train", "fairseq-hydra-train", "mim", "onmt_train", "espnet2", "sockeye-train", "nemo", "paddlex", "tao", "tensor2tensor":
		return true
	}
	return false
}

// special reads a program whose arguments have a special form, and reports whether p is
// one.
func (r *reader) special(c *shell.Command, p *program) bool {
	all := argumentsOf(p.args)
	switch {
	case p.name == "gmx" || p.name == "gmx_mpi" || strings.HasPrefix(p.name, "mdrun"): // -gpu_id 01
		if o, ok := named(all, "gpu_id", "gputasks"); ok {
			var set []int
			for _, digit := range o.value {
				n, fine := number(string(digit))
				if !fine && digit != ',' {
					return true
				}
				if fine {
					set = append(set, n)
				}
			}
			r.add(c, indexes(Index, p.title, o, set, Sure))
		}
		return true
	case strings.HasPrefix(p.name, "relion"): // --gpu 0:1:2:3
		if o, ok := named(all, "gpu"); ok {
			if set, fine := listOf(o.value); fine {
				r.add(c, indexes(Index, p.title, o, set, Sure))
			}
		}
		return true
	case p.name == "caffe" || p.name == "darknet":
		if o, ok := named(all, "gpu", "gpus", "i"); ok {
			if set, fine := listOf(o.value); fine {
				r.add(c, indexes(Index, p.title, o, set, Sure))
			}
		}
		return true
	case p.name == "lmp" || strings.HasPrefix(p.name, "lmp_"): // -pk gpu 4, -k on g 4
		for i, w := range p.args {
			if (w == "gpu" && i > 0 && p.args[i-1] == "-pk" || w == "g" && i > 1 && p.args[i-2] == "-k") && i+1 < len(p.args) {
				if n, fine := number(p.args[i+1]); fine {
					r.add(c, count(Number, p.title, option{word: p.args[i-1] + " " + w, glue: " ", value: p.args[i+1]}, n, Sure))
				}
			}
		}
		return true
	case strings.HasPrefix(p.name, "namd"): // +devices 0,1
		for i, w := range p.args {
			if w == "+devices" && i+1 < len(p.args) {
				if set, fine := listOf(p.args[i+1]); fine {
					r.add(c, indexes(Index, p.title, option{word: w, glue: " ", value: p.args[i+1]}, set, Sure))
				}
			}
		}
		return true
	}
	return false
}

// visible reads CUDA_VISIBLE_DEVICES of a command. A value from the image is only
// [Possible].
func (r *reader) visible(c *shell.Command) {
	r.sees = 0
	const name = "CUDA_VISIBLE_DEVICES"
	value, ok := c.Lookup(r.env, name)
	if !ok || harmless(programOf(c.Words).name) {
		return
	}
	certain := Sure
	if _, own := c.Lookup(r.p.Env, name); !own {
		certain = Possible
	}
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	o := option{word: name, glue: "=", value: value}
	if value == "" || strings.HasPrefix(value, "-1") || strings.EqualFold(value, "NoDevFiles") || value == "none" {
		if c.Sure && certain == Sure {
			r.NoGPU = o.String()
		}
		return
	}
	if first := strings.SplitN(value, ",", 2)[0]; strings.HasPrefix(first, "GPU-") || strings.HasPrefix(first, "MIG-") {
		r.Machine = o.String()
	}
	if set, fine := listOf(value); fine {
		r.sees = len(set)
		r.add(c, indexes(Visible, "", o, set, certain))
	}
}
