"""Peak memory of training steps with DeepSpeed's ZeRO, without a GPU and without weights.

    python zero_steps.py ../step/testdata/zero.csv

fills the column peak_bytes of rows that lack it; the table's head has the versions. standin.py says what is counted.
DeepSpeed's own engine runs as the last rank of a process group that sends nothing: what its collectives write into is made,
and nothing is sent. Streams and events are nothing. Values that DeepSpeed asks for are zeros, so no gradient overflows. The
column settings has zero1=N, zero2=N or zero3=N, the stage over N ranks, and may have

    implementation=X       foreach (default), fused or for-loop, of torch.optim.AdamW
    offload=optimizer      states and 32-bit copies in the host's memory
    offload=parameters     the parameters too
    accumulate=N           N passes before a step

All else is DeepSpeed's default: buckets of 500,000,000 numbers.
"""
import collections
import os
import sys
import types

import standin
import sums
import transformers_heads


class Nothing:
    """A stream or an event of a GPU that is not there."""

    def __init__(self, *a, **k):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *a):
        pass

    def __getattr__(self, name):
        return lambda *a, **k: None


def gpu(torch):
    """What DeepSpeed asks of the GPU."""
    torch.cuda.Stream = torch.cuda.Event = Nothing
    for name in ("stream", "current_stream", "default_stream"):
        setattr(torch.cuda, name, lambda *a: Nothing())
    for name in ("synchronize", "empty_cache", "reset_peak_memory_stats", "set_device", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, lambda *a, **k: None)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "current_device"):
        setattr(torch.cuda, name, lambda *a: 0)
    torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(total_memory=140 << 30)
    torch.cuda.memory_stats = lambda *a: collections.defaultdict(int)
    sys.modules["torch.optim.adam"]._get_value = lambda step: 1  # of the bias corrections
    torch.Tensor.data_ptr = lambda tensor: 0
    torch.Tensor.record_stream = lambda tensor, stream: None
    torch.Tensor.pin_memory = lambda tensor, device=None: torch.empty_like(tensor, device="cpu")  # it is on the host


def alone(torch, ranks):
    """A group of ranks that sends nothing. Gives DeepSpeed."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    os.environ.update(DS_ACCELERATOR="cuda", LOCAL_RANK="0", RANK=str(ranks - 1), WORLD_SIZE=str(ranks), LOCAL_SIZE=str(ranks))
    torch.distributed.init_process_group("fake", rank=ranks - 1, world_size=ranks, store=FakeStore())
    import deepspeed

    for place in (deepspeed.comm, deepspeed.comm.comm):
        for name in dir(place):
            if name.startswith(("all_reduce", "all_gather", "allgather", "reduce", "broadcast", "barrier", "inference_all_reduce")):
                setattr(place, name, lambda *a, **k: Nothing())
    # Stage 3 compares the order of modules with that of the other ranks.
    sys.modules["deepspeed.runtime.zero.partitioned_param_coordinator"].assert_ints_same_as_other_ranks = lambda numbers: None
    return deepspeed


def values(torch):
    """The mode in which a value that is asked for is 0."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Values(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten._local_scalar_dense.default:
                return False if args[0].dtype == torch.bool else 0 if args[0].dtype == torch.int64 else 0.0
            if func is torch.ops.aten.equal.default:
                return True
            return func(*args, **(kwargs or {}))

    return Values()


def settings(row, words, stage):
    zero = {"stage": stage}
    if "offload" in words:
        zero["offload_optimizer"] = {"device": "cpu"}
    if words.get("offload") == "parameters":
        zero["offload_param"] = {"device": "cpu"}
    return {"train_micro_batch_size_per_gpu": int(row["batch"]), "gradient_accumulation_steps": int(words.get("accumulate", 1)),
            "bf16": {"enabled": row["precision"] == "bf16"}, "zero_optimization": zero,
            "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}


def peak(row, configs):
    import torch
    import transformers

    words = dict(word.split("=") for word in row["settings"].split())
    stage = next(n for n in (1, 2, 3) if f"zero{n}" in words)
    gpu(torch)
    deepspeed = alone(torch, int(words[f"zero{stage}"]))
    config = dict(configs[row["model"]])
    config = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    config.use_cache = False
    torch.nn.Module.to = lambda module, *a, **k: module
    transformers.PreTrainedModel.initialize_weights = lambda model: None
    with standin.gpu() as memory, values(torch), sums.in_place():
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.bfloat16 if row["precision"] == "bf16" else torch.float32)
        sys.modules[type(model).__module__].create_causal_mask = lambda *a, **k: None
        model.train()
        if row["checkpointing"] == "true":
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        how = words.get("implementation", "foreach")
        optimizer = torch.optim.AdamW(model.parameters(), foreach=how == "foreach", fused=how == "fused" or None)
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings(row, words, stage), dist_init_required=False)
        memory.peak = memory.now
        for _ in range(2 * int(words.get("accumulate", 1))):
            ids = torch.zeros(int(row["batch"]), int(row["seq"]), dtype=torch.int64)
            out = engine(input_ids=ids, labels=ids)
            engine.backward(out["loss"])
            engine.step()
    return memory.peak


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../networks/hf")
    standin.fill(sys.argv[1], lambda row: peak(row, transformers_heads.configs(folder)))
