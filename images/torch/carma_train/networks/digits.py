"""Small networks for MNIST."""

from torch import nn


def mnist_cnn(classes):
    """The convolutions of PyTorch's example."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
        nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, classes))


def mlp(neurons, depth, classes):
    parts, before = [nn.Flatten()], 28 * 28
    for _ in range(depth):
        parts += [nn.Linear(before, neurons), nn.ReLU()]
        before = neurons
    return nn.Sequential(*parts, nn.Linear(before, classes))
