"""T5-base learns to summarize, with a loop of accelerate; gradients of two batches are added up."""
import torch
from accelerate import Accelerator
from transformers import T5Config, T5ForConditionalGeneration, get_linear_schedule_with_warmup

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
model = T5ForConditionalGeneration(T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12, vocab_size=32128, decoder_start_token_id=0, pad_token_id=0))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
rows = [{"input_ids": torch.randint(2, 32000, (256,)), "labels": torch.randint(2, 32000, (64,))} for _ in range(64)]
loader = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)
schedule = get_linear_schedule_with_warmup(optimizer, 10, 100)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
model.train()
for batch in loader:
    with accelerator.accumulate(model):
        loss = model(**batch).loss
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    accelerator.print(accelerator.gather(loss.detach()).mean().item())
