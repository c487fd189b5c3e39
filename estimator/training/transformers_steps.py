"""Peak memory of training steps of models of the transformers library, without a GPU and without weights.

    python transformers_steps.py ../networks/hf ../step/testdata/transformers.csv
    python transformers_steps.py ../networks/hf ../step/testdata/encoders.csv

fills the column peak_bytes of rows that lack it, with PyTorch, transformers and PEFT as installed; the rows in
the file were made with PyTorch 2.15.0, transformers 5.23.0, PEFT 0.21.2 on 2026-11-23.

The model is made of fake tensors. A dispatch mode sees each new storage and its end, and the sum is what PyTorch's
allocator would have given out, in blocks of 512 bytes. The device is the CPU, because the backward pass of fake CUDA
tensors needs a driver; what the library does differently there is set as on a GPU: the optimizer's step is foreach,
attention is one kernel, and without padding it gets no mask.
"""
import csv
import multiprocessing
import sys
import weakref

import transformers_heads


class Job:
    def __init__(self, row, configs):
        self.config = dict(configs[row["model"]])
        self.batch, self.seq, self.lora = int(row["batch"]), int(row["seq"] or 0), int(row["lora"] or 0)
        self.precision, self.optimizer, self.attention = row["precision"], row["optimizer"], row["attention"]
        self.checkpointing = row["checkpointing"] == "true"
        self.targets = row["targets"] or None
        self.head = transformers_heads.Head(row)

    def model(self, torch, transformers):
        kind = self.config.pop("model_type")
        config = transformers.AutoConfig.for_model(kind, **self.config)
        config.use_cache = False
        if self.attention == "sdpa" and hasattr(config, "attn_pdrop"):
            config.attn_pdrop = 0  # the CPU's single kernel knows no dropout, a GPU's does
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        torch.set_default_dtype(dtype)
        self.head.set(config)
        transformers.PreTrainedModel.initialize_weights = lambda model: None  # fake tensors have no numbers to set
        if kind.startswith("convnext"):
            torch.linspace = transformers_heads.Evenly
        model = self.head.auto(transformers, kind).from_config(config, attn_implementation=self.attention, dtype=dtype)
        transformers_heads.as_loaded(torch, model, self.config)
        torch.set_default_dtype(torch.float32)
        if self.attention == "sdpa":
            for name in ("create_causal_mask", "create_sliding_window_causal_mask", "create_bidirectional_mask"):
                setattr(sys.modules[type(model).__module__], name, lambda *a, **k: None)
            setattr(sys.modules[type(model).__module__], "create_bidirectional_sliding_window_mask", transformers_heads.window)
        self.head.freeze(model)
        if self.lora:
            import peft

            # Adapters have 32 bits, as they are made; fake tensors cannot be moved.
            torch.nn.Module.to = lambda module, *a, **k: module
            targets = self.targets if self.targets in (None, "all-linear") else self.targets.split("|")
            model = peft.get_peft_model(model, peft.LoraConfig(r=self.lora, target_modules=targets, task_type=self.head.peft(kind), modules_to_save=self.head.saved()), autocast_adapter_dtype=False)
        # A GPU's dropout keeps a byte for each number, the CPU's two or four.
        torch.nn.functional.dropout = lambda x, p=0.5, training=True, inplace=False: torch.native_dropout(x, p, training)[0] if training and p else x
        torch.nn.functional.scaled_dot_product_attention = transformers_heads.attention(torch)
        transformers_heads.as_on_a_gpu(torch)
        model.train()
        if self.checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return model

    def peak(self):
        import torch
        import transformers
        from torch._subclasses.fake_tensor import FakeTensorMode

        memory = memory_mode()
        with FakeTensorMode(allow_non_fake_inputs=True), memory:
            model = self.model(torch, transformers)
            dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
            for t in list(model.parameters()) + list(model.buffers()):
                memory.note(t)
            trained = [p for p in model.parameters() if p.requires_grad]
            if self.optimizer == "sgd":
                optimizer = torch.optim.SGD(trained, lr=0.1, foreach=True)
            else:
                optimizer = torch.optim.AdamW(trained, foreach=True)
            for _ in range(2):
                inputs = self.head.inputs(torch, self.batch, self.seq, model.config, dtype)
                cast = self.precision == "amp" or self.lora > 0
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast):
                    out = model(**inputs)
                    loss = self.head.loss(out)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        return memory.peak


def memory_mode():
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten

    class Memory(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.now = self.peak = 0
            self.live = {}

        def note(self, t):
            if not isinstance(t, torch.Tensor) or t.device.type == "meta":
                return
            storage = t.untyped_storage()
            key = storage._cdata
            if key in self.live:
                return
            self.live[key] = (storage.nbytes() + 511) // 512 * 512
            self.now += self.live[key]
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self.end, key)

        def end(self, key):
            self.now -= self.live.pop(key, 0)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for t in tree_flatten(out)[0]:
                self.note(t)
            return out

    return Memory()


def main():
    folder, table = sys.argv[1:3]
    configs = transformers_heads.configs(folder)
    rows = list(csv.DictReader(line for line in open(table) if not line.startswith("#")))
    head = [line for line in open(table) if line.startswith("#")]
    processes = multiprocessing.get_context("fork")
    for row in rows:
        if row["peak_bytes"]:
            continue
        answers = processes.SimpleQueue()
        child = processes.Process(target=lambda: answers.put(Job(row, configs).peak()))  # what is set in a library ends with it
        child.start()
        child.join()
        if child.exitcode:
            continue
        row["peak_bytes"] = answers.get()
        with open(table, "w", newline="") as f:
            f.writelines(head)
            w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
            w.writeheader()
            w.writerows(rows)


if __name__ == "__main__":
    import peft  # noqa: F401, once for all children
    import torch
    import transformers  # noqa: F401

    torch.set_num_threads(1)
    main()
