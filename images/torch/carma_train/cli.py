"""The command line: arguments, checked before PyTorch is imported."""

import json
import math
import os
import sys

from .catalogue import DATASETS, MODELS, NETWORKS, OPTIMIZERS, PRECISIONS, find, fits, nearest
from .usage import Parser, UsageError, complain, number, word

# The smallest image side for a network's windows, in pixels.
SMALLEST = {"inception_v3": 75, "xception": 33, "unet": 32, "maskrcnn": 64, "vgg16": 32}
BATCH = "CARMA_BATCH_SIZE"


def parser():
    p = Parser(prog="carma-train", description="Trains one of carma's workloads, on random numbers unless --data names a data set.",
               epilog="models: " + " ".join(MODELS))
    p.add_argument("model", nargs="?", metavar="MODEL", help="what to train")
    p.add_argument("--describe", action="store_true", help="print what would be trained and its number of parameters as JSON; without MODEL: of each")
    p.add_argument("--batch-size", type=number(1, 1 << 30), help=f"samples of one step, on all GPUs together (default: {BATCH}, else the model's)")
    p.add_argument("--dataset", type=word(DATASETS), help="image size, classes and samples of an epoch: " + ", ".join(DATASETS))
    p.add_argument("--data", metavar="PATH", help="read this data set: a folder of pictures for each class, or text files")
    p.add_argument("--image-size", type=number(1, 1 << 14), help="side of an image in pixels")
    p.add_argument("--seq-len", type=number(2, 1 << 17), help="tokens of a sample")
    p.add_argument("--layers", type=number(1, 1000), default=0, help="cut a transformer to its first layers, to try it out")
    p.add_argument("--regions", type=number(4, 4096), default=512, help="of an image that Mask R-CNN learns from (default 512)")
    p.add_argument("--epochs", type=number(1e-9, 1e9, float), help="length of the training (default 1, if neither steps nor minutes are given)")
    p.add_argument("--steps", type=number(1, 1 << 50), help="end after this many steps, those before a checkpoint included")
    p.add_argument("--minutes", type=number(1e-9, 1e9, float), help="end after this time")
    p.add_argument("--optimizer", type=word(OPTIMIZERS), default="adam", help=", ".join(OPTIMIZERS) + " (default adam)")
    p.add_argument("--lr", type=number(0, 1e6, float), default=1e-4, help="learning rate (default 0.0001)")
    p.add_argument("--precision", type=word(PRECISIONS), default="fp32", help="fp32; amp: autocast; bf16: weights too (default fp32)")
    p.add_argument("--networks", type=word(NETWORKS), default="auto", help="the libraries' definitions, own ones, or auto: the libraries' where installed")
    p.add_argument("--device", type=word(("auto", "cuda", "cpu")), default="auto", help="auto (default): the GPUs if there are any")
    p.add_argument("--gpus", type=number(1, 1024), default=0, help="processes, one for each GPU (default: all visible GPUs, one on the CPU)")
    p.add_argument("--synthetic", type=word(("device", "cpu")), default="device", help="where random samples are made; cpu: by a data loader")
    p.add_argument("--workers", type=number(0, 1024), help="processes of the data loader (default: up to 4 if /dev/shm has 1 GiB, else 0)")
    p.add_argument("--seed", type=number(0, (1 << 31) - 1), default=0, help="of weights, dropout and data (default 0)")
    p.add_argument("--report", type=number(0, 1e9, float), default=10.0, metavar="SECONDS", help="print loss and speed this often; 0: each step (default 10)")
    p.add_argument("--checkpoint", metavar="FOLDER", help="save there on SIGTERM or SIGUSR1 and at the end, and go on from there")
    p.add_argument("--save-every", type=number(1, 1 << 50), default=0, metavar="STEPS", help="save this often too")
    return p


def checked(argv):
    """The arguments with all defaults filled in."""
    job = parser().parse_args(argv)
    if job.model is None and job.describe:
        return job
    if job.model is None:
        raise UsageError("name a model: " + ", ".join(MODELS))
    model = find(job.model)
    if model is None:
        raise UsageError(f"unknown model {job.model!r}; the nearest is {nearest(job.model, MODELS)}; all: {', '.join(MODELS)}")
    job.model = model.name
    job.dataset = job.dataset or model.dataset
    if not fits(model, job.dataset):
        raise UsageError(f"--dataset {job.dataset}: not for {model.name}; " + ", ".join(d for d in DATASETS if fits(model, d)))
    job.batch_size = job.batch_size or from_environment() or model.batch
    job.size = sized(job, model)
    if job.layers and not model.text:
        raise UsageError(f"--layers: {model.name} is no transformer; leave it out")
    if job.save_every and not job.checkpoint:
        raise UsageError("--save-every: where to? add --checkpoint FOLDER")
    if not (job.epochs or job.steps or job.minutes):
        job.epochs = 1
    for name in ("epochs", "minutes", "lr", "report"):
        if getattr(job, name) is not None and not math.isfinite(getattr(job, name)):
            raise UsageError(f"--{name}: not a number")
    return job


def from_environment():
    text = os.environ.get(BATCH)
    if not text:
        return None
    try:
        return number(1, 1 << 30)(text)
    except Exception as e:
        raise UsageError(f"{BATCH}: {e}") from None


def sized(job, model):
    """The side of the images or the number of tokens."""
    if model.text:
        if job.image_size:
            raise UsageError(f"--image-size: {model.name} takes text; --seq-len")
        if model.longest and (job.seq_len or 0) > model.longest:
            raise UsageError(f"--seq-len {job.seq_len}: {model.name} has {model.longest} positions; at most {model.longest}")
        return job.seq_len or model.size
    if job.seq_len:
        raise UsageError(f"--seq-len: {model.name} takes no text" + ("; --image-size" if model.size else ""))
    if not job.image_size:
        return DATASETS[job.dataset].size or model.size
    size, least = job.image_size, SMALLEST.get(model.name, 1)
    if model.kind == "clicks" or model.dataset == "mnist":
        raise UsageError(f"--image-size: {model.name} " + ("takes no images" if model.kind == "clicks" else "takes 28 pixels only") + "; leave it out")
    if size < least:
        raise UsageError(f"--image-size {size}: too small for {model.name}; at least {least}")
    if model.kind == "segments" and size % 32:
        raise UsageError(f"--image-size {size}: not a multiple of 32; the nearest is {max(32, round(size / 32) * 32)}")
    return size


def placed(job):
    """The device and the number of processes."""
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if job.device == "cuda" and not gpus:
        raise UsageError("--device cuda: PyTorch sees no GPU here; --device cpu")
    if job.device == "auto":
        job.device = "cuda" if gpus else "cpu"
    world = job.gpus or max(1, gpus if job.device == "cuda" else 1)
    if job.device == "cuda" and world > gpus:
        raise UsageError(f"--gpus {world}: PyTorch sees {gpus}; at most {gpus}")
    if job.batch_size % world:
        raise UsageError(f"--batch-size {job.batch_size}: not a multiple of the {world} GPUs; the nearest is {max(1, round(job.batch_size / world)) * world}")
    if job.workers is None:
        from .data import worker_processes

        job.workers = worker_processes() if job.data or job.synthetic == "cpu" else 0
        if not job.workers and (job.data or job.synthetic == "cpu"):
            print("data loader: no worker processes, /dev/shm is small; --shm-size 8G gives it room", flush=True)
    return world


def describe(argv, job):
    """A line for the model, or for each model if none is named."""
    from . import networks

    if job.model is None:
        return max(describe(argv, checked([name] + argv)) for name in MODELS)
    model, dataset = MODELS[job.model], DATASETS[job.dataset]
    try:
        count, origin = networks.parameters(job.model, dataset.classes, model.vocabulary, job.networks)
    except ImportError as e:
        raise UsageError(f"--networks {job.networks}: {e}") from None
    print(json.dumps({"model": job.model, "dataset": job.dataset, "batch_size": job.batch_size, "size": job.size, "classes": dataset.classes,
                      "epoch": dataset.samples, "optimizer": job.optimizer, "precision": job.precision, "networks": origin, "params": count}))
    return 0


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        job = checked(argv)
        if job.describe:
            return describe(argv, job)
        world = placed(job)
        from . import parallel, train

        return parallel.run(job, world, train.train)
    except UsageError as e:
        complain(e)
