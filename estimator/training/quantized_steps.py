"""Peak memory of training steps with adapters beside quantized weights (bitsandbytes), without a GPU and without weights.

    python quantized_steps.py ../step/testdata/quantized.csv

fills the column peak_bytes of rows that lack it; the table's head has the versions. standin.py says what is counted.
The model is the library's own. Its linear layers but the head become bitsandbytes' with 4 bits (NF4, double
quantization, computed in bf16) or 8 bits (a threshold of 6 for outliers, as the library sets it). What is not quantized has
32 bits (peft.prepare_model_for_kbit_training), adapters are PEFT's, and autocast is that of a GPU.

bitsandbytes' own operators have no version for fake tensors that makes what their kernels make meanwhile. kernels()
makes it as bitsandbytes/backends/cuda/ops.py has it. Which columns of an input are above the threshold depends on its
values; here none is. Sums of gradients are made as in a training (sums.py).
"""
import functools
import os
import sys

import standin
import sums
import transformers_heads


def kernels(torch):
    """Makes what bitsandbytes' operators for GPUs make while they run."""
    from torch.utils._python_dispatch import TorchDispatchMode

    ops = torch.ops.bitsandbytes

    def gemm_4bit(a, b, shape, absmax, blocksize, kind, bias=None, absmax_8bit=None, code=None, offset=None):
        # Of more than 1536 rows. With fewer a kernel of its own may run, which depends on the GPU (not on an H100).
        scales = torch.empty_like(absmax_8bit, dtype=torch.float32) + offset
        whole = torch.empty(shape, dtype=a.dtype, device=a.device)
        del scales
        return torch.nn.functional.linear(a, whole, bias)

    def vectorwise_quant(a, threshold=0.0):
        stats = torch.empty(a.numel() // a.shape[-1], dtype=torch.float32, device=a.device)
        rows = torch.empty(a.shape, dtype=torch.int8, device=a.device)
        columns = None
        if threshold > 0:
            outliers = a.abs() >= threshold
            outliers.any()
            columns = torch.empty(0, dtype=torch.int64, device=a.device)
        return rows, stats, columns

    def scaled_mm(a, b, rows, columns, bias=None, dtype=None):
        whole = torch.empty((*a.shape[:-1], b.shape[0]), dtype=torch.int32, device=a.device)
        out = torch.empty_like(whole, dtype=torch.float16)
        if bias is not None and bias.dtype != torch.float16:
            out.add_(bias)
        return out.to(dtype or torch.float16)

    def mixed(a, ca, cb, sca, scb, columns=None, bias=None):
        return scaled_mm(ca, cb, sca, scb, bias, a.dtype), torch.empty(0, dtype=a.dtype, device=a.device)

    made = {ops.gemm_4bit.default: gemm_4bit, ops.int8_vectorwise_quant.default: vectorwise_quant,
            ops.int8_scaled_mm.default: scaled_mm, ops.int8_mixed_scaled_mm.default: mixed}

    class Kernels(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return made.get(func, func)(*args, **(kwargs or {}))

    return Kernels()


def quantize(torch, bnb, model, bits):
    """Linear layers but the head become bitsandbytes'. Gives the tensors that belong to them and are no parameters."""
    states = []
    for name, module in list(model.named_modules()):
        if not isinstance(module, torch.nn.Linear) or name == "lm_head":
            continue
        bias = module.bias is not None
        n, (out, width) = module.weight.numel(), module.weight.shape
        if bits == 4:
            new = bnb.nn.Linear4bit(width, out, bias, compute_dtype=torch.bfloat16)
            blocks = (n + 63) // 64
            offset, code = torch.empty(()), torch.empty(16)
            second = bnb.functional.QuantState(absmax=torch.empty((blocks + 255) // 256), code=torch.empty(256), blocksize=256, dtype=torch.float32)
            state = bnb.functional.QuantState(absmax=torch.empty(blocks, dtype=torch.uint8), shape=module.weight.shape, dtype=torch.bfloat16,
                                              blocksize=64, code=code, quant_type="nf4", offset=offset, state2=second)
            new.weight = torch.nn.Parameter(torch.empty((n + 1) // 2, 1, dtype=torch.uint8), requires_grad=False)
            new.weight.compress_statistics, new.weight.quant_type, new.weight.quant_state = True, "nf4", state
            new.forward = functools.partial(multiply4, bnb, torch, new, state)
            states += [state.absmax, second.absmax, second.code, code, offset]
        else:
            new = bnb.nn.Linear8bitLt(width, out, bias, has_fp16_weights=False, threshold=6.0)
            new.weight = torch.nn.Parameter(torch.empty(out, width, dtype=torch.int8), requires_grad=False)
            new.state.CB, new.state.SCB = new.weight.data, torch.empty(out)
            new.forward = functools.partial(multiply8, bnb, new)
            states += [new.state.SCB]
        if bias:
            new.bias = torch.nn.Parameter(torch.empty(out), requires_grad=False)
        model.set_submodule(name, new)
    return states


def multiply4(bnb, torch, layer, state, x):
    bias = None if layer.bias is None else layer.bias.to(torch.bfloat16)
    return bnb.matmul_4bit(x.to(torch.bfloat16), layer.weight.t(), bias=bias, quant_state=state).to(x.dtype)


def multiply8(bnb, layer, x):
    return bnb.matmul(x, layer.weight, bias=layer.bias, state=layer.state)


def peak(row, configs):
    import bitsandbytes as bnb
    import peft
    import torch
    import transformers

    bnb.nn.modules.Params4bit = bnb.nn.modules.Int8Params = lambda data, requires_grad=False, **k: torch.nn.Parameter(data, requires_grad=False)
    bnb.autograd._functions._is_compiling = lambda: True  # no warning for each layer
    torch.nn.Module.to = lambda module, *a, **k: module
    transformers.PreTrainedModel.initialize_weights = lambda model: None
    config = dict(configs[row["model"]])
    config = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    config.use_cache = False
    bits = int(dict(word.split("=") for word in row["settings"].split())["bits"])
    with standin.gpu() as memory, kernels(torch), sums.in_place():
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.float32)
        sys.modules[type(model).__module__].create_causal_mask = lambda *a, **k: None
        states = quantize(torch, bnb, model, bits)
        setattr(model, f"is_loaded_in_{bits}bit", True)
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=row["checkpointing"] == "true",
                                                     gradient_checkpointing_kwargs={"use_reentrant": False}, auto_clear_cache=False)
        targets = row["targets"] or None
        targets = targets if targets in (None, "all-linear") else targets.split("|")
        model = peft.get_peft_model(model, peft.LoraConfig(r=int(row["lora"]), target_modules=targets, task_type="CAUSAL_LM"))
        model.train()
        memory.live.clear()
        memory.now = memory.peak = 0
        standin.count(memory, model)
        for t in states:
            memory.note(t)
        print(sum(p.numel() for p in model.parameters() if p.requires_grad), file=sys.stderr)
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], foreach=True)
        for _ in range(2):
            ids = torch.zeros(int(row["batch"]), int(row["seq"]), dtype=torch.int64)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                out = model(input_ids=ids, labels=ids)
            out["loss"].backward()
            optimizer.step()
            optimizer.zero_grad()
    return memory.peak


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../networks/hf")
    standin.fill(sys.argv[1], lambda row: peak(row, transformers_heads.configs(folder)))
