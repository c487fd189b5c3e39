"""The networks of torchvision, timm and transformers, if these are installed."""

import importlib

from torch import nn

VISION = ("resnet18", "resnet34", "resnet50", "vgg16", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "inception_v3")


def build(name, classes, vocabulary, layers=0, regions=512):
    """A network and its library's name and version; None if the library is missing or has no such network."""
    if name in VISION:
        return _with("torchvision", _vision, name, classes)
    if name == "maskrcnn":
        return _with("torchvision", _detector, classes, regions)
    if name == "xception":
        return _with("timm", lambda m, n, c: m.create_model("legacy_xception", num_classes=c), name, classes)
    if name.split("_")[0] in ("bert", "gpt2", "xlnet"):
        return _with("transformers", _language, name, classes, vocabulary, layers)
    return None


def _with(module, make, *args):
    try:
        m = importlib.import_module(module)
    except ImportError:
        return None
    return make(m, *args), f"{module} {m.__version__}"


def _vision(torchvision, name, classes):
    more = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    return getattr(torchvision.models, name)(weights=None, num_classes=classes, **more)


class _Detector(nn.Module):
    """torchvision's Mask R-CNN with batch norms that are trained. Its own resizing is left out: it gets images of their size."""

    def __init__(self, torchvision, classes, regions):
        super().__init__()
        make = torchvision.models.detection.maskrcnn_resnet50_fpn
        self.net = make(weights=None, weights_backbone=None, num_classes=classes, norm_layer=nn.BatchNorm2d, box_batch_size_per_image=regions)

    def forward(self, images, boxes, labels, masks):
        side = images.shape[-2:]
        self.net.transform.min_size, self.net.transform.max_size = (min(side),), max(side)
        targets = [{"boxes": b, "labels": k, "masks": m} for b, k, m in zip(boxes, labels, masks)]
        return sum(self.net(list(images), targets).values())


def _detector(torchvision, classes, regions):
    importlib.import_module("torchvision.models.detection")
    return _Detector(torchvision, classes, regions)


class _Logits(nn.Module):
    """A network of transformers that returns only its logits."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, tokens):
        return self.net(input_ids=tokens).logits


def _language(transformers, name, classes, vocabulary, layers):
    from . import bert, gpt2, xlnet

    family = name.split("_")[0]
    width, depth, heads = {"bert": bert, "gpt2": gpt2, "xlnet": xlnet}[family].SIZES[name]
    depth = layers or depth
    if family == "bert":
        config = transformers.BertConfig(vocab_size=vocabulary, hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads,
                                         intermediate_size=4 * width)
        return _Logits(transformers.BertForMaskedLM(config))
    if family == "gpt2":
        config = transformers.GPT2Config(vocab_size=vocabulary, n_embd=width, n_layer=depth, n_head=heads, use_cache=False)
        return _Logits(transformers.GPT2LMHeadModel(config))
    config = transformers.XLNetConfig(vocab_size=vocabulary, d_model=width, n_layer=depth, n_head=heads, d_inner=4 * width, num_labels=classes,
                                      use_mems_train=False, use_mems_eval=False)
    return _Logits(transformers.XLNetForSequenceClassification(config))
