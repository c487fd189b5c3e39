"""The summary design as an ONNX graph: raw features in, probabilities out."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from features import LOGS, SUMMARY


def save(model, path):
    """Built by hand: a few dozen nodes, the same bytes from the same weights."""
    nodes, weights = [], []

    def const(name, value):
        weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(op, *inputs, **attributes):
        out = f"{op.lower()}{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    f = lambda t: t.detach().numpy().astype(np.float32)
    large, plain = nodes_split = ["large", "plain"]
    const("sizes", np.array([LOGS, len(SUMMARY) - LOGS], dtype=np.int64))
    nodes.append(helper.make_node("Split", ["features", "sizes"], nodes_split, axis=1))
    one = const("one", np.float32(1))
    x = node("Concat", node("Log", node("Add", large, one)), plain, axis=1)
    x = node("Sub", x, const("mean", f(model.scale.mean)))
    x = node("Div", x, const("std", f(model.scale.std)))
    for i, (w, b) in enumerate(zip(model.stack.w, model.stack.b)):
        x = node("Add", node("MatMul", x, const(f"w{i}", f(w))), const(f"b{i}", f(b)))
        if i + 1 < len(model.stack.w):
            x = node("Mul", x, node("Sigmoid", x))
    # Place and width of each member, as Ordinal.split has them: [m, n, 1].
    axis = const("axis", np.array([2], dtype=np.int64))
    cut = lambda a: node("Slice", x, const(f"from{a}", np.array([a], dtype=np.int64)), const(f"to{a}", np.array([a + 1], dtype=np.int64)), axis)
    mu = node("Add", cut(0), const("middle", np.float32(8)))
    s = node("Add", node("Softplus", node("Sub", cut(1), const("three", np.float32(3)))), const("least", np.float32(0.003)))
    below = node("Sigmoid", node("Div", node("Sub", const("edges", f(model.head.edges)), mu), s))
    below = node("ReduceMean", below, axes=[0], keepdims=0)  # [n, edges]
    high = node("Pad", below, const("after", np.array([0, 0, 0, 1], dtype=np.int64)), one)
    low = node("Pad", below, const("before", np.array([0, 1, 0, 0], dtype=np.int64)), const("zero", np.float32(0)))
    nodes.append(helper.make_node("Sub", [high, low], ["probabilities"]))
    graph = helper.make_graph(
        nodes, "gpumemnet",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", len(SUMMARY)])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", len(model.head.edges) + 1])], weights)
    out = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="carma")
    out.ir_version = 8
    onnx.checker.check_model(out)
    onnx.save(out, path)
