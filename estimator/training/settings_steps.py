"""Peak memory of training steps with many kinds of settings, without a GPU and without weights.

    python settings_steps.py ../networks/hf/hub.json ../step/testdata/settings.csv

fills the column peak_bytes of rows that lack it. It counts as transformers_steps.py does: the model, the optimizer and
the autograd are PyTorch's own, of fake tensors. The column settings has words of the form name=value:

    accumulate=N      N backward passes before a step of the optimizer
    implementation=X  foreach (default), fused or for-loop
    masters=fp32      the optimizer updates 32-bit copies of the weights
    loss=chunked      torch.nn.functional.linear_cross_entropy in chunks, instead of the logits
    padded=true       the attention gets a mask of booleans
    kernel=X          the attention is PyTorch's kernel for GPUs: efficient or flash
    adapters=dora     weight-decomposed adapters (DoRA)
    fsdp=N            FSDP2 (fully_shard) of each block and the rest, over N ranks of a process group that sends nothing;
                      reshard=false is SHARD_GRAD_OP. Under amp the policy has parameters of bf16
    tp=N              each block's projections split over N such ranks by columns, then rows (parallelize_module)
    offload=activations   what autograd keeps goes to the host, and comes back when it is used
"""
import contextlib
import csv
import json
import os
import sys
import traceback

from transformers_steps import Job, memory_mode


class Step(Job):
    def __init__(self, row, configs):
        super().__init__(row, configs)
        self.set = dict(word.split("=") for word in row["settings"].split())

    def number(self, name, otherwise):
        return int(self.set.get(name, otherwise))

    def optimizers(self, torch, model):
        trained = [p for p in model.parameters() if p.requires_grad]
        if "masters" in self.set:
            self.copies = [(p, p.detach().float()) for p in trained]
            trained = [m for _, m in self.copies]
        how = self.set.get("implementation", "foreach")
        ways = {"foreach": how == "foreach", "fused": how == "fused" or None}
        if self.optimizer == "sgd":
            return [torch.optim.SGD(trained, lr=0.1, **ways)]
        if self.optimizer == "sgd-momentum":
            return [torch.optim.SGD(trained, lr=0.1, momentum=0.9, **ways)]
        if self.optimizer == "rmsprop":
            return [torch.optim.RMSprop(trained, foreach=ways["foreach"])]
        if self.optimizer == "adafactor":  # as the library's trainer makes it
            from transformers.optimization import Adafactor

            return [Adafactor(trained, lr=1e-3, scale_parameter=False, relative_step=False)]
        if self.optimizer in ("adamw8bit", "lion", "lion8bit"):  # tables have 32 bits, as the trainer says
            import bitsandbytes as bnb

            def fill_qmap(optimizer):  # of fake tensors too, whose values cannot be computed
                optimizer.name2qmap = {"dynamic": torch.zeros(256), "udynamic": torch.zeros(256)}

            bnb.optim.optimizer.Optimizer8bit.fill_qmap = fill_qmap
            for module in model.modules():
                if isinstance(module, torch.nn.Embedding):
                    bnb.optim.GlobalOptimManager.get_instance().register_module_override(module, "weight", {"optim_bits": 32})
            return [{"adamw8bit": bnb.optim.AdamW8bit, "lion": bnb.optim.Lion32bit, "lion8bit": bnb.optim.Lion8bit}[self.optimizer](trained)]
        if self.optimizer == "muon":
            inner = [p for name, p in model.named_parameters() if p.requires_grad and p.ndim == 2 and ".layers." in name]
            ids = {id(p) for p in inner}
            return [torch.optim.Muon(inner), torch.optim.AdamW([p for p in trained if id(p) not in ids], **ways)]
        return [torch.optim.AdamW(trained, **ways)]

    def model(self, torch, transformers):
        if self.set.get("adapters") == "dora":
            import peft

            plain = peft.LoraConfig
            peft.LoraConfig = lambda *a, **k: plain(*a, use_dora=True, **k)
        model = super().model(torch, transformers)
        if "kernel" in self.set:
            self.kernels(torch)
        if "padded" in self.set:
            # As the library makes it, but without a look at the values of the batch.
            mask = lambda *a, **k: torch.ones(self.batch, 1, self.seq, self.seq, dtype=torch.bool)
            for name in ("create_causal_mask", "create_sliding_window_causal_mask"):
                setattr(sys.modules[type(model.get_base_model() if self.lora else model).__module__], name, mask)
        return model

    def shard(self, torch, model, mesh):
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        if "tp" in self.set:
            from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

            for block in model.model.layers:
                plan = {"self_attn." + n: ColwiseParallel() for n in ("q_proj", "k_proj", "v_proj")} | {"mlp." + n: ColwiseParallel() for n in ("gate_proj", "up_proj")}
                parallelize_module(block, mesh, plan | {"self_attn.o_proj": RowwiseParallel(), "mlp.down_proj": RowwiseParallel()})
            return model
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if self.precision == "amp" else MixedPrecisionPolicy()
        after = self.set.get("reshard") != "false"
        for block in model.model.layers:
            fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=after)
        return fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=after)

    def kernels(self, torch):
        aten, kind = torch.ops.aten, self.set["kernel"]

        def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
            if kind == "flash":
                return aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0]
            if enable_gqa:  # the kernel knows no groups
                k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
            return aten._scaled_dot_product_efficient_attention(q, k, v, attn_mask, True, 0.0, attn_mask is None)[0]

        torch.nn.functional.scaled_dot_product_attention = attention

    def peak(self):
        import torch
        import transformers
        from torch._subclasses.fake_tensor import FakeTensorMode

        memory = memory_mode()
        if "fsdp" in self.set or "tp" in self.set:
            group = sharding(torch, memory, self.number("fsdp", self.number("tp", 1)))
            with FakeTensorMode(allow_non_fake_inputs=True):
                model = self.shard(torch, self.model(torch, transformers), group)
        with FakeTensorMode(allow_non_fake_inputs=True), memory:
            if "fsdp" not in self.set and "tp" not in self.set:
                model = self.model(torch, transformers)
            for t in list(model.parameters()) + list(model.buffers()):
                memory.note(t.to_local() if hasattr(t, "to_local") else t)
            optimizers = self.optimizers(torch, model)
            for _ in range(2):
                for _ in range(self.number("accumulate", 1)):
                    out = self.forward(torch, model)
                    out["loss"].backward()
                self.update(torch, model, optimizers)
        return memory.peak

    def update(self, torch, model, optimizers):
        if "masters" in self.set:
            for p, m in self.copies:
                m.grad = p.grad.float()
        for o in optimizers:
            o.step()
        if "masters" in self.set:
            for p, m in self.copies:
                p.detach().copy_(m)
                p.grad = m.grad = None
        for o in optimizers:
            o.zero_grad()

    def forward(self, torch, model):
        ids = torch.zeros(self.batch, self.seq, dtype=torch.int64)
        kept = torch.autograd.graph.saved_tensors_hooks(*self.host(torch, model)) if self.set.get("offload") == "activations" else contextlib.nullcontext()
        with kept, torch.autocast("cpu", dtype=torch.bfloat16, enabled="fsdp" not in self.set and (self.precision == "amp" or self.lora > 0)):
            if self.set.get("loss") == "chunked":
                return {"loss": self.chunked(torch, model, ids)}
            return model(input_ids=ids, labels=ids)

    def chunked(self, torch, model, ids):
        hidden = model.model(input_ids=ids)[0]
        labels = torch.nn.functional.pad(ids, (0, 1), value=-100)[..., 1:].reshape(-1)
        options = torch.nn.LinearCrossEntropyOptions(acc_policy="compact")
        return torch.nn.functional.linear_cross_entropy(hidden.view(-1, hidden.shape[-1]), model.lm_head.weight, labels, options=options)

    def host(self, torch, model):
        """Hooks that keep a tensor's form instead of the tensor, unless it is a weight or small."""
        weights = {p.untyped_storage()._cdata for p in list(model.parameters()) + list(model.buffers())}

        def pack(t):
            if t.untyped_storage()._cdata in weights or t.numel() * t.element_size() < 1024:
                return t
            return t.size(), t.stride(), t.dtype

        return pack, lambda t: t if isinstance(t, torch.Tensor) else torch.empty_strided(t[0], t[1], dtype=t[2])


def sharding(torch, memory, ranks):
    """A mesh of ranks that send nothing. The memory sees each rank's own tensors, and storages that change their size."""
    import torch.distributed.fsdp._fully_shard._fsdp_param as param
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._sharding_prop import ShardingPropagator
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    seen, shapes = type(memory).__torch_dispatch__, []

    def dispatch(self, func, types, args=(), kwargs=None):
        if shapes:  # of whole tensors, which nobody has
            return func(*args, **(kwargs or {}))
        return NotImplemented if any(issubclass(t, DTensor) for t in types) else seen(self, func, types, args, kwargs)

    type(memory).__torch_dispatch__ = dispatch
    for name in [n for n in dir(ShardingPropagator) if n.startswith(("_propagate_tensor_meta", "propagate"))]:
        setattr(ShardingPropagator, name, unseen(getattr(ShardingPropagator, name), shapes))
    for name in ("alloc_storage", "free_storage"):
        setattr(param, name, resizing(getattr(param, name), memory))
    return init_device_mesh("cpu", (ranks,))


def unseen(function, depth):
    def call(*args, **kwargs):
        depth.append(1)
        try:
            return function(*args, **kwargs)
        finally:
            depth.pop()

    return call


def resizing(function, memory):
    def call(t):
        function(t)
        storage = t.untyped_storage()
        if storage._cdata in memory.live:
            size = (storage.nbytes() + 511) // 512 * 512
            memory.now += size - memory.live[storage._cdata]
            memory.live[storage._cdata] = size
            memory.peak = max(memory.peak, memory.now)

    return call


def main():
    hub, table = sys.argv[1:3]
    rows = list(csv.DictReader(line for line in open(table) if not line.startswith("#")))
    configs = {name: m["config"] for m in json.load(open(hub)) for name in m["names"]}
    head = [line for line in open(table) if line.startswith("#")]
    import peft  # once, for the processes of all rows
    import torch
    import transformers

    assert peft and torch and transformers
    for row in rows:
        if row["peak_bytes"]:
            continue
        row["peak_bytes"] = apart(lambda: Step(row, configs).peak())
        with open(table, "w", newline="") as f:
            f.writelines(head)
            w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
            w.writeheader()
            w.writerows(rows)


def apart(work):
    """The result of work as a text, done in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str(work()).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    os.waitpid(child, 0)
    return text


if __name__ == "__main__":
    main()
