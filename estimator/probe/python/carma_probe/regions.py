"""Functions whose operators are recorded as one layer, and checkpointing."""

import functools

from . import hooks


def region(kind, call, rule, **info):
    from . import record

    t = record.current()
    if t is None or t.region is not None:
        return call()
    t.open(kind).info.update(info)
    try:
        out = call()
    except BaseException:
        t.region = None
        raise
    hooks.quietly(t.close)(out, rule)
    t.region = None
    return out


def default(t, n, main, out):
    """What layers of this type keep is known."""
    t.layers[n].pop("keeps", None)


def _mask(t, n, main, out):
    t.kept += out.numel()
    keeps = t.layers[n].setdefault("keeps", {})
    if main.batched and out.numel() % t.batch == 0:
        keeps["bytes"] = out.numel() // t.batch
    else:
        keeps["whole"] = out.numel()


def install(torch):
    f = torch.nn.functional
    for name in "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split():
        if hasattr(f, name):
            setattr(f, name, _wrapped(getattr(f, name), "dropout", _mask))
    f.cross_entropy = _wrapped(f.cross_entropy, "cross_entropy", None)
    if hasattr(f, "scaled_dot_product_attention"):
        _attention(torch, f)
    _checkpoint(torch)


def _wrapped(call, kind, rule):
    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        return region(kind, lambda: call(*args, **kwargs), rule)

    return wrapper


def _attention(torch, f):
    """Fused on a GPU, whatever the CPU does."""
    real = f.scaled_dot_product_attention

    @functools.wraps(real)
    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **kwargs):
        def call():
            return real(query, key, value, attn_mask, 0.0, is_causal, **kwargs)

        def rule(t, n, main, out):
            for tensor in (query, key, value):
                t._keep(n, t.look(tensor))
            t._keep(n, main)
            rows = out.numel() // max(out.shape[-1], 1)
            keeps = t.layers[n]["keeps"]
            keeps["bytes"] = keeps.get("bytes", 0) + 4 * rows // t.batch
            t.kept += 4 * rows

        heads = int(query.shape[-3]) if query.dim() > 3 else 1
        return region("attention", call, rule, heads=heads)

    f.scaled_dot_product_attention = attention


def _checkpoint(torch):
    from . import record

    def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, context_fn=None,
                   determinism_check=None, debug=None, **kwargs):
        hooks.train["checkpointing"] = True
        t = record.current()
        if t is None or t.block:
            return function(*args, **kwargs)
        t.flush()
        t.blocks += 1
        t.block = t.blocks
        try:
            return function(*args, **kwargs)
        finally:
            t.pending = []
            t.block = 0

    torch.utils.checkpoint.checkpoint = checkpoint
