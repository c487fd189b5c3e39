"""DLRM (Naumov et al. 2019), with the layers and the three small tables of its published run."""

import torch
from torch import nn

TABLES = (4, 3, 2)  # rows
WIDTH = 64


def _perceptron(*sizes):
    parts = []
    for a, b in zip(sizes, sizes[1:]):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return parts


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = nn.Sequential(*_perceptron(13, 512, 256, 128, WIDTH))
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, WIDTH, mode="sum") for rows in TABLES)
        n = 1 + len(TABLES)
        self.top = nn.Sequential(*_perceptron(WIDTH + n * (n - 1) // 2, 1024, 512, 256, 1)[:-1])
        self.register_buffer("pairs", torch.tril_indices(n, n, -1), persistent=False)

    def forward(self, numbers, categories):
        """numbers: (batch, 13); categories: (batch, tables), a row each. Returns logits."""
        x = self.bottom(numbers)
        rows = [table(categories[:, i:i + 1]) for i, table in enumerate(self.tables)]
        t = torch.stack([x] + rows, 1)
        z = torch.bmm(t, t.transpose(1, 2))
        return self.top(torch.cat([x, z[:, self.pairs[0], self.pairs[1]]], 1)).squeeze(1)
