"""Learns the correction of the simulated memory and calibrates its bounds.

Reads the table that `bin/lab/features` writes (one row per measured
training of the public GPUMemNet and CARMA data: features, simulated and
measured memory), and writes

  test/lab/estimator/residual/residual.onnx   gradient-boosted trees: log(measured / simulated), and how far off that is
  estimator/methods/calibration.json bounds by environment, family of networks and batch size
  test/lab/estimator/residual/card.json       data, split, errors on rows that were not learned from

Trees are trained on whole folds; no network is in two folds. All seeds are
fixed. Rows of runs that ended out of memory are left out, because their memory
is no peak, and so are those that clean() marks.

    python3 estimator/training/residual.py features.csv .
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
from sklearn.model_selection import GroupKFold

FOLDS = 5
SEED = 20261121
CONFIDENCES = [0.5, 0.8, 0.9, 0.95, 0.975, 0.99]
BATCHES = [2**i for i in range(11)]  # those for which there is a bound; others take the nearest
ENOUGH = 300  # rows that a bound at a batch size rests on, where there are so many
SURE = 0.25  # standard deviations that the level of a bound is raised by,
MANY = 100  # if it rests on so many rows; with fewer, that would make the worst row the bound
LEAST = 0.002  # least error that the spread tells from none
MOST = 0.2  # largest spread; maxSpread in estimator/methods
FEW = 130  # fewer rows are left out model by model, not in folds
LEARNED = [("a100-2024", "cnn"), ("a100-2024", "mlp"), ("a100-timm", "cnn"), ("a100-timm", "transformer")]
META = ["set", "environment", "family", "group", "row", "truncated", "measured", "point", "tracked", "capacity"]


def model():
    return lightgbm.LGBMRegressor(
        objective="l1", n_estimators=500, num_leaves=15, learning_rate=0.04, min_child_samples=8,
        subsample=0.8, subsample_freq=1, colsample_bytree=0.6, random_state=SEED, n_jobs=1,
        deterministic=True, force_row_wise=True, verbose=-1,
    )


def out_of_fold(make, x, y, groups, weight, sound):
    """Predictions for every row by a model that saw no row of its group."""
    out = np.zeros(len(y))
    for learn, test in GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(x, y, groups):
        learn = learn[sound[learn]]
        out[test] = make().fit(x[learn], y[learn], sample_weight=weight[learn]).predict(x[test])
    return out


def clean(d):
    """Marks rows that are no peak of their training, by a rule that needs no estimate.

    A row of the timm collection is left out
    - if it died early: its memory is less than 1 GiB above what its tensors alone take, or
    - if something else was on the GPU: its memory is at or above that of a larger batch of
      the same network that did not die early.
    A run that is marked as out of memory below 20,000 MiB did not fill the card's 40 GB: it
    does not count as out of memory.
    """
    d["batch"] = np.exp(d.log_batch).round().astype(int)
    timm = d.set == "timm"
    d["died"] = timm & (d.tracked > 0) & (d.measured < d.tracked + 2**30)
    d["above"] = False
    for _, rows in d[timm & ~d.died].groupby("group"):
        rows = rows.sort_values("batch")
        least = rows.measured[::-1].cummin()[::-1].shift(-1)  # of the larger batches
        d.loc[rows.index[rows.measured >= least], "above"] = True
    d["clean"] = ~(d.died | d.above)
    d["unfilled"] = timm & d.truncated & (d.measured < 20_000 * 2**20)
    fits = timm & ~d.truncated
    return {"rows": int(fits.sum()), "died": int((fits & d.died).sum()), "above": int((fits & d.above & ~d.died).sum()),
            "out_of_memory": int((timm & d.truncated).sum()), "unfilled": int(d.unfilled.sum())}


def nearness(batches, batch):
    """How much rows at these batch sizes count for the bound at a batch size.

    As little as possible of rows that are further away: the weight halves with each half,
    whole, two, ... doublings, the least that gives rows worth ENOUGH. Fewer rows count alike.
    """
    far = np.abs(np.log2(np.maximum(batches, 1)) - np.log2(batch))
    for half in [0.25, 0.5, 1, 2, 4, 8, 16]:
        w = 0.5 ** (far / half)
        if w.sum() >= ENOUGH:
            return w
    return np.ones(len(far))


def quantile(scores, weights, confidence):
    """The bound that holds with this confidence also on a group of rows as small as this one.

    Split-conformal for weighted rows: the row that is bounded counts as the largest, with
    weight 1. The level is raised by SURE standard deviations of a share that is counted on
    so many rows, so that the bound holds for most choices of these.
    """
    order = np.argsort(scores)
    s, w = np.asarray(scores)[order], np.asarray(weights)[order]
    n = w.sum() ** 2 / (w**2).sum()
    sure = SURE if n >= MANY else 0
    level = min(confidence + sure * np.sqrt(confidence * (1 - confidence) / n), 1)
    k = int(np.searchsorted(np.cumsum(w), level * (w.sum() + 1) - 1e-9))
    return s[min(k, len(s) - 1)]


def bounds(scores, batches):
    """Bounds at each batch size of BATCHES: quantiles of the scores of rows near it."""
    out = []
    for batch in BATCHES:
        w = nearness(batches, batch)
        out.append({"batch": batch, "quantiles": [
            {"confidence": c, "log": round(float(max(quantile(scores, w, c), 0)), 5)} for c in CONFIDENCES]})
    return out


def upper(table, batches, spread):
    """The logarithm of the 95 % bound over the point: that of the nearest batch size of the table."""
    at = {b["batch"]: next(q["log"] for q in b["quantiles"] if q["confidence"] == 0.95) for b in table}
    near = np.clip(2 ** np.round(np.log2(np.maximum(batches, 1))).astype(int), BATCHES[0], BATCHES[-1])
    return np.array([at[b] for b in near]) * spread


def held_bounds(rows, score, spread):
    """The 95 % bound of each row, from rows of other networks; few rows are left out model by model."""
    out, names = np.zeros(len(rows)), rows.group.nunique()
    folds = names if len(rows) < FEW else FOLDS
    b, s = rows.batch.to_numpy(), rows.clean.to_numpy()
    for learn, test in GroupKFold(folds, shuffle=True, random_state=SEED).split(rows, None, rows.group):
        learn = learn[s[learn]]
        out[test] = upper(bounds(score[learn] / spread[learn], b[learn]), b[test], spread[test])
    return out


def errors(rows, point, log=None):
    """Figures of a set of rows; with log the logarithm of the bound over the point."""
    m = rows.measured.to_numpy()
    e = np.abs(point / m - 1)
    out = {"rows": len(m), "mean": e.mean(), "median": np.median(e), "under": (point < m).mean()}
    if log is not None:
        # A bound above the GPU's memory means all of it.
        u = np.minimum(point * np.exp(log), np.maximum(rows.capacity.to_numpy(), point))
        out |= {"bound_under": (u < m).mean(), "bound_overhead": (u / m - 1).mean()}
    return {k: v if k == "rows" else round(float(v), 4) for k, v in out.items()}


def by_batch(rows, point, log):
    """Figures by octaves of the batch size, and of rows that the cleaning left out too."""
    octave = np.floor(np.log2(rows.batch)).astype(int).to_numpy()
    out = []
    for o in np.unique(octave):
        at, sound = octave == o, rows.clean.to_numpy()
        if (at & sound).sum() >= 20:
            out.append({"from": int(2**o), "to": int(2 ** (o + 1) - 1), "cleaned": errors(rows[at & sound], point[at & sound], log[at & sound]),
                        "all": errors(rows[at], point[at], log[at])})
    return out


def spread_model():
    """Trees for the logarithm of how far off the corrected estimate is."""
    return lightgbm.LGBMRegressor(
        objective="l2", n_estimators=300, num_leaves=8, learning_rate=0.04, min_child_samples=25, subsample=0.8, subsample_freq=1,
        colsample_bytree=0.6, random_state=SEED, n_jobs=1, deterministic=True, force_row_wise=True, verbose=-1)


def off(residual):
    return np.log(np.abs(residual) + LEAST)


def learned(learn, names):
    """Adds what the correction and the spread say of each row that they were not learned from; returns both models."""
    x = learn[names].to_numpy(np.float32)
    y = np.log(learn.measured / learn.point).to_numpy()
    weight = (len(learn) / len(LEARNED) / learn.groupby(["environment", "family"]).measured.transform("size")).to_numpy()
    sound, groups = learn.clean.to_numpy(), learn.group.to_numpy()
    learn["log"] = out_of_fold(model, x, y, groups, weight, sound)
    learn["spread"] = np.minimum(np.exp(out_of_fold(spread_model, x, off(y - learn.log), groups, weight, sound)), MOST)
    learn["corrected"] = learn.point * np.exp(learn.log)
    return (model().fit(x[sound], y[sound], sample_weight=weight[sound]),
            spread_model().fit(x[sound], off(y - learn.log)[sound], sample_weight=weight[sound]))


def set_of(rows, where, point, score, spread, name, batches=True):
    """The figures of one set for the card. Without batches the bound does not know the batch size."""
    log = held_bounds(rows if batches else rows.assign(batch=1), score, spread)
    sound = rows.clean.to_numpy()
    figures = {name: errors(rows[sound], point[sound], log[sound])}
    if not sound.all():
        figures[name + "_all"] = errors(rows, point, log)
    if len(rows) >= FEW:
        figures[name + "_by_batch"] = by_batch(rows, point, log)
    return where | figures


def main(table, root):
    d = pd.read_csv(table, keep_default_na=False, na_values=[""])
    names = [c for c in d.columns if c not in META]
    d["family"] = d["family"].fillna("")
    d["truncated"] = d.truncated.astype(bool)
    cleaning = clean(d)
    d["group"] = d.group.where(d.set != "xmem", d.group.str.split("|").str[0])
    d = d[~d.truncated & d.environment.notna()].reset_index(drop=True)
    known = d[d.point > 0].reset_index(drop=True)

    learn = known[[(e, f) in LEARNED for e, f in zip(known.environment, known.family)]].reset_index(drop=True)
    models = learned(learn, names)
    data = exported(models, learn[learn.clean][names].to_numpy(np.float32), names)

    groups, corrected, card = [], [], {"features": names, "folds": FOLDS, "seed": SEED, "cleaning": cleaning, "sets": []}
    for (env, fam), rows in learn.groupby(["environment", "family"]):
        rows = rows.reset_index(drop=True)
        at = rows.clean.to_numpy()
        plain, rest = np.log(rows.measured / rows.point).to_numpy(), np.log(rows.measured / rows.corrected).to_numpy()
        spread, batches = rows.spread.to_numpy(), rows.batch.to_numpy()
        groups.append({"environment": env, "family": fam, "rows": int(at.sum()), "models": rows[at].group.nunique(), "plain": bounds(plain[at], batches[at])})
        corrected.append({"environment": env, "family": fam, "bounds": bounds(rest[at] / spread[at], batches[at])})
        where = {"environment": env, "family": fam}
        card["sets"].append(set_of(rows, where, rows.point.to_numpy(), plain, np.ones(len(rows)), "simulated")
                            | set_of(rows, where, rows.corrected.to_numpy(), rest, spread, "corrected"))
    groups += unlearned(known, card)

    tracked = d[(d.set == "timm") & (d.tracked > 0)].reset_index(drop=True)
    factor, base, held = tracker(tracked)
    score = np.log(tracked.measured / held).to_numpy()
    at = tracked.clean.to_numpy()
    calibration = {"groups": groups, "tracker": {"base_mib": round(base, 1), "factor": round(factor, 5), "group": {
        "environment": "a100-timm", "family": "", "rows": int(at.sum()), "models": tracked[at].group.nunique(),
        "plain": bounds(score[at], np.ones(at.sum()))[:1]}}}
    card["sets"].append(set_of(tracked, {"environment": "a100-timm", "family": ""}, held, score, np.ones(len(tracked)), "tracker", batches=False))

    root = Path(root)
    lab = root / "test/lab/estimator/residual"
    (lab / "residual.onnx").write_bytes(data)
    (lab / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    (lab / "calibration.json").write_text(json.dumps(corrected, indent=1) + "\n")
    (root / "estimator/methods/calibration.json").write_text(json.dumps(calibration, indent=1) + "\n")
    print(json.dumps(card, indent=1))


def unlearned(known, card):
    """Groups of runs of real models, on which no correction was learned.

    A family of which enough runs were measured has a bound for all environments. For what
    is left, each model counts once, by its worst run: a model of a new kind is one of many.
    """
    real = known[known.set.isin(["real", "xmem"])].drop_duplicates(["environment", "group", "batch", "measured"], keep="last")
    real = real[~real.duplicated(["environment", "group", "measured"], keep="last")].reset_index(drop=True)
    groups = [group_of(rows, fam) for fam, rows in real.groupby("family") if len(rows) >= 39]  # with fewer, the worst row would be the bound
    groups.append(group_of(worst(real), "", real))
    card["sets"] += left_out(real)
    return groups


def worst(real):
    """The worst run of each model."""
    return real.loc[np.log(real.measured / real.point).groupby(real.group).idxmax()]


def group_of(rows, family, of=None):
    of = rows if of is None else of
    return {"environment": "", "family": family, "environments": sorted(of.environment.unique()), "rows": len(of), "models": of.group.nunique(),
            "plain": bounds(np.log(rows.measured / rows.point).to_numpy(), rows.batch.to_numpy())}


def left_out(real):
    """Figures of the published workloads, those of our own on an H100, and xMem's runs: each model bounded by the others, by its family's bound or that of all models."""
    log = np.zeros(len(real))
    for name, test in real.groupby("group"):
        others = real[real.group != name]
        family = others[others.family == test.family.iloc[0]]
        if len(family) < 39:
            family = worst(others)
        table = bounds(np.log(family.measured / family.point).to_numpy(), family.batch.to_numpy())
        log[test.index] = upper(table, test.batch.to_numpy(), 1)
    out = []
    place = real.set.where(real.environment != "h100-2026-11", "h100-2026-11")
    for name, fam in product(["real", "h100-2026-11", "xmem"], ["", "cnn", "transformer"]):
        at = ((place == name) & ((real.family == fam) | (fam == ""))).to_numpy()
        out.append({"environment": name, "family": fam, "simulated": errors(real[at], real.point.to_numpy()[at], log[at])})
    return out


def exported(models, x, names):
    """Both models as one ONNX graph with the outputs log and spread."""
    parts = []
    for name, m in zip(("log", "spread"), models):
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
    both.producer_name, both.doc_string = "carma", "log(measured / simulated GPU memory), and the logarithm of how far off that is; see card.json"
    onnx.checker.check_model(both)
    data = both.SerializeToString()
    got = InferenceSession(data, providers=["CPUExecutionProvider"]).run(["log", "spread"], {"features": x})
    for g, m in zip(got, models):
        assert np.max(np.abs(g.ravel() - m.predict(x))) < 1e-4
    return data


def tracker(rows):
    """The line through tracked peaks with the least mean relative error."""
    t, m, sound = rows.tracked.to_numpy() / 2**20, rows.measured.to_numpy() / 2**20, rows.clean.to_numpy()

    def fit(t, m):
        w = 1 / m
        for _ in range(50):  # least absolute relative deviations, reweighted
            a = np.linalg.lstsq(np.stack([t, np.ones_like(t)], 1) * w[:, None], m * w, rcond=None)[0]
            w = 1 / m / np.sqrt(np.maximum(np.abs(a[0] * t + a[1] - m) / m, 1e-3))
        return a

    held = np.zeros(len(rows))
    for learn, test in GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(t, None, rows.group):
        learn = learn[sound[learn]]
        a = fit(t[learn], m[learn])
        held[test] = a[0] * t[test] + a[1]
    a = fit(t[sound], m[sound])
    return float(a[0]), float(a[1]), held * 2**20


if __name__ == "__main__":
    main(*sys.argv[1:])
