"""GPT-2 (Radford et al. 2019), with the head that names the next token."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .layers import attend, join_heads, small_weights, split_heads

DROP, LONGEST = 0.1, 1024
SIZES = {"gpt2": (768, 12, 12), "gpt2_medium": (1024, 24, 16), "gpt2_large": (1280, 36, 20), "gpt2_xl": (1600, 48, 25)}


def gelu(x):
    """An operation at a time, as the published runs computed it; a fused one keeps less."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.o = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(DROP)

    def forward(self, x):
        q, k, v = (split_heads(t, self.heads) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = join_heads(attend(q, k, v, DROP if self.training else 0.0, causal=True))
        x = x + self.drop(self.o(y))
        return x + self.drop(self.down(gelu(self.up(self.norm2(x)))))


class GPT2(nn.Module):
    def __init__(self, width, depth, heads, vocabulary):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(LONGEST, width)
        self.drop = nn.Dropout(DROP)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        small_weights(self)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return F.linear(self.norm(self.blocks(self.drop(x))), self.words.weight)
