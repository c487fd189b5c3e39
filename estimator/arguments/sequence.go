package arguments

import (
	"strconv"
	"strings"
)

// sizesOfSequences lists names of the number of GPUs over which a sample's tokens are
// spread: context parallelism of Megatron-LM, torchtitan, Axolotl and accelerate (cp),
// sequence parallelism of DeepSpeed-Ulysses, ms-swift and accelerate (sp).
const sizesOfSequences = "context_parallel_size context_parallel_degree parallelism.context_parallel_degree experimental.context_parallel_degree " +
	"sequence_parallel_size sequence_parallel_degree ulysses_sequence_parallel_size ulysses_degree"

func init() {
	for _, name := range strings.Fields(sizesOfSequences) {
		trainer[name] = func(r *reader, a *argument) { r.spread(a.value(), "--"+a.name) }
	}
	trainer["sequence_parallel"] = (*reader).megatron
}

// spread reads a number of GPUs over which a sample's tokens are spread. One means no
// spreading.
func (r *reader) spread(word, from string) {
	if n := number(word); n > 1 {
		r.set("sequence-parallel", strconv.Itoa(n), from)
	} else if n == 1 {
		r.o.SequenceParallel = 0
	}
}

// megatron reads Megatron-LM's switch --sequence-parallel. It splits the activations
// between the layers that tensor parallelism splits, and is unrelated to sequence
// parallelism over a number of GPUs. If a number follows the switch, it is that number of
// GPUs.
func (r *reader) megatron(a *argument) {
	if number(a.value()) > 1 {
		r.spread(a.value(), "--"+a.name)
	} else if a.on() {
		r.note("--%s is a part of tensor parallelism; not counted", a.name)
	}
}

// parallelism reads accelerate's ParallelismConfig, whose names may have a prefix.
func (r *reader) parallelism(t table, from string) {
	for _, name := range []string{"cp_size", "sp_size"} {
		for _, prefix := range []string{"", "parallelism_config_"} {
			if number(t.text(prefix+name)) > 1 {
				r.spread(t.text(prefix+name), from)
			}
		}
	}
}
