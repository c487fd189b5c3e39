"""Writes reference.tsv: parameters and kept bytes of the libraries' own models.

Columns: name in the catalogue, image or sequence, rank of the adapters (LoRA),
parameters, bytes kept for the backward pass per sample (0: not measured). The parameters are counted on
the meta device. The kept bytes are what saved-tensor hooks see in a forward
pass in training mode on the CPU, each storage once, without parameters and
buffers: the difference between batches of 3 and of 2. Two things are as on a
GPU: dropout is native_dropout (a mask of one byte), and the fused attention
has no dropout, because the CPU's kernel has none.

Usage: python reference.py [name ...] > reference.tsv, or name+8 for adapters of
rank 8.
"""
import gc
import sys

import timm
import torch
import torch.nn.functional as F
import torchvision
import transformers
from torchvision import models as tv

plain_dropout, plain_attention = F.dropout, F.scaled_dot_product_attention


def dropout(x, p=0.5, training=True, inplace=False):
    if inplace or not training or p == 0:
        return plain_dropout(x, p, training, inplace)
    return torch.native_dropout(x, p, True)[0]


def attention(*args, **kwargs):
    kwargs["dropout_p"] = 0.0
    return plain_attention(*args, **kwargs)


F.dropout, F.scaled_dot_product_attention = dropout, attention


def image_loss(net, batch, side):
    out = net(torch.randn(batch, 3, side, side))
    y = torch.zeros(batch, dtype=torch.long)
    if isinstance(out, tuple):  # Inception with its auxiliary head
        return F.cross_entropy(out[0], y) + 0.4 * F.cross_entropy(out[1], y)
    return F.cross_entropy(out, y)


def masked_loss(net, batch, length):
    ids = torch.ones(batch, length, dtype=torch.long)
    return net(input_ids=ids, labels=ids.clone()).loss


def causal_loss(net, batch, length):
    ids = torch.ones(batch, length, dtype=torch.long)
    logits = net(input_ids=ids, use_cache=False).logits
    shifted, labels = logits[..., :-1, :].contiguous(), ids[..., 1:].contiguous()
    return F.cross_entropy(shifted.view(-1, shifted.size(-1)), labels.view(-1))


def sequence_loss(net, batch, length):
    ids = torch.ones(batch, length, dtype=torch.long)
    return net(input_ids=ids, labels=torch.zeros(batch, dtype=torch.long)).loss


def translation_loss(net, batch, length):
    ids = torch.ones(batch, length, dtype=torch.long)
    return net(input_ids=ids, labels=ids.clone(), use_cache=False).loss


def kept(make, loss, batch, size):
    torch.manual_seed(0)
    net = make().train()
    own = {t.untyped_storage().data_ptr() for t in [*net.parameters(), *net.buffers()]}
    storages, alive = {}, []

    def pack(t):
        s = t.untyped_storage()
        if s.data_ptr() not in own:
            storages[s.data_ptr()] = s.nbytes()
        alive.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = loss(net, batch, size)
    total = sum(storages.values())
    del out, net, own, pack
    alive.clear()
    gc.collect()
    return total


class Adapted(torch.nn.Module):
    """A linear layer with an adapter, as peft adds it."""

    def __init__(self, base, rank):
        super().__init__()
        out, inner = base.weight.shape
        if type(base).__name__ == "Conv1D":
            out, inner = inner, out
        self.base = base
        self.a = torch.nn.Linear(inner, rank, bias=False)
        self.b = torch.nn.Linear(rank, out, bias=False)

    @property
    def weight(self):
        return self.base.weight

    def forward(self, x):
        return self.base(x) + self.b(self.a(x)) * 2.0


def adapted(make, rank):
    names = {"query", "value", "q", "v", "q_proj", "v_proj", "qkv", "c_attn"}

    def made():
        net = make()
        for p in net.parameters():
            p.requires_grad = False
        for module in list(net.modules()):
            for name, child in list(module.named_children()):
                if name in names and hasattr(child, "weight"):
                    setattr(module, name, Adapted(child, rank))
        return net
    return made


def fixed_regions(proposals, targets):
    """512 regions of each image, 64 of them with an object."""
    n = len(proposals)
    boxes = [torch.tensor([[10.0, 10.0, 90.0, 90.0]]).repeat(512, 1) for _ in range(n)]
    labels = [torch.cat([torch.ones(64), torch.zeros(448)]).long() for _ in range(n)]
    return boxes, [torch.zeros(512, dtype=torch.long)] * n, labels, [torch.zeros(512, 4)] * n


def detector():
    net = tv.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, min_size=320, max_size=533)
    net.roi_heads.select_training_samples = fixed_regions
    return net


class UNet(torch.nn.Module):
    """ResNet-34 with a decoder that joins the encoder's output of each size."""

    def __init__(self):
        super().__init__()
        self.encoder = tv.resnet34()
        del self.encoder.fc
        sizes = zip([512, 256, 128, 64, 32], [256, 128, 64, 64, 0], [256, 128, 64, 32, 16])
        self.decoder = torch.nn.ModuleList(
            torch.nn.Sequential(*(m for i in [a + b, c] for m in (
                torch.nn.Conv2d(i, c, 3, padding=1, bias=False), torch.nn.BatchNorm2d(c), torch.nn.ReLU(True))))
            for a, b, c in sizes)
        self.head = torch.nn.Conv2d(16, 21, 3, padding=1)

    def forward(self, x):
        e = self.encoder
        skips = [e.relu(e.bn1(e.conv1(x)))]
        x = e.maxpool(skips[0])
        for stage in [e.layer1, e.layer2, e.layer3, e.layer4]:
            x = stage(x)
            skips.append(x)
        skips = [None, *skips[:-1]]
        for block in self.decoder:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            skip = skips.pop()
            x = block(x if skip is None else torch.cat([x, skip], 1))
        return self.head(x)


def segmentation_loss(net, batch, side):
    return F.cross_entropy(net(torch.randn(batch, 3, side, side)), torch.zeros(batch, side, side, dtype=torch.long))


def detection_loss(net, batch, side):
    height, width = side, side * 1333 // 800
    target = {"boxes": torch.tensor([[10.0, 10.0, 90.0, 90.0]]), "labels": torch.ones(1, dtype=torch.long),
              "masks": torch.ones(1, height, width, dtype=torch.uint8)}
    losses = net([torch.rand(3, height, width) for _ in range(batch)], [dict(target) for _ in range(batch)])
    return sum(losses.values())


def hf(cls, config, **kw):
    def make():
        return cls(config(**kw))
    return make


def bert(layers, width, heads):
    return hf(transformers.BertForMaskedLM, transformers.BertConfig, vocab_size=28996, num_hidden_layers=layers,
              hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width)


def gpt2(layers, width, heads):
    return hf(transformers.GPT2LMHeadModel, transformers.GPT2Config, n_layer=layers, n_embd=width, n_head=heads)


def xlnet(layers, width, heads):
    return hf(transformers.XLNetForSequenceClassification, transformers.XLNetConfig, n_layer=layers, d_model=width,
              n_head=heads, d_inner=4 * width, num_labels=2)


def t5(layers, width, inner, heads, key=64):
    return hf(transformers.T5ForConditionalGeneration, transformers.T5Config, vocab_size=32128, num_layers=layers,
              d_model=width, d_ff=inner, num_heads=heads, d_kv=key, attn_implementation="eager",
              decoder_start_token_id=0)


def llama(layers, width, inner, heads, kv, vocab, tied=False, head=None):
    return hf(transformers.LlamaForCausalLM, transformers.LlamaConfig, num_hidden_layers=layers, hidden_size=width,
              intermediate_size=inner, num_attention_heads=heads, num_key_value_heads=kv, vocab_size=vocab,
              tie_word_embeddings=tied, head_dim=head or width // heads)


def regnet(name):
    def make():
        with torch.device("cpu"):  # its widths are computed with tensors
            return getattr(tv, name)()
    return make


MODELS = {}
for n in ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x8d",
          "wide_resnet50_2", "wide_resnet101_2", "vgg11", "vgg13", "vgg16", "vgg19",
          "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "densenet121", "densenet161", "densenet169",
          "densenet201", "convnext_tiny", "convnext_small", "convnext_base", "convnext_large", "swin_t", "swin_s",
          "swin_b", *("efficientnet_b%d" % i for i in range(8)),
          "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"]:
    MODELS[n] = (lambda n=n: getattr(tv, n)(), image_loss, 224)
for n in ["regnet_x_400mf", "regnet_y_400mf"]:
    MODELS[n] = (regnet(n), image_loss, 224)
MODELS["resnet18/cifar100"] = (lambda: tv.resnet18(num_classes=100), image_loss, 32)
MODELS["efficientnet_b0/cifar100"] = (lambda: tv.efficientnet_b0(num_classes=100), image_loss, 32)
MODELS["inception_v3"] = (lambda: tv.inception_v3(init_weights=False, aux_logits=False), image_loss, 299)
MODELS["inception_v3_aux"] = (lambda: tv.inception_v3(init_weights=False, aux_logits=True), image_loss, 299)
MODELS["xception"] = (lambda: timm.create_model("legacy_xception"), image_loss, 299)
for size in ["tiny", "small", "base", "large"]:
    MODELS["vit_" + size] = (lambda s=size: timm.create_model(f"vit_{s}_patch16_224", num_classes=1000), image_loss, 224)
MODELS["unet"] = (UNet, segmentation_loss, 128)
MODELS["maskrcnn"] = (detector, detection_loss, 320)
MODELS["bert_base"] = (bert(12, 768, 12), masked_loss, 128)
MODELS["bert_large"] = (bert(24, 1024, 16), masked_loss, 128)
MODELS["gpt2"] = (gpt2(12, 768, 12), causal_loss, 128)
MODELS["gpt2_medium"] = (gpt2(24, 1024, 16), causal_loss, 64)
MODELS["gpt2_large"] = (gpt2(36, 1280, 20), causal_loss, 0)
MODELS["gpt2_xl"] = (gpt2(48, 1600, 25), causal_loss, 0)
MODELS["xlnet_base"] = (xlnet(12, 768, 12), sequence_loss, 128)
MODELS["xlnet_large"] = (xlnet(24, 1024, 16), sequence_loss, 64)
MODELS["t5_small"] = (t5(6, 512, 2048, 8), translation_loss, 128)
MODELS["t5_base"] = (t5(12, 768, 3072, 12), translation_loss, 64)
MODELS["t5_large"] = (t5(24, 1024, 4096, 16), translation_loss, 0)
MODELS["llama_1b"] = (llama(16, 2048, 8192, 32, 8, 128256, True, 64), causal_loss, 0)
MODELS["llama_3b"] = (llama(28, 3072, 8192, 24, 8, 128256, True, 128), causal_loss, 0)
MODELS["llama_7b"] = (llama(32, 4096, 11008, 32, 32, 32000), causal_loss, 0)
MODELS["mistral_7b"] = (llama(32, 4096, 14336, 32, 8, 32000), causal_loss, 0)
MODELS["llama3_8b"] = (llama(32, 4096, 14336, 32, 8, 128256), causal_loss, 0)
MODELS["tinyllama"] = (llama(22, 2048, 5632, 32, 4, 32000), causal_loss, 64)


def main():
    print(f"# torch {torch.__version__}, torchvision {torchvision.__version__}, timm {timm.__version__}, "
          f"transformers {transformers.__version__}")
    for name in sys.argv[1:] or [*MODELS, "bert_base+8", "gpt2+8", "t5_small+8", "vit_base+8", "tinyllama+8"]:
        model, _, rank = name.partition("+")
        make, loss, size = MODELS[model]
        if rank:
            make = adapted(make, int(rank))
        with torch.device("meta"):
            params = sum(p.numel() for p in make().parameters())
        per_sample = kept(make, loss, 3, size) - kept(make, loss, 2, size) if size else 0
        print(model, size, rank or 0, params, per_sample, sep="\t", flush=True)


if __name__ == "__main__":
    main()
