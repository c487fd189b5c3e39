"""Learns the correction of the simulated memory and calibrates its bounds.

Reads the table that `go run ./estimator/fit` writes (one row per measured
training of the public GPUMemNet and CARMA data: features, simulated and
measured memory), and writes

  estimator/residual/residual.onnx   gradient-boosted trees, log(measured / simulated)
  estimator/methods/calibration.json bounds by environment and family of networks
  estimator/residual/card.json       data, split, errors on rows that were not learned from

Trees are trained on whole folds; no network is in two folds. All seeds are
fixed. Rows of runs that died of out-of-memory are left out: their memory is no
peak.

    python3 estimator/training/residual.py features.csv .
"""

import json
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType
from onnxruntime import InferenceSession
from sklearn.model_selection import GroupKFold

FOLDS = 5
SEED = 20261121
CONFIDENCES = [0.5, 0.8, 0.9, 0.95, 0.975, 0.99]
LEARNED = [("a100-2024", "cnn"), ("a100-2024", "mlp"), ("a100-timm", "cnn"), ("a100-timm", "transformer")]
META = ["set", "environment", "family", "group", "row", "truncated", "measured", "point", "tracked"]


def model():
    return lightgbm.LGBMRegressor(
        objective="l1", n_estimators=500, num_leaves=15, learning_rate=0.04, min_child_samples=8,
        subsample=0.8, subsample_freq=1, colsample_bytree=0.6, random_state=SEED, n_jobs=1,
        deterministic=True, force_row_wise=True, verbose=-1,
    )


def out_of_fold(x, y, groups, weight, sound):
    """Predictions for every row by a model that saw no row of its group."""
    out = np.zeros(len(y))
    for learn, test in GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(x, y, groups):
        learn = learn[sound[learn]]
        out[test] = model().fit(x[learn], y[learn], sample_weight=weight[learn]).predict(x[test])
    return out


def bounds(scores):
    """Split-conformal quantiles: the ceil((n+1) c)-th smallest score."""
    s = np.sort(np.asarray(scores))
    out = []
    for c in CONFIDENCES:
        k = int(np.ceil((len(s) + 1) * c))
        if k <= len(s):
            out.append({"confidence": c, "log": round(float(s[k - 1]), 5)})
    return out


def errors(measured, point, scores=None):
    """Figures of a set of rows; with scores the bound at 95 % of held-out folds."""
    e = np.abs(point / measured - 1)
    out = {"rows": int(len(e)), "mean": round(float(e.mean()), 4), "median": round(float(np.median(e)), 4),
           "under": round(float((point < measured).mean()), 4)}
    return out


def bounded(measured, point, groups):
    """Underestimates and overhead of the 95 % bound, each fold bounded by the others; few rows are left out model by model."""
    upper = np.zeros(len(point))
    score = np.log(measured / point)
    names = np.unique(groups)
    folds = len(names) if len(point) < 100 else FOLDS
    for learn, test in GroupKFold(folds, shuffle=True, random_state=SEED).split(point, None, groups):
        s = np.sort(score[learn])
        k = min(int(np.ceil((len(s) + 1) * 0.95)), len(s))
        upper[test] = point[test] * np.exp(max(s[k - 1], 0))
    return {"bound_under": round(float((upper < measured).mean()), 4),
            "bound_overhead": round(float((upper / measured - 1).mean()), 4)}


def main(table, root):
    d = pd.read_csv(table, keep_default_na=False, na_values=[""])
    d["family"] = d["family"].fillna("")
    names = [c for c in d.columns if c not in META]
    d = d[~d.truncated.astype(bool) & d.environment.notna()].reset_index(drop=True)
    known = d[d.point > 0].reset_index(drop=True)

    learn = known[[(e, f) in LEARNED for e, f in zip(known.environment, known.family)]].reset_index(drop=True)
    x = learn[names].to_numpy(np.float32)
    y = np.log(learn.measured / learn.point).to_numpy()
    size = learn.groupby(["environment", "family"]).measured.transform("size").to_numpy()
    weight = len(learn) / len(LEARNED) / size
    # Runs that needed hardly more than their tensors died early; they are
    # scored, but nothing is learned from them.
    sound = ((learn.tracked == 0) | (learn.measured > learn.tracked + 2**30)).to_numpy()
    held = out_of_fold(x, y, learn.group.to_numpy(), weight, sound)
    learn["corrected"] = learn.point * np.exp(held)

    final = model().fit(x[sound], y[sound], sample_weight=weight[sound])
    onnx = convert_lightgbm(final, initial_types=[("features", FloatTensorType([None, len(names)]))], target_opset=15)
    onnx.producer_name, onnx.doc_string = "carma", "log(measured / simulated GPU memory); see card.json"
    data = onnx.SerializeToString()
    got = InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"features": x})[0].ravel()
    assert np.max(np.abs(got - final.predict(x))) < 1e-4

    groups, card = [], {"features": names, "folds": FOLDS, "seed": SEED, "sets": []}
    for (env, fam), rows in known.groupby(["environment", "family"]):
        if rows.set.iloc[0] == "real":
            rows = rows.drop_duplicates(["group", "measured"], keep="last")
        g = {"environment": env, "family": fam, "rows": len(rows), "models": rows.group.nunique(),
             "residual": (env, fam) in LEARNED, "plain": bounds(np.log(rows.measured / rows.point))}
        figures = {"environment": env, "family": fam, "simulated": errors(rows.measured, rows.point)}
        if rows.set.iloc[0] != "real":
            figures["simulated"] |= bounded(rows.measured.to_numpy(), rows.point.to_numpy(), rows.group.to_numpy())
        if g["residual"]:
            c = learn[(learn.environment == env) & (learn.family == fam)]
            g["corrected"] = bounds(np.log(c.measured / c.corrected))
            figures["corrected"] = errors(c.measured, c.corrected) | bounded(
                c.measured.to_numpy(), c.corrected.to_numpy(), c.group.to_numpy())
        if rows.set.iloc[0] != "real":  # too few of one family: bounded together, below
            groups.append(g)
        card["sets"].append(figures)
    real = known[known.set == "real"].drop_duplicates(["environment", "group", "measured"], keep="last")
    card["sets"].append({"environment": "", "family": "", "simulated": errors(real.measured, real.point) | bounded(
        real.measured.to_numpy(), real.point.to_numpy(), real.group.to_numpy())})
    # Real models are few: those of one family that has enough of them are
    # bounded together, whatever the environment, the others all together.
    for fam, rows in real.groupby("family"):
        if len(rows) >= 39:  # fewer would be bounded by their worst
            groups.append({"environment": "", "family": fam, "environments": sorted(rows.environment.unique()), "rows": len(rows),
                           "models": rows.group.nunique(), "residual": False, "plain": bounds(np.log(rows.measured / rows.point))})
            card["sets"].append({"environment": "", "family": fam, "simulated": errors(rows.measured, rows.point) | bounded(
                rows.measured.to_numpy(), rows.point.to_numpy(), rows.group.to_numpy())})
    groups.append({"environment": "", "family": "", "environments": sorted(real.environment.unique()), "rows": len(real), "models": real.group.nunique(), "residual": False,
                   "plain": bounds(np.log(real.measured / real.point))})

    tracked = d[(d.set == "timm") & (d.tracked > 0)].reset_index(drop=True)
    factor, base, held = tracker(tracked)
    calibration = {"groups": groups, "tracker": {"base_mib": round(base, 1), "factor": round(factor, 5), "group": {
        "environment": "a100-timm", "family": "", "rows": len(tracked), "models": tracked.group.nunique(), "residual": False,
        "plain": bounds(np.log(tracked.measured / held))}}}
    card["sets"].append({"environment": "a100-timm", "family": "", "tracker": errors(tracked.measured, held) | bounded(
        tracked.measured.to_numpy(), held, tracked.group.to_numpy())})

    root = Path(root)
    (root / "estimator/residual/residual.onnx").write_bytes(data)
    (root / "estimator/residual/card.json").write_text(json.dumps(card, indent=1) + "\n")
    (root / "estimator/methods/calibration.json").write_text(json.dumps(calibration, indent=1) + "\n")
    print(json.dumps(card["sets"], indent=1))


def tracker(rows):
    """A line through tracked peaks that has the least mean relative error."""
    t, m = rows.tracked.to_numpy() / 2**20, rows.measured.to_numpy() / 2**20

    def fit(t, m):
        w = 1 / m
        for _ in range(50):  # least absolute relative deviations, reweighted
            a = np.linalg.lstsq(np.stack([t, np.ones_like(t)], 1) * w[:, None], m * w, rcond=None)[0]
            w = 1 / m / np.sqrt(np.maximum(np.abs(a[0] * t + a[1] - m) / m, 1e-3))
        return a

    held = np.zeros(len(rows))
    for learn, test in GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(t, None, rows.group):
        a = fit(t[learn], m[learn])
        held[test] = a[0] * t[test] + a[1]
    a = fit(t, m)
    return float(a[0]), float(a[1]), held * 2**20


if __name__ == "__main__":
    main(*sys.argv[1:])
