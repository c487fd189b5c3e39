"""The designs as ONNX graphs: raw features in, probabilities out.

Built by hand: some dozens of nodes; equal weights give equal bytes. The
initializers have the names of the design's state, so that the design can be
restored from the graph.
"""

import math
from types import SimpleNamespace

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from designs import Sequence
from features import LOGS, SUMMARY, TOKEN


class Graph:
    def __init__(self, model):
        self.nodes, self.weights, self.names = [], [], {}
        self.state = {k: v.detach().numpy().astype(np.float32) for k, v in model.state_dict().items()}

    def const(self, name, value):
        if name not in self.names:
            self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
            self.names[name] = True
        return name

    def ints(self, *values):
        return self.const("i" + "_".join(map(str, values)), np.array(values, dtype=np.int64))

    def number(self, value):
        return self.const(f"f{value:g}", np.float32(value))

    def weight(self, name, axis=None):
        """A state of the model; with axis, one dimension of 1 more."""
        w = self.const(name, self.state[name])
        return w if axis is None else self("Unsqueeze", w, self.ints(axis))

    def __call__(self, op, *inputs, out=None, **attributes):
        out = out or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def cut(self, x, axis, start, end):
        return self("Slice", x, self.ints(start), self.ints(end), self.ints(axis))

    def scaled(self, x, name, first, last, columns):
        """Scaled of designs.py; the columns are those of the last axis, which is the axis before columns in x."""
        axis = 1 if name == "scale" else 2
        parts = [self.cut(x, axis, 0, first)] if first else []
        parts.append(self("Log", self("Add", self.cut(x, axis, first, last), self.number(1))))
        if last < columns:
            parts.append(self.cut(x, axis, last, columns))
        x = self("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]
        return self("Div", self("Sub", x, self.weight(name + ".mean")), self.weight(name + ".std"))

    def stack(self, x, layers):
        for i in range(layers):
            x = self("Add", self("MatMul", x, self.weight(f"stack.w.{i}")), self.weight(f"stack.b.{i}"))
            if i + 1 < layers:
                x = self("Mul", x, self("Sigmoid", x))
        return x

    def ordinal(self, y):
        """Ordinal of designs.py; place and width are [m, n, 1]."""
        mu = self("Add", self.cut(y, 2, 0, 1), self.number(8), out="place")
        s = self("Add", self("Softplus", self("Sub", self.cut(y, 2, 1, 2), self.number(3))), self.number(0.003), out="width")
        below = self("Sigmoid", self("Div", self("Sub", self.weight("head.edges"), mu), s))
        below = self("ReduceMean", below, axes=[0], keepdims=0)  # [n, edges]
        high = self("Pad", below, self.ints(0, 0, 0, 1), self.number(1))
        low = self("Pad", below, self.ints(0, 1, 0, 0), self.number(0))
        self("Sub", high, low, out="probabilities")

    def norm(self, x):
        x = self("Sub", x, self("ReduceMean", x, axes=[-1]))
        var = self("ReduceMean", self("Mul", x, x), axes=[-1])
        return self("Div", x, self("Sqrt", self("Add", var, self.number(1e-5))))

    def times(self, x, name):
        """[m, n, l, a] by the weight's [m, a, b]."""
        return self("MatMul", x, self.weight(name, axis=1))

    def save(self, path, inputs, outputs):
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        graph = helper.make_graph(
            self.nodes, "gpumemnet", [value(k, v) for k, v in inputs.items()], [value(k, v) for k, v in outputs.items()], self.weights)
        out = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="carma")
        out.ir_version = 8
        onnx.checker.check_model(out)
        onnx.save(out, path)


def export(model, path):
    g = Graph(model)
    inputs = {"features": ["n", len(SUMMARY)]}
    x = g("Unsqueeze", g.scaled("features", "scale", 0, LOGS, len(SUMMARY)), g.ints(0))
    if model.name == "transformer":
        inputs["tokens"] = ["n", "l", len(TOKEN)]
        members = g("Expand", x, g.ints(model.members, 1, 1))
        x = g("Concat", members, encoders(g, model), axis=2)
    g.ordinal(g.stack(x, len(model.stack.w)))
    m = model.members
    g.save(path, inputs, {"probabilities": ["n", len(model.head.edges) + 1], "place": [m, "n", 1], "width": [m, "n", 1]})


def encoders(g, model):
    """Sequence.raw of designs.py up to the mean over the layers: [m, n, d]."""
    present = g.cut("tokens", 2, 0, 1)  # [n, l, 1]
    count = g("Transpose", present, perm=[0, 2, 1])
    bias = g("Unsqueeze", g("Mul", g("Sub", count, g.number(1)), g.number(1e4)), g.ints(0))  # [1, n, 1, l]
    x = g.scaled(g.cut("tokens", 2, 1, len(TOKEN)), "token", 2, 4, len(TOKEN) - 1)
    x = g("Add", g.times(g("Unsqueeze", x, g.ints(0)), "embed"), g.weight("embed_b", axis=1))
    length = g("Slice", g("Shape", "tokens"), g.ints(1), g.ints(2))
    x = g("Add", x, g("Slice", g.weight("position"), g.ints(0), length, g.ints(0)))
    for i in range(model.layers):
        y = g.norm(x)
        q, k, v = (g.times(y, f"qkv.{i}.{j}") for j in range(3))
        score = g("MatMul", g("Div", q, g.number(math.sqrt(model.width))), g("Transpose", k, perm=[0, 1, 3, 2]))
        share = g("Softmax", g("Add", score, bias), axis=-1)
        x = g("Add", x, g.times(g("MatMul", share, v), f"qkv.{i}.3"))
        h = g("Relu", g("Add", g.times(g.norm(x), f"up.{i}"), g.weight(f"up_b.{i}", axis=1)))
        x = g("Add", x, g.times(h, f"down.{i}"))
    x = g("Mul", g.norm(x), g("Unsqueeze", present, g.ints(0)))
    layers = g("ReduceSum", present, g.ints(1), keepdims=0)  # [n, 1]
    return g("Div", g("ReduceSum", x, g.ints(2), keepdims=0), layers)


def restore(path):
    """The transformer design with the weights of a graph."""
    state = {w.name: torch.tensor(numpy_helper.to_array(w)) for w in onnx.load(path).graph.initializer}
    edges = np.exp(state["head.edges"].numpy())
    rows = SimpleNamespace(edges=edges, summary=np.ones((2, len(SUMMARY)), np.float32), tokens=2 * [np.ones((2, len(TOKEN)), np.float32)])
    model = Sequence(rows, [0, 1])
    model.load_state_dict({k: state[k] for k in model.state_dict()})
    return model
