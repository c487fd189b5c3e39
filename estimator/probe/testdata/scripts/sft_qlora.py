"""QLoRA: 4-bit weights by bitsandbytes, adapters by peft, trl's SFTTrainer."""
import torch
from datasets import Dataset
from peft import LoraConfig, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig
from trl import SFTConfig, SFTTrainer

from checkpoint import empty
from text import sentences, tokenizer

folder = empty(LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, vocab_size=32000))
four_bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16, bnb_4bit_use_double_quant=True)
model = AutoModelForCausalLM.from_pretrained(folder, quantization_config=four_bits, dtype=torch.bfloat16, device_map={"": 0})
model = prepare_model_for_kbit_training(model)
arguments = SFTConfig("results", per_device_train_batch_size=4, max_length=256, bf16=True, report_to=[], save_strategy="no", max_steps=20,
                      optim="paged_adamw_8bit")
SFTTrainer(model=model, args=arguments, processing_class=tokenizer(), train_dataset=Dataset.from_dict({"text": sentences(100)}),
           peft_config=LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM")).train()
