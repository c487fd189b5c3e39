"""The models, data sets and their defaults. It does not import PyTorch, so that a wrong argument
is reported at once."""

import difflib


class Model:
    """A network and its default settings. kind is the kind of its samples, see tasks.py."""

    def __init__(self, name, kind, dataset, batch, size, vocabulary=0, longest=0):
        self.name, self.kind, self.dataset, self.batch = name, kind, dataset, batch
        self.size = size  # side of an image in pixels, or tokens
        self.vocabulary, self.longest = vocabulary, longest

    @property
    def text(self):
        return self.kind in TEXT


TEXT = ("masked", "next", "sequence")

MODELS = {m.name: m for m in (
    [Model(n, "image", "imagenet", 32, 224) for n in ("resnet18", "resnet34", "resnet50", "vgg16", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0")]
    + [Model(n, "image", "imagenet", 32, 299) for n in ("xception", "inception_v3")]
    + [Model("unet", "segments", "voc", 8, 512), Model("maskrcnn", "objects", "coco", 8, 800), Model("dlrm", "clicks", "criteo", 32768, 0)]
    + [Model(n, "masked", "wikitext2", b, 512, 28996, 512) for n, b in (("bert_base", 32), ("bert_large", 8))]
    + [Model(n, "sequence", "wikitext2", b, 512, 32000) for n, b in (("xlnet_base", 8), ("xlnet_large", 4))]
    + [Model(n, "next", "wikitext2", b, 1024, 50257, 1024) for n, b in (("gpt2", 8), ("gpt2_medium", 8), ("gpt2_large", 8), ("gpt2_xl", 2))]
    + [Model(n, "image", "mnist", 64, 28) for n in ("mnist_cnn", "mlp_128x2", "mlp_512x2", "mlp_1024x3", "mlp_2048x4", "mlp_4096x5")]
)}


class Dataset:
    """The settings of a data set: samples of an epoch, classes, and the side of its images (0: the model's own)."""

    def __init__(self, kinds, samples, classes=0, size=0, channels=3):
        self.kinds, self.samples, self.classes, self.size, self.channels = kinds, samples, classes, size, channels


DATASETS = {
    "imagenet": Dataset(("image",), 1281167, 1000),
    "cifar10": Dataset(("image",), 50000, 10, 32),
    "cifar100": Dataset(("image",), 50000, 100, 32),
    "mnist": Dataset(("image",), 60000, 10, 28, 1),
    "voc": Dataset(("segments",), 1464, 21),  # the pictures with outlines for training, 2012
    "coco": Dataset(("objects",), 118287, 91),  # 2017
    "criteo": Dataset(("clicks",), 195841983),  # the first day of the terabyte
    "wikitext2": Dataset(TEXT, 36718, 2),  # lines
}

OPTIMIZERS = ("adam", "adamw", "sgd", "sgd-momentum", "rmsprop", "adagrad")
PRECISIONS = ("fp32", "amp", "bf16")
NETWORKS = ("auto", "own", "library")


def nearest(word, names):
    """The most similar name."""
    folded = {n.lower().replace("-", "_"): n for n in names}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), folded, 1, 0.0)
    return folded[close[0]]


def find(name):
    """The model of that name, with dashes or underscores. None: there is none."""
    return MODELS.get(name.lower().replace("-", "_"))


def fits(model, dataset):
    """Whether a model can train on a data set."""
    d = DATASETS[dataset]
    digits = model.dataset == "mnist"
    return model.kind in d.kinds and (model.kind != "image" or digits == (dataset == "mnist"))
