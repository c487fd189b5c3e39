"""Training of one ensemble on some of the rows."""

import math

import numpy as np
import torch

from data import held_out

RECIPE = {
    # One learning rate down a cosine, Adam, batches of 128.
    "mlp": {"epochs": {"mlp": 300, "cnn": 300}, "rate": 5e-3, "batch": 128},
    # As many as all folds of both designs can do on one core in some 15 minutes.
    "transformer": {"epochs": {"mlp": 40, "cnn": 100}, "rate": 4e-3, "batch": 128},
}


def pad(tokens):
    out = np.zeros((len(tokens), max(map(len, tokens)), tokens[0].shape[1]), dtype=np.float32)
    for i, t in enumerate(tokens):
        out[i, : len(t)] = t
    return torch.tensor(out)


def batches(rng, length, size, by_length):
    """Rows in a new order, cut into batches. With by_length, rows of similar length come together, to save padding."""
    order = rng.permutation(len(length))
    if by_length:
        order = order[np.argsort(length[order] * rng.uniform(0.75, 1.25, len(order)), kind="stable")]
    cut = np.split(order, range(size, len(order), size))
    return [cut[i] for i in rng.permutation(len(cut))] if by_length else cut


def fit(design, rows, index, seed, share=0.1, epochs=None):
    """A fresh ensemble trained on rows[index].

    Each member keeps its own tenth of the groups for validation and takes the
    weights that were best there. Together the members have seen all groups.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = design(rows, index)
    recipe = RECIPE[design.name]
    epochs, size = epochs or recipe["epochs"][rows.family], recipe["batch"]
    validation = np.stack([held_out(rows, index, share, [seed, m]) for m in range(model.members)])
    weight = torch.tensor(~validation, dtype=torch.float32)
    validation = torch.tensor(validation, dtype=torch.float32)
    summary = torch.tensor(rows.summary[index])
    length = np.array([len(rows.tokens[i]) for i in index])
    memory = torch.tensor(rows.memory[index], dtype=torch.float32)
    censored, classes = torch.tensor(rows.censored[index]), torch.tensor(rows.classes[index])
    tokens = pad([rows.tokens[i] for i in index]) if design.name == "transformer" else None

    parameters = list(model.parameters())
    adam = torch.optim.AdamW(parameters, lr=recipe["rate"], weight_decay=1e-3)
    steps = epochs * math.ceil(len(index) / size)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda t: 0.5 + 0.5 * math.cos(math.pi * min(t / steps, 1)))
    best = np.full(model.members, np.inf)
    kept = [p.detach().clone() for p in parameters]

    def losses(at, mask):
        y = model.raw(summary[at], None if tokens is None else tokens[at][:, : length[at].max()])
        return model.head.loss(y, memory[at], censored[at], classes[at], mask[:, at])

    # In parts of similar length, because padding costs time.
    parts = np.array_split(np.argsort(length, kind="stable"), 1 if tokens is None else math.ceil(len(index) / 256))
    shares = [validation[:, at].sum(1) for at in parts]
    for epoch in range(epochs):
        for at in batches(rng, length, size, tokens is not None):
            if len(at) < 8:
                continue
            loss = losses(at, weight).sum()
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 5.0 * model.members)
            adam.step()
            schedule.step()
        # Not while the rate is high: good luck of one member there should not count.
        if epoch >= epochs // 3 and (epoch % 3 == 0 or epoch + 1 == epochs):
            with torch.no_grad():
                now = (sum(losses(at, validation) * n for at, n in zip(parts, shares)) / sum(shares)).numpy()
                for m in np.flatnonzero(now < best):
                    best[m] = now[m]
                    for p, k in zip(parameters, kept):
                        k[m] = p[m]
    with torch.no_grad():
        for p, k in zip(parameters, kept):
            p.copy_(k)
    return model


def predict(model, rows, index):
    tokens = pad([rows.tokens[i] for i in index]) if model.name == "transformer" else None
    with torch.no_grad():
        return model(torch.tensor(rows.summary[index]), tokens).numpy()
