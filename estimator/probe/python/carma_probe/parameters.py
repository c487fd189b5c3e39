"""Parameters of a layer: trained or frozen, and the bits of their numbers."""

from . import quantized


def kind(p, width):
    """Parameters of one kind can be of one layer. width: bytes of a number in
    the network's precision."""
    return (p.requires_grad, bits(p, width))


def bits(p, width):
    """The bits of a number of p, where they are not those of the network; else 0."""
    if quantized.bits(p):
        return quantized.bits(p)
    own = 8 * p.element_size()
    return 0 if not p.is_floating_point() or own == 8 * width else own


def described(params, width):
    """The fields of a layer with these parameters, all of one kind."""
    own = bits(params[0], width)
    found = {"params": [int(p.numel()) for p in params]}
    if own in (4, 8, 16, 32):
        found["bits"] = own
    if not params[0].requires_grad:
        found["frozen"] = True
    return found
