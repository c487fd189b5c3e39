"""Peak memory of training steps with and without torch.compile's partition of the graph, without a GPU.

    python compile_steps.py ../step/testdata/compile.csv

fills the columns of rows that lack them. A model's forward and backward pass are traced with AOTAutograd on fake
tensors, and partitioned as torch.compile does it (min_cut_rematerialization_partition: what is cheap to compute again
is not kept). eager_bytes is what is kept between the passes without that, peak_bytes with it: each storage
once, without weights, inputs and buffers. Kernels are not made: fused ones need less than single operations, so what
the passes themselves take is in neither figure. The pool of CUDA graphs (mode reduce-overhead) is not either.
"""
import csv
import sys


def model(torch, row):
    """The model, its input, its labels and its loss."""
    batch, size = int(row["batch"]), int(row["size"])
    if row["model"] in ("gpt2", "llama"):
        import transformers

        config = transformers.GPT2Config(attn_pdrop=0) if row["model"] == "gpt2" else transformers.LlamaConfig(
            vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16)
        config.use_cache = False
        net = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        sys.modules[type(net).__module__].create_causal_mask = lambda *a, **k: None  # without padding there is none
        ids = torch.zeros(batch, size, dtype=torch.int64)
        return net, ids, ids, lambda out, y: torch.nn.functional.cross_entropy(out.logits[:, :-1].flatten(0, 1).float(), y[:, 1:].flatten())
    import torchvision

    net = getattr(torchvision.models, row["model"])()
    return net, torch.zeros(batch, 3, size, size), torch.zeros(batch, dtype=torch.int64), torch.nn.functional.cross_entropy


def between(torch, row, compiled):
    """Bytes that are kept between the passes."""
    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
    from torch._subclasses.fake_tensor import FakeTensorMode

    dtype = torch.bfloat16 if row["precision"] == "bf16" else torch.float32
    torch.set_default_dtype(dtype)
    found = {}

    def partition(graph, inputs, **more):
        cut = min_cut_rematerialization_partition if compiled else default_partition
        forward, backward = cut(graph, inputs, **more)
        weights = {id(n) for n in forward.graph.find_nodes(op="placeholder")}
        out = next(iter(forward.graph.find_nodes(op="output"))).args[0]
        count = more["num_fwd_outputs"]
        kept = {}
        for node in out[count:]:
            source = node
            while source.op == "call_function" and any(w in str(source.target) for w in ("view", "reshape", "permute", "aten.t.", "transpose", "slice", "expand", "unsqueeze", "alias")):
                source = source.args[0]
            value = source.meta.get("val")
            if id(source) not in weights and isinstance(value, torch.Tensor):
                kept[source.name] = value.numel() * value.element_size()
        found["bytes"] = sum(kept.values())
        return forward, backward

    net, x, y, loss = model(torch, row)
    net.train()
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        x, y = fake.from_tensor(x), fake.from_tensor(y)
        names = [n for n, _ in net.named_parameters()]
        weights = tuple(torch.nn.Parameter(fake.from_tensor(p.detach())) for p in net.parameters())
        buffers = {n: fake.from_tensor(b) for n, b in net.named_buffers()}

        def step(weights, buffers, x, y):
            return loss(torch.func.functional_call(net, {**dict(zip(names, weights)), **buffers}, (x,)), y).float()

        plain = lambda graph, _: graph
        aot_function(step, plain, plain, partition_fn=partition)(weights, buffers, x, y)
    return found["bytes"]


def main():
    import torch

    path = sys.argv[1]
    rows = list(csv.DictReader(line for line in open(path) if not line.startswith("#")))
    head = [line for line in open(path) if line.startswith("#")]
    for row in rows:
        for column, compiled in (("eager_bytes", False), ("peak_bytes", True)):
            row[column] = row[column] or between(torch, row, compiled)
        print(*row.values(), file=sys.stderr, flush=True)
        with open(path, "w", newline="") as f:
            f.writelines(head)
            w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
            w.writeheader()
            w.writerows(rows)


if __name__ == "__main__":
    main()
