package servers

import (
	"errors"
	"strings"
	"testing"
)

// TestRecognise checks how each program is recognised, the share of memory that it takes, and
// the flag or variable that sets another share.
func TestRecognise(t *testing.T) {
	for _, row := range []struct {
		image, entrypoint, command, env string
		grows                           bool
		want                            Found // of an empty Name: nothing
	}{
		// vLLM: its image, its command, its module; its flag in all spellings.
		{image: "vllm/vllm-openai:v0.9", command: "--model Qwen/Qwen3-8B", want: Found{Name: "vLLM", By: "image vllm/vllm-openai", Share: 0.9, From: "its default, --gpu-memory-utilization 0.9", Flag: "--gpu-memory-utilization"}},
		{image: "localhost:5000/ann/my-vllm@sha256:00", command: "--model m --gpu-memory-utilization 0.5", want: Found{Name: "vLLM", By: "image ann/my-vllm", Share: 0.5, From: "--gpu-memory-utilization 0.5"}},
		{image: "vllm/vllm-openai", want: Found{Name: "vLLM", By: "image vllm/vllm-openai", Share: 0.9, From: "its default, --gpu-memory-utilization 0.9"}}, // a command would replace the image's
		{image: "lab/torch", command: "vllm serve m --gpu_memory_utilization=0.4", want: Found{Name: "vLLM", By: "command vllm serve", Share: 0.4, From: "--gpu_memory_utilization 0.4"}},
		{command: "/opt/bin/vllm serve m", want: Found{Name: "vLLM", By: "command vllm serve", Share: 0.9, From: "its default, --gpu-memory-utilization 0.9", Flag: "--gpu-memory-utilization"}},
		{command: "python -m vllm.entrypoints.openai.api_server --model m", want: Found{Name: "vLLM", By: "command python -m vllm.entrypoints.openai.api_server", Share: 0.9, From: "its default, --gpu-memory-utilization 0.9", Flag: "--gpu-memory-utilization"}},
		{command: "bash|-c|exec vllm serve m --gpu-memory-utilization 0.3", want: Found{Name: "vLLM", By: "command vllm serve", Share: 0.3, From: "--gpu-memory-utilization 0.3"}},
		{command: "bash|-c|exec vllm serve m", want: Found{Name: "vLLM", By: "command vllm serve", Share: 0.9, From: "its default, --gpu-memory-utilization 0.9"}}, // no flag at the end of a shell's words
		{image: "vllm/vllm-openai", entrypoint: "python", command: "train.py"},
		{command: "python train.py --out vllm"},
		{command: "vllm bench"},
		// SGLang: its share leaves out what comes beside it.
		{image: "lmsysorg/sglang:latest", command: "python3 -m sglang.launch_server --model-path m --mem-fraction-static 0.6", want: Found{Name: "SGLang", By: "command python -m sglang.launch_server", Share: 0.7, From: "--mem-fraction-static 0.6"}},
		{command: "python3 -m sglang.launch_server --model-path m", want: Found{Name: "SGLang", By: "command python -m sglang.launch_server", Share: 1, From: "as --mem-fraction-static is not set", Flag: "--mem-fraction-static", Less: 0.1}},
		// TGI: by flag or variable.
		{image: "registry.example/huggingface/text-generation-inference:3", command: "--model-id m", want: Found{Name: "TGI", By: "image huggingface/text-generation-inference", Share: 1, Beside: gib, From: "its default, --cuda-memory-fraction 1", Flag: "--cuda-memory-fraction"}},
		{image: "registry.example/huggingface/text-generation-inference:3", env: "CUDA_MEMORY_FRACTION=0.2|CUDA_MEMORY_FRACTION=0.25", want: Found{Name: "TGI", By: "image huggingface/text-generation-inference", Share: 0.25, Beside: gib, From: "CUDA_MEMORY_FRACTION 0.25"}},
		{command: "text-generation-launcher --cuda-memory-fraction 0.5", want: Found{Name: "TGI", By: "command text-generation-launcher", Share: 0.5, Beside: gib, From: "--cuda-memory-fraction 0.5"}},
		// Triton and llama.cpp give a hint.
		{image: "registry.example/nvidia/tritonserver:25.01-py3", command: "tritonserver --model-repository=/m", want: Found{Name: "Triton", By: "command tritonserver", Note: "it takes what its models take, and its pools; say it with --mem"}},
		{command: "tritonserver --backend-config=tensorflow,gpu-memory-fraction=0.5", want: Found{Name: "Triton", By: "command tritonserver", Share: 0.5, Beside: gib, From: "gpu-memory-fraction 0.5 of its TensorFlow backend"}},
		{image: "registry.example/ggml-org/llama.cpp:server-cuda", command: "-m /m.gguf -ngl 99", want: Found{Name: "llama.cpp", By: "image ggml-org/llama.cpp", Note: "it takes the size of its model's file and its cache; say it with --mem"}},
		{command: "llama-server -m m --n-gpu-layers 0", want: Found{Name: "llama.cpp", By: "command llama-server", Note: "--n-gpu-layers 0: it computes on processors, and may run with --gpus 0"}},
		// Ollama loads models when they are asked for.
		{image: "ollama/ollama:0.12", want: Found{Name: "Ollama", By: "image ollama/ollama", Note: "it takes what the models that it loads take, with their caches; say it with --mem, and bound it with OLLAMA_MAX_LOADED_MODELS and OLLAMA_CONTEXT_LENGTH"}},
		{command: "bash|-c|ollama serve & sleep 5; ollama run qwen3", want: Found{Name: "Ollama", By: "command ollama serve", Note: "it takes what the models that it loads take, with their caches; say it with --mem, and bound it with OLLAMA_MAX_LOADED_MODELS and OLLAMA_CONTEXT_LENGTH"}},
		{command: "ollama pull qwen3"},
		// JAX and TensorFlow.
		{image: "lab/jax:1", command: "python t.py", grows: true, want: Found{Name: "JAX", By: "image lab/jax", Beside: gib, Note: "carma sets XLA_PYTHON_CLIENT_PREALLOCATE=false where it may share a GPU, so that it takes memory as it needs it"}},
		{image: "lab/jax:1", command: "python t.py", want: Found{Name: "JAX", By: "image lab/jax", Share: 0.75, Beside: gib, From: "its default", Variable: jaxFractionOld}},
		{image: "lab/x", env: "XLA_PYTHON_CLIENT_PREALLOCATE=true", grows: true, want: Found{Name: "JAX", By: "variable XLA_PYTHON_CLIENT_PREALLOCATE", Share: 0.75, Beside: gib, From: "its default", Variable: jaxFractionOld}},
		{image: "lab/x", env: "XLA_PYTHON_CLIENT_MEM_FRACTION=.5", grows: true, want: Found{Name: "JAX", By: "variable XLA_PYTHON_CLIENT_MEM_FRACTION", Share: 0.5, Beside: gib, From: "XLA_PYTHON_CLIENT_MEM_FRACTION=.5"}},
		{image: "lab/x", env: "XLA_PYTHON_CLIENT_PREALLOCATE=false"},
		{image: "tensorflow/tensorflow:2.20-gpu", grows: true, want: Found{Name: "TensorFlow", By: "image tensorflow/tensorflow", Note: "carma sets TF_FORCE_GPU_ALLOW_GROWTH=true where it may share a GPU, so that it takes memory as it needs it"}},
		{image: "tensorflow/tensorflow:2.20-gpu", want: Found{Name: "TensorFlow", By: "image tensorflow/tensorflow", Share: 1, From: "it takes all of a GPU unless TF_FORCE_GPU_ALLOW_GROWTH is true"}},
		{image: "lab/x", env: "TF_FORCE_GPU_ALLOW_GROWTH=false", grows: true, want: Found{Name: "TensorFlow", By: "variable TF_FORCE_GPU_ALLOW_GROWTH", Share: 1, From: "it takes all of a GPU unless TF_FORCE_GPU_ALLOW_GROWTH is true"}},
		{image: "lab/x", env: "TF_FORCE_GPU_ALLOW_GROWTH=true"},
		// Nothing is known of these.
		{image: "pytorch/pytorch:2.8", command: "python train.py --gpu-memory-utilization 0.5"},
		{image: "ajax/app"}, {},
	} {
		p := Program{Image: row.image, Entrypoint: split(row.entrypoint), Command: split(row.command), Grows: row.grows}
		if row.env != "" {
			p.Env = strings.Split(row.env, "|")
		}
		got, ok, err := Recognise(p)
		if err != nil || ok != (row.want.Name != "") || ok && got != row.want {
			t.Errorf("%+v:\ngot  %+v, %v, %v\nwant %+v", p, got, ok, err, row.want)
		}
	}
}

// split splits a text into words, at "|" if it contains any, otherwise at spaces.
func split(text string) []string {
	if strings.Contains(text, "|") {
		return strings.Split(text, "|")
	}
	return strings.Fields(text)
}

func TestWrongShare(t *testing.T) {
	for _, command := range []string{
		"vllm serve m --gpu-memory-utilization 1.5", "vllm serve m --gpu-memory-utilization 0", "vllm serve m --gpu-memory-utilization", "vllm serve m --gpu-memory-utilization=NaN",
		"python -m sglang.launch_server --mem-fraction-static x", "tritonserver --backend-config tensorflow,gpu-memory-fraction=2",
	} {
		_, ok, err := Recognise(Program{Command: strings.Fields(command)})
		if _, is := errors.AsType[*ShareError](err); !is || ok || !strings.Contains(err.Error(), "takes a number above 0, at most 1; write for example") {
			t.Errorf("%s: %v", command, err)
		}
	}
	if _, _, err := Recognise(Program{Image: "jax/jax", Env: []string{"XLA_PYTHON_CLIENT_MEM_FRACTION=75"}}); err == nil {
		t.Error("75 is taken as a share")
	}
}
