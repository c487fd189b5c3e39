package arguments

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"carma/configs/models"
)

// trainer maps the arguments of programs to functions that read them. Several names mean
// the same, because programs differ.
var trainer = map[string]func(*reader, *argument){}

func init() {
	for names, read := range map[string]func(*reader, *argument){
		"model_name_or_path base_model pretrained_model_name_or_path": func(r *reader, a *argument) { r.model = clean(a.value()) },
		"model_name model_id model": func(r *reader, a *argument) { // models of the hub only, because other programs use these names too
			if name := clean(a.value()); strings.Contains(name, "/") {
				r.model = name
			}
		},
		"per_device_train_batch_size per_gpu_train_batch_size micro_batch_size train_micro_batch_size_per_gpu": func(r *reader, a *argument) {
			if n := number(a.value()); n > 0 {
				r.batch = n
			}
		},
		"max_seq_length max_length block_size model_max_length max_seq_len sequence_len seq_length cutoff_len": counted("seq"),
		"gradient_accumulation_steps":    counted("accumulate"),
		"bf16":                           autocast(models.BF16),
		"fp16":                           autocast(models.FP16),
		"mixed_precision":                func(r *reader, a *argument) { r.mixed(a.value()) },
		"torch_dtype dtype model_dtype":  func(r *reader, a *argument) { r.dtype(a.value()) },
		"gradient_checkpointing":         func(r *reader, a *argument) { r.set("checkpointing", yesNo(a.on()), "--"+a.name) },
		"no_gradient_checkpointing":      func(r *reader, a *argument) { r.set("checkpointing", yesNo(!a.on()), "--"+a.name) },
		"fsdp_activation_checkpointing":  func(r *reader, a *argument) { r.checkpointingIf(a.on()) },
		"optim optimizer":                func(r *reader, a *argument) { r.optimizer(a.value(), "--"+a.name) },
		"attn_implementation flash_attn": func(r *reader, a *argument) { r.attention(a.value()) },
		"torch_compile torch_compile_backend torch_compile_mode compile": func(r *reader, a *argument) { r.compile(a) },
		"use_dora":                        switched("dora", "true"),
		"use_liger_kernel use_liger":      switched("loss", "chunked"),
		"use_peft use_lora":               func(r *reader, a *argument) { r.adapter = map[bool]string{true: "yes", false: "no"}[a.on()] },
		"finetuning_type adapter":         func(r *reader, a *argument) { r.kindOfAdapter(a.value()) },
		"lora_r lora_rank":                func(r *reader, a *argument) { r.rank(a) },
		"lora_target_modules lora_target": func(r *reader, a *argument) { r.targets(a.values) },
		"load_in_4bit":                    quantized(4),
		"load_in_8bit":                    quantized(8),
		"quantization_bit bits":           func(r *reader, a *argument) { r.quantize(number(a.value())) },
		"fsdp":                            func(r *reader, a *argument) { r.fsdp(strings.Join(a.values, " "), a.on()) },
		"deepspeed deepspeed_config":      func(r *reader, a *argument) { r.deepspeedFile(a.value()) },
	} {
		for _, name := range strings.Fields(names) {
			trainer[name] = read
		}
	}
}

// ofTraining lists arguments that only trainings have. They have no effect on memory, or
// are in the table above.
var ofTraining = strings.Fields("per_device_train_batch_size per_gpu_train_batch_size micro_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps " +
	"gradient_checkpointing optim learning_rate num_train_epochs max_train_steps do_train warmup_ratio warmup_steps lr_scheduler_type use_peft lora_r lora_rank finetuning_type")

// program reads a program's words: first the file that follows the script or --config,
// then the arguments, which override the file.
func (r *reader) program(words []string) {
	all := parsed(words)
	for i, w := range words {
		if strings.HasPrefix(w, "--") {
			break
		}
		if i > 0 && isData(w) {
			r.argumentsFile(w)
		}
	}
	for i := range all {
		if all[i].name == "config" && isData(all[i].value()) {
			r.argumentsFile(all[i].value())
		}
	}
	r.apply(all)
}

func (r *reader) apply(all []argument) {
	for i := range all {
		r.train = r.train || slices.Contains(ofTraining, all[i].name)
		if read := trainer[all[i].name]; read != nil {
			read(r, &all[i])
		}
	}
}

func isData(word string) bool {
	return slices.Contains([]string{".json", ".yaml", ".yml"}, path.Ext(word))
}

// counted returns a function that reads a number into a setting.
func counted(name string) func(*reader, *argument) {
	return func(r *reader, a *argument) {
		if n := number(a.value()); n > 0 {
			r.set(name, strconv.Itoa(n), "--"+a.name)
		}
	}
}

// switched returns a function that reads a switch into a setting.
func switched(name, text string) func(*reader, *argument) {
	return func(r *reader, a *argument) {
		if a.on() {
			r.set(name, text, "--"+a.name)
		}
	}
}

// autocast returns a function that reads a switch for 16-bit arithmetic with 32-bit
// weights.
func autocast(half models.Precision) func(*reader, *argument) {
	return func(r *reader, a *argument) {
		if a.on() {
			r.half = half
		} else if r.half == half {
			r.half = ""
		}
	}
}

// mixed reads accelerate's word for mixed precision.
func (r *reader) mixed(word string) {
	switch strings.ToLower(word) {
	case "bf16":
		r.half = models.BF16
	case "fp16":
		r.half = models.FP16
	case "no":
		r.half = ""
	}
}

// dtype reads the type of the weights. auto means the type in the model's files, which
// are not read.
func (r *reader) dtype(word string) {
	switch strings.TrimPrefix(strings.ToLower(clean(word)), "torch.") {
	case "bfloat16", "bf16":
		r.weights = models.BF16
	case "float16", "fp16", "half":
		r.weights = models.FP16
	case "float32", "fp32", "float":
		r.weights = models.FP32
	}
}

func (r *reader) checkpointingIf(on bool) {
	if on {
		r.set("checkpointing", "true", "")
	}
}

// attention reads the kernel of attention.
func (r *reader) attention(word string) {
	switch word = strings.ToLower(word); {
	case strings.HasPrefix(word, "flash"), word == "fa2":
		r.set("attention", "flash", "")
	case word == "sdpa", word == "eager":
		r.set("attention", word, "")
	}
}

// compile reads a switch, a backend or a mode of torch.compile. Modes that record CUDA
// graphs need a memory pool for them.
func (r *reader) compile(a *argument) {
	word := strings.ToLower(a.value())
	if slices.Contains([]string{"0", "false", "no", "none", "n", "f", "off", "eager"}, word) {
		return
	}
	r.set("compile", "true", "--"+a.name)
	if word == "reduce-overhead" || word == "max-autotune" {
		r.note("--%s %s: the pool of CUDA graphs is not counted", a.name, word)
	}
}

// kindOfAdapter reads a word of LLaMA-Factory and Axolotl.
func (r *reader) kindOfAdapter(word string) {
	switch strings.ToLower(word) {
	case "lora":
		r.adapter = "yes"
	case "qlora":
		r.adapter = "yes"
		r.quantize(4)
	case "full", "freeze":
		r.adapter = "no"
	}
}

func (r *reader) rank(a *argument) {
	if n := number(a.value()); n > 0 {
		r.set("lora", strconv.Itoa(n), "--"+a.name)
	}
}

// targets reads names as separate words, separated by commas, or as a Python list.
func (r *reader) targets(words []string) {
	var names []string
	for _, w := range words {
		for _, name := range strings.Split(w, ",") {
			if name = strings.Trim(name, " \t[]()'\""); name != "" && !strings.ContainsAny(name, "$*|\\") {
				names = append(names, name)
			}
		}
	}
	if len(names) == 1 && names[0] == "all" {
		names[0] = "all-linear"
	}
	if len(names) > 0 && len(names) <= 100 {
		r.set("lora-targets", strings.Join(names, ","), "--lora_target_modules")
	}
}

func quantized(bits int) func(*reader, *argument) {
	return func(r *reader, a *argument) {
		if a.on() {
			r.quantize(bits)
		} else if r.bits == bits {
			r.bits = 0
		}
	}
}

func (r *reader) quantize(bits int) {
	if bits == 4 || bits == 8 {
		r.bits = bits
	}
}

// fsdp reads the words of the Trainer: full_shard auto_wrap, shard_grad_op offload.
func (r *reader) fsdp(words string, on bool) {
	words = strings.ToLower(words)
	switch {
	case strings.Contains(words, "zero2"), strings.Contains(words, "grad_op"):
		r.set("sharding", string(models.FSDPGrad), "--fsdp")
	case strings.Contains(words, "full_shard"), strings.Contains(words, "hybrid_shard"), on:
		r.set("sharding", string(models.FSDP), "--fsdp")
	}
	if strings.Contains(words, "offload") {
		r.set("offload", "parameters", "--fsdp")
	}
}

// clean removes quotes around a word.
func clean(word string) string { return strings.Trim(word, " \t'\"") }

// number parses a whole number from 1 on. It returns 0 for any other word.
func number(word string) int {
	n, err := strconv.Atoi(clean(word))
	if err != nil || n < 1 || n > 1<<30 {
		return 0
	}
	return n
}

func yesNo(on bool) string { return strconv.FormatBool(on) }
