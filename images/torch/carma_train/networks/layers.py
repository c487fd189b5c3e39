"""Parts that several networks use."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(before, out, kernel=1, stride=1, groups=1, act=nn.ReLU, pad=None, eps=1e-5):
    """A convolution without bias, its batch norm, and an activation in place (act=None: none)."""
    if pad is None:
        pad = tuple(k // 2 for k in kernel) if isinstance(kernel, tuple) else kernel // 2
    parts = [nn.Conv2d(before, out, kernel, stride, pad, groups=groups, bias=False), nn.BatchNorm2d(out, eps=eps)]
    if act is not None:
        parts.append(act(inplace=True))
    return nn.Sequential(*parts)


def divisible(channels):
    """Channels rounded to a multiple of 8, at most a tenth down."""
    n = max(8, int(channels + 4) // 8 * 8)
    return n + 8 if n < 0.9 * channels else n


def attend(q, k, v, dropout, causal=False):
    """Attention over (batch, heads, tokens, width), fused where PyTorch has it (2.0 and later)."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        n = q.shape[-2]
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
    return F.dropout(scores.softmax(-1), dropout) @ v


def split_heads(x, heads):
    """(batch, tokens, width) to (batch, heads, tokens, width / heads)."""
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads).transpose(1, 2)


def join_heads(x):
    batch, heads, tokens, width = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, heads * width)


def small_weights(net, std=0.02):
    """Normal weights, as the transformers were trained from."""
    for module in net.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
