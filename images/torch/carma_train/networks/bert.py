"""BERT (Devlin et al. 2019), cased, with the head that fills in masked tokens."""

import torch
import torch.nn.functional as F
from torch import nn

from .layers import attend, join_heads, small_weights, split_heads

DROP, LONGEST = 0.1, 512
SIZES = {"bert_base": (768, 12, 12), "bert_large": (1024, 24, 16)}


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.drop = nn.Dropout(DROP)

    def forward(self, x):
        q, k, v = (split_heads(f(x), self.heads) for f in (self.q, self.k, self.v))
        y = join_heads(attend(q, k, v, DROP if self.training else 0.0))
        x = self.norm1(self.drop(self.o(y)) + x)
        return self.norm2(self.drop(self.down(F.gelu(self.up(x)))) + x)


class BERT(nn.Module):
    def __init__(self, width, depth, heads, vocabulary):
        super().__init__()
        self.words, self.kinds = nn.Embedding(vocabulary, width), nn.Embedding(2, width)
        self.places = nn.Embedding(LONGEST, width)
        self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(DROP)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(depth)))
        self.transform, self.last = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        small_weights(self)

    def forward(self, tokens):
        x = self.words(tokens) + self.kinds(torch.zeros_like(tokens))
        x = x + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.layers(self.drop(self.norm(x)))
        return F.linear(self.last(F.gelu(self.transform(x))), self.words.weight, self.bias)
