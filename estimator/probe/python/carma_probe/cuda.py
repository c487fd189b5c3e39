"""Shows the program a GPU. Tensors for it stay on the CPU."""

import functools
import os
import types

GIB = 1 << 30
_MEMORY = 80 * GIB


def on_gpu(device):
    """Whether a device argument means the GPU, which does not exist."""
    if isinstance(device, bool) or device is None:
        return False
    if isinstance(device, int):
        return True
    text = str(device)
    return text == "cuda" or text.startswith("cuda:")


def _args(args, kwargs):
    """The arguments, with the CPU in place of the GPU."""
    if on_gpu_kw(kwargs):
        kwargs = dict(kwargs, device="cpu")
    args = tuple("cpu" if _is_device(a) and on_gpu(a) else a for a in args)
    return args, kwargs


def on_gpu_kw(kwargs):
    return "device" in kwargs and on_gpu(kwargs["device"])


def _is_device(value):
    import torch

    return isinstance(value, (str, torch.device))


_FACTORIES = """tensor as_tensor asarray empty empty_like empty_strided zeros zeros_like ones ones_like full
full_like rand rand_like randn randn_like randint randint_like randperm arange range linspace logspace eye
scalar_tensor normal tril_indices triu_indices complex hann_window hamming_window bartlett_window
blackman_window from_file frombuffer sparse_coo_tensor""".split()
_NEW = "new_tensor new_empty new_zeros new_ones new_full new_empty_strided".split()


def _on_cpu(call):
    @functools.wraps(call, assigned=("__name__", "__doc__"), updated=())
    def wrapper(*args, **kwargs):
        if on_gpu_kw(kwargs):
            kwargs = dict(kwargs, device="cpu")
        if kwargs.get("pin_memory"):
            kwargs = dict(kwargs, pin_memory=False)
        return call(*args, **kwargs)

    return wrapper


class _Anything:
    """A stream, an event or another object of a GPU. Every method does nothing."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None

    def __call__(self, *args, **kwargs):
        return self

    def elapsed_time(self, *args):
        return 1.0

    def query(self):
        return True

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def install(torch, gpus):
    for name in _FACTORIES:
        if hasattr(torch, name):
            setattr(torch, name, _on_cpu(getattr(torch, name)))
    for name in _NEW:
        if hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, _on_cpu(getattr(torch.Tensor, name)))
    _tensors(torch)
    _modules(torch)
    _namespace(torch, gpus)


def _tensors(torch):
    T = torch.Tensor
    to, kind = T.to, T.type

    def tensor_to(self, *args, **kwargs):
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            args = ("cpu",) + args[1:]
        args, kwargs = _args(args, kwargs)
        kwargs.pop("non_blocking", None)
        return to(self, *args, **kwargs)

    def tensor_type(self, dtype=None, *args, **kwargs):
        if isinstance(dtype, str):
            dtype = dtype.replace("torch.cuda.", "torch.")
        return kind(self, *(() if dtype is None else (dtype,)))

    T.to, T.type = tensor_to, tensor_type
    T.cuda = lambda self, *args, **kwargs: self
    T.pin_memory = lambda self, *args, **kwargs: self
    T.record_stream = lambda self, *args, **kwargs: None
    load, generator = torch.load, torch.Generator

    @functools.wraps(load)
    def cpu_load(f, map_location=None, *args, **kwargs):
        return load(f, "cpu", *args, **kwargs)

    class MetaGenerator(type):
        def __instancecheck__(cls, value):
            return isinstance(value, generator)

    class Generator(metaclass=MetaGenerator):
        def __new__(cls, device="cpu"):
            return generator()

    torch.load, torch.Generator = cpu_load, Generator
    for name in ("set_default_device", "set_default_tensor_type"):
        if hasattr(torch, name):
            setattr(torch, name, _default(torch, getattr(torch, name)))


def _default(torch, call):
    def wrapper(value):
        if isinstance(value, str) and value.startswith("torch.cuda."):
            value = value.replace("torch.cuda.", "torch.")
        elif on_gpu(value):
            value = "cpu"
        return call(value)

    return wrapper


def _modules(torch):
    M = torch.nn.Module
    to = M.to

    def module_to(self, *args, **kwargs):
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            args = ("cpu",) + args[1:]
        args, kwargs = _args(args, kwargs)
        kwargs.pop("non_blocking", None)
        return to(self, *args, **kwargs)

    M.to = module_to
    M.cuda = lambda self, *args, **kwargs: self
    sync = getattr(torch.nn, "SyncBatchNorm", None)
    if sync is not None:
        sync.convert_sync_batchnorm = classmethod(lambda cls, module, *args: module)


def _namespace(torch, gpus):
    c = torch.cuda
    properties = types.SimpleNamespace(
        name="carma probe", major=8, minor=0, total_memory=_MEMORY, multi_processor_count=108,
        is_integrated=False, is_multi_gpu_board=False, uuid="0")
    values = {
        "is_available": True, "is_initialized": True, "current_device": 0,
        "get_device_name": properties.name, "get_device_capability": (8, 0), "get_arch_list": ["sm_80"],
        "get_device_properties": properties, "mem_get_info": (_MEMORY, _MEMORY), "is_bf16_supported": True,
        "memory_summary": "", "memory_stats": {}, "memory_snapshot": [], "utilization": 0, "temperature": 0,
        "initial_seed": 0, "is_current_stream_capturing": False, "list_gpu_processes": "",
    }
    for name in """memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached
            max_memory_cached""".split():
        values[name] = 0
    for name in """init _lazy_init set_device empty_cache synchronize ipc_collect reset_peak_memory_stats
            reset_max_memory_allocated reset_max_memory_cached reset_accumulated_memory_stats manual_seed
            manual_seed_all seed seed_all set_per_process_memory_fraction set_rng_state set_rng_state_all
            set_stream _sleep""".split():
        values[name] = None
    for name, value in values.items():
        setattr(c, name, functools.partial(_answer, value))
    c.device_count = lambda: _visible(gpus)
    c.get_rng_state = lambda *args: torch.get_rng_state()
    c.get_rng_state_all = lambda: [torch.get_rng_state()]
    c.can_device_access_peer = lambda *args: True
    for name in "Stream Event ExternalStream CUDAGraph device device_of StreamContext graph".split():
        setattr(c, name, _Anything)
    for name in "stream current_stream default_stream".split():
        setattr(c, name, lambda *args, **kwargs: _Anything())
    c.nvtx = _Anything()
    if hasattr(torch, "accelerator"):
        a = torch.accelerator
        for name, value in (("is_available", True), ("current_accelerator", torch.device("cuda")),
                            ("current_device_index", 0), ("current_device_idx", 0), ("set_device_index", None),
                            ("set_device_idx", None), ("synchronize", None), ("empty_cache", None),
                            ("memory_allocated", 0), ("max_memory_allocated", 0), ("memory_reserved", 0),
                            ("max_memory_reserved", 0), ("reset_peak_memory_stats", None)):
            setattr(a, name, functools.partial(_answer, value))
        a.device_count = c.device_count
        a.current_stream = lambda *args, **kwargs: _Anything()
    for kind in "Float Double Half BFloat16 Long Int Short Byte Bool Char".split():
        if hasattr(torch, kind + "Tensor"):
            setattr(c, kind + "Tensor", getattr(torch, kind + "Tensor"))


def _visible(gpus):
    """The number of GPUs that the program lets itself see."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return gpus
    return min(gpus, len([n for n in named.split(",") if n.strip() not in ("", "-1")]))


def _answer(value, *args, **kwargs):
    return value
