"""accelerate launch --use_fsdp ...: full training of GPT-2 large, sharded as the launcher's settings say."""
import torch
from accelerate import Accelerator
from transformers import GPT2Config, GPT2LMHeadModel

accelerator = Accelerator()
model = GPT2LMHeadModel(GPT2Config(n_embd=1280, n_layer=36, n_head=20))
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=5e-5))
rows = [torch.randint(0, 50257, (512,)) for _ in range(64)]
loader = accelerator.prepare(torch.utils.data.DataLoader(rows, batch_size=4))
model.train()
for ids in loader:
    loss = model(input_ids=ids, labels=ids).loss
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.print(loss.item())
