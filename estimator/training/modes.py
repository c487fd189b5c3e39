"""Modes of torch: to build a model, to run it as on a GPU, and to watch it."""

import weakref

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Construct(TorchFunctionMode):
    """Makes large tensors on the meta device; small ones stay real, as code reads them."""

    FACTORIES = {torch.empty, torch.zeros, torch.ones, torch.randn, torch.rand, torch.full}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in self.FACTORIES:
            kwargs["device"] = "meta"
        return func(*args, **kwargs)


class LikeCUDA(TorchFunctionMode):
    """Calls the fused operators that the same code would call on a GPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention and args[0].dim() == 4:
            return self.attention(*args, **kwargs)
        if func in (F.dropout, torch.dropout):
            return self.dropout(*args, **kwargs)
        return func(*args, **kwargs)

    @staticmethod
    def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **_):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype)
            attn_mask = attn_mask.expand(q.shape[0], q.shape[2], q.shape[1], k.shape[1])
        out = torch.ops.aten._scaled_dot_product_efficient_attention(
            *(x.transpose(1, 2) for x in (q, k, v)), attn_mask, True, dropout_p, is_causal, scale=scale)
        return out[0]

    @staticmethod
    def dropout(input, p=0.5, training=True, inplace=False):
        if not training or p == 0:
            return input
        return torch.native_dropout(input, p, True)[0]


class Live(TorchDispatchMode):
    """The bytes of all storages that Python objects refer to, now and at most."""

    def __init__(self, *tensors):
        super().__init__()
        self.now = self.peak = 0
        self.seen = {}
        for t in tensors:
            self.track(t)

    def track(self, t):
        s = t.untyped_storage()
        key, n = s._cdata, s.nbytes()
        if key in self.seen:
            return
        self.now += n
        self.peak = max(self.peak, self.now)
        self.seen[key] = weakref.ref(s, lambda _: self.drop(key, n))

    def drop(self, key, n):
        self.seen.pop(key, None)
        self.now -= n

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor):
                self.track(t)
        return out
