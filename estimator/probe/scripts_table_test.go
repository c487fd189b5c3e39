package probe

const torchrun = "-m torch.distributed.run --nproc_per_node=2"

// scripts are the programs of testdata/scripts. The libraries print the numbers of
// parameters, or they follow from the layers.
var scripts = []script{
	// With PyTorch alone; torch.export is there from version 2.1 on.
	{name: "nanogpt", args: "4 64 2 2 32 500", want: "GPT transformer batch 4 amp adamw trained 43520 frozen 0"},
	{name: "nanogpt", needs: "torch.export", want: "GPT transformer batch 12 amp adamw trained 124082688 frozen 0", live: 1},
	{name: "torchrun_ddp", needs: "torch.export", launch: torchrun, gpus: 2, want: "Sequential cnn batch 64 fp32 sgd-momentum trained 1603236 frozen 0 ddp over 2"},
	{name: "gcn_plain", want: "GCN mlp batch 5000 fp32 adam trained 39431 frozen 0"},
	{name: "ppo", want: "Policy cnn batch 64 fp32 adam trained 1687719 frozen 0"},
	{name: "gan", want: "Sequential cnn batch 128 fp32 adam trained 6342272 frozen 0", live: 2},
	{name: "lstm_lm", want: "Model other batch 20 fp32 sgd trained 19780400 frozen 0", again: "_pack_padded_sequence"},
	{name: "score_images", want: "the program only infers (forward passes without gradients: 4, no optimizer): the probe estimates training"},
	{name: "broken", want: "the program failed: RuntimeError: *mat1 and mat2 shapes cannot be multiplied (256x512 and 500x10)"},
	{name: "jax_mlp", needs: "!jax", want: "the program needs JAX, which is not in the image: only programs of PyTorch can be probed"},

	// With libraries.
	{name: "hf_trainer", needs: "transformers accelerate", want: "BertForSequenceClassification transformer batch 32 amp adamw trained 109483778 frozen 0"},
	{name: "lora_8b", needs: "transformers peft", want: "PeftModelForCausalLM transformer batch 1 bf16 adamw trained 13631488 frozen 8030261248 32-bit", live: 1},
	{name: "lora_70b", needs: "transformers peft", want: "PeftModelForCausalLM transformer batch 8 bf16 adamw trained 16384000 frozen 70553706496 32-bit checkpointed"},
	{name: "sft_lora", needs: "trl peft datasets", want: "PeftModelForCausalLM transformer batch 4 bf16 adamw trained 18464768 frozen 1543714304 32-bit checkpointed"},
	{name: "sft_qlora", needs: "trl peft datasets bitsandbytes",
		want: "PeftModelForCausalLM transformer batch 4 amp adam8bit trained 41943040 frozen 7241732096 4-bit 16-bit checkpointed"},
	{name: "lightning_resnet", needs: "lightning torchvision", want: "ResNet cnn batch 32 amp sgd-momentum trained 25557032 frozen 0"},
	{name: "timm_vit", needs: "timm", want: "VisionTransformer transformer batch 64 amp adamw trained 86567656 frozen 0", live: 1},
	{name: "accelerate_t5", needs: "accelerate transformers", want: "T5ForConditionalGeneration transformer batch 8 amp adamw trained 222903552 frozen 0"},
	{name: "fsdp2_llama", needs: "transformers", launch: torchrun, gpus: 2, want: "LlamaForCausalLM transformer batch 2 amp adamw trained 8030261248 frozen 0 checkpointed fsdp:full over 2"},
	{name: "accelerate_fsdp", needs: "accelerate transformers", launch: "-m accelerate.commands.launch --use_fsdp --fsdp_version 2 --num_processes 2 --mixed_precision bf16",
		gpus: 2, want: "GPT2LMHeadModel transformer batch 8 amp adamw trained 774030080 frozen 0 fsdp:full over 2"},
	{name: "deepspeed_zero3", needs: "deepspeed transformers", launch: "-m deepspeed.launcher.runner --num_gpus 2", gpus: 2,
		want: "GPTNeoXForCausalLM transformer batch 4 bf16 adamw trained 1415172096 frozen 0 checkpointed zero3 over 2"},
	{name: "diffusers_lora", needs: "diffusers peft", want: "UNet2DConditionModel transformer batch 4 bf16 adamw trained 1594368 frozen 859520964 32-bit", live: 1},
	{name: "whisper", needs: "transformers accelerate", want: "WhisperForConditionalGeneration transformer batch 8 amp adamw trained 153580800 frozen 88154112"},
	{name: "yolo", needs: "ultralytics", want: "DetectionModel cnn batch 8 fp32 adamw trained 2590409 frozen 16", again: "nonzero"},
	{name: "gnn_sage", needs: "torch_geometric", want: "Net mlp batch 20000 fp32 adam trained 151848 frozen 0"},
	{name: "generate", needs: "transformers", want: "the program only infers (forward passes without gradients: *, no optimizer): the probe estimates training"},
}
