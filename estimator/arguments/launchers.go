package arguments

import (
	"strings"

	"carma/configs/models"
)

// launcher reads the words of torchrun, accelerate and deepspeed before the script.
func (r *reader) launcher(words []string) {
	accelerate := false
	for i, w := range words {
		if strings.HasSuffix(w, "accelerate") && i+1 < len(words) && words[i+1] == "launch" || w == "accelerate.commands.launch" {
			accelerate = true
		}
	}
	if !accelerate {
		return // the other launchers' options only set the number of processes
	}
	t := table{}
	for _, a := range parsed(words) {
		if a.name == "config_file" {
			r.accelerateFile(a.value())
			continue
		}
		t[a.name] = a.value()
		if len(a.values) == 0 {
			t[a.name] = "true"
		}
	}
	r.accelerate(t, t, "accelerate launch")
	if t.on("use_parallelism_config") {
		r.parallelism(t, "accelerate launch")
	}
	if t.on("use_fsdp") && r.o.Parallel == "" {
		r.set("sharding", string(models.FSDP), "accelerate launch")
	}
}

// accelerateFile reads accelerate's configuration.
func (r *reader) accelerateFile(name string) {
	t := r.open(name)
	if t == nil {
		return
	}
	r.mixed(t.text("mixed_precision"))
	switch strings.ToUpper(t.text("distributed_type")) {
	case "FSDP":
		r.set("sharding", string(models.FSDP), name)
	}
	r.accelerate(t.within("fsdp_config"), t.within("deepspeed_config"), name)
	r.parallelism(t.within("parallelism_config"), name)
}

// accelerate reads the settings of FSDP and DeepSpeed in accelerate's notation.
func (r *reader) accelerate(fsdp, deep table, from string) {
	r.mixed(fsdp.text("mixed_precision"))
	switch strategy := strings.ToUpper(fsdp.text("fsdp_sharding_strategy")); strategy {
	case "FULL_SHARD", "1", "HYBRID_SHARD", "4":
		r.set("sharding", string(models.FSDP), from)
	case "SHARD_GRAD_OP", "2", "HYBRID_SHARD_ZERO2", "5":
		r.set("sharding", string(models.FSDPGrad), from)
	case "NO_SHARD", "3":
		r.o.Parallel = ""
	}
	switch strings.ToLower(fsdp.text("fsdp_reshard_after_forward")) {
	case "true":
		r.set("sharding", string(models.FSDP), from)
	case "false":
		r.set("sharding", string(models.FSDPGrad), from)
	}
	r.checkpointingIf(fsdp.on("fsdp_activation_checkpointing"))
	if fsdp.on("fsdp_offload_params") {
		r.set("offload", "parameters", from)
	}
	r.stage(deep.text("zero_stage"))
	if n := number(deep.text("gradient_accumulation_steps")); n > 0 {
		r.set("accumulate", deep.text("gradient_accumulation_steps"), from)
	}
	r.offloaded(deep.text("offload_optimizer_device"), deep.text("offload_param_device"), from)
	r.deepspeedFile(deep.text("deepspeed_config_file"))
}

// stages maps DeepSpeed's stages of ZeRO to carma's words.
var stages = map[string]models.Parallel{"0": "", "1": models.ZeRO1, "2": models.ZeRO2, "3": models.ZeRO3}

func (r *reader) stage(word string) {
	if p, ok := stages[word]; ok {
		r.o.Parallel = p
	}
}

// offloaded reads the devices to which DeepSpeed offloads. Offloading the parameters also
// offloads the optimizer's states.
func (r *reader) offloaded(optimizer, parameters, from string) {
	away := func(device string) bool { return device == "cpu" || device == "nvme" }
	switch {
	case away(parameters):
		r.set("offload", "parameters", from)
	case away(optimizer):
		r.set("offload", "optimizer", from)
	}
}

// deepspeedFile reads DeepSpeed's configuration. auto means the value of the Trainer's
// arguments.
func (r *reader) deepspeedFile(name string) {
	if !isData(name) {
		return // --deepspeed without a value is a switch
	}
	t := r.open(name)
	if t == nil {
		return
	}
	zero := t.within("zero_optimization")
	r.stage(zero.text("stage"))
	r.offloaded(zero.within("offload_optimizer").text("device"), zero.within("offload_param").text("device"), name)
	if t.within("bf16").on("enabled") {
		r.half = models.BF16
	}
	if t.within("fp16").on("enabled") {
		r.half = models.FP16
	}
	if n := number(t.text("train_micro_batch_size_per_gpu")); n > 0 {
		r.batch = n
	}
	if n := number(t.text("gradient_accumulation_steps")); n > 0 {
		r.set("accumulate", t.text("gradient_accumulation_steps"), name)
	}
	r.optimizer(t.within("optimizer").text("type"), name)
	r.spread(t.text("sequence_parallel_size"), name)
}
