"""Peak memory and step time of a list of trainings, each in a process of its own, as CSV.

    python -m carma_train.measure --models resnet50,bert_base --batches 16,32 --out measured.csv

Memory is in bytes, as PyTorch and the driver report it. On the CPU its columns are NA. context_bytes is
the GPU's memory in use at the end, less PyTorch's reserved memory and the memory in use before: the CUDA
context with its libraries, if nobody else allocates meanwhile.
"""

import csv
import json
import os
import re
import subprocess
import sys

from .catalogue import MODELS, NETWORKS, OPTIMIZERS, PRECISIONS, find, nearest
from .usage import Parser, UsageError, complain, number, word

NA = "NA"
# Fields in the result line of a training, and their columns.
TOLD = {
    "size": "size", "dataset": "dataset", "optimizer": "optimizer", "precision": "precision", "networks": "networks", "device": "device",
    "torch": "torch", "steps": "steps", "step_seconds": "step_seconds", "samples_per_s": "samples_per_s",
    "max_memory_reserved": "max_reserved_bytes", "max_memory_allocated": "max_allocated_bytes", "device_used": "device_used_bytes",
}
COLUMNS = ["model", "batch_size", "status"] + list(TOLD.values()) + ["used_before_bytes", "context_bytes", "driver"]


def parser():
    p = Parser(prog="carma-measure", description=__doc__.split("\n")[0])
    p.add_argument("--models", type=models, default=list(MODELS), help="comma-separated (default: all)")
    p.add_argument("--batches", type=batches, help="batch sizes, comma-separated (default: the model's)")
    p.add_argument("--steps", type=number(1, 1 << 30), default=13, help="of each training; the first 3 are not timed (default 13)")
    p.add_argument("--limit", type=number(1, 1e6, float), default=600.0, metavar="SECONDS", help="of one training (default 600)")
    p.add_argument("--device", type=word(("auto", "cuda", "cpu")), default="auto", help="auto (default), cuda or cpu")
    p.add_argument("--optimizer", type=word(OPTIMIZERS), default="adam", help="(default adam)")
    p.add_argument("--precision", type=word(PRECISIONS), default="fp32", help="(default fp32)")
    p.add_argument("--networks", type=word(NETWORKS), default="auto", help="(default auto)")
    p.add_argument("--out", metavar="FILE", help="write here (default: standard output); rows are written as they are measured")
    p.add_argument("more", nargs="*", metavar="-- ARG", help="further arguments of each training")
    return p


def models(text):
    names = text.split(",")
    for n in names:
        if find(n) is None:
            raise UsageError(f"--models: unknown model {n!r}; the nearest is {nearest(n, MODELS)}; all: {', '.join(MODELS)}")
    return [find(n).name for n in names]


def batches(text):
    return [number(1, 1 << 30)(b) for b in text.split(",")]


def main(argv=None):
    try:
        return measure(parser().parse_args(argv))
    except UsageError as e:
        complain(e)


def measure(args):
    try:
        out = open(args.out, "w", newline="", encoding="utf-8") if args.out else sys.stdout
    except OSError as e:
        raise UsageError(f"--out {args.out}: {e.strerror}") from None
    failed = 0
    with out:
        rows = csv.DictWriter(out, COLUMNS, restval=NA, lineterminator="\n")
        rows.writeheader()
        for model in args.models:
            for batch in args.batches or [MODELS[model].batch]:
                row = one(args, model, batch)
                rows.writerow({k: NA if v is None else v for k, v in row.items()})
                out.flush()
                failed += row["status"] not in ("ok", "oom")
                print(f"{model} batch {batch}: {row['status']}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def one(args, model, batch):
    """A row: a training's result, or how it failed."""
    before, driver = in_use() if args.device != "cpu" else (None, None)
    command = [sys.executable, "-m", "carma_train", model, "--batch-size", str(batch), "--steps", str(args.steps), "--device", args.device, "--gpus", "1",
               "--optimizer", args.optimizer, "--precision", args.precision, "--networks", args.networks, "--report", "1e9"] + args.more
    row = {"model": model, "batch_size": batch, "used_before_bytes": before, "driver": driver}
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=args.limit)
    except subprocess.TimeoutExpired:
        return dict(row, status=f"took longer than {args.limit:g} s")
    lines = [line for line in ended.stdout.splitlines() if line.startswith("result ")]
    if ended.returncode or not lines:
        return dict(row, status=failure(ended))
    told = json.loads(lines[-1][len("result "):])
    row.update({column: told[key] for key, column in TOLD.items()}, status="ok")
    if told["device_used"] is not None and before is not None:
        row["context_bytes"] = told["device_used"] - told["memory_reserved"] - before
    if told["device_used"] is None:  # it ran on the CPU after all
        row.update(used_before_bytes=None, driver=None)
    return row


def failure(ended):
    if re.search(r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory", ended.stderr):
        return "oom"
    last = (ended.stderr.strip() or "no output").splitlines()[-1]
    return f"exit {ended.returncode}: {last[:120]}"


def in_use():
    """Bytes in use on the training's GPU, and the driver's version; None if nvidia-smi does not tell."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    command = ["nvidia-smi", "-i", first, "--query-gpu=memory.used,driver_version", "--format=csv,noheader,nounits"]
    try:
        used, driver = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=30, check=True).stdout.split(",")
        return int(used) << 20, driver.strip()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None, None


if __name__ == "__main__":
    sys.exit(main())
