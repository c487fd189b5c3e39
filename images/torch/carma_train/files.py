"""Data sets in files."""

import collections
import os

import torch
import torch.nn.functional as F

from .data import seeded
from .tasks import IGNORED, masked
from .usage import UsageError

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".npy")
PAD, UNKNOWN = 0, 1


class Pictures(torch.utils.data.Dataset):
    """Pictures in a folder that has a folder for each class. Arrays (.npy) are height x width or height x width x 3, of bytes."""

    shuffled = True

    def __init__(self, path, task, seed):
        self.task, self.seed = task, seed
        self.classes = sorted(e.name for e in os.scandir(path) if e.is_dir()) if os.path.isdir(path) else []
        self.files = []
        for label, name in enumerate(self.classes):
            for folder, _, names in sorted(os.walk(os.path.join(path, name))):
                self.files += [(os.path.join(folder, n), label) for n in sorted(names) if n.lower().endswith(PICTURES)]
        if not self.files:
            raise UsageError(f"--data {path}: no pictures ({', '.join(PICTURES)}) in folders, one for each class")
        if any(not f.endswith(".npy") for f, _ in self.files):
            try:
                import PIL  # noqa: F401
            except ImportError:
                raise UsageError("--data: this image has no Pillow to read pictures with; install it in the base image, or store arrays (.npy)") from None

    def __len__(self):
        return len(self.files)

    def __getitem__(self, key):
        """A random square of the picture, sometimes mirrored."""
        path, label = self.files[key[1]]
        x = _picture(path)
        h, w = x.shape[1:]
        a, b, c, d = torch.rand(4, generator=seeded(torch.Generator(), self.seed, *key)).tolist()
        side = max(1, int(min(h, w) * (0.6 + 0.4 * a)))
        top, left = int(b * (h - side + 1)), int(c * (w - side + 1))
        x = x[None, :, top:top + side, left:left + side]
        x = F.interpolate(x, size=(self.task.size, self.task.size), mode="bilinear", align_corners=False, antialias=True)[0]
        if self.task.channels == 1:
            x = x.mean(0, keepdim=True)
        if d < 0.5 and self.task.channels == 3:
            x = x.flip(2)
        return (x / 255 - 0.5) / 0.25, torch.tensor(label)


def _picture(path):
    import numpy

    if path.endswith(".npy"):
        a = numpy.load(path)
    else:
        from PIL import Image

        a = numpy.asarray(Image.open(path).convert("RGB"))
    x = torch.from_numpy(numpy.array(a)).float()
    return x.expand(3, *x.shape) if x.dim() == 2 else x.permute(2, 0, 1)


class Text(torch.utils.data.Dataset):
    """A text file, or all of a folder. A line is a sample, cut or padded to the sequence length; the most
    frequent words are the vocabulary. There are two classes: headings (= as in WikiText =) and other lines."""

    shuffled = True

    def __init__(self, path, task, seed):
        self.task, self.seed = task, seed
        lines = []
        for name in _texts(path):
            with open(name, encoding="utf-8", errors="replace") as f:
                lines += [line for line in f if line.strip()]
        if not lines:
            raise UsageError(f"--data {path}: no text in files .txt, .tokens or .raw")
        counts = collections.Counter(w for line in lines for w in line.split())
        common = sorted(counts, key=lambda w: (-counts[w], w))[:task.vocabulary - 2]
        ids = {w: i for i, w in enumerate(common, 2)}
        self.lines = [torch.tensor([ids.get(w, UNKNOWN) for w in line.split()[:task.size]], dtype=torch.int32) for line in lines]
        self.headings = [line.lstrip().startswith("= ") for line in lines]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, key):
        line = self.lines[key[1]].long()
        tokens = F.pad(line, (0, self.task.size - len(line)), value=PAD)
        if self.task.kind == "sequence":
            return tokens, torch.tensor(int(self.headings[key[1]]))
        if self.task.kind == "next":
            return tokens, tokens.masked_fill(tokens == PAD, IGNORED)
        chance = torch.rand(len(tokens), generator=seeded(torch.Generator(), self.seed, *key))
        return masked(tokens, chance.masked_fill(tokens == PAD, 1.0))


def _texts(path):
    if os.path.isfile(path):
        return [path]
    found = [os.path.join(folder, n) for folder, _, names in os.walk(path) for n in names]
    return sorted(f for f in found if f.endswith((".txt", ".tokens", ".raw")))
