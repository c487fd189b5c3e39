"""The most bytes that tensors of a program take at once, in its first two training steps, without the probe's record:

    python live.py ../python ../../training scripts/nanogpt.py

prints JSON. The program runs with tensors without values, autocast, backward and the optimizer's step are PyTorch's
own, and a dispatch mode sees each storage and its end. Storages of less than 65,536 numbers, which keep their values,
are not counted. Optimizers run as on a GPU (foreach)."""

import json
import runpy
import sys

import torch

sys.path[:0] = sys.argv[1:3]
from carma_probe import cuda, loaders, state, values
from transformers_steps import memory_mode

real_autocast = torch.autocast
cuda.install(torch, 1)
loaders.install(torch)


class Autocast(real_autocast):
    def __init__(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
        dtype = dtype or torch.float16
        super().__init__("cpu", torch.bfloat16 if dtype == torch.float16 else dtype, enabled, cache_enabled)


class Scaler:
    def __init__(self, *args, **kwargs):
        pass

    scale = staticmethod(lambda loss: loss)
    step = staticmethod(lambda optimizer, *args, **kwargs: optimizer.step(*args, **kwargs))
    unscale_ = update = staticmethod(lambda *args, **kwargs: None)


torch.autocast = torch.amp.autocast = Autocast
torch.amp.GradScaler = torch.cuda.amp.GradScaler = Scaler
steps = 0


def counted(cls):
    init, step = cls.__init__, cls.step

    def __init__(self, *args, **kwargs):
        kwargs.pop("fused", None)
        init(self, *args, **dict(kwargs, foreach=True))

    def stepped(self, *args, **kwargs):
        global steps
        step(self, *args, **kwargs)
        steps += 1
        if steps == 2 * int(sys.argv[4] if len(sys.argv) > 4 else 1):
            parameters = [p for p in self.param_groups[0]["params"]]
            print(json.dumps({"peak": memory.peak, "trained": sum(p.numel() for g in self.param_groups for p in g["params"]),
                              "first": len(parameters)}))
            sys.stdout.flush()
            import os

            os._exit(0)

    cls.__init__, cls.step = __init__, stepped


for name in ("Adam", "AdamW", "SGD"):
    counted(getattr(torch.optim, name))
clip = torch.nn.utils.clip_grad_norm_
torch.nn.utils.clip_grad_norm_ = lambda parameters, most, **kwargs: clip(parameters, most, foreach=True)
# A GPU's dropout keeps a byte for each number.
torch.nn.functional.dropout = lambda x, p=0.5, training=True, inplace=False: torch.native_dropout(x, p, training)[0] if training and p else x

values.install(torch)
memory = memory_mode()
note = memory.note
memory.note = lambda t: note(t) if values.without(t) else None
memory.__enter__()
script, sys.argv = sys.argv[3], sys.argv[3:4]
sys.path.insert(0, script.rsplit("/", 1)[0])
runpy.run_path(script, run_name="__main__")
