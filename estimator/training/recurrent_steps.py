"""Peak memory of training steps of recurrent networks (nn.LSTM, nn.GRU), without a GPU.

    python recurrent_steps.py ../step/testdata/recurrent.csv

fills the column peak_bytes of rows that lack it; the table's head has the versions. standin.py says what is counted.
PyTorch's own operator for cuDNN runs (aten::_cudnn_rnn) with its own formula of the gradient. What cuDNN keeps for
itself, its reserve, has no size here: only a program with a GPU can ask for it. So the figures are those of weights,
inputs, outputs, gradients and states of the optimizer. PyTorch's native operator makes a gradient of the input in any
case, and with batch_first copies of input and gradient (aten/src/ATen/native/cudnn/RNN.cpp); it has no version for
fake tensors that does so. backward() and copies() make them as that file has them.

Under autocast (precision amp) PyTorch's wrapper of the operator makes a flat copy of all weights in 16 bits, whose parts
are copied with a gradient each, and casts input and states (aten/src/ATen/cudnn/AutocastRNN.cpp). The wrapper asks
cuDNN for the size of the copy, so halved() does what it does.
"""
import sys

import standin


def backward(torch):
    """Gives aten::_cudnn_rnn_backward the tensors that it makes: gradients of input and first states, and one buffer
    of which the gradients of all weights are parts."""

    def made(x, weight, stride, buffer, hx, cx, output, grad_output, grad_hy, grad_cy, mode, hidden, projection, layers,
             batch_first, dropout, train, bidirectional, batch_sizes, state, reserve, mask):
        dx, dhx = torch.empty_like(x), torch.empty_like(hx)
        dcx = torch.empty_like(cx) if cx is not None else None
        together, at, parts = torch.empty_like(buffer), 0, []
        for w in weight:
            parts.append(together[at:at + w.numel()].view(w.shape))
            at += w.numel()
        return dx, dhx, dcx, parts

    library = torch.library.Library("aten", "IMPL")
    library.impl("_cudnn_rnn_backward", made, "Meta")
    return library


def copies(torch):
    """Makes what the operators make with batch_first while they run."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Copies(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func not in (torch.ops.aten._cudnn_rnn.default, torch.ops.aten._cudnn_rnn_backward.default):
                return func(*args, **(kwargs or {}))
            x = torch.ops.aten.empty_like(args[0])
            if func is torch.ops.aten._cudnn_rnn_backward.default:
                gradients = torch.ops.aten.empty_like(args[7]), torch.ops.aten.empty_like(args[0])  # of output and input
                del gradients
            out = func(*args, **(kwargs or {}))
            del x
            return out

    return Copies()


def halved(torch, tensors, weights):
    """Tensors in 16 bits, a flat copy of the weights, and its parts."""
    flat, at, parts = torch.zeros(sum(w.numel() for w in weights), dtype=torch.float16), 0, []
    for w in weights:
        part = flat[at:at + w.numel()].detach().view(w.shape)  # of its own for autograd, as there
        parts.append(part.copy_(w))
        at += w.numel()
    return [t if t is None else t.half() for t in tensors], flat, parts


def calls(torch, flat):
    """nn.LSTM and nn.GRU call the operator. flat is the buffer of which all weights are parts."""

    def rnn(mode, stride):
        def call(x, hx, weights, biases, layers, dropout, train, bidirectional, batch_first):
            h, c = hx if mode == 2 else (hx, None)
            projection = h.shape[2] if mode == 2 and h.shape[2] != c.shape[2] else 0
            hidden = (c if mode == 2 else h).shape[2]
            whole = flat[0]
            if torch.is_autocast_enabled("cuda"):
                (x, h, c), whole, weights = halved(torch, (x, h, c), weights)
            out = torch.ops.aten._cudnn_rnn(x, weights, stride + (projection > 0), whole, h, c, mode, hidden, projection, layers,
                                            batch_first, 0.0, train, bidirectional, [], None)
            return out[:3] if mode == 2 else out[:2]

        return call

    torch._VF.lstm, torch._VF.gru = rnn(2, 4), rnn(3, 4)
    torch.nn.RNNBase.flatten_parameters = lambda self: None  # peak() does so


class Network:
    """Made late, because torch is loaded late."""

    def __new__(cls, torch, row, n):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                directions = n("directions") or 1
                more = dict(proj_size=n("projection")) if n("projection") else {}
                self.rnn = getattr(torch.nn, row["model"].upper())(
                    n("features") or n("input"), n("hidden"), n("layers"), bidirectional=directions == 2, batch_first=True, **more)
                if not n("features"):
                    self.encoder = torch.nn.Embedding(n("vocabulary"), n("input"))
                self.drop = torch.nn.Dropout(0.2 if row["dropout"] else 0)
                self.decoder = torch.nn.Linear((n("projection") or n("hidden")) * directions, n("classes") or n("vocabulary"))

            def forward(self, x):
                if n("features"):
                    x, _ = self.rnn(x)
                    return self.decoder(self.drop(x[:, -1]))
                x, _ = self.rnn(self.drop(self.encoder(x)))
                return self.decoder(self.drop(x)).flatten(0, 1)

        return Model()


def peak(row):
    import torch

    def n(name):
        return int(row[name] or 0)

    library, flat = backward(torch), []
    calls(torch, flat)
    with standin.gpu() as memory, copies(torch):
        torch.set_default_dtype(torch.bfloat16 if row["precision"] == "bf16" else torch.float32)
        model = Network(torch, row, n)
        flat.append(torch.empty(sum(p.numel() for p in model.rnn.parameters()), dtype=model.decoder.weight.dtype))
        at, names = 0, model.rnn._flat_weights_names
        for i, name in enumerate(names):
            p = getattr(model.rnn, name)
            part = torch.nn.Parameter(flat[0].detach()[at:at + p.numel()].view(p.shape))
            at += p.numel()
            model.rnn._parameters[name] = part
            model.rnn._flat_weights[i] = part
        memory.live.clear()
        memory.now = memory.peak = 0
        standin.count(memory, model)
        print(sum(p.numel() for p in model.parameters()), file=sys.stderr)
        optimizer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[row["optimizer"]](model.parameters(), lr=0.1, foreach=True)
        batch, seq = n("batch"), n("seq")
        for _ in range(2):
            if n("features"):
                x, y = torch.empty(batch, seq, n("features"), dtype=model.decoder.weight.dtype), torch.empty(batch, dtype=torch.int64)
            else:
                x, y = torch.empty(batch, seq, dtype=torch.int64), torch.empty(batch * seq, dtype=torch.int64)
            with torch.autocast("cuda", dtype=torch.float16, enabled=row["precision"] == "amp"):
                out = model(x)
                loss = torch.nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    del library
    return memory.peak


if __name__ == "__main__":
    standin.fill(sys.argv[1], peak)
