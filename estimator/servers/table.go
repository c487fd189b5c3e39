package servers

import (
	"strconv"
	"strings"

	"carma/estimator/shell"
)

// kind is a row of the table: a program and the signs by which it is recognised.
type kind struct {
	name string
	// images lists names in the image's repository, commands the first one or two words of a
	// command, modules arguments of python -m, and variables environment variables that only
	// this program reads.
	images, commands, modules, variables []string
	// library is set for a library, which any command in its image may use.
	library bool
	// flags and settings are the flags and the environment variables that set the share.
	// Callers add the first flag.
	flags, settings []string
	// share is the default share, or 0 if it depends on the GPU. beside and less have the
	// meaning of Beside and Less in Found.
	share  float64
	beside int64
	less   float64
	// other reads arguments that do not fit into the columns, unless nil.
	other func(f *Found, p *Program, words []string) error
}

const gib = 1 << 30

// The defaults come from the programs' documentation in November 2026:
//
//   - vLLM, Engine Arguments: gpu-memory-utilization is 0.9 and covers all memory of the
//     instance.
//   - SGLang, Server Arguments and Memory Management: mem-fraction-static covers weights
//     and cache only. Activations and CUDA graphs take more; carma assumes a tenth of the
//     GPU's memory for them. Without the flag, the fraction depends on the GPU.
//   - TGI, launcher: cuda-memory-fraction is 1.0 and covers PyTorch's allocator. The CUDA
//     context takes more.
//   - JAX, GPU memory allocation: 75 % at the start unless XLA_PYTHON_CLIENT_PREALLOCATE
//     is false.
//   - TensorFlow, Use a GPU: nearly all of the visible GPUs, unless memory growth is set.
var table = []kind{
	{
		name: "vLLM", images: []string{"vllm"}, commands: []string{"vllm serve"}, modules: []string{"vllm.entrypoints"},
		flags: []string{"--gpu-memory-utilization"}, share: 0.9,
	},
	{
		name: "SGLang", images: []string{"sglang"}, commands: []string{"sglang serve"}, modules: []string{"sglang.launch_server"},
		flags: []string{"--mem-fraction-static"}, share: 1, less: 0.1,
	},
	{
		name: "TGI", images: []string{"text-generation-inference"}, commands: []string{"text-generation-launcher"},
		flags: []string{"--cuda-memory-fraction"}, settings: []string{"CUDA_MEMORY_FRACTION"}, share: 1, beside: gib,
	},
	{name: "Triton", images: []string{"tritonserver"}, commands: []string{"tritonserver"}, other: triton},
	{name: "llama.cpp", images: []string{"llama.cpp"}, commands: []string{"llama-server", "llama-cli", "llama-bench"}, other: llama},
	{name: "Ollama", images: []string{"ollama"}, commands: []string{"ollama serve", "ollama run"}, other: ollama},
	{name: "JAX", images: []string{"jax"}, variables: []string{jaxPreallocate, jaxFraction, jaxFractionOld}, library: true, other: jax},
	{name: "TensorFlow", images: []string{"tensorflow"}, variables: []string{tfGrowth}, library: true, other: tensorflow},
}

const (
	jaxPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE"
	jaxFraction    = "XLA_CLIENT_MEM_FRACTION"
	jaxFractionOld = "XLA_PYTHON_CLIENT_MEM_FRACTION"
	tfGrowth       = "TF_FORCE_GPU_ALLOW_GROWTH"
)

// read fills in the share of a recognised program. plain is set if a flag can be added at
// the end of its command.
func (k *kind) read(f *Found, p *Program, words []string, plain bool) error {
	if k.other != nil {
		return k.other(f, p, words)
	}
	f.Beside = k.beside
	value, setting, set := flag(words, k.flags...)
	for _, name := range k.settings {
		if !set {
			setting = name
			value, set = shell.Lookup(p.Env, name)
		}
	}
	if set {
		share, err := shareOf(k.name, setting, value)
		if err != nil {
			return err
		}
		f.Share, f.From = min(1, share+k.less), setting+" "+value
		return nil
	}
	f.Share, f.From, f.Less = k.share, "its default, "+k.flags[0]+" "+strconv.FormatFloat(k.share, 'g', -1, 64), k.less
	if k.less > 0 {
		f.From = "as " + k.flags[0] + " is not set"
	}
	if plain && len(p.Command) > 0 {
		f.Flag = k.flags[0]
	}
	return nil
}

// triton reads the share of Triton's TensorFlow backend, the only part of Triton with such
// a setting. The pools of --cuda-memory-pool-byte-size are small, and models take memory
// when they are loaded.
func triton(f *Found, _ *Program, words []string) error {
	for i, w := range words {
		v, joined := strings.CutPrefix(w, "--backend-config=tensorflow,gpu-memory-fraction=")
		if !joined && w == "--backend-config" && i+1 < len(words) {
			v, joined = strings.CutPrefix(words[i+1], "tensorflow,gpu-memory-fraction=")
		}
		if !joined || v == "0" || v == "0.0" {
			continue
		}
		share, err := shareOf("Triton", "--backend-config=tensorflow,gpu-memory-fraction", v)
		if err != nil {
			return err
		}
		f.Share, f.Beside, f.From = share, gib, "gpu-memory-fraction "+v+" of its TensorFlow backend"
	}
	if f.Share == 0 {
		f.Note = "it takes what its models take, and its pools; say it with --mem"
	}
	return nil
}

// llama returns only a note: the size of weights and cache depends on the model's file,
// which is in the container.
func llama(f *Found, _ *Program, words []string) error {
	if v, setting, set := flag(words, "-ngl", "--n-gpu-layers", "--gpu-layers"); set && v == "0" {
		f.Note = setting + " 0: it computes on processors, and may run with --gpus 0"
		return nil
	}
	f.Note = "it takes the size of its model's file and its cache; say it with --mem"
	return nil
}

// ollama returns only a note: Ollama loads a model at its first request, on as many GPUs
// as the model needs.
func ollama(f *Found, _ *Program, _ []string) error {
	f.Note = "it takes what the models that it loads take, with their caches; say it with --mem, and bound it with OLLAMA_MAX_LOADED_MODELS and OLLAMA_CONTEXT_LENGTH"
	return nil
}

func jax(f *Found, p *Program, _ []string) error {
	preallocates := !p.Grows
	how, told := shell.Lookup(p.Env, jaxPreallocate)
	if told {
		preallocates = how != "false" && how != "0"
	}
	share, from := 0.75, "its default"
	f.Beside, f.Variable = gib, jaxFractionOld
	for _, name := range []string{jaxFractionOld, jaxFraction} {
		value, set := shell.Lookup(p.Env, name)
		if !set {
			continue
		}
		x, err := shareOf("JAX", name, value)
		if err != nil {
			return err
		}
		share, from, preallocates, f.Variable = x, name+"="+value, true, ""
	}
	if preallocates {
		f.Share, f.From = share, from
		return nil
	}
	f.Variable = ""
	if !told {
		f.Note = "carma sets " + jaxPreallocate + "=false where it may share a GPU, so that it takes memory as it needs it"
	}
	return nil
}

func tensorflow(f *Found, p *Program, _ []string) error {
	how, told := shell.Lookup(p.Env, tfGrowth)
	switch {
	case told && (how == "true" || how == "1"):
	case !told && p.Grows:
		f.Note = "carma sets " + tfGrowth + "=true where it may share a GPU, so that it takes memory as it needs it"
	default:
		f.Share, f.From = 1, "it takes all of a GPU unless "+tfGrowth+" is true"
	}
	return nil
}
