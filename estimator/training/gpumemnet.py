"""Trains the models of estimator/gpumemnet on the GPUMemNet data.

    gpumemnet.py --data DATA --out estimator/gpumemnet [--family cnn]

First the models that ship, from all rows; then 5 folds, for the figures.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from data import folds, load
from designs import Summary
from export import save
from features import LOGS, SUMMARY, from_config, summary
from train import fit, predict

SEED, FOLDS = 42, 5


def final(rows, out):
    model = fit(Summary, rows, np.arange(len(rows.classes)), SEED)
    path = out / f"{rows.family}.onnx"
    save(model, path)
    (out / f"{rows.family}.json").write_text(json.dumps({
        "family": rows.family, "edges_mib": rows.edges, "features": SUMMARY,
        "least": rows.summary.min(0).tolist(), "most": rows.summary.max(0).tolist(),
    }, indent=1) + "\n")
    session = onnxruntime.InferenceSession(path)
    got = session.run(None, {"features": rows.summary})[0]
    want = predict(model, rows, np.arange(len(rows.classes)))
    print(rows.family, "onnx against torch, largest difference", float(np.abs(got - want).max()), flush=True)
    return session


def golden(out):
    """Features and answers for our own configurations, for the test in Go."""
    file = out / "testdata" / "golden.json"
    cases = json.loads(file.read_text())
    for case in cases:
        net = from_config(case["config"])
        x = summary(net)
        session = onnxruntime.InferenceSession(out / f"{net.family}.onnx")
        case["features"] = [float(v) for v in x]
        case["probabilities"] = session.run(None, {"features": x[None]})[0][0].tolist()
    file.write_text(json.dumps(cases, indent=1) + "\n")


def validate(rows):
    fold = folds(rows, FOLDS, SEED)
    result = {"family": rows.family, "rows": len(rows.classes), "dropped": rows.dropped, "folds": []}
    k = len(rows.edges) + 1
    confusion = np.zeros((k, k), dtype=int)
    for i in range(FOLDS):
        test = np.flatnonzero(fold == i)
        model = fit(Summary, rows, np.flatnonzero(fold != i), 100 + i)
        said, true = predict(model, rows, test).argmax(1), rows.classes[test]
        seen = ~rows.censored[test]
        np.add.at(confusion, (true, said), 1)
        result["folds"].append({
            "rows": len(test), "accuracy": float((said == true).mean()),
            "accuracy_without_oom": float((said == true)[seen].mean()), "under": float((said < true).mean()),
            "accuracy_step2": float((said == true)[rows.step2[test]].mean()),
        })
        print(rows.family, i, result["folds"][-1], flush=True)
    result["confusion"] = confusion.tolist()
    result["accuracy"] = float(np.mean([f["accuracy"] for f in result["folds"]]))
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--out", required=True, type=Path)
    p.add_argument("--family", choices=["mlp", "cnn"])
    p.add_argument("--golden", action="store_true", help="only the golden file, from the models there")
    a = p.parse_args()
    torch.set_num_threads(1)
    if a.golden:
        return golden(a.out)
    for family in [a.family] if a.family else ["cnn", "mlp"]:
        rows = load(a.data, family)
        final(rows, a.out)
        (a.out / f"{family}-folds.json").write_text(json.dumps(validate(rows), indent=1) + "\n")


if __name__ == "__main__":
    main()
