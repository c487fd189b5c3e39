"""Instruction tuning of a Qwen2 of 1.5 billion parameters with LoRA: trl's SFTTrainer and peft."""
import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import Qwen2Config, Qwen2ForCausalLM
from trl import SFTConfig, SFTTrainer

from text import sentences, tokenizer

config = Qwen2Config(hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2,
                     vocab_size=151936, tie_word_embeddings=True)
model = Qwen2ForCausalLM(config).to(torch.bfloat16)
arguments = SFTConfig("results", per_device_train_batch_size=4, gradient_accumulation_steps=2, max_length=512, bf16=True, packing=False,
                      gradient_checkpointing=True, report_to=[], save_strategy="no", logging_steps=1, max_steps=20)
trainer = SFTTrainer(model=model, args=arguments, processing_class=tokenizer(),
                     train_dataset=Dataset.from_dict({"text": sentences(200)}),
                     peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
trainer.train()
