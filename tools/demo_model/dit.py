"""dit.py: the causal Wan2.1 transformer (include/tether/dit.h), for training.

Source: wan/modules/causal_model.py (structure, parameter names).
SPDX-License-Identifier: Apache-2.0

Training runs two streams of the same clip at the same positions: the clean
frames at t = 0, which is the state the cache has at inference, and the noisy
ones, each chunk at its own level. A clean chunk sees clean chunks up to
itself; a noisy chunk sees the clean ones before it, and itself. call() is the
cached form of the same network; test_recipe.py holds both against each other.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

CHUNK = 3
STEPS = (1.0, 0.9375, 2.5 / 3, 0.625)      # sigma of the four denoising steps


def attention(q, k, v):
    """Plain softmax attention: for so few tokens the fused kernel's backward
    pass is several times slower on a CPU."""
    p = torch.softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2), -1)
    return p.to(v.dtype) @ v


class Rms(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        x = x.float() if x.dtype == torch.bfloat16 else x
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps
                               ) * self.weight


class Attention(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        for name in "qkvo":
            setattr(self, name, nn.Linear(dim, dim))
        self.norm_q, self.norm_k = Rms(dim, eps), Rms(dim, eps)


class Block(nn.Module):
    def __init__(self, dim, ffn, heads, eps):
        super().__init__()
        self.heads, self.eps = heads, eps
        self.self_attn, self.cross_attn = (Attention(dim, eps),
                                           Attention(dim, eps))
        self.norm3 = nn.LayerNorm(dim, eps=eps)
        self.ffn = nn.Sequential(nn.Linear(dim, ffn),
                                 nn.GELU(approximate="tanh"),
                                 nn.Linear(ffn, dim))
        self.modulation = nn.Parameter(torch.randn(1, 6, dim) * dim ** -0.5)

    def split(self, x):                        # [B, S, dim] -> [B, H, S, D]
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def text(self, context):
        a = self.cross_attn
        return self.split(a.norm_k(a.k(context))), self.split(a.v(context))

    def forward(self, x, e, turn, text, attend):
        """x [B, F, L, dim]; e [B, F, 1, 6, dim]; attend(q, k, v) chooses the
        keys of each query."""
        b, f, n, dim = x.shape
        m = (self.modulation + e).unbind(-2)
        a = F.layer_norm(x, (dim,), eps=self.eps) * (1 + m[1]) + m[0]
        a, s = a.flatten(1, 2), self.self_attn
        q = turn(self.split(s.norm_q(s.q(a))))
        k = turn(self.split(s.norm_k(s.k(a))))
        o = attend(q, k, self.split(s.v(a)))
        x = x + s.o(o.transpose(1, 2).flatten(2)).view(b, f, n, dim) * m[2]
        c = self.cross_attn
        q = self.split(c.norm_q(c.q(self.norm3(x).flatten(1, 2))))
        q, k, v = (t.to(text[1].dtype) for t in (q, *text))
        o = attention(q, k, v)
        x = x + c.o(o.transpose(1, 2).flatten(2)).view(b, f, n, dim)
        y = F.layer_norm(x, (dim,), eps=self.eps) * (1 + m[4]) + m[3]
        return x + self.ffn(y) * m[5]


class Head(nn.Module):
    def __init__(self, dim, out, eps):
        super().__init__()
        self.head, self.eps = nn.Linear(dim, 4 * out), eps
        self.modulation = nn.Parameter(torch.randn(1, 2, dim) * dim ** -0.5)

    def forward(self, x, e):                   # e [B, F, 1, dim]
        m = (self.modulation + e[..., None, :]).unbind(-2)
        y = F.layer_norm(x, x.shape[-1:], eps=self.eps)
        return self.head(y * (1 + m[1]) + m[0])


def turned(x, angle):
    """RoPE on interleaved pairs; x [B, H, S, D], angle [S, D / 2]."""
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


class Dit(nn.Module):
    def __init__(self, dim=128, layers=6, ffn=512, heads=4, freq=256,
                 text_dim=64, channels=16, eps=1e-6):
        super().__init__()
        self.heads, self.freq, self.channels = heads, freq, channels
        self.head_dim = dim // heads
        self.patch_embedding = nn.Conv3d(channels, dim, (1, 2, 2), (1, 2, 2))
        self.text_embedding = nn.Sequential(
            nn.Linear(text_dim, dim), nn.GELU(approximate="tanh"),
            nn.Linear(dim, dim))
        self.time_embedding = nn.Sequential(nn.Linear(freq, dim), nn.SiLU(),
                                            nn.Linear(dim, dim))
        self.time_projection = nn.Sequential(nn.SiLU(),
                                             nn.Linear(dim, 6 * dim))
        self.blocks = nn.ModuleList(Block(dim, ffn, heads, eps)
                                    for _ in range(layers))
        self.head = Head(dim, channels, eps)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                nn.init.zeros_(m.bias)
        nn.init.normal_(self.time_projection[1].weight, std=0.02)
        nn.init.zeros_(self.head.head.weight)

    def angles(self, frames, h, w):
        """frames: positions [F] -> [F * h * w, head_dim / 2]"""
        c = self.head_dim // 2
        counts = (c - 2 * (c // 3), c // 3, c // 3)
        grid = torch.meshgrid(frames.double(), torch.arange(h).double(),
                              torch.arange(w).double(), indexing="ij")
        return torch.cat([
            g.flatten()[:, None] * 10000.0 ** (-torch.arange(n).double() / n)
            for g, n in zip(grid, counts)], 1)

    def embed(self, x):
        """[B, F, C, H, W] -> [B, F, L, dim]"""
        b, f = x.shape[:2]
        w = self.patch_embedding.weight.flatten(1)
        p = F.unfold(x.flatten(0, 1), 2, stride=2).transpose(1, 2)
        return F.linear(p, w, self.patch_embedding.bias).unflatten(0, (b, f))

    def time(self, t):
        """[B, F] -> e [B, F, 1, dim], e0 [B, F, 1, 6, dim]"""
        half = self.freq // 2
        a = t.double()[..., None] * 10000.0 ** (
            -torch.arange(half).double() / half)
        s = torch.cat([a.cos(), a.sin()], -1).to(
            self.patch_embedding.weight.dtype)
        e = self.time_embedding(s)[:, :, None]
        return e, self.time_projection(e).unflatten(-1, (6, -1))

    def picture(self, y, h, w):
        """[B, F, L, 4C] -> [B, F, C, 2h, 2w]"""
        b, f = y.shape[:2]
        y = y.view(b, f, h, w, 2, 2, self.channels)
        return y.permute(0, 1, 6, 2, 4, 3, 5).reshape(
            b, f, self.channels, 2 * h, 2 * w)

    def texts(self, states):
        context = self.text_embedding(states)
        return [b.text(context) for b in self.blocks]

    def run(self, x, t, positions, texts, attends):
        h, w = x.shape[-2] // 2, x.shape[-1] // 2
        angle = self.angles(positions, h, w)
        e, e0 = self.time(t)
        y = self.embed(x)
        for block, text, attend in zip(self.blocks, texts, attends):
            y = block(y, e0, lambda z: turned(z, angle), text, attend)
        return self.picture(self.head(y, e), h, w)

    def teacher(self, clean, noisy, sigma, texts):
        """Flow of every noisy chunk. clean, noisy [B, T, C, H, W]; sigma
        [B, T]. The last clean chunk has no reader and is left out."""
        frames = noisy.shape[1]
        past = frames - CHUNK
        size = CHUNK * noisy.shape[-1] * noisy.shape[-2] // 4
        x = torch.cat([clean[:, :past], noisy], 1)
        t = torch.cat([torch.zeros_like(sigma[:, :past]), 1000 * sigma], 1)
        order = torch.cat([torch.arange(past), torch.arange(frames)])

        def attend(q, k, v):
            q, k = q.to(v.dtype), k.to(v.dtype)
            q, k, v = (z.split(size, 2) for z in (q, k, v))
            n, out = past // CHUNK, []
            for i in range(len(q)):
                own = [i] if i < n else []     # a clean chunk sees itself
                seen = list(range(i if i < n else i - n)) + (own or [i])
                out.append(attention(
                    q[i], torch.cat([k[j] for j in seen], 2),
                    torch.cat([v[j] for j in seen], 2)))
            return torch.cat(out, 2)
        y = self.run(x, t, order, texts, [attend] * len(self.blocks))
        return y[:, past:]

    def call(self, x, t, start, texts, cache):
        """One cached call; cache: per block a list of (k, v) of earlier
        chunks. Returns the flow and this chunk's (k, v) per block."""
        kept = []

        def reader(past):
            def attend(q, k, v):
                q, k = q.to(v.dtype), k.to(v.dtype)
                kept.append((k, v))
                return attention(
                    q, torch.cat([p[0] for p in past] + [k], 2),
                    torch.cat([p[1] for p in past] + [v], 2))
            return attend
        at = torch.arange(start, start + x.shape[1])
        y = self.run(x, t, at, texts, [reader(c) for c in cache])
        return y, kept


@torch.no_grad()
def rollout(model, states, frames, noise, steps=STEPS):
    """Chunk by chunk with the full cache. noise(shape) gives normal numbers;
    states [B, n, text_dim]. Returns latents [B, frames, C, 8, 8]."""
    texts = model.texts(states)
    cache = [[] for _ in model.blocks]
    out = []
    for start in range(0, frames, CHUNK):
        shape = (states.shape[0], CHUNK, model.channels, 8, 8)
        x = noise(shape)
        for j, s in enumerate(steps):
            t = torch.full(shape[:2], 1000.0 * s)
            x0 = x - s * model.call(x, t, start, texts, cache)[0].float()
            if j + 1 < len(steps):
                x = (1 - steps[j + 1]) * x0 + steps[j + 1] * noise(shape)
        out.append(x0)
        _, kept = model.call(x0, torch.zeros(shape[:2]), start, texts, cache)
        for c, kv in zip(cache, kept):
            c.append(kv)
    return torch.cat(out, 1)
