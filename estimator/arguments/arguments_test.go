package arguments

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carma/configs/models"
)

// shipped contains configuration files as users write them.
var shipped = map[string]string{
	"ds3.json": `{"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "overlap_comm": true, "stage3_prefetch_bucket_size": "auto"},
		"gradient_accumulation_steps": "auto", "train_micro_batch_size_per_gpu": "auto", "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}`,
	"ds2.json":     `{"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 2}`,
	"fsdp.yaml":    "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_activation_checkpointing: true\nmixed_precision: bf16\nnum_processes: 4\n",
	"fsdp2.yaml":   "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: true\nmixed_precision: 'no'\n",
	"deep.yaml":    "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds3.json\n",
	"zero.yaml":    "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 1\n  offload_optimizer_device: none\nmixed_precision: bf16\n",
	"args.json":    `{"model_name_or_path": "Qwen/Qwen2.5-7B", "per_device_train_batch_size": 2, "bf16": true, "lora_r": 8, "lora_target_modules": ["q_proj", "v_proj"], "learning_rate": 1e-4}`,
	"sft.yaml":     "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: lora\nlora_target: all\ncutoff_len: 1024\nper_device_train_batch_size: 1\nlora_rank: 8\nbf16: true\n",
	"axolotl.yml":  "base_model: Qwen/Qwen2.5-7B\nadapter: qlora\nlora_r: 32\nsequence_len: 4096\nmicro_batch_size: 2\noptimizer: paged_adamw_8bit\ngradient_checkpointing: true\n",
	"aliases.yaml": "a: &a {x: 1}\nfsdp_config: *a\nmixed_precision: bf16\n",
	"cp.yaml":      "distributed_type: FSDP\nmixed_precision: bf16\nparallelism_config:\n  parallelism_config_cp_size: 2\n  parallelism_config_sp_size: 1\n",
	"sp.yaml":      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nparallelism_config:\n  sp_size: 4\n",
	"cp.json":      `{"bf16": true, "parallelism_config": {"cp_size": 2, "dp_shard_size": 1}}`,
	"cp.yml":       "sequence_len: 65536\ncontext_parallel_size: 4\n",
	"ulysses.json": `{"zero_optimization": {"stage": 3}, "sequence_parallel_size": 2}`,
	"broken.json":  `{"zero_optimization": `,
	"list.yaml":    "- 1\n- 2\n",
}

func fromShipped(name string) ([]byte, error) {
	if text, ok := shipped[name]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("no such file")
}

// TestRead checks command lines with all settings that are read from them.
func TestRead(t *testing.T) {
	for line, want := range map[string]struct {
		said, settings string
		batch          int
	}{
		"python train.py --lr 0.1":             {"", "", 0},
		"python train.py --batch-size 64 -b 3": {"", "", 0},
		"python train.py --per_device_train_batch_size 4 --bf16 --gradient_checkpointing --optim adamw_bnb_8bit --max_seq_length 2048": {
			"batch size 4 per GPU, amp, seq 2048, adamw8bit, checkpointing", "checkpointing=true optimizer=adamw8bit precision=amp seq=2048", 4},
		"torchrun --nproc_per_node 4 train.py --per-device-train-batch-size=8 --bf16=True --gradient_checkpointing False": {
			"batch size 8 per GPU, amp, no checkpointing", "checkpointing=false precision=amp", 8},
		"python -m torch.distributed.run --nproc-per-node=2 train.py --fp16 true --block_size 512":                {"amp, seq 512", "precision=amp seq=512", 0},
		"python train.py --bf16 false --fp16 False":                                                               {"", "", 0},
		"python train.py --torch_dtype bfloat16 --bf16 --model_max_length 4096":                                   {"bf16, seq 4096", "precision=bf16 seq=4096", 0},
		"python train.py --dtype auto --max_length 128":                                                           {"seq 128", "seq=128", 0},
		"trl sft --model_name_or_path Qwen/Qwen2.5-7B --use_peft --load_in_4bit --bf16":                           {"LoRA 16, 4-bit weights, amp", "bits=4 lora=16 precision=amp", 0},
		"python t.py --lora_r 8 --lora_target_modules q_proj v_proj --load_in_8bit":                               {"LoRA 8 on q_proj, v_proj, 8-bit weights, amp", "bits=8 lora=8 lora_targets=q_proj,v_proj precision=amp", 0},
		"python t.py --lora_r 8 --lora_target_modules ['q_proj','v_proj'] --use_peft false":                       {"", "", 0},
		"python t.py --lora_r 8 --lora_target_modules all-linear --dtype bfloat16":                                {"LoRA 8 on all-linear, bf16", "lora=8 lora_targets=all-linear precision=bf16", 0},
		"python t.py --load_in_4bit":                                                                              {"", "", 0},
		"python t.py --optim paged_adamw_32bit --gradient_accumulation_steps 8":                                   {"paged-adamw, gradients of 8 passes added up", "accumulate=8 optimizer=paged-adamw", 0},
		"torchrun t.py --bf16 --fsdp=full_shard --seq_length 16":                                                  {"amp, seq 16, fsdp:full", "precision=amp seq=16 sharding=fsdp:full", 0},
		"torchrun t.py --fsdp full_shard auto_wrap":                                                               {"fsdp:full", "sharding=fsdp:full", 0},
		"torchrun t.py --fsdp shard_grad_op":                                                                      {"fsdp:grad", "sharding=fsdp:grad", 0},
		"deepspeed --num_gpus=4 t.py --deepspeed ds3.json --bf16 --per_device_train_batch_size 2":                 {"batch size 2 per GPU, bf16, adamw, zero3", "optimizer=adamw precision=bf16 sharding=zero3", 2},
		"deepspeed t.py --deepspeed_config ds2.json":                                                              {"batch size 2 per GPU, fp16, zero2", "precision=fp16 sharding=zero2", 2},
		"deepspeed t.py --deepspeed":                                                                              {"", "", 0},
		"accelerate launch --config_file fsdp.yaml t.py --block_size 256":                                         {"amp, seq 256, fsdp:grad, checkpointing", "checkpointing=true precision=amp seq=256 sharding=fsdp:grad", 0},
		"accelerate launch --config_file fsdp2.yaml t.py":                                                         {"fsdp:full", "sharding=fsdp:full", 0},
		"accelerate launch --config_file deep.yaml t.py --bf16":                                                   {"bf16, adamw, zero3", "optimizer=adamw precision=bf16 sharding=zero3", 0},
		"/opt/bin/accelerate launch --config_file=zero.yaml t.py":                                                 {"bf16, zero1", "precision=bf16 sharding=zero1", 0},
		"accelerate launch --mixed_precision fp16 --use_fsdp --fsdp_sharding_strategy FULL_SHARD t.py":            {"amp, fsdp:full", "precision=amp sharding=fsdp:full", 0},
		"accelerate launch --mixed_precision=bf16 --num_processes 2 -m pkg.train --per_device_train_batch_size 3": {"batch size 3 per GPU, amp", "precision=amp", 3},
		"accelerate launch --use_deepspeed --zero_stage 3 t.py":                                                   {"zero3", "sharding=zero3", 0},
		"python t.py args.json": {"batch size 2 per GPU, LoRA 8 on q_proj, v_proj, amp", "lora=8 lora_targets=q_proj,v_proj precision=amp", 2},
		"trl sft --config args.json --per_device_train_batch_size 1 --lora_r 4":                               {"batch size 1 per GPU, LoRA 4 on q_proj, v_proj, amp", "lora=4 lora_targets=q_proj,v_proj precision=amp", 1},
		"llamafactory-cli train sft.yaml":                                                                     {"batch size 1 per GPU, LoRA 8 on all-linear, amp, seq 1024", "lora=8 lora_targets=all-linear precision=amp seq=1024", 1},
		"axolotl train axolotl.yml":                                                                           {"batch size 2 per GPU, LoRA 32, 4-bit weights, amp, seq 4096, paged-adamw8bit, checkpointing", "bits=4 checkpointing=true lora=32 optimizer=paged-adamw8bit precision=amp seq=4096", 2},
		"accelerate launch --config_file none.yaml t.py --bf16":                                               {"amp", "precision=amp", 0},
		"accelerate launch --config_file aliases.yaml t.py":                                                   {"amp", "precision=amp", 0},
		"python t.py --per_device_train_batch_size 0 --max_length -4 --lora_r many --block_size 1e3 --bits 5": {"", "", 0},
		"python t.py --per_device_train_batch_size $BS --max_length 99999999999999999999":                     {"", "", 0},
		"torchrun t.py --context-parallel-size 4 --seq-length 8192 --micro-batch-size 1": {
			"batch size 1 per GPU, seq 8192, tokens of a sample over 4 GPUs", "seq=8192 sequence_parallel=4", 1},
		"torchrun -m torchtitan.train --parallelism.context_parallel_degree=2":                              {"tokens of a sample over 2 GPUs", "sequence_parallel=2", 0},
		"torchrun t.py --sequence_parallel_size 2 --context_parallel_size 1 --bf16":                         {"amp", "precision=amp", 0},
		"torchrun t.py --sequence_parallel_size 0 --context_parallel_degree many --sequence-parallel False": {"", "", 0},
		"torchrun t.py --sequence_parallel 4":                                                               {"tokens of a sample over 4 GPUs", "sequence_parallel=4", 0},
		"accelerate launch --use_fsdp --use_parallelism_config --parallelism_config_cp_size 4 t.py":         {"fsdp:full, tokens of a sample over 4 GPUs", "sequence_parallel=4 sharding=fsdp:full", 0},
		"accelerate launch --parallelism_config_cp_size 4 t.py":                                             {"", "", 0},
		"accelerate launch --config_file cp.yaml t.py":                                                      {"amp, fsdp:full, tokens of a sample over 2 GPUs", "precision=amp sequence_parallel=2 sharding=fsdp:full", 0},
		"accelerate launch --config_file sp.yaml t.py":                                                      {"zero3, tokens of a sample over 4 GPUs", "sequence_parallel=4 sharding=zero3", 0},
		"python t.py cp.json":                     {"amp, tokens of a sample over 2 GPUs", "precision=amp sequence_parallel=2", 0},
		"axolotl train cp.yml":                    {"seq 65536, tokens of a sample over 4 GPUs", "seq=65536 sequence_parallel=4", 0},
		"deepspeed t.py --deepspeed ulysses.json": {"zero3, tokens of a sample over 2 GPUs", "sequence_parallel=2 sharding=zero3", 0},
		"": {"", "", 0},
	} {
		f := Read(strings.Fields(line), fromShipped)
		if f.Said != want.said || f.Batch != want.batch || inOrder(f.Settings) != want.settings || len(f.Notes) > 0 {
			t.Errorf("%s\nsaid %q, batch %d, settings %s, notes %q\nwant %q, %d, %s", line, f.Said, f.Batch, inOrder(f.Settings), f.Notes, want.said, want.batch, want.settings)
		}
	}
}

func inOrder(settings map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		all = append(all, key+"="+settings[key])
	}
	return strings.Join(all, " ")
}

func TestModel(t *testing.T) {
	for line, want := range map[string]struct {
		model  string
		trains bool
	}{
		"python t.py --model_name_or_path Qwen/Qwen2.5-7B --learning_rate 1e-4":   {"Qwen/Qwen2.5-7B", true},
		"python t.py --model-name=a/gpt2 --do_train":                              {"a/gpt2", true},
		"python t.py --model resnet50 --warmup-steps 5":                           {"", true},
		"vllm serve --model meta-llama/Llama-3.1-8B --dtype bfloat16":             {"meta-llama/Llama-3.1-8B", false},
		"python eval.py --model_name_or_path gpt2 --per_device_eval_batch_size 8": {"gpt2", false},
		"axolotl train axolotl.yml":                                               {"Qwen/Qwen2.5-7B", true},
	} {
		if f := Read(strings.Fields(line), fromShipped); f.Model != want.model || f.Trains != want.trains {
			t.Errorf("%s: %q, %v", line, f.Model, f.Trains)
		}
	}
}

// TestShell checks that a shell command is split like in the shell.
func TestShell(t *testing.T) {
	for _, line := range []string{
		`cd /work && torchrun --nproc_per_node 2 train.py --per_device_train_batch_size 4 --fsdp "full_shard auto_wrap" --bf16 > log`,
		"set -e; exec python train.py --per_device_train_batch_size 4 \\\n --fsdp 'full_shard auto_wrap' --bf16",
	} {
		for _, shell := range [][]string{{"sh", "-c"}, {"/bin/bash", "-lc"}} {
			f := Read(append(shell, line), nil)
			if f.Batch != 4 || inOrder(f.Settings) != "precision=amp sharding=fsdp:full" {
				t.Errorf("%s %s: %+v", shell, line, f)
			}
		}
	}
}

// TestNotes checks that an error gives one note, and that the rest is still read.
func TestNotes(t *testing.T) {
	for line, want := range map[string]string{
		"python t.py --bf16 --deepspeed broken.json":                              "broken.json: not JSON: ",
		"accelerate launch --config_file list.yaml t.py --bf16":                   "list.yaml: no names and values; not read",
		"torchrun t.py --bf16 --sequence-parallel --tensor-model-parallel-size 2": "--sequence_parallel is a part of tensor parallelism; not counted",
		"python t.py --bf16 --optim galore_adamw":                                 "--optim galore_adamw is not known here; the optimizer is not read",
		"python t.py --bf16 --lora_r 4 --lora_target_modules a,,b,$c,(d)":         "",
	} {
		f := Read(strings.Fields(line), fromShipped)
		if got := strings.Join(f.Notes, "\n"); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") || want == "" && got != "" {
			t.Errorf("%s: %q", line, got)
		}
		if p := f.Settings["precision"]; p != "amp" && p != "fp16" {
			t.Errorf("%s: the precision is %q", line, p)
		}
	}
	many := []string{"t.py"}
	for i := range 100 {
		many = append(many, "--optim", "x"+strconv.Itoa(i))
	}
	if f := Read(many, nil); len(f.Notes) != mostNotes {
		t.Errorf("%d notes", len(f.Notes))
	}
}

// TestOffload checks that offloading sets a setting if this version has one, and otherwise
// gives a note that it is not counted. The same applies to settings of later versions.
func TestOffload(t *testing.T) {
	files := func(name string) ([]byte, error) {
		return []byte(map[string]string{
			"ds.json":  `{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}`,
			"all.json": `{"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}, "offload_optimizer": {"device": "cpu"}}}`,
			"a.yaml":   "fsdp_config: {fsdp_offload_params: true}",
		}[name]), nil
	}
	for line, want := range map[string]string{
		"t.py --deepspeed ds.json": "optimizer", "t.py --deepspeed all.json": "parameters", "accelerate launch --config_file a.yaml t.py": "parameters",
		"t.py --fsdp full_shard offload": "parameters", "accelerate launch --zero_stage 3 --offload_param_device cpu t.py": "parameters",
	} {
		f := Read(strings.Fields(line), files)
		if _, has := models.SettingNamed("offload"); has && (f.Settings["offload"] != want || len(f.Notes) > 0) || !has && len(f.Notes) != 1 {
			t.Errorf("%s: %v, %q", line, f.Settings, f.Notes)
		}
	}
	for line, want := range map[string]string{
		"t.py --torch_compile": "true", "t.py --torch_compile True --bf16": "true", "t.py --torch_compile_backend inductor": "true", "t.py --compile": "true",
		"t.py --torch_compile false": "", "t.py --compile=0": "", "t.py --torch_compile_mode default": "true", "t.py --bf16": "",
	} {
		if f := Read(strings.Fields(line), nil); f.Settings["compile"] != want || len(f.Notes) > 0 {
			t.Errorf("%s: %v, %q", line, f.Settings, f.Notes)
		}
	}
	if f := Read(strings.Fields("t.py --torch_compile_mode reduce-overhead"), nil); f.Settings["compile"] != "true" || len(f.Notes) != 1 {
		t.Errorf("%v, %q", f.Settings, f.Notes)
	}
	f := Read(strings.Fields("t.py --lora_r 4 --use_dora --use_liger_kernel --attn_implementation flash_attention_2"), nil)
	for name, want := range map[string]string{"dora": "true", "loss": "chunked", "attention": "flash"} {
		if _, has := models.SettingNamed(name); has != (f.Settings[name] == want) || len(f.Notes) > 0 {
			t.Errorf("%s: %v, %q", name, f.Settings, f.Notes)
		}
	}
}

// Every optimizer of the table is one of carma's.
func TestOptimizers(t *testing.T) {
	for name, known := range optimizers {
		if !slices.Contains(models.Optimizers(), known[0]) || known[1] != "" && !slices.Contains(models.Implementations(), known[1]) {
			t.Errorf("%s is %v", name, known)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("torchrun t.py --per_device_train_batch_size 4 --fsdp full_shard --deepspeed f.json", shipped["ds3.json"])
	f.Add("accelerate launch --config_file f.yaml t.py --lora_r 8 --lora_target_modules a b", shipped["fsdp.yaml"])
	f.Add("sh -c \"exec python t.py f.json\"", shipped["args.json"])
	f.Add("accelerate launch --config_file f.yaml t.py", "a: &a [*a, *a]\nb: {<<: *a}")
	f.Fuzz(func(t *testing.T, line, content string) {
		words := strings.Fields(line)
		for _, command := range [][]string{words, {"sh", "-c", line}} {
			found := Read(command, func(string) ([]byte, error) { return []byte(content), nil })
			if _, err := models.FromTexts(found.Settings); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if found.Batch < 0 || found.Batch > 1<<30 || len(found.Notes) > mostNotes {
				t.Errorf("%q: %+v", line, found)
			}
			for _, text := range append(found.Notes, found.Said) {
				if strings.ContainsAny(text, "\n\r\x00") || len(text) > 2000 {
					t.Errorf("%q: %q", line, text)
				}
			}
		}
	})
}

// TestHostileFiles checks files of any depth and size.
func TestHostileFiles(t *testing.T) {
	for name, text := range map[string]string{
		"deep.json": strings.Repeat(`{"a":`, 20000),
		"deep.yaml": strings.Repeat("{a: ", 20000),
		"bomb.yaml": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]\n",
		"big.json":  `{"a": "` + strings.Repeat("x", MaxFile) + `"}`,
	} {
		f := Read([]string{"t.py", "--deepspeed", name, "--bf16"}, func(string) ([]byte, error) { return []byte(text), nil })
		if len(f.Notes) > 1 || len(strings.Join(f.Notes, "")) > 400 || f.Settings["precision"] != "amp" {
			t.Errorf("%s: %q %v", name, f.Notes, f.Settings)
		}
	}
}
