"""Exports the networks of the tests of estimator/networks/onnxfile, without their weights.

    export.py FOLDER [NAME...]      # torch 2.15, torchvision 0.29, transformers 5.23, onnx 1.23

Tensors of more than 100 bytes become external data, whose file is not kept;
texts for people (stack traces, doc strings) are dropped. It prints a name and
the number of parameters that PyTorch counts.
"""
import gzip
import sys
import tempfile

import onnx
import torch
import torchvision
from transformers import BertConfig, BertForMaskedLM


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(2000, 64)
        self.lstm = torch.nn.LSTM(64, 128, num_layers=2, batch_first=True)
        self.head = torch.nn.Linear(128, 2000)

    def forward(self, ids):
        return self.head(self.lstm(self.table(ids))[0])


def bert():
    return BertForMaskedLM(BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                                      intermediate_size=512, max_position_embeddings=128))


class Logits(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, ids, mask):
        return self.net(input_ids=ids, attention_mask=mask).logits


def strip(path, out):
    m = onnx.load(path)
    m.doc_string = m.graph.doc_string = ""
    del m.metadata_props[:]
    graphs = [m.graph, *m.functions]
    for g in graphs:
        del g.metadata_props[:]
        for n in g.node:
            n.doc_string = ""
            del n.metadata_props[:]
        for v in [*g.value_info, *getattr(g, "input", []), *getattr(g, "output", [])]:
            if hasattr(v, "metadata_props"):
                del v.metadata_props[:]
                v.doc_string = ""
        for t in getattr(g, "initializer", []):
            t.doc_string = ""
            del t.metadata_props[:]
    with tempfile.TemporaryDirectory() as d:
        onnx.save_model(m, f"{d}/m.onnx", save_as_external_data=True, location="weights", size_threshold=128, convert_attribute=True)
        m = onnx.load(f"{d}/m.onnx", load_external_data=False)
        for t in m.graph.initializer:  # the place of the data is useless, because the data is not kept
            while len(t.external_data) > 1:
                t.external_data.pop()
        onnx.save_model(m, f"{d}/m.onnx")
        with open(f"{d}/m.onnx", "rb") as f:
            data = f.read()
    if len(data) > 64 << 10:
        with open(out + ".gz", "wb") as to:
            to.write(gzip.compress(data, mtime=0))
    else:
        with open(out, "wb") as to:
            to.write(data)


def export(folder, name, net, args, dynamo, train, axes, inputs):
    torch.manual_seed(0)
    net = net.train() if train else net.eval()
    for p in net.parameters():  # the optimizer drops biases of zeros, which only untrained networks have
        if name.startswith("vit") and p.dim() == 1:
            torch.nn.init.normal_(p)
    with tempfile.TemporaryDirectory() as d:
        path = f"{d}/x.onnx"
        if dynamo:
            shapes = tuple({int(i): n for i, n in axes[k].items()} for k in inputs)
            torch.onnx.export(net, args, path, dynamo=True, input_names=inputs, optimize=not train,
                              dynamic_shapes=shapes if any(axes.values()) else None)
        else:
            kw = dict(training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False) if train else {}
            torch.onnx.export(net, args, path, dynamo=False, input_names=inputs, dynamic_axes=axes if any(axes.values()) else None, **kw)
        strip(path, f"{folder}/{name}.onnx")
    n = sum(p.numel() for p in net.parameters())
    print(name, n, flush=True)


if __name__ == "__main__":
    folder, only = sys.argv[1], sys.argv[2:]
    image = (torch.randn(2, 3, 224, 224),)
    ids = (torch.randint(0, 999, (2, 32)), torch.ones(2, 32, dtype=torch.long))
    tv = torchvision.models
    nb = {"image": {0: "batch"}}
    tok = {"ids": {0: "batch", 1: "sequence"}, "mask": {0: "batch", 1: "sequence"}}
    w = {"ids": {0: "batch", 1: "sequence"}}
    for name, make, args, dynamo, train, axes in [
        ("resnet18.dynamo", tv.resnet18, image, True, True, nb),
        ("resnet18.legacy", tv.resnet18, image, False, True, nb),
        ("resnet18.folded", tv.resnet18, image, False, False, {"image": {}}),
        ("mobilenet_v2.dynamo", tv.mobilenet_v2, image, True, True, nb),
        ("mobilenet_v2.legacy", tv.mobilenet_v2, image, False, True, nb),
        ("vit_b_16.dynamo", tv.vit_b_16, image, True, False, nb),
        ("vit_b_16.legacy", tv.vit_b_16, image, False, False, nb),
        ("bert.dynamo", lambda: Logits(bert()), ids, True, False, tok),
        ("bert.legacy", lambda: Logits(bert()), ids, False, False, tok),
        ("lstm.dynamo", Words, ids[:1], True, True, w),
        ("lstm.legacy", Words, ids[:1], False, True, w),
    ]:
        if only and name not in only:
            continue
        export(folder, name, make(), args, dynamo, train, axes, list(axes))
