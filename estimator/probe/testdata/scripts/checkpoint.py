"""Makes a checkpoint that looks like a downloaded one and takes no space: files with holes, which are zeros."""
import json
import os
import struct
import tempfile

import torch
from transformers import AutoModelForCausalLM


def empty(config):
    """The folder of a bf16 checkpoint of this configuration."""
    folder = tempfile.mkdtemp()
    config.save_pretrained(folder)
    with torch.device("meta"):
        tensors = AutoModelForCausalLM.from_config(config).state_dict()
    places, header, at = {}, {}, 0
    for name, t in tensors.items():
        if at > 4e9:
            _write(folder, places, header, at)
            header, at = {}, 0
        header[name] = {"dtype": "BF16", "shape": list(t.shape), "data_offsets": [at, at + 2 * t.numel()]}
        at += 2 * t.numel()
    _write(folder, places, header, at)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": 2 * sum(t.numel() for t in tensors.values())}, "weight_map": places}, f)
    return folder


def _write(folder, places, header, size):
    file = "model-%05d.safetensors" % (len(set(places.values())) + 1)
    text = json.dumps(dict(header, __metadata__={"format": "pt"})).encode()
    with open(os.path.join(folder, file), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + size)
    places.update({name: file for name in header})
