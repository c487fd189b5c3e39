//go:build e2e

package test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/runner/api"
)

// ofLlama is a config.json as the library writes one.
const ofLlama = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
 "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 4096,
 "torch_dtype": "bfloat16", "transformers_version": "4.46.0", "id2label": {"0": "LABEL_0", "1": "LABEL_1"}}`

// estimated returns carma estimate's figures for a training, in bytes.
func (s *server) estimated(args ...string) (point, upper int64) {
	s.t.Helper()
	var said struct {
		Estimates []struct {
			Point int64 `json:"point_bytes"`
			Upper int64 `json:"upper_bytes"`
		}
	}
	s.decode(&said, append([]string{"estimate", "--estimator", "carma", "--json"}, args...)...)
	if len(said.Estimates) != 1 {
		s.t.Fatalf("carma estimate %s: %+v", strings.Join(args, " "), said)
	}
	return said.Estimates[0].Point, said.Estimates[0].Upper
}

// TestTraining: carma run with a config.json allocates on the GPU the estimate of carma
// estimate with the same settings, and inspect and why name its source. The daemon has no
// access to the file. It is the same after a restart.
func TestTraining(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	folder := filepath.Join(s.root, "tiny-llama")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "config.json")
	if err := os.WriteFile(path, []byte(ofLlama), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := []string{"--seq", "1024", "--precision", "bf16", "--lora", "r=16,targets=all-linear", "--optimizer", "adamw8bit", "--checkpointing"}
	_, upper := s.estimated(slices.Concat([]string{path, "--batch", "4"}, settings)...)
	_, plain := s.estimated(path, "--batch", "4")
	_, sharded := s.estimated(path, "--batch", "4", "--gpus", "2", "--parallel", "fsdp:full", "--precision", "amp", "--seq", "1024")
	if upper == plain || sharded == upper {
		t.Fatalf("the settings change nothing: %d, %d, %d", upper, plain, sharded)
	}
	one := s.submit(slices.Concat([]string{"--est-model", path, "--batch-size", "4"}, settings, []string{tool, "block:0"})...)
	two := s.submit("--est-model", folder, "--batch-size", "4", "--gpus", "2", "--parallel", "fsdp:full", "--precision", "amp", "--seq", "1024", tool, "block:0")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	check := func(ref string, booked int64, words ...string) {
		t.Helper()
		task := s.running(ref)
		if task.Estimate.Method != "carma" || task.Estimate.Memory != booked || task.Attempts[0].Grant != booked {
			t.Errorf("booked %+v, granted %d; carma estimate says %d", task.Estimate, task.Attempts[0].Grant, booked)
		}
		for _, g := range task.Attempts[0].GPUs {
			if r := s.reserved(g.Index); r < booked {
				t.Errorf("%d bytes of GPU %d are reserved, booked were %d", r, g.Index, booked)
			}
		}
		why := s.ok("why", ref)
		for _, w := range words {
			if !strings.Contains(task.Estimate.Detail, w) || !strings.Contains(why, w) {
				t.Errorf("neither inspect nor why says %q:\n%s\n%s", w, task.Estimate.Detail, why)
			}
		}
	}
	checkAll := func() {
		t.Helper()
		check(one, upper, "tiny-llama (llama, 1.11 G parameters, 12.6 M of them trained), LoRA 16 on all-linear, bf16, seq 1024, adamw8bit, checkpointing at batch size 4 by estimator carma (a100-2025-09)")
		check(two, sharded, "tiny-llama (llama, 1.1 G parameters), amp, seq 1024, fsdp:full, on 2 GPUs at batch size 4")
	}
	checkAll()
	s.kill()
	s.start()
	checkAll()
	// Settings without a flag are read from the program's words.
	_, read := s.estimated("Qwen/Qwen2.5-0.5B", "--batch", "4", "--gpus", "2", "--parallel", "ddp", "--precision", "amp", "--seq", "256", "--checkpointing")
	r := s.carma("run", "-d", "--gpus", "2", tool, "block:0", "--model_name_or_path", "Qwen/Qwen2.5-0.5B", "--per_device_train_batch_size", "2", "--bf16", "--gradient_checkpointing", "--max_length", "256")
	const said = "read from the command: model Qwen/Qwen2.5-0.5B, batch size 2 per GPU, amp, seq 256, checkpointing"
	if r.code != 0 || !strings.Contains(r.err, said) {
		t.Fatal(r)
	}
	check(strings.TrimSpace(r.out), read, "at batch size 4", said)
	if r := s.carma("run", "-d", "--est-model", "Qwen/Qwen2.5-0.5B", "--lora", "r=4,targets=querry", tool); r.code != 2 || !strings.Contains(r.err, "has no layer querry") || len(split(r.err)) != 1 {
		t.Error(r)
	}
}

// reserved returns the memory that is allocated on a GPU.
func (s *server) reserved(index int) int64 {
	s.t.Helper()
	var gpus []api.GPU
	s.decode(&gpus, "gpus", "--json")
	for _, g := range gpus {
		if g.Index == index {
			return g.Reserved
		}
	}
	s.t.Fatalf("no GPU %d", index)
	return 0
}
