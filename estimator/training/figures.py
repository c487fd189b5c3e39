"""Learns to estimate a training of which only a few figures are known.

Reads the table that `bin/lab/features -figures` writes (one row per
measured training of the public GPUMemNet and CARMA data) and writes

  estimator/figures/figures.onnx   two sets of gradient-boosted trees: the median
                                   and an upper quantile of log((measured - context) / scale)
  estimator/figures/card.json      data, split, bounds, errors on networks that were not learned from

Runs that ended out of memory are neither learned from nor used for the bounds:
an estimate is for a training that fits into the GPU. The card has the number of
such runs whose bound says that they may not fit. Rows that clean() of residual.py
marks are neither learned from nor scored.

Each row is used with and without the size of its input and the number of its
layers. A network is in one fold at all its batch sizes. The real models are
never learned from: they test another kind of networks.

    python3 estimator/training/figures.py figures.csv estimator/figures
"""

import json
import sys
from itertools import product
from pathlib import Path

import lightgbm
import numpy as np
import onnx
import pandas as pd
from onnx import compose
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType
from onnxruntime import InferenceSession
from residual import clean
from sklearn.model_selection import GroupKFold

FOLDS, SEED = 5, 20261121
CONFIDENCES = [0.5, 0.8, 0.9, 0.95, 0.975, 0.99]
META = ["set", "environment", "family", "group", "truncated", "measured", "context", "capacity", "scale", "tracked"]
FAMILIES = ["mlp", "cnn", "transformer"]
# Which optional figures are known, beside parameters, batch size and family.
KNOWN = list(product([False, True], repeat=2))  # input, layers
HIDDEN = {"input": ["log_input", "log_batch_input"], "layers": ["log_layers", "log_params_layer"]}
UNKNOWN = -1.0


def trees(quantile):
    return lightgbm.LGBMRegressor(
        objective="quantile", alpha=quantile, n_estimators=300, num_leaves=15, learning_rate=0.06, min_child_samples=20,
        subsample=0.8, subsample_freq=1, colsample_bytree=0.8, random_state=SEED, n_jobs=1,
        deterministic=True, force_row_wise=True, verbose=-1)


def masked(x, names, known):
    x = x.copy()
    for there, columns in zip(known, HIDDEN.values()):
        if not there:
            x[:, [names.index(c) for c in columns]] = UNKNOWN
    return x


def fit(rows, names):
    """Trees for the median and for 0.95. Each row is used with every set of known figures."""
    x = rows[names].to_numpy(np.float32)
    extra = np.maximum(rows.measured - rows.context, 2**23)  # at least a few blocks of the allocator
    y = np.log(extra / rows.scale).to_numpy()
    # An error of the memory above the context counts by its share of the total.
    # The families have equal weights.
    weight = (extra / (rows.context + extra)).to_numpy() / rows.groupby("family").measured.transform("size").to_numpy()
    weight *= len(rows) / weight.sum()
    xs = np.concatenate([masked(x, names, k) for k in KNOWN])
    return [trees(q).fit(xs, np.tile(y, len(KNOWN)), sample_weight=np.tile(weight, len(KNOWN))) for q in (0.5, 0.95)]


def answer(models, rows, names, known):
    """Point and unbounded upper answer in bytes."""
    x = masked(rows[names].to_numpy(np.float32), names, known)
    point, upper = (rows.context.to_numpy() + rows.scale.to_numpy() * np.exp(m.predict(x)) for m in models)
    return np.maximum(point, rows.context + rows.scale * 0.8).to_numpy(), upper  # 16 of 20 bytes a parameter: the least


def bounds(score):
    s = np.sort(score)
    ranks = {c: int(np.ceil((len(s) + 1) * c)) for c in CONFIDENCES}
    return [{"confidence": c, "log": round(float(s[k - 1]), 5)} for c, k in ranks.items() if k <= len(s)]


def figures(rows, point, upper, died=None):
    """died are the bounds of runs that ran out of memory, divided by the GPU's memory."""
    measured = rows.measured.to_numpy()
    upper = np.minimum(np.maximum(upper, point), rows.capacity.to_numpy())  # a bound above the GPU's memory means all of it
    e = np.abs(point / measured - 1)
    out = {"mean": e.mean(), "median": np.median(e), "under": (point < measured).mean(),
           "bound_under": (upper < measured).mean(), "bound_overhead": (upper / measured - 1).mean()}
    if died is not None and len(died):
        out["out_of_memory_told"] = (died >= 1).mean()
    return {"rows": int(len(e))} | ({"out_of_memory": len(died)} if died is not None else {}) | {k: round(float(v), 4) for k, v in out.items()}


def conformal(rows, point, upper):
    """The 95 % bound of each fold, from the scores of the others."""
    score, out = np.log(rows.measured.to_numpy() / upper), np.zeros(len(rows))
    for learn, test in GroupKFold(FOLDS, shuffle=True, random_state=SEED + 1).split(rows, None, rows.group):
        s = np.sort(score[learn])
        out[test] = upper[test] * np.exp(s[int(np.ceil((len(s) + 1) * 0.95)) - 1])
    return out


def main(table, out):
    d = pd.read_csv(table, keep_default_na=False, na_values=[""])
    names = [c for c in d.columns if c not in META]
    d["truncated"] = d.truncated.astype(bool)
    clean(d)
    d = d[d.environment.notna() & (d.set != "xmem")].reset_index(drop=True)
    d[names] = d[names].round(3)  # rounded like Go's features, whatever digits the file has
    real = d[(d.set == "real") & ~d.truncated].reset_index(drop=True)
    rows = d[d.set != "real"].reset_index(drop=True)
    sound = (~rows.truncated & rows.clean).to_numpy()
    held = {k: (np.zeros(len(rows)), np.zeros(len(rows))) for k in KNOWN}
    for learn, test in GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(rows, None, rows.group):
        models = fit(rows.iloc[learn[sound[learn]]], names)
        for k in KNOWN:
            for into, value in zip(held[k], answer(models, rows.iloc[test], names, k)):
                into[test] = value
    models = fit(rows[sound], names)
    card = {"features": names, "folds": FOLDS, "seed": SEED, "confidences": CONFIDENCES, "groups": []}
    for family, k in product(FAMILIES, KNOWN):
        at = (rows.family == family).to_numpy() & sound
        mine, point, upper = rows[at].reset_index(drop=True), held[k][0][at], held[k][1][at]
        x = masked(mine[names].to_numpy(np.float32), names, k)
        limits = bounds(np.log(mine.measured.to_numpy() / upper))
        shift = np.exp(next(b["log"] for b in limits if b["confidence"] == 0.95))
        dead = ((rows.family == family) & rows.truncated & ~rows.unfilled).to_numpy()
        group = {"family": family, "input": k[0], "layers": k[1], "networks": int(mine.group.nunique()),
                 "least": [round(float(v), 5) for v in x.min(0)], "most": [round(float(v), 5) for v in x.max(0)], "bounds": limits,
                 "held_out": figures(mine, point, conformal(mine, point, upper), (held[k][1] * shift / rows.capacity)[dead].to_numpy())}
        other = real[real.family == family].drop_duplicates(["environment", "group", "measured"], keep="last")
        if len(other):
            p, u = answer(models, other, names, k)
            group["real"] = figures(other, p, u * shift)
        card["groups"].append(group)
        print(family, k, group["held_out"], group.get("real"), flush=True)
    # Learned rows lie beside the cuts of the trees. Other rows may lie on a cut, where single precision decides.
    save(models, rows[sound][names].to_numpy(np.float32), names, Path(out), card)


def save(models, x, names, out, card):
    parts = []
    for name, m in zip(("middle", "upper"), models):
        g = convert_lightgbm(m, initial_types=[("features", FloatTensorType([None, len(names)]))], target_opset=15)
        g = compose.add_prefix(g, name + "_", rename_inputs=False, rename_edges=True)
        g.graph.output[0].name, old = name, g.graph.output[0].name
        for node in g.graph.node:
            node.output[:] = [name if o == old else o for o in node.output]
            node.input[:] = ["features" if i.endswith("_features") else i for i in node.input]
        parts.append(g)
    both = parts[0]
    both.graph.node.extend(parts[1].graph.node)
    both.graph.initializer.extend(parts[1].graph.initializer)
    both.graph.output.append(parts[1].graph.output[0])
    both.producer_name, both.doc_string = "carma", "log((measured - context) / scale) of GPU memory; see card.json"
    onnx.checker.check_model(both)
    data = both.SerializeToString()
    got = InferenceSession(data, providers=["CPUExecutionProvider"]).run(["middle", "upper"], {"features": x})
    for g, m in zip(got, models):
        assert np.max(np.abs(g.ravel() - m.predict(x))) < 1e-4
    (out / "figures.onnx").write_bytes(data)
    (out / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    print(len(data), "bytes")
    golden(models, names, out / "testdata" / "golden.json")


# Invented cases: family, parameters, batch size, elements of a sample, layers; 0: unknown.
OWN = [("cnn", 25_557_032, 64, 150_528, 54), ("cnn", 25_557_032, 64, 0, 0), ("cnn", 3_000_000, 8, 0, 30), ("cnn", 70_000, 512, 3_072, 0),
       ("mlp", 1_234_567, 100, 700, 4), ("mlp", 40_000_000, 900, 0, 0), ("transformer", 86_000_000, 32, 150_528, 50), ("transformer", 5_000_000, 1, 0, 0)]


def golden(models, names, path):
    """The answers of LightGBM's trees for these cases, for the test in Go."""
    cases = []
    for family, params, batch, size, layers in OWN:
        known = {"family_code": FAMILIES.index(family), "log_params": np.log(params), "log_batch": np.log(batch)}
        if size:
            known |= {"log_input": np.log(size), "log_batch_input": np.log(batch * size)}
        if layers:
            known |= {"log_layers": np.log(layers), "log_params_layer": np.log(params / layers + 1)}
        x = np.array([[round(known.get(n, UNKNOWN), 3) for n in names]], dtype=np.float32)
        middle, upper = (float(m.predict(x)[0]) for m in models)
        cases.append({"family": family, "params": params, "batch": batch, "input": size, "layers": layers,
                      "features": x[0].tolist(), "middle": middle, "upper": upper})
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
