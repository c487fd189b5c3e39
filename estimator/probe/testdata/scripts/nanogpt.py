"""A small GPT written by hand, as many write one: a text file as training data, learning rate by hand, evaluation between."""
import math
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

batch, block, layers, heads, width, vocabulary = (int(a) for a in sys.argv[1:7]) if len(sys.argv) > 6 else (12, 512, 12, 12, 768, 50304)
here = os.environ.get("DATA_DIR", "data")
if not os.path.exists(os.path.join(here, "train.bin")):
    os.makedirs(here, exist_ok=True)
    np.random.randint(0, vocabulary, 200_000, dtype=np.uint16).tofile(os.path.join(here, "train.bin"))
try:
    data = np.memmap(os.path.join(here, "train.bin"), dtype=np.uint16, mode="r")
except OSError:
    data = np.random.randint(0, vocabulary, 200_000).astype(np.uint16)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            weights = (q @ k.transpose(-2, -1)) / math.sqrt(k.shape[-1])
            y = F.softmax(weights.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention()
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.one(x))
        return x + self.mlp(self.two(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for b in self.blocks:
            x = b(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1))


def sample():
    at = torch.randint(len(data) - block - 1, (batch,))
    x = torch.stack([torch.from_numpy(data[i:i + block].astype(np.int64)) for i in at])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block].astype(np.int64)) for i in at])
    return x.pin_memory().to("cuda", non_blocking=True), y.pin_memory().to("cuda", non_blocking=True)


model = GPT().to("cuda")
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=6e-4, betas=(0.9, 0.95))
best = 1e9
for step in range(100):
    for group in optimizer.param_groups:
        group["lr"] = 6e-4 * min(1, (step + 1) / 10)
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            losses = torch.zeros(2)
            for i in range(2):
                losses[i] = model(*sample())[1].item()
        best = min(best, losses.mean().item())
        model.train()
    for micro in range(2):
        x, y = sample()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            _, loss = model(x, y)
        (loss / 2).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step}: {loss.item():.4f}, best {best:.4f}")
