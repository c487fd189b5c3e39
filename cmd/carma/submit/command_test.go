package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/runner/api"
)

// folderOf makes a folder with files.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const small = `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 256, "max_position_embeddings": 512}`

// TestCommands: a row is a task and the facts read from its command line.
func TestCommands(t *testing.T) {
	folder := folderOf(t, map[string]string{"ds.json": `{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}`, "my/config.json": small, "broken.json": "{"})
	mounts := []api.Mount{{Source: folder, Target: "/data"}, {Source: filepath.Join(folder, "my"), Target: "/data/other"}}
	const model = " --model_name_or_path Qwen/Qwen2.5-0.5B --learning_rate 1e-4"
	for _, c := range []struct {
		name, command string
		s             api.Submit
		said          string // text in the request, or empty
		line          string // one of the printed lines, or empty if nothing is printed
	}{
		{"a known model", "python t.py --bf16 --per_device_train_batch_size 4" + model, api.Submit{},
			"model Qwen/Qwen2.5-0.5B, batch size 4 per GPU, amp", "read from the command: model Qwen/Qwen2.5-0.5B, batch size 4 per GPU, amp"},
		{"no training", "vllm serve --model Qwen/Qwen2.5-0.5B --dtype bfloat16", api.Submit{}, "", ""},
		{"an unknown model", "python t.py --model_name_or_path nobody/nothing --bf16 --learning_rate 1", api.Submit{}, "", ""},
		{"a model that is given", "python t.py --bf16 --block_size 256", api.Submit{EstModel: "gpt2"}, "amp, seq 256", "read from the command: amp, seq 256"},
		{"another model in the command", "python t.py --bf16" + model, api.Submit{EstModel: "gpt2"}, "amp", "read from the command: amp"},
		{"what is given counts", "python t.py --bf16 --per_device_train_batch_size 4 --block_size 256" + model,
			api.Submit{BatchSize: 8, Train: map[string]string{"precision": "fp32"}}, "model Qwen/Qwen2.5-0.5B, seq 256", "read from the command: model Qwen/Qwen2.5-0.5B, seq 256"},
		{"nothing is left", "python t.py --bf16", api.Submit{EstModel: "gpt2", Train: map[string]string{"precision": "fp32"}}, "", ""},
		{"switched off", "python t.py --bf16" + model, api.Submit{ReadSettings: "none"}, "", ""},
		{"memory is given", "python t.py --bf16" + model, api.Submit{Mem: 1 << 30}, "", ""},
		{"probed", "python t.py --bf16" + model, api.Submit{Probe: true}, "", ""},
		{"without a GPU", "python t.py --bf16" + model, api.Submit{NoGPU: true}, "", ""},
		{"a few figures", "python t.py --bf16" + model, api.Submit{Params: 1e6, BatchSize: 4, Family: "cnn"}, "", ""},
		{"too long for the model", "python t.py --bf16 --max_length 4096", api.Submit{EstModel: "gpt2"}, "", "not used: "},
		{"unknown layers", "python t.py --bf16", api.Submit{EstModel: "mine"}, "", "not used: the layers of mine are not known here"},
		{"a file in the present folder", "deepspeed t.py --deepspeed ds.json", api.Submit{EstModel: "gpt2"}, "bf16, zero2", "read from the command: bf16, zero2"},
		{"a mounted file", "deepspeed t.py --deepspeed /data/ds.json", api.Submit{EstModel: "gpt2", Mounts: mounts}, "bf16, zero2", "read from the command: bf16, zero2"},
		{"in the working folder", "deepspeed t.py --deepspeed ds.json", api.Submit{EstModel: "gpt2", Mounts: mounts, ContainerOptions: api.ContainerOptions{WorkDir: "/data"}}, "bf16, zero2", "read from the command: bf16, zero2"},
		{"of the image", "deepspeed t.py --deepspeed /opt/ds.json --bf16", api.Submit{EstModel: "gpt2", Mounts: mounts}, "amp", "read from the command: amp"},
		{"under another folder", "deepspeed t.py --deepspeed /data/other/ds.json --bf16", api.Submit{EstModel: "gpt2", Mounts: mounts}, "amp", "read from the command: amp"},
		{"tokens over its GPUs", "torchrun t.py --context-parallel-size 2 --bf16", api.Submit{EstModel: "gpt2", GPUs: 4}, "amp, tokens of a sample over 2 GPUs", "read from the command: amp, tokens of a sample over 2 GPUs"},
		{"over more than it has", "torchrun t.py --context-parallel-size 4", api.Submit{EstModel: "gpt2", GPUs: 2}, "", "the tokens of a sample are spread over 4 GPUs there, and the task has 2 (--gpus); not used"},
		{"no tokens", "torchrun t.py --context-parallel-size 2", api.Submit{EstModel: "resnet50", GPUs: 2}, "", "not used: a network without attention has no tokens"},
		{"a mounted model", "python t.py --learning_rate 1 --max_length 64 --model_name_or_path /data/my", api.Submit{Mounts: mounts}, "model my, seq 64", "read from the command: model my, seq 64"},
		{"a model on the machine", "python t.py --learning_rate 1 --model_name_or_path my", api.Submit{Venv: "/x", ContainerOptions: api.ContainerOptions{WorkDir: folder}}, "model my", "read from the command: model my"},
		{"a broken file", "python t.py --deepspeed broken.json", api.Submit{EstModel: "gpt2"}, "", "read from the command: broken.json: not JSON: "},
	} {
		c.s.Command = strings.Fields(c.command)
		if !c.s.Bare() {
			c.s.Image = "i"
		}
		tasks := []api.Submit{c.s}
		lines := strings.Join(Commands(tasks, folder), "\n")
		said := ""
		if r := tasks[0].Read; r != nil {
			said = r.Said
		}
		if said != c.said || !strings.Contains(lines, c.line) || strings.Contains(lines, "\n") || c.line == "" && lines != "" {
			t.Errorf("%s: said %q, printed %q", c.name, said, lines)
		}
		if wrong := tasks[0].Check(); wrong != nil {
			t.Errorf("%s: the request is refused: %v", c.name, wrong)
		}
		if wants := c.name == "a mounted model" || c.name == "a model on the machine"; wants != (len(tasks[0].Network) > 0) {
			t.Errorf("%s: network %s", c.name, tasks[0].Network)
		}
	}
}

// TestCommandsOnce checks that equal lines about the tasks of an array are printed once.
func TestCommandsOnce(t *testing.T) {
	tasks := make([]api.Submit, 50)
	for i := range tasks {
		tasks[i] = api.Submit{Image: "i", EstModel: "gpt2", Command: []string{"t.py", "--bf16", "--seed", strings.Repeat("1", i+1)}}
	}
	if lines := Commands(tasks, "."); len(lines) != 1 || tasks[49].Read == nil {
		t.Errorf("%q", lines)
	}
}
