"""The two designs and their training.

Both are ensembles whose members are stacked: the first dimension of every
weight is the member. So an ensemble runs like one network.
"""

import math

import numpy as np
import torch
from torch import nn

from features import LOGS, SUMMARY, TOKEN


class Ordinal(nn.Module):
    """Class probabilities of a logistic distribution of the log of the memory.

    A member predicts the place of the memory and a width. The classes' edges
    cut that distribution, so neighbouring classes are neighbours.
    """

    def __init__(self, edges):
        super().__init__()
        self.register_buffer("edges", torch.tensor(np.log(edges), dtype=torch.float32))

    @staticmethod
    def split(y):  # [m, n, 2] -> place and width, [m, n]
        return y[..., 0] + 8.0, torch.nn.functional.softplus(y[..., 1] - 3.0) + 0.003

    def forward(self, y):
        mu, s = self.split(y)
        below = torch.sigmoid((self.edges - mu[..., None]) / s[..., None])  # [m, n, edges]
        one, zero = torch.ones_like(below[..., :1]), torch.zeros_like(below[..., :1])
        p = torch.cat([below, one], -1) - torch.cat([zero, below], -1)
        return p.mean(0)

    def loss(self, y, memory, censored, classes, weight):
        """Mean over members; weight [m, n] selects the rows of each member."""
        mu, s = self.split(y)
        z = (torch.log(memory) - mu) / s
        exact = torch.log(s) + z + 2 * torch.nn.functional.softplus(-z)
        above = torch.nn.functional.softplus(z)  # -log P(more than the last edge)
        continuous = torch.where(censored, above, exact)
        # The likelihood of the class, without subtracting nearly equal numbers.
        e = (self.edges - mu[..., None]) / s[..., None]
        low = torch.cat([torch.full_like(e[..., :1], -1e4), e], -1)
        high = torch.cat([e, torch.full_like(e[..., :1], 1e4)], -1)
        index = classes.expand(mu.shape)[..., None]
        low, high = low.gather(-1, index)[..., 0], high.gather(-1, index)[..., 0]
        inside = torch.sigmoid(high) - torch.sigmoid(low)
        by_class = -torch.log(inside.clamp_min(1e-7))
        return (weight * (continuous + by_class)).sum(1) / weight.sum(1)


def _weight(members, rows, columns, gain=1.0):
    bound = gain * math.sqrt(6 / (rows + columns))
    return nn.Parameter(torch.empty(members, rows, columns).uniform_(-bound, bound))


class Stack(nn.Module):
    """Linear layers, SiLU between them, for all members at once."""

    def __init__(self, members, widths):
        super().__init__()
        self.w = nn.ParameterList([_weight(members, a, b) for a, b in zip(widths, widths[1:])])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(members, 1, b)) for b in widths[1:]])

    def forward(self, x):  # [m, n, a]
        for i, (w, b) in enumerate(zip(self.w, self.b)):
            x = x @ w + b
            if i + 1 < len(self.w):
                x = x * torch.sigmoid(x)
        return x


class Scaled(nn.Module):
    """log1p of the large numbers, then mean 0 and deviation 1."""

    def __init__(self, rows, first, last):
        super().__init__()
        self.first, self.last = first, last  # columns that go through log1p
        x = self.logs(torch.tensor(rows))
        std = x.std(0)
        self.register_buffer("mean", x.mean(0))
        self.register_buffer("std", torch.where(std < 1e-6, torch.ones_like(std), std))

    def logs(self, x):
        return torch.cat([x[..., : self.first], torch.log(x[..., self.first : self.last] + 1), x[..., self.last :]], -1)

    def forward(self, x):
        return (self.logs(x) - self.mean) / self.std


class Summary(nn.Module):
    """The ensemble of small MLPs over the summary features."""

    name = "mlp"

    def __init__(self, rows, index, members=16, width=32, depth=2):
        super().__init__()
        self.scale = Scaled(rows.summary[index], 0, LOGS)
        self.stack = Stack(members, [len(SUMMARY)] + depth * [width] + [2])
        self.head, self.members = Ordinal(rows.edges), members

    def raw(self, summary, tokens=None):
        return self.stack(self.scale(summary)[None])

    def forward(self, summary, tokens=None):
        return self.head(self.raw(summary))


def positions(length, width):
    at = np.arange(length)[:, None] / np.power(10000, 2 * (np.arange(width)[None] // 2) / width)
    return np.where(np.arange(width) % 2 == 0, np.sin(at), np.cos(at)).astype(np.float32)


class Sequence(nn.Module):
    """The ensemble of transformer encoders over the layers, one token each.

    Attention is over the layers of one network; padding is masked.
    """

    name = "transformer"
    longest = 1024  # layers; the data has up to 118

    def __init__(self, rows, index, members=4, width=16, layers=2, hidden=32):
        super().__init__()
        d, m = width, members
        self.width, self.layers, self.members = d, layers, m
        self.scale = Scaled(rows.summary[index], 0, LOGS)
        self.token = Scaled(np.concatenate([rows.tokens[i] for i in index])[:, 1:], 2, 4)
        self.embed, self.embed_b = _weight(m, len(TOKEN) - 1, d), nn.Parameter(torch.zeros(m, 1, d))
        self.register_buffer("position", torch.tensor(positions(self.longest, d)))
        self.qkv = nn.ParameterList([nn.ParameterList([_weight(m, d, d) for _ in range(4)]) for _ in range(layers)])
        self.up = nn.ParameterList([_weight(m, d, 2 * d) for _ in range(layers)])
        self.up_b = nn.ParameterList([nn.Parameter(torch.zeros(m, 1, 2 * d)) for _ in range(layers)])
        self.down = nn.ParameterList([_weight(m, 2 * d, d, 0.5) for _ in range(layers)])
        self.stack = Stack(m, [len(SUMMARY) + d] + 2 * [hidden] + [2])
        self.head = Ordinal(rows.edges)

    def raw(self, summary, tokens):  # tokens [n, l, 5]
        m, (n, l, _) = self.members, tokens.shape
        present = tokens[..., 0]  # [n, l]
        bias = ((present - 1) * 1e4)[:, None]  # [n, 1, l]
        x = self.times(self.token(tokens[..., 1:])[None].expand(m, -1, -1, -1), self.embed)
        x = x + self.embed_b[:, None] + self.position[:l]
        for (q, k, v, o), up, up_b, down in zip(self.qkv, self.up, self.up_b, self.down):
            y = self.norm(x)
            score = (self.times(y, q) / math.sqrt(self.width)) @ self.times(y, k).transpose(-1, -2) + bias
            x = x + self.times(torch.softmax(score, -1) @ self.times(y, v), o)
            h = self.times(self.norm(x), up) + up_b[:, None]
            x = x + self.times(torch.relu(h), down)
        x = self.norm(x) * present[..., None]
        pooled = x.sum(2) / present.sum(1, keepdim=True)  # [m, n, d]
        side = self.scale(summary)[None].expand(m, -1, -1)
        return self.stack(torch.cat([side, pooled], -1))

    @staticmethod
    def times(x, w):
        """[m, n, l, a] times [m, a, b]: one product for each member."""
        return (x.flatten(1, 2) @ w).unflatten(1, x.shape[1:3])

    @staticmethod
    def norm(x):
        x = x - x.mean(-1, keepdim=True)
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)

    def forward(self, summary, tokens):
        return self.head(self.raw(summary, tokens))
