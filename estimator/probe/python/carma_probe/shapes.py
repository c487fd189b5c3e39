"""Shapes with and without the batch, which is usually in dimension dim."""


def grows(shape, batch, dim):
    """Whether the size of a tensor of unknown origin follows the batch."""
    return len(shape) > dim and shape[dim] == batch or len(shape) > 0 and dim == 0 and shape[0] == batch


def per_sample(shape, batch, dim):
    """The shape without the batch, and whether it does not depend on it."""
    shape = [int(n) for n in shape]
    numel = 1
    for n in shape:
        numel *= n
    if not shape or numel == 0 or numel % batch:
        return ([max(-(-numel // batch), 1)], False) if numel > batch else ([max(numel, 1)], True)
    for i in [dim, 0]:
        if len(shape) > i and shape[i] == batch:
            return (shape[:i] + shape[i + 1:]) or [1], False
    if shape[0] % batch == 0:
        return [shape[0] // batch] + shape[1:], False
    for i, n in enumerate(shape):
        if n % batch == 0:
            return shape[:i] + [n // batch] + shape[i + 1:], False
    return [numel // batch], False
