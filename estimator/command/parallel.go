package command

import (
	"slices"
	"strconv"
	"strings"

	"carma/estimator/servers"
	"carma/estimator/shell"
)

// parallelism is the way in which an inference server is distributed over GPUs.
type parallelism struct {
	name string
	// commands lists the first one or two words of the server's command. modules are
	// arguments of python -m.
	commands, modules []string
	// sizes contains a group of synonymous options for each parallel size. The number of
	// GPUs is the product of the sizes.
	sizes [][]string
	// variables are environment variables with the number of GPUs.
	variables []string
	// split are options with one entry for each GPU. indexes are options with GPU indexes.
	split, indexes []string
	// devices are options with device names, such as CUDA0,CUDA1.
	devices []string
	// nodes lists options with the number of machines over which the sizes are spread.
	nodes []string
	// within lists options that make the last size part of the first, so that it adds no
	// GPUs.
	within []string
}

var inferenceServers = []parallelism{
	{name: "vLLM", commands: []string{"vllm serve", "vllm bench", "vllm run-batch", "aphrodite run", "trl vllm-serve"}, modules: []string{"vllm", "aphrodite"}, sizes: [][]string{{"tensor_parallel_size", "tp"}, {"pipeline_parallel_size", "pp"}, {"data_parallel_size_local", "dpl", "data_parallel_size", "dp"}}, nodes: []string{"nnodes"}},
	{name: "SGLang", commands: []string{"sglang serve"}, modules: []string{"sglang", "sglang_router"}, indexes: []string{"base_gpu_id"}, nodes: []string{"nnodes"}, sizes: [][]string{{"tensor_parallel_size", "tp_size", "tp"}, {"pipeline_parallel_size", "pp_size", "pp"}, {"data_parallel_size", "dp_size", "dp"}}, within: []string{"enable_dp_attention"}},
	{name: "TGI", commands: []string{"text-generation-launcher"}, sizes: [][]string{{"num_shard"}}, variables: []string{"NUM_SHARD"}},
	{name: "TensorRT-LLM", commands: []string{"trtllm-serve", "trtllm-bench"}, modules: []string{"tensorrt_llm"}, sizes: [][]string{{"tp_size", "tp"}, {"pp_size", "pp"}, {"cp_size"}}},
	{name: "LMDeploy", commands: []string{"lmdeploy serve", "lmdeploy chat"}, modules: []string{"lmdeploy"}, sizes: [][]string{{"tp"}, {"dp"}}},
	{name: "llama.cpp", commands: []string{"llama-server", "llama-cli", "llama-bench"}, split: []string{"tensor_split", "ts"}, indexes: []string{"main_gpu", "mg"}, devices: []string{"device", "dev"}},
	{name: "MII", modules: []string{"mii"}, sizes: [][]string{{"tensor_parallel"}}},
	{name: "MLC LLM", commands: []string{"mlc_llm serve"}, modules: []string{"mlc_llm"}, sizes: [][]string{{"tensor_parallel_shards"}}},
	{name: "FastChat", modules: []string{"fastchat.serve"}, sizes: [][]string{{"num_gpus"}}, indexes: []string{"gpus"}},
}

// parallelOf returns the inference server that a program is, or nil. found is the server
// that the image indicates, or nil.
func parallelOf(p *program, found *servers.Found) *parallelism {
	for i := range inferenceServers {
		s := &inferenceServers[i]
		if p.module {
			for _, m := range s.modules {
				if p.name == m || strings.HasPrefix(p.name, m+".") {
					return s
				}
			}
			continue
		}
		if slices.ContainsFunc(s.commands, p.is) {
			return s
		}
	}
	if found == nil || !strings.HasPrefix(found.By, "image ") || p.python {
		return nil
	}
	i := slices.IndexFunc(inferenceServers, func(s parallelism) bool { return s.name == found.Name })
	if i < 0 {
		return nil
	}
	return &inferenceServers[i]
}

// parallel reads the number of GPUs over which an inference server is spread.
func (r *reader) parallel(c *shell.Command, s *parallelism, p *program) {
	all := argumentsOf(append([]string{p.name}, p.args...))
	title := p.title
	if strings.HasPrefix(title, "-") {
		title = s.name
	} else if len(p.args) > 0 && slices.Contains(s.commands, p.name+" "+p.args[0]) {
		title += " " + p.args[0]
	}
	if slices.ContainsFunc(all, onCPU) {
		return
	}
	product, said, last := 1, []string{}, option{}
	_, within := named(all, s.within...)
	for i, group := range s.sizes {
		if within && len(s.within) > 0 && i == len(s.sizes)-1 {
			continue
		}
		o, ok := firstNamed(all, group)
		if n, fine := number(o.value); ok && fine && n > 0 {
			if said = append(said, o.String()); n > 1 {
				last = o
			}
			product = min(product*n, maxGPUs+1)
		}
	}
	for _, name := range s.variables {
		if value, ok := c.Lookup(r.env, name); ok && len(said) == 0 {
			if n, fine := number(value); fine && n > 0 {
				product, last = n, option{word: name, glue: "=", value: value}
				r.add(c, count(Number, "", last, n, Sure))
				return
			}
		}
	}
	if o, ok := named(all, s.split...); ok && len(s.split) > 0 {
		if parts := strings.FieldsFunc(o.value, func(c rune) bool { return c == ',' || c == '/' }); len(parts) > 1 {
			d := count(Number, title, o, len(parts), Sure)
			d.write = func(n int) string { return o.with(strings.Join(parts[:min(n, len(parts))], ",")) }
			r.add(c, d)
		}
	}
	if o, ok := named(all, s.indexes...); ok && len(s.indexes) > 0 {
		if set, fine := listOf(o.value); fine {
			r.add(c, indexes(Index, title, o, set, Sure))
		}
	}
	if o, ok := named(all, s.devices...); ok && len(s.devices) > 0 {
		if set, fine := listOf(strings.ReplaceAll(strings.ToUpper(o.value), "CUDA", "")); fine {
			d := indexes(Index, title, o, set, Sure)
			d.write = func(n int) string { return o.with("CUDA0") }
			r.add(c, d)
		}
	}
	if len(said) == 0 {
		return
	}
	if o, ok := named(all, s.nodes...); ok && len(s.nodes) > 0 {
		if n, fine := number(o.value); fine && n > 1 {
			product = max(1, product/n)
			if c.Sure {
				r.Nodes = &Fact{o.value, title + " " + o.String()}
			}
		}
	}
	d := count(Number, title, last, product, Sure)
	if d.From = title + " " + strings.Join(said, " "); len(said) > 1 {
		d.write = func(n int) string { return "sizes whose product is " + strconv.Itoa(n) }
	}
	r.add(c, d)
}

// firstNamed returns the option with the first of the names that occurs in all.
func firstNamed(all []option, names []string) (option, bool) {
	for _, name := range names {
		if o, ok := named(all, name); ok {
			return o, true
		}
	}
	return option{}, false
}
