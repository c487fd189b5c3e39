"""Weights of 4 and 8 bits of bitsandbytes. They are not quantized here: a
weight without values is marked, and an operator that takes it is recorded as
one with a weight of so many bits."""


def bits(p):
    """The bits of a quantized weight's numbers; 0: it is an ordinary one."""
    return getattr(p, "_carma_bits", 0)


def bitsandbytes(module):
    """bitsandbytes, after its import."""
    from . import values

    if not values.on():
        return
    import torch

    for number, layer, weight in ((4, "Linear4bit", "Params4bit"), (8, "Linear8bitLt", "Int8Params")):
        marked = _weight(torch, number, weight)
        linear = _layer(torch, marked, layer)
        for place in (module.nn, module.nn.modules):
            setattr(place, layer, linear)
            setattr(place, weight, marked)


def _weight(torch, number, name):
    from . import values

    class Marked(type):
        def __instancecheck__(cls, value):
            return bits(value) == number

    def make(cls, data=None, requires_grad=False, **kwargs):
        shape = () if data is None else data.shape
        if getattr(data, "is_meta", False) and not values.without(data):
            p = torch.nn.Parameter(torch.empty(shape, dtype=torch.uint8, device="meta"), False)
        else:
            with values.bare():
                p = torch.nn.Parameter(torch.empty(shape, dtype=torch.uint8), False)
        p._carma_bits, p.quant_state, p.bnb_quantized = number, None, True
        p.quant_type, p.compress_statistics, p.quant_storage = "nf4", kwargs.get("compress_statistics", True), torch.uint8
        p.has_fp16_weights, p.SCB, p.CB = False, None, None
        return p

    return Marked(name, (), {"__new__": make})


def _layer(torch, weight, name):
    class Layer(torch.nn.Linear):
        def __init__(self, input_features, output_features, bias=True, *args, device=None, **kwargs):
            super().__init__(input_features, output_features, bias, device="meta")
            self.weight = weight(self.weight)
            if bias:
                self.bias = torch.nn.Parameter(torch.empty(output_features, device=device))
            self.compute_dtype, self.state = kwargs.get("compute_dtype"), None
            self.compute_type_is_set, self.quant_type = True, kwargs.get("quant_type", "nf4")

        def forward(self, x):
            x = x if self.compute_dtype is None else x.to(self.compute_dtype)
            b = None if self.bias is None else self.bias.to(x.dtype)
            return torch.nn.functional.linear(x, self.weight.to(x.dtype), b)

        def set_compute_type(self, x):
            pass

    Layer.__name__ = Layer.__qualname__ = name
    return Layer
