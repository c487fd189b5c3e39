"""Rows of the GPUMemNet data as networks, classes and groups."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from features import Layer, Network, summary, tokens

# Edges of the classes in MiB, the upper edge not included; a last class, above
# the last edge, has none.
EDGES = {"mlp": [1000, 2000, 3000, 4000, 5000], "cnn": [8000, 16000, 24000, 32000, 40000]}
# Names in the data. Identity is the activation of a network without any.
TYPES = {
    "conv2d": "conv", "bn2d": "batch_norm", "bn": "batch_norm", "leakyrelu": "leaky_relu", "avgpool": "mean",
    "identity": "view", "softmax": "softmax",
}


@dataclass
class Rows:
    family: str
    edges: list
    networks: list
    summary: np.ndarray  # [n, features]
    tokens: list  # of [layers, token]
    memory: np.ndarray  # MiB; an edge where censored
    censored: np.ndarray  # ran out of memory: it needs more than the last edge
    classes: np.ndarray
    groups: np.ndarray  # rows of one architecture have the same number
    step2: np.ndarray  # the rows of the published figures
    dropped: dict


def _layers(text):
    out = []
    for item in text.split(";"):
        kind, size, params = item.split(":")
        out.append(Layer(TYPES.get(kind, kind), int(size), [int(params)] if int(params) else []))
    return out


def load(folder, family):
    edges = EDGES[family]
    networks, memory, censored, keys, step2 = [], [], [], [], []
    dropped = {"residual or dense": 0, "no layer list": 0, "no memory reading": 0}
    with open(Path(folder) / f"{family}.csv", newline="") as f:
        for row in csv.DictReader(f):
            if row["architecture"] in ("residual", "dense"):
                dropped["residual or dense"] += 1
                continue
            if not row["layers"]:
                dropped["no layer list"] += 1
                continue
            mib = float(row["max_gpu_mem_mib"] or 0)
            if mib <= 0:
                dropped["no memory reading"] += 1
                continue
            layers = _layers(row["layers"])
            oom = row.get("status") == "OOM_CRASH"
            size = int(row["input_size"])
            elements = size if family == "mlp" else int(row["input_channels"]) * size * size
            networks.append(Network(family, int(row["batch_size"]), [elements], layers))
            memory.append(edges[-1] if oom else mib)
            censored.append(oom)
            # The skeleton. Batch, image size, activation, dropout and batch
            # norm may differ within a group.
            if family == "mlp":
                key = (size, *(p.out for p in layers if p.type == "linear"))
            else:
                key = (row["architecture"], row["conv_layers"], row["base_filters"])
            keys.append(key)
            step2.append(row.get("step", "2") == "2")
    memory, censored = np.array(memory), np.array(censored)
    number = {key: i for i, key in enumerate(sorted(set(keys)))}
    return Rows(
        family, edges, networks, np.stack([summary(n) for n in networks]), [tokens(n) for n in networks], memory,
        censored, np.searchsorted(edges, memory, side="right"), np.array([number[k] for k in keys]), np.array(step2),
        {k: v for k, v in dropped.items() if v})


def folds(rows, k, seed):
    """Fold of each row. A group is in one fold; classes are spread evenly."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(rows.groups.max() + 1)
    members = {g: [] for g in groups}
    for i, g in enumerate(rows.groups):
        members[g].append(i)
    worst = {g: max(rows.classes[i] for i in members[g]) for g in groups}
    fold = np.zeros(len(rows.groups), dtype=int)
    counts = np.zeros((k, len(rows.edges) + 1))
    for g in groups:
        to = min(range(k), key=lambda f: (counts[f, worst[g]], counts[f].sum(), f))
        for i in members[g]:
            fold[i] = to
            counts[to, rows.classes[i]] += 1
    return fold


def held_out(rows, index, share, seed):
    """Mask over index for validation: whole groups, about this share of them."""
    groups = np.unique(rows.groups[index])
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(groups)[: max(1, math.ceil(share * len(groups)))]
    return np.isin(rows.groups[index], chosen)
