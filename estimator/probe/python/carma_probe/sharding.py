"""Models that are spread over GPUs by FSDP or DeepSpeed. Nothing is spread
here: the whole model is recorded, and the estimator counts one GPU's part."""

from . import hooks, processes


def mark(kind, half=False):
    """Notes how the training is spread. half: the parts meet in 16 bits."""
    if hooks.train["parallel"] != "fsdp:full":
        hooks.train["parallel"] = kind
    if half:
        hooks.train["amp"] = True


def _half(policy):
    dtype = str(getattr(policy, "param_dtype", None))
    return dtype in ("torch.bfloat16", "torch.float16")


def fsdp(module):
    """torch.distributed.fsdp, after its import."""
    import sys

    old = _wrapper(module)
    for place in (module, sys.modules.get(module.__name__ + ".fully_sharded_data_parallel")):
        if place is not None:
            place.FullyShardedDataParallel = old
    if not hasattr(module, "fully_shard"):
        return
    new = _fully_shard(module)
    for name in ("torch.distributed.fsdp", "torch.distributed.fsdp._fully_shard", "torch.distributed.fsdp._fully_shard._fully_shard",
                 "torch.distributed._composable.fsdp"):
        place = sys.modules.get(name)
        if place is not None and hasattr(place, "fully_shard"):
            place.fully_shard = new


def _wrapper(fsdp):
    from torch import nn

    class FullyShardedDataParallel(nn.Module):
        def __init__(self, module, *args, sharding_strategy=None, mixed_precision=None, cpu_offload=None, **kwargs):
            super().__init__()
            self.module = module
            name = getattr(sharding_strategy, "name", "FULL_SHARD")
            kinds = {"NO_SHARD": "ddp", "SHARD_GRAD_OP": "fsdp:grad", "_HYBRID_SHARD_ZERO2": "fsdp:grad"}
            mark(kinds.get(name, "fsdp:full"), _half(mixed_precision))
            _offload(getattr(cpu_offload, "offload_params", False))

        def forward(self, *args, **kwargs):
            return self.module(*args, **kwargs)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

        def clip_grad_norm_(self, *args, **kwargs):
            import torch

            return torch.tensor(0.0)

        no_sync = staticmethod(lambda: _nothing())
        state_dict_type = staticmethod(lambda *args, **kwargs: _nothing())
        summon_full_params = staticmethod(lambda *args, **kwargs: _nothing())
        set_state_dict_type = staticmethod(lambda *args, **kwargs: None)
        fsdp_modules = staticmethod(lambda module, *args: [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)])

    return FullyShardedDataParallel


def _nothing():
    from .cuda import _Anything

    return _Anything()


def _offload(on):
    if on:
        hooks.warn("weights in host memory (offload) are counted as on the GPU")


_METHODS = """unshard reshard set_requires_gradient_sync set_requires_all_reduce set_reshard_after_forward set_reshard_after_backward
set_is_last_backward set_modules_to_forward_prefetch set_modules_to_backward_prefetch set_all_reduce_hook set_post_optim_event
set_unshard_in_backward set_gradient_divide_factor set_force_sum_reduction_for_comms""".split()


def _fully_shard(fsdp):
    base = getattr(fsdp, "FSDPModule", object)
    classes = {}

    def sharded(cls):
        if cls not in classes:
            methods = {name: lambda self, *args, **kwargs: _nothing() for name in _METHODS}
            methods["_apply"] = lambda self, fn, recurse=True: cls._apply(self, fn, recurse)
            methods["__new__"] = lambda c, *args, **kwargs: cls.__new__(cls)
            methods["_carma_name"] = cls.__name__
            classes[cls] = type("FSDP" + cls.__name__, (base, cls), methods)
        return classes[cls]

    def fully_shard(module, *args, mesh=None, reshard_after_forward=None, mp_policy=None, offload_policy=None, **kwargs):
        mark("fsdp:grad" if reshard_after_forward is False else "fsdp:full", _half(mp_policy))
        _offload("CPU" in type(offload_policy).__name__)
        for m in module if isinstance(module, (list, tuple)) else [module]:
            m.__class__ = sharded(type(m))
        return module

    return fully_shard


def accelerate(module):
    """accelerate.utils.fsdp_utils, after its import: FSDP2 is only noted."""
    if not hasattr(module, "fsdp2_prepare_model"):
        return

    def prepare(accelerator, model):
        plugin = accelerator.state.fsdp_plugin
        mark("fsdp:grad" if plugin.reshard_after_forward is False else "fsdp:full",
             _half(plugin.mixed_precision_policy) or accelerator.mixed_precision in ("bf16", "fp16"))
        offload = getattr(plugin, "cpu_offload", None)
        _offload(offload is True or "CPU" in type(offload).__name__)
        return model

    module.fsdp2_prepare_model = prepare


# ---- DeepSpeed ----


def deepspeed(module):
    """deepspeed, after its import."""
    import torch

    engine = _engine(torch)

    def initialize(args=None, model=None, optimizer=None, model_parameters=None, training_data=None, lr_scheduler=None,
                   config=None, config_params=None, **kwargs):
        settings = config or config_params or getattr(args, "deepspeed_config", None)
        e = engine(model, optimizer, model_parameters, _read(settings), lr_scheduler)
        return e, e.optimizer, None, e.lr_scheduler

    module.initialize = initialize
    module.init_distributed = lambda *args, **kwargs: torch.distributed.init_process_group("nccl")
    import deepspeed.comm

    deepspeed.comm.init_distributed = module.init_distributed
    module.zero.Init = module.zero.GatheredParameters = lambda *args, **kwargs: _nothing()


def _read(settings):
    if isinstance(settings, str):
        import json

        with open(settings) as f:
            return json.load(f)
    return dict(settings or {})


def _number(value, default):
    return int(value) if isinstance(value, (int, float)) and value > 0 else default


def _engine(torch):
    class DeepSpeedEngine(torch.nn.Module):
        def __init__(self, model, optimizer, params, settings, scheduler):
            super().__init__()
            zero = settings.get("zero_optimization") or {}
            self.stage, self.settings = int(zero.get("stage", 0)), settings
            mark("zero%d" % self.stage if self.stage else "ddp")
            for part in ("offload_param", "offload_optimizer"):
                _offload((zero.get(part) or {}).get("device", "none") != "none")
            self.module = model
            for key, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
                if (settings.get(key) or {}).get("enabled") in (True, "true"):
                    model.to(dtype)
            self.optimizer = optimizer(params) if callable(optimizer) and not hasattr(optimizer, "step") else optimizer
            if self.optimizer is None:
                self.optimizer = self._made(params or model.parameters(), settings.get("optimizer") or {})
            self.lr_scheduler = scheduler(self.optimizer) if callable(scheduler) and not hasattr(scheduler, "step") else scheduler
            self.every = _number(settings.get("gradient_accumulation_steps"), 1)
            self.micro_steps = self.global_steps = 0
            self.device, self.training_dataloader = torch.device("cpu"), None

        def _made(self, params, wanted):
            kind = str(wanted.get("type", "AdamW")).lower()
            cls = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}.get(kind, torch.optim.AdamW)
            if kind not in ("adam", "adamw", "sgd", "adagrad"):
                hooks.warn("DeepSpeed's optimizer %s is counted as adamw" % kind)
            return cls(params, lr=1e-3)

        def forward(self, *args, **kwargs):
            return self.module(*args, **kwargs)

        def backward(self, loss, *args, **kwargs):
            loss.backward()
            return loss

        def is_gradient_accumulation_boundary(self):
            return (self.micro_steps + 1) % self.every == 0

        def step(self, *args, **kwargs):
            last = self.is_gradient_accumulation_boundary()
            self.micro_steps += 1
            if last:
                self.global_steps += 1
                self.optimizer.step()
                self.optimizer.zero_grad()

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

        global_rank = property(lambda self: processes.rank)
        local_rank = property(lambda self: processes.rank)
        world_size = property(lambda self: processes.size)
        config = property(lambda self: self.settings)
        zero_optimization_stage = lambda self: self.stage
        gradient_accumulation_steps = lambda self: self.every
        train_micro_batch_size_per_gpu = lambda self: _number(self.settings.get("train_micro_batch_size_per_gpu"), 1)
        get_global_grad_norm = lambda self: 0.0
        set_gradient_accumulation_boundary = lambda self, *args: None
        save_checkpoint = load_checkpoint = save_16bit_model = lambda self, *args, **kwargs: None

    return DeepSpeedEngine
