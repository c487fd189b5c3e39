"""Text from a language model: no training at all."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4)
model = LlamaForCausalLM(config).to("cuda", torch.float16).eval()
with torch.no_grad():
    for i in range(3):
        out = model.generate(torch.randint(3, 32000, (1, 32), device="cuda"), max_new_tokens=6, do_sample=False, pad_token_id=0)
        print(out.shape)
