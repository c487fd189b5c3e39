"""Trains the models of estimator/rivals/gpumemnet on the GPUMemNet data.

    gpumemnet.py --data DATA --out estimator/rivals/gpumemnet [--family cnn] [--design mlp]

For each design it trains 5 folds, for the figures, then the shipped model, on
all rows. The card has the accuracy of the folds. Go selects a design by it.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from data import folds, load
from designs import Sequence, Summary
from export import export, restore
from features import SUMMARY, from_config, summary, tokens
from train import fit, predict

SEED, FOLDS = 42, 5


DESIGNS = {"mlp": Summary, "transformer": Sequence}


def stem(family, design):
    return family if design == "mlp" else f"{family}-{design}"


def final(rows, design, accuracy, out):
    model = fit(DESIGNS[design], rows, np.arange(len(rows.classes)), SEED)
    path = out / f"{stem(rows.family, design)}.onnx"
    export(model, path)
    path.with_suffix(".json").write_text(json.dumps({
        "family": rows.family, "design": design, "accuracy": accuracy, "edges_mib": rows.edges, "features": SUMMARY,
        "least": rows.summary.min(0).tolist(), "most": rows.summary.max(0).tolist(),
    }, indent=1) + "\n")
    session = onnxruntime.InferenceSession(path)
    worst = 0.0
    for i in range(0, len(rows.classes), 20):  # one by one, as it will be asked
        fed = {"features": rows.summary[i : i + 1]} | ({} if design == "mlp" else {"tokens": rows.tokens[i][None]})
        worst = max(worst, np.abs(session.run(["probabilities"], fed)[0] - predict(model, rows, np.array([i]))).max())
    print(path.name, path.stat().st_size, "bytes; onnx against torch, largest difference", float(worst), flush=True)


def golden(out):
    """Features and answers of our own configurations, for the test in Go."""
    file = out / "testdata" / "golden.json"
    cases = json.loads(file.read_text())
    for case in cases:
        net = from_config(case["config"])
        x, t = summary(net), tokens(net)
        session = onnxruntime.InferenceSession(out / f"{net.family}.onnx")
        case["features"] = [float(v) for v in x]
        case["probabilities"] = session.run(None, {"features": x[None]})[0][0].tolist()
        # Computed by torch, from the weights in the graph that Go runs.
        model = restore(out / f"{net.family}-transformer.onnx")
        with torch.no_grad():
            raw = model.raw(torch.tensor(x[None]), torch.tensor(t[None]))
            place, width = model.head.split(raw)
        case["transformer"] = {
            "tokens": t.tolist(), "place": place[:, 0].tolist(), "width": width[:, 0].tolist(),
            "probabilities": model.head(raw)[0].tolist(),
        }
    file.write_text(json.dumps(cases, indent=1) + "\n")


def macro_f1(confusion):
    """The mean F1 of the classes that occur, true or predicted."""
    hit, true, said = np.diag(confusion), confusion.sum(1), confusion.sum(0)
    there = true + said > 0
    return float((2 * hit[there] / (true + said)[there]).mean())


def validate(rows, design):
    fold = folds(rows, FOLDS, SEED)
    result = {"family": rows.family, "design": design, "rows": len(rows.classes), "dropped": rows.dropped, "folds": []}
    k = len(rows.edges) + 1
    total = np.zeros((k, k), dtype=int)
    for i in range(FOLDS):
        test = np.flatnonzero(fold == i)
        model = fit(DESIGNS[design], rows, np.flatnonzero(fold != i), 100 + i)
        said, true = predict(model, rows, test).argmax(1), rows.classes[test]
        seen = ~rows.censored[test]
        confusion = np.zeros((k, k), dtype=int)
        np.add.at(confusion, (true, said), 1)
        total += confusion
        result["folds"].append({
            "rows": len(test), "accuracy": float((said == true).mean()), "macro_f1": macro_f1(confusion),
            "accuracy_without_oom": float((said == true)[seen].mean()), "under": float((said < true).mean()),
            "accuracy_step2": float((said == true)[rows.step2[test]].mean()),
        })
        print(rows.family, design, i, result["folds"][-1], flush=True)
    result["confusion"] = total.tolist()
    for figure in ["accuracy", "macro_f1", "under"]:
        result[figure] = float(np.mean([f[figure] for f in result["folds"]]))
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--out", required=True, type=Path)
    p.add_argument("--family", choices=["mlp", "cnn"])
    p.add_argument("--design", choices=DESIGNS)
    p.add_argument("--golden", action="store_true", help="only the golden file, from the models there")
    a = p.parse_args()
    torch.set_num_threads(1)
    if a.golden:
        return golden(a.out)
    for family in [a.family] if a.family else ["cnn", "mlp"]:
        rows = load(a.data, family)
        for design in [a.design] if a.design else DESIGNS:
            start = time.monotonic()
            result = validate(rows, design)
            (a.out / f"{stem(family, design)}-folds.json").write_text(json.dumps(result, indent=1) + "\n")
            final(rows, design, result["accuracy"], a.out)
            print(family, design, f"{time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
