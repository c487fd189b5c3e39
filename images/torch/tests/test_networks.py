"""Shapes and gradients of our own networks, and their agreement with the libraries'."""

import unittest

import torch

from carma_train import catalogue, networks
from carma_train.networks import boxes, xlnet
from carma_train.tasks import Task

SMALL = {"unet": 32, "maskrcnn": 64, "inception_v3": 75, "xception": 64}


def built(name, which="own"):
    torch.manual_seed(1)
    model = catalogue.MODELS[name]
    dataset = catalogue.DATASETS[model.dataset]
    size = 8 if model.text else model.size if model.dataset == "mnist" else SMALL.get(name, 64)
    task = Task(model, dataset, dataset.classes, size)
    return task, networks.build(name, dataset.classes, model.vocabulary, which, layers=1, regions=8)[0].train()


class Networks(unittest.TestCase):
    def test_every_network_learns(self):
        unused = {"mask", "segments", "segment"}  # this task does not use these of XLNet's
        for name in catalogue.MODELS:
            if name in ("gpt2_medium", "gpt2_large", "gpt2_xl", "mlp_4096x5"):
                continue  # like their smaller ones, but large
            with self.subTest(name):
                task, net = built(name)
                generator = torch.Generator().manual_seed(1)
                loss = task.loss(net, task.sample(generator, 2))
                loss.backward()
                self.assertTrue(torch.isfinite(loss))
                idle = {n.split(".")[-1] for n, p in net.named_parameters() if p.grad is None or not p.grad.any()}
                # Zero gradients by chance: regions without positives, dead units.
                self.assertLessEqual(idle - unused, {"weight", "bias"} if name in ("maskrcnn", "mobilenet_v3_small") else set())

    def test_relative_positions(self):
        """XLNet's shift: the score of tokens i and j is that of their distance."""
        n = 5
        by_distance = torch.arange(n, -n, -1.0).expand(1, 1, n, 2 * n)
        i, j = torch.arange(n)[:, None], torch.arange(n)[None]
        self.assertTrue(torch.equal(xlnet.shift(by_distance)[0, 0], (i - j).float()))

    def test_boxes(self):
        a, b = torch.tensor([[0.0, 0, 10, 10]]), torch.tensor([[5.0, 0, 15, 10], [20, 20, 30, 30]])
        self.assertTrue(torch.allclose(boxes.overlap(a, b), torch.tensor([[1 / 3, 0.0]])))
        there = boxes.moved(a.expand(2, 4), boxes.offsets(a.expand(2, 4), b), 40, 40)
        self.assertTrue(torch.allclose(there, b, atol=1e-4))

    def test_crop(self):
        """Features that are their own x coordinate are cut to the middles of a box's cells."""
        x = (torch.arange(64.0) + 0.5).expand(1, 1, 64, 64)
        small, large = [40.0, 40.0, 96.0, 96.0], [64.0, 64.0, 512.0, 512.0]  # for the levels with strides 4 and 32
        cut = boxes.crop([x] * 4, [torch.tensor([large, small])], 7)
        for row, first in zip(cut[:, 0, 0], (2, 10)):
            self.assertTrue(torch.allclose(row, first + 2 * (torch.arange(7) + 0.5), atol=1e-3), row)

    def test_as_many_parameters_as_the_libraries(self):
        for name, model in catalogue.MODELS.items():
            classes = catalogue.DATASETS[model.dataset].classes
            try:
                want, origin = networks.parameters(name, classes, model.vocabulary, "library")
            except ImportError:
                continue
            with self.subTest(name, origin=origin):
                self.assertEqual(networks.parameters(name, classes, model.vocabulary, "own"), (want, "own"))


if __name__ == "__main__":
    unittest.main()
