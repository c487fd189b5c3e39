"""The networks of torchvision, timm or transformers if these are installed, otherwise our own with the
same number of parameters."""

import importlib

import torch

from . import library


def build(name, classes, vocabulary, which="auto", layers=0, regions=512):
    """The network in training mode on the CPU, and its origin: "own" or a library with its version.

    which is auto, own or library; ImportError where library is asked for and there is none. layers cuts
    a transformer to that many; 0: all. regions is what Mask R-CNN learns from in an image.
    """
    if which != "own":
        made = library.build(name, classes, vocabulary, layers, regions)
        if made is not None:
            return made
        if which == "library":
            raise ImportError(f"no library with {name} in this image; --networks own builds ours")
    return _own(name, classes, vocabulary, layers, regions), "own"


def _own(name, classes, vocabulary, layers, regions):
    def of(module):
        return importlib.import_module("." + module, __name__)

    family = name.split("_")[0]
    if family in ("resnet18", "resnet34", "resnet50"):
        return of("resnet").ResNet(int(name[6:]), classes)
    if family in ("bert", "gpt2", "xlnet"):
        module = of(family)
        net = {"bert": "BERT", "gpt2": "GPT2", "xlnet": "XLNet"}[family]
        more = (classes,) if family == "xlnet" else ()
        width, depth, heads = module.SIZES[name]
        return getattr(module, net)(width, layers or depth, heads, vocabulary, *more)
    if family == "mlp":
        neurons, depth = name[4:].split("x")
        return of("digits").mlp(int(neurons), int(depth), classes)
    return {
        "vgg16": lambda: of("vgg").vgg16(classes),
        "mobilenet_v2": lambda: of("mobile").mobilenet_v2(classes),
        "mobilenet_v3_small": lambda: of("mobile").mobilenet_v3_small(classes),
        "efficientnet_b0": lambda: of("mobile").efficientnet_b0(classes),
        "inception_v3": lambda: of("inception").inception_v3(classes),
        "xception": lambda: of("inception").xception(classes),
        "unet": lambda: of("unet").UNet(classes),
        "maskrcnn": lambda: of("maskrcnn").MaskRCNN(classes, regions),
        "dlrm": lambda: of("dlrm").DLRM(),
        "mnist_cnn": lambda: of("digits").mnist_cnn(classes),
    }[name]()


class _Weightless(torch.overrides.TorchFunctionMode):
    """Makes tensors without memory. PyTorch 2 has torch.device("meta") for that; 1.13 does not."""

    makers = {torch.empty, torch.zeros, torch.ones, torch.full, torch.arange, torch.tensor, torch.randn, torch.linspace, torch.tril_indices}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in self.makers:
            kwargs["device"] = "meta"
        return function(*args, **kwargs)


def parameters(name, classes, vocabulary, which):
    """The number of a network's parameters, shared ones once, and its origin. Allocates no parameters."""
    with _Weightless():
        net, origin = build(name, classes, vocabulary, which=which)
    return sum(p.numel() for p in net.parameters()), origin
