"""Traces the forward pass of timm models on the meta device, without weights.

    python trace_timm.py --out traces.jsonl [--peak] [--size 0] [--verify] [names...]

Writes one JSON object a line and model: the layers of models.Config, the sizes of all
parameters and buffers, and with --peak the peak of a tracker of live tensors. Nothing is
computed and no weights are loaded. Models that are already in the file are skipped.

Every size is split into a part per sample and a fixed part. The batch is a prime number,
and no dimension of a network is a multiple of it. So one pass tells both parts. --verify
repeats the pass with another prime and compares.
"""

import argparse
import gc
import json
import os
import sys
import time
import warnings

import timm
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from modes import Construct, LikeCUDA, Live
from operations import KEEPS_OUTPUT, in_place_type, kind

PRIMES = (1009, 2003)
SMALL = 4096  # bytes: fixed tensors below this that hold no parameter are left out


class Trace(TorchDispatchMode):
    """Lists operations and what autograd keeps of them."""

    def __init__(self, model, x, batch):
        super().__init__()
        self.batch, self.layers = batch, []
        self.owner = {}  # storage -> index of the layer that wrote it last, -1: the input
        self.alive = []  # storages stay alive, so that no new one gets an old identity
        self.fixed = set()  # parameters, buffers, small constants
        self.params = {}
        self.taken = set()
        self.pending, self.keeps = [], []  # kept tensors: without a layer yet, and with one
        for p in model.parameters():
            self.params[self.key(p)] = p.numel()
        for b in model.buffers():
            self.fixed.add(self.key(b))
        self.owner[self.key(x)] = -1

    def key(self, t):
        s = t.untyped_storage()
        self.alive.append(s)
        return s._cdata

    def pack(self, t):
        k = self.key(t)
        if k in self.owner:
            self.pending.append((k, t))
        return t

    def split(self, n):
        """Splits n elements or bytes into a part per sample and a fixed part."""
        return (n // self.batch, 0) if n % self.batch == 0 else (0, n)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self.record(func, args, kwargs, out)
        return out

    def record(self, func, args, kwargs, out):
        ins = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        outs = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        if not outs:
            return
        ikeys, first = [self.key(t) for t in ins], self.key(outs[0])
        mutates = func._schema.is_mutable
        if first in self.fixed or first in self.params or (first in ikeys and not mutates):
            return  # a view, or bookkeeping of a buffer
        params = [k for k in dict.fromkeys(ikeys) if k in self.params]
        fresh = [k for k in params if k not in self.taken]
        known = [k for k in dict.fromkeys(ikeys) if k in self.owner]
        store = outs[0].untyped_storage().nbytes()
        if store == 0:
            return
        whole = store % self.batch != 0
        if whole and store < SMALL and not (fresh or mutates or known):
            self.fixed.add(first)
            return
        name = func._schema.name.split("::")[-1]
        layer = {"type": in_place_type(name) if mutates else kind(name), "op": name}
        if mutates and first in known:
            known.remove(first)
            known.insert(0, first)
            layer["in_place"] = True
        self.settle(set(known))
        layer["inputs"] = [self.owner[k] for k in known] or [-1]
        layer["out"] = self.shape(outs[0], store)
        if whole:
            layer["whole"] = True
        if fresh:
            layer["params"] = [self.params[k] for k in fresh]
            self.taken.update(fresh)
        if name == "convolution":
            self.convolution(layer, args)
        elif "max_pool" in name or "avg_pool2d" == name:
            layer["kernel"] = [int(v) for v in args[1]]
        layer["_in"], layer["_out"] = known, first
        i = len(self.layers)
        self.layers.append(layer)
        for t in outs:
            k = self.key(t)
            if k not in self.fixed and k not in self.params:
                self.owner[k] = i
        layer["_all"] = {self.key(t) for t in outs}

    def shape(self, t, store):
        """Shape of one sample, or its number of elements of 4 bytes."""
        dims = list(t.shape)
        if store != t.numel() * 4 or not dims:
            n = self.split(store)
            return [max(1, (n[0] or n[1]) // 4)]
        for i, d in enumerate(dims):
            if d % self.batch == 0 and d:
                dims[i] = d // self.batch
                if dims[i] == 1:
                    del dims[i]
                break
        return dims or [1]

    def convolution(self, layer, args):
        weight, stride, transposed, groups = args[1], args[3], args[6], args[8]
        layer["type"] = "conv_transpose" if transposed else "conv"
        layer["kernel"] = list(weight.shape[2:])
        if groups % self.batch == 0:
            groups //= self.batch  # each sample has its own weights, as groups
        layer["stride"], layer["groups"] = int(stride[0]), int(groups)

    def settle(self, next_inputs):
        """Assigns the tensors kept since the last operation to layers."""
        last, claimed = len(self.layers) - 1, set()
        for k, t in self.pending:
            made = last >= 0 and k in self.layers[last]["_all"]
            saver = made and (k != self.layers[last]["_out"] or self.layers[last]["op"] in KEEPS_OUTPUT)
            if saver and k not in claimed:
                claimed.add(k)
                self.keeps.append((last, k, t))
            elif k in next_inputs:
                self.keeps.append((last + 1, k, t))
            elif last >= 0:
                self.keeps.append((last, k, t))
        self.pending = []

    def finish(self, model, out):
        self.settle(set())
        seen, placed, rest = set(), set(), []
        for i, k, t in self.keeps:
            layer = self.layers[min(i, len(self.layers) - 1)]
            keeps = layer.setdefault("keeps", {})
            seen.add(k)
            if k == layer["_out"]:
                keeps["output"] = True
            elif k in layer["_in"]:
                keeps["inputs"] = sorted({*keeps.get("inputs", []), layer["_in"].index(k)})
            else:
                rest.append((layer, k, t))
                continue
            placed.add(k)
        makers = {layer["_out"]: layer for layer in self.layers}
        for layer, k, t in rest:
            if k in placed:
                continue
            placed.add(k)
            if k in makers:
                makers[k].setdefault("keeps", {})["output"] = True
                continue
            for name, n in zip(("bytes", "whole"), self.split(t.untyped_storage().nbytes())):
                if n:
                    layer["keeps"][name] = layer["keeps"].get(name, 0) + n
        sizes = {k: s.nbytes() for s in self.alive for k in [s._cdata] if k in seen}
        parts = [self.split(n) for n in sizes.values()]
        layers = [{a: b for a, b in l.items() if a[0] != "_"} for l in self.layers]
        unused = [n for k, n in self.params.items() if k not in self.taken]
        return {"layers": layers, "unused": unused,
                "params": sum(self.params.values()),
                "buffers": sum(b.numel() * b.element_size() for b in model.buffers()),
                "kept": sum(p[0] for p in parts), "kept_fixed": sum(p[1] for p in parts)}


def build(name, size):
    kwargs = {"img_size": size} if size else {}
    try:
        with Construct():
            model = timm.create_model(name, pretrained=False, **kwargs)
    except TypeError:
        with Construct():
            model = timm.create_model(name, pretrained=False)
    return model.to("meta").train()


def forward(model, shape, batch):
    x = torch.empty((batch, *shape), device="meta")
    t = Trace(model, x, batch)
    with LikeCUDA(), torch.autograd.graph.saved_tensors_hooks(t.pack, lambda y: y), t:
        out = model(x)
    leaves = [o for o in tree_leaves(out) if isinstance(o, torch.Tensor)]
    return t.finish(model, leaves)


def live(model, shape, batch=8):
    """MiB of live tensors after the forward pass, and at most."""
    x = torch.empty((batch, *shape), device="meta")
    t = Live(x, *model.parameters(), *model.buffers())
    with LikeCUDA(), t:
        out = model(x)
        after = t.now
        leaves = [o for o in tree_leaves(out) if isinstance(o, torch.Tensor) and o.requires_grad]
        sum(o.sum() for o in leaves).backward()
    return [round(v / 2**20, 3) for v in (after, t.peak)]


def trace(name, args):
    model = build(name, args.size)
    shape = tuple(model.default_cfg["input_size"])
    if args.size:
        shape = (shape[0], args.size, args.size)
    r = forward(model, shape, PRIMES[0])
    if args.verify:
        r["verified"] = forward(model, shape, PRIMES[1]) == {k: v for k, v in r.items() if k != "verified"}
    if args.peak:
        r["live"] = live(model, shape)
    return {"name": name, "input": list(shape), **r}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--names", help="file of names, one a line")
    p.add_argument("--size", type=int, default=0, help="side of the image; 0: the model's own")
    p.add_argument("--peak", action="store_true")
    p.add_argument("--verify", action="store_true")
    p.add_argument("--until", type=float, default=float("inf"), help="stop at this Unix time")
    p.add_argument("model", nargs="*")
    args = p.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    names = args.model or (open(args.names).read().split() if args.names else timm.list_models())
    done = set()
    if os.path.exists(args.out):
        done = {json.loads(line)["name"] for line in open(args.out)}
    print("timm", timm.__version__, "torch", torch.__version__, len(names), "models", file=sys.stderr)
    gc.freeze()
    with open(args.out, "a") as f:
        for name in names:
            if name in done:
                continue
            if time.time() > args.until:
                break
            begin = time.time()
            try:
                r = trace(name, args)
            except Exception as e:  # a model that cannot be traced is reported, not fatal
                r = {"name": name, "error": f"{type(e).__name__}: {e}"[:300]}
            f.write(json.dumps(r, separators=(",", ":")) + "\n")
            f.flush()
            print(name, r.get("error", "ok"), f"{time.time() - begin:.1f}s", file=sys.stderr, flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
