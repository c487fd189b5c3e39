"""The batches of a training."""

import os
import tempfile
import unittest

import numpy
import torch

from carma_train import catalogue, data, files
from carma_train.tasks import IGNORED, Task
from carma_train.usage import UsageError


def task(name="resnet18", dataset="cifar10", size=8):
    return Task(catalogue.MODELS[name], catalogue.DATASETS[dataset], catalogue.DATASETS[dataset].classes, size)


class Data(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_position(self):
        """From any step on the batches are the same; processes share each batch; an epoch has each sample once."""
        source = data.Synthetic(task(), 3, 10)
        source.shuffled = True
        whole = list(data.Batches(source, 4, 3, 0, 6, 0, 1))
        self.assertEqual(list(data.Batches(source, 4, 3, 3, 6, 0, 1)), whole[3:])
        parts = [list(data.Batches(source, 4, 3, 0, 6, rank, 2)) for rank in range(2)]
        self.assertEqual([a + b for a, b in zip(*parts)], whole)
        for epoch in range(3):
            seen = [key for batch in whole[2 * epoch:2 * epoch + 2] for key in batch]
            self.assertEqual(len(set(seen)), 8)
            self.assertEqual({e for e, _ in seen}, {epoch})
        self.assertNotEqual([i for _, i in whole[0] + whole[1]], [i for _, i in whole[2] + whole[3]], "each epoch has its own order")

    def test_synthetic(self):
        a, b = data.Synthetic(task(), 1, 10), data.Synthetic(task(), 2, 10)
        self.assertTrue(torch.equal(a[0, 4][0], a[1, 4][0]))
        self.assertFalse(torch.equal(a[0, 4][0], a[0, 5][0]))
        self.assertFalse(torch.equal(a[0, 4][0], b[0, 4][0]))
        on = [list(data.on_device(task(), 2, 1, first, 4, 0, "cpu")) for first in (0, 2)]
        self.assertTrue(all(torch.equal(x[0], y[0]) for x, y in zip(on[0][2:], on[1])))
        self.assertFalse(torch.equal(on[0][0][0], on[0][1][0]))

    def test_objects(self):
        images, boxes, labels, masks = task("maskrcnn", "coco", 64).sample(torch.Generator().manual_seed(1), 2)
        self.assertEqual((tuple(images.shape), tuple(masks.shape[2:])), ((2, 3, 64, 128), (64, 128)))
        self.assertTrue((labels >= 1).all() and (labels < 91).all())
        area = ((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]))
        self.assertTrue((masks.sum((2, 3)) - area).abs().max() < 2 * 128)
        self.assertTrue((boxes[..., 2] <= 128).all() and (boxes[..., 3] <= 64).all())

    def test_pictures(self):
        for name, value in (("cat", 0), ("dog", 255)):
            os.mkdir(os.path.join(self.folder, name))
            numpy.save(os.path.join(self.folder, name, "1.npy"), numpy.full((12, 9, 3), value, numpy.uint8))
        pictures = files.Pictures(self.folder, task(), 1)
        self.assertEqual((len(pictures), pictures.classes), (2, ["cat", "dog"]))
        for i, value in enumerate((-2.0, 2.0)):
            x, label = pictures[0, i]
            self.assertEqual((tuple(x.shape), int(label)), ((3, 8, 8), i))
            self.assertTrue(torch.allclose(x, torch.full_like(x, value)))
        with self.assertRaisesRegex(UsageError, "no pictures"):
            files.Pictures(os.path.join(self.folder, "cat"), task(), 1)

    def test_pictures_differ_by_epoch(self):
        os.mkdir(os.path.join(self.folder, "a"))
        numpy.save(os.path.join(self.folder, "a", "1.npy"), numpy.random.default_rng(1).integers(0, 256, (20, 20, 3), dtype=numpy.uint8))
        pictures = files.Pictures(self.folder, task(), 1)
        self.assertTrue(torch.equal(pictures[0, 0][0], pictures[0, 0][0]))
        self.assertFalse(torch.equal(pictures[0, 0][0], pictures[1, 0][0]))

    def test_text(self):
        path = self.write("a.txt", " = A title = \n\nthe cat and the dog\n the end\n")
        text = files.Text(path, task("xlnet_base", "wikitext2", 4), 1)
        # By frequency, then by name: the, =, A, and, cat, dog, ...
        self.assertEqual([t.tolist() for t, _ in (text[0, i] for i in range(3))], [[3, 4, 9, 3], [2, 6, 5, 2], [2, 8, 0, 0]])
        self.assertEqual([int(k) for _, k in (text[0, i] for i in range(3))], [1, 0, 0])
        tokens, labels = files.Text(path, task("gpt2", "wikitext2", 4), 1)[0, 2]
        self.assertEqual(labels.tolist(), [2, 8, IGNORED, IGNORED])
        with self.assertRaisesRegex(UsageError, "no text"):
            files.Text(self.write("empty.txt", "\n\n"), task("gpt2", "wikitext2", 4), 1)

    def test_masked(self):
        path = self.write("a.txt", " ".join(f"w{i}" for i in range(2000)))
        tokens, labels = files.Text(path, task("bert_base", "wikitext2", 4000), 1)[0, 0]
        hidden = labels != IGNORED
        self.assertTrue(240 < int(hidden.sum()) < 360, "15 % of 2000 words")
        self.assertTrue((tokens[hidden] == 1).all() and not hidden[2000:].any())
        self.assertTrue((tokens[~hidden][:100] > 1).all() and (labels[hidden] > 1).all())


if __name__ == "__main__":
    unittest.main()
