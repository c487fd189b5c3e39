"""Features of a network, from a table of layers.

estimator/rivals/gpumemnet/features.go computes the same numbers; a golden file ties
the two together. So training and serving see the same features.
"""

import math
from dataclasses import dataclass, field

import numpy as np

# Activations with a code, in alphabetical order. MLPs also have Identity: the
# code of a network without activations.
CNN_ACTIVATIONS = ["elu", "gelu", "leaky_relu", "mish", "prelu", "relu", "selu", "silu", "softplus", "tanh"]
MLP_ACTIVATIONS = ["elu", "gelu", "identity", "leaky_relu", "mish", "prelu", "relu", "selu", "silu", "softplus", "tanh"]

NORMS = {"batch_norm", "layer_norm", "rms_norm", "group_norm", "instance_norm"}
KEEP_OUTPUT = {"relu", "relu6", "tanh", "sigmoid"}
KEEP_INPUT = {
    "elu", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "mish", "prelu", "selu", "silu", "softplus",
    "avg_pool", "max_pool", "mean",
}
CONVOLUTIONS = {"conv", "conv_transpose"}
WEIGHTS = CONVOLUTIONS | {"linear"}
# Layers that count. Softmax, losses, sums and views do not count, because some
# summaries of a network list them and others do not.
LISTED = WEIGHTS | NORMS | KEEP_OUTPUT | KEEP_INPUT | {"dropout"}

# In this order. All but the last two go through log1p inside the model.
SUMMARY = [
    "depth", "batch", "params", "activations", "activations_batch", "conv_count", "linear_count", "norm_count",
    "dropout_count", "kept_batch", "largest_pair_batch", "largest_output_batch", "largest_params", "training_bytes",
    "activation_sin", "activation_cos",
]
LOGS = len(SUMMARY) - 2
# Of each layer. The last two go through log1p inside the model.
TOKEN = ["present", "code_a", "code_b", "output_batch", "params"]


@dataclass
class Layer:
    type: str
    out: int  # elements of one sample
    params: list = field(default_factory=list)
    inputs: list = field(default_factory=list)  # indices of layers, -1: the network's input
    whole: bool = False  # the output does not grow with the batch
    in_place: bool = False
    tied: bool = False

    def weight(self):
        return 0 if self.tied else sum(self.params)


@dataclass
class Network:
    family: str  # mlp or cnn
    batch: int
    inputs: list  # elements of each of the network's inputs, one sample
    layers: list


def _sizes(net):
    """Elements of each layer's inputs and output, for the whole batch."""
    out = [layer.out * (1 if layer.whole else net.batch) for layer in net.layers]
    ins = []
    for i, layer in enumerate(net.layers):
        sources = layer.inputs or [i - 1]
        ins.append([out[j] if j >= 0 else net.inputs[-1 - j] * net.batch for j in sources])
    return ins, out


def _kept(net, ins, out):
    """Bytes kept for the backward pass; a storage counts once.

    Convolution, linear and norm keep their input; ReLU and its like their
    output, other activations their input; dropout a mask.
    """
    storage, keep, masks = {}, {}, 0
    for i, layer in enumerate(net.layers):
        sources = layer.inputs or [i - 1]
        roots = [storage.get(j, j) for j in sources]
        alias = layer.type == "view" or layer.in_place
        storage[i] = roots[0] if alias else i
        if layer.type in WEIGHTS or layer.type in NORMS or layer.type in KEEP_INPUT:
            for root, size in zip(roots, ins[i]):
                keep[root] = size
        elif layer.type in KEEP_OUTPUT:
            keep[storage[i]] = out[i]
        elif layer.type == "dropout":
            masks += out[i]
    return 4 * sum(keep.values()) + masks


def activation(net):
    names = MLP_ACTIVATIONS if net.family == "mlp" else CNN_ACTIVATIONS
    counts = {}
    for layer in net.layers:
        kind = "relu" if layer.type == "relu6" else layer.type
        if kind in names:
            counts[kind] = counts.get(kind, 0) + 1
    if counts:
        most = max(counts.values())
        kind = min(k for k, n in counts.items() if n == most)
    else:
        kind = "identity" if net.family == "mlp" else "relu"
    angle = names.index(kind) * math.pi / len(names)
    return math.sin(angle), math.cos(angle)


def summary(net):
    ins, out = _sizes(net)
    listed = [i for i, layer in enumerate(net.layers) if layer.type in LISTED]
    count = lambda kinds: sum(1 for layer in net.layers if layer.type in kinds)
    params = sum(layer.weight() for layer in net.layers)
    kept = _kept(net, ins, out)
    activations = sum(net.layers[i].out for i in listed)
    pair = max((sum(ins[i]) + out[i] for i in listed if net.layers[i].type in WEIGHTS), default=0)
    sin, cos = activation(net)
    return np.array([
        len(listed), net.batch, params, activations, activations * net.batch,
        count(CONVOLUTIONS), count({"linear"}), count(NORMS), count({"dropout"}),
        kept, pair, max((out[i] for i in listed), default=0),
        max((layer.weight() for layer in net.layers), default=0),
        16 * params + kept, sin, cos,
    ], dtype=np.float64).astype(np.float32)


def _code(family, kind):
    if family == "mlp":
        return (0, 1) if kind == "linear" else (1, 0)
    if kind in CONVOLUTIONS:
        return (0, 1)
    if kind == "linear":
        return (1, 1)
    if kind == "dropout" or kind in NORMS:
        return (0, 0)
    return (1, 0)


def tokens(net):
    _, out = _sizes(net)
    rows = [
        (1, *_code(net.family, layer.type), out[i], layer.weight())
        for i, layer in enumerate(net.layers) if layer.type in LISTED
    ]
    return np.array(rows, dtype=np.float64).astype(np.float32).reshape(len(rows), len(TOKEN))


def from_config(config):
    """The network of a carma model configuration (docs/estimators.md)."""
    layers = []
    for layer in config["layers"]:
        layers.append(Layer(
            layer["type"], math.prod(layer["out"]), layer.get("params") or [], layer.get("inputs") or [],
            layer.get("whole", False), layer.get("in_place", False), layer.get("tied", False)))
    train = config["train"]
    gpus = max(train.get("gpus", 1), 1)
    return Network(config["family"], -(-train["batch"] // gpus), [math.prod(i["shape"]) for i in config["inputs"]], layers)
