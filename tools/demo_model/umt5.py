"""umt5.py: the umT5 encoder (include/tether/text.h), names as in Wan2.1.

SPDX-License-Identifier: Apache-2.0

No biases, no scaling of q k, a relative position table per block. q starts
small because nothing divides by sqrt(head_dim).
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def bucket(length, buckets):
    """[query, key] -> row of the position table."""
    r = torch.arange(length)[None, :] - torch.arange(length)[:, None]
    n = buckets // 2
    e, a = n // 2, r.abs()
    far = e + (torch.log(a.clamp_min(1).double() / e) / math.log(128 / e)
               * (n - e)).long()
    return (r > 0) * n + torch.where(a < e, a, far.clamp_max(n - 1))


class Rms(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6
                               ) * self.weight


def linear(a, b, std):
    m = nn.Linear(a, b, bias=False)
    nn.init.normal_(m.weight, std=std)
    return m


class Table(nn.Module):
    def __init__(self, buckets, heads):
        super().__init__()
        self.embedding = nn.Embedding(buckets, heads)
        nn.init.normal_(self.embedding.weight, std=0.5)


class Block(nn.Module):
    def __init__(self, dim, heads, head_dim, ffn, buckets):
        super().__init__()
        inner, s = heads * head_dim, dim ** -0.5
        self.heads, self.buckets = heads, buckets
        self.norm1, self.norm2 = Rms(dim), Rms(dim)
        self.attn = nn.ModuleDict({
            "q": linear(dim, inner, s * head_dim ** -0.5),
            "k": linear(dim, inner, s), "v": linear(dim, inner, s),
            "o": linear(inner, dim, inner ** -0.5 * 0.5)})
        self.pos_embedding = Table(buckets, heads)
        self.ffn = nn.ModuleDict({
            "gate": nn.Sequential(linear(dim, ffn, s)),
            "fc1": linear(dim, ffn, s), "fc2": linear(ffn, dim,
                                                      ffn ** -0.5 * 0.5)})

    def forward(self, x, mask):
        b, n, _ = x.shape
        a, y = self.attn, self.norm1(x)
        q, k, v = (a[c](y).view(b, n, self.heads, -1).transpose(1, 2)
                   for c in "qkv")
        bias = self.pos_embedding.embedding(bucket(n, self.buckets))
        bias = bias.permute(2, 0, 1)[None].masked_fill(
            mask[:, None, None, :] == 0, torch.finfo(x.dtype).min)
        o = torch.softmax(q @ k.transpose(-1, -2) + bias, -1) @ v
        x = x + a["o"](o.transpose(1, 2).reshape(b, n, -1))
        f, y = self.ffn, self.norm2(x)
        return x + f["fc2"](f["fc1"](y) * F.gelu(f["gate"](y),
                                                 approximate="tanh"))


class Encoder(nn.Module):
    def __init__(self, vocab, dim=64, heads=4, head_dim=16, ffn=128, layers=2,
                 buckets=32):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, head_dim, ffn, buckets)
                                    for _ in range(layers))
        self.norm = Rms(dim)

    def forward(self, ids, mask):
        """[B, n] -> [B, n, dim], rows past the prompt exactly zero."""
        x = self.token_embedding(ids)
        for b in self.blocks:
            x = b(x, mask)
        return self.norm(x) * mask[..., None].to(x.dtype)
