"""deepspeed --num_gpus 2 deepspeed_zero3.py: GPT-NeoX of 1.4 billion parameters with ZeRO 3."""
import deepspeed
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

settings = {
    "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "overlap_comm": True}, "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
}
deepspeed.init_distributed()
with deepspeed.zero.Init(config_dict_or_path=settings):
    model = GPTNeoXForCausalLM(GPTNeoXConfig(hidden_size=2048, num_hidden_layers=24, num_attention_heads=16, intermediate_size=8192))
model.gradient_checkpointing_enable()
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
engine.train()
for step in range(10):
    ids = torch.randint(0, 50000, (2, 1024), device=engine.device)
    loss = engine(input_ids=ids, labels=ids).loss
    engine.backward(loss)
    engine.step()
    if engine.global_rank == 0:
        print(step, loss.item())
