"""XLNet (Yang et al. 2019), cased, classifying sequences by their last token."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .layers import join_heads, small_weights, split_heads

DROP = 0.1
SIZES = {"xlnet_base": (768, 12, 12), "xlnet_large": (1024, 24, 16)}


def positions(tokens, width, like):
    """Sines and cosines of the distances tokens ... 1 - tokens: (2 x tokens, width)."""
    distance = torch.arange(tokens, -tokens, -1.0, device=like.device)
    speed = 10000 ** -(torch.arange(0, width, 2.0, device=like.device) / width)
    angle = distance[:, None] * speed
    return torch.cat([angle.sin(), angle.cos()], -1).to(like.dtype)


def shift(x):
    """Scores by distance (..., i, 2 x tokens) to scores by token (..., i, j)."""
    batch, heads, i, p = x.shape
    return x.reshape(batch, heads, p, i)[:, :, 1:].reshape(batch, heads, i, p - 1)[..., :i]


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o, self.r = (nn.Linear(width, width, bias=False) for _ in range(5))
        small = (heads, width // heads)
        self.content, self.place, self.segment = (nn.Parameter(torch.zeros(small)) for _ in range(3))
        self.segments = nn.Parameter(torch.zeros(2, *small))  # not used by this task
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(DROP)

    def forward(self, x, r):
        q, k, v = (split_heads(f(x), self.heads) for f in (self.q, self.k, self.v))
        r = split_heads(self.r(r), self.heads)
        scores = (q + self.content[:, None]) @ k.transpose(-1, -2)
        scores = scores + shift((q + self.place[:, None]) @ r.transpose(-1, -2))
        weights = self.drop((scores / math.sqrt(q.shape[-1])).softmax(-1))
        x = self.norm1(self.drop(self.o(join_heads(weights @ v))) + x)
        return self.norm2(self.drop(self.down(self.drop(F.gelu(self.up(x))))) + x)


class XLNet(nn.Module):
    def __init__(self, width, depth, heads, vocabulary, classes):
        super().__init__()
        self.mask = nn.Parameter(torch.zeros(1, 1, width))  # not used by this task
        self.words = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.summary, self.head = nn.Linear(width, width), nn.Linear(width, classes)
        self.drop = nn.Dropout(DROP)
        small_weights(self)

    def forward(self, tokens):
        x = self.drop(self.words(tokens))
        r = self.drop(positions(tokens.shape[1], x.shape[-1], x)[None])
        for layer in self.layers:
            x = layer(x, r)
        return self.head(self.drop(torch.tanh(self.summary(self.drop(x)[:, -1]))))
