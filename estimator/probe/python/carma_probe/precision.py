"""Records mixed precision without using it. Everything is computed in the
weights' own precision; shapes and kept tensors are the same."""

import functools

from . import hooks


def install(torch):
    class autocast:
        def __init__(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
            if isinstance(device_type, bool):  # torch.cuda.amp.autocast(enabled)
                device_type, enabled = "cuda", device_type
            self.device, self.on = str(device_type), bool(enabled)
            self.dtype = str(dtype or "torch.float16").replace("torch.", "")

        def __enter__(self):
            if self.on and self.device.startswith("cuda") and self.dtype in ("float16", "bfloat16"):
                hooks.train["amp"] = True
            return self

        def __exit__(self, *args):
            return False

        def __call__(self, call):
            @functools.wraps(call)
            def wrapper(*args, **kwargs):
                with self:
                    return call(*args, **kwargs)

            return wrapper

    class cuda_autocast(autocast):
        def __init__(self, enabled=True, dtype=None, cache_enabled=True):
            super().__init__("cuda", dtype, enabled, cache_enabled)

    class GradScaler:
        def __init__(self, *args, **kwargs):
            self._enabled = bool(kwargs.get("enabled", True))

        def scale(self, outputs):
            return outputs

        def unscale_(self, optimizer):
            pass

        def step(self, optimizer, *args, **kwargs):
            return optimizer.step(*args, **kwargs)

        def update(self, new_scale=None):
            pass

        def is_enabled(self):
            return self._enabled

        def get_scale(self):
            return 65536.0

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    torch.autocast = autocast
    for place in (getattr(torch, "amp", None), getattr(getattr(torch, "amp", None), "autocast_mode", None)):
        if place is not None:
            place.autocast = autocast
            place.GradScaler = GradScaler
    import torch.cuda.amp as old

    for place in (old, old.autocast_mode, old.grad_scaler):
        place.autocast = cuda_autocast
        place.GradScaler = GradScaler
