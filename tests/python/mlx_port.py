"""The transformer, two cache policies and the sampler in MLX.

SPDX-License-Identifier: Apache-2.0

    python3 tests/python/mlx_port.py MODEL EMBEDS DUMP [--cache fifo|tether]
        [--latents N] [--size WxH] [--budget K] [--sink S] [--memory M]
        [--recent R] [--seed S] [--dtype float32|bfloat16]

This is a port as somebody else would write it: from the pages src/dit,
src/cache, src/rollout and src/golden alone, with the operators that MLX brings.
It shares no code with tether. It reads MODEL's config.json and safetensors and
the text of `tether embed`, makes a rollout, and writes what it computed under
the names of src/validate/names.md. check_mlx.py lets `tether validate` compare.

F frames of a chunk, L tokens of a frame, H heads of D, dim = H D, C latent
channels of h x w. A chunk has F L tokens, in the order frame, row, column."""
import argparse
import json
import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np


# ---- operators that MLX does not have -------------------------------------------

def rope_table(D, frames, rows, columns):
    """cos and sin [F, L, 1, D/2] of the angles of every pair. The first pairs
    rotate by the frame's position, the next by the row, the last by the
    column."""
    pairs = D // 2
    third = pairs // 3
    axes = np.meshgrid(frames, np.arange(rows), np.arange(columns),
                       indexing="ij")
    angle = [at[..., None] * 10000.0 ** (-np.arange(n) / n)
             for at, n in zip(axes, (pairs - 2 * third, third, third))]
    angle = np.concatenate(angle, -1)
    angle = angle.reshape(len(frames), rows * columns, 1, pairs)
    return (mx.array(np.cos(angle).astype(np.float32)),
            mx.array(np.sin(angle).astype(np.float32)))


def rotate(x, table):
    """Neighbouring channels (2j, 2j+1) are a pair. x [F, L, H, D]."""
    cos, sin = table
    a, b = x[..., 0::2], x[..., 1::2]
    y = mx.stack([a * cos - b * sin, a * sin + b * cos], -1)
    return y.reshape(x.shape).astype(x.dtype)


def attention(q, k, v):
    """softmax(q k^T / sqrt(D)) v without a mask. q [n, H, D] -> [n, dim]."""
    n, H, D = q.shape
    q, k, v = (x.transpose(1, 0, 2)[None] for x in (q, k, v))
    o = mx.fast.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(D))
    return o[0].transpose(1, 0, 2).reshape(n, H * D)


def modulate(x, scale, shift):
    return x * (1 + scale) + shift


# ---- the transformer ------------------------------------------------------------

class Transformer:
    """tap(name, x) sees every tensor that has a name."""

    def __init__(self, folder, tap, dtype=mx.float32):
        with open(f"{folder}/config.json") as f:
            c = json.load(f)
        self.w = mx.load(f"{folder}/diffusion_pytorch_model.safetensors")
        self.w = {name: x.astype(dtype) for name, x in self.w.items()}
        self.dim, self.H, self.eps = c["dim"], c["num_heads"], c["eps"]
        self.layers, self.freq_dim = c["num_layers"], c["freq_dim"]
        self.C, self.text_len = c["in_dim"], c["text_len"]
        self.D = self.dim // self.H
        self.tap, self.dtype = tap, dtype

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, x):
        return mx.fast.layer_norm(x, None, None, self.eps)

    def rms(self, x, name):
        return mx.fast.rms_norm(x, self.w[name + ".weight"], self.eps)

    def heads(self, x):
        return x.reshape(-1, self.H, self.D)

    # ---- what enters ----

    def patchify(self, x):
        """[F, C, h, w] -> [F L, 4 C]: features are (channel, dy, dx)."""
        F, C, h, w = x.shape
        x = x.reshape(F, C, h // 2, 2, w // 2, 2)
        return x.transpose(0, 2, 4, 1, 3, 5).reshape(-1, 4 * C)

    def embed_patches(self, x):
        w = self.w["patch_embedding.weight"].reshape(self.dim, -1)
        x = self.patchify(x).astype(self.dtype)
        return x @ w.T + self.w["patch_embedding.bias"]

    def embed_time(self, t):
        """e [1, dim] for the head, e0 [1, 6, dim] for the blocks."""
        half = self.freq_dim // 2
        angle = t * 10000.0 ** (-np.arange(half) / half)
        x = np.concatenate([np.cos(angle), np.sin(angle)])
        x = mx.array(x.astype(np.float32))[None].astype(self.dtype)
        x = nn.silu(self.linear(x, "time_embedding.0"))
        e = self.linear(x, "time_embedding.2")
        e0 = self.linear(nn.silu(e), "time_projection.1")
        return e, e0.reshape(1, 6, self.dim)

    def embed_text(self, text):
        """Keys and values of the prompt for every block; nothing is masked."""
        text = mx.pad(text, [(0, self.text_len - len(text)), (0, 0)])
        x = self.linear(text.astype(self.dtype), "text_embedding.0")
        context = self.linear(nn.gelu_approx(x), "text_embedding.2")
        self.tap("context", context)
        kv = []
        for i in range(self.layers):
            name = f"blocks.{i}.cross_attn"
            k = self.rms(self.linear(context, name + ".k"), name + ".norm_k")
            v = self.linear(context, name + ".v")
            kv.append((self.heads(k), self.heads(v)))
            self.tap(f"block.{i}/cross_attn.k", kv[i][0])
            self.tap(f"block.{i}/cross_attn.v", kv[i][1])
        return kv

    # ---- a block ----

    def self_attention(self, a, name, at, cache, run):
        F, h, w = run["F"], run["h"] // 2, run["w"] // 2
        shape = F, h * w, self.H, self.D
        q = self.rms(self.linear(a, name + ".q"), name + ".norm_q")
        k = self.rms(self.linear(a, name + ".k"), name + ".norm_k")
        v = self.linear(a, name + ".v")
        q, k, v = (x.reshape(shape) for x in (q, k, v))
        self.tap(at + ".q", self.heads(q))
        self.tap(at + ".k", self.heads(k))
        self.tap(at + ".v", self.heads(v))
        cache.write(k, v, run["start"])
        cache.commit(q, run["clean"], self.tap, at.rsplit("/", 1)[0])
        key_at, query_at = cache.positions(run["start"], F)
        keys = rotate(cache.k, rope_table(self.D, key_at, h, w))
        queries = rotate(q, rope_table(self.D, query_at, h, w))
        o = attention(self.heads(queries), self.heads(keys),
                      self.heads(cache.v))
        o = self.linear(o, name + ".o")
        self.tap(at, o)
        return o

    def cross_attention(self, a, name, at, kv):
        q = self.rms(self.linear(a, name + ".q"), name + ".norm_q")
        q = self.heads(q)
        self.tap(at + ".q", q)
        o = self.linear(attention(q, *kv), name + ".o")
        self.tap(at, o)
        return o

    def ffn(self, a, name, at):
        a = nn.gelu_approx(self.linear(a, name + ".0"))
        y = self.linear(a, name + ".2")
        self.tap(at, y)
        return y

    def block(self, i, x, e0, kv, cache, at, run):
        name = f"blocks.{i}"
        m = e0 + self.w[name + ".modulation"]
        shift1, scale1, gate1, shift2, scale2, gate2 = (
            m[:, j] for j in range(6))
        a = modulate(self.norm(x), scale1, shift1)
        y = self.self_attention(a, name + ".self_attn", at + "/self_attn",
                                cache, run)
        x = x + gate1 * y
        a = mx.fast.layer_norm(x, self.w[name + ".norm3.weight"],
                               self.w[name + ".norm3.bias"], self.eps)
        x = x + self.cross_attention(a, name + ".cross_attn",
                                     at + "/cross_attn", kv)
        a = modulate(self.norm(x), scale2, shift2)
        x = x + gate2 * self.ffn(a, name + ".ffn", at + "/ffn")
        self.tap(at + "/out", x)
        return x

    # ---- what leaves ----

    def head(self, x, e, at, run):
        m = e[:, None] + self.w["head.modulation"]
        shift, scale = m[:, 0], m[:, 1]
        y = self.linear(modulate(self.norm(x), scale, shift), "head.head")
        self.tap(at + "/head", y)
        return self.unpatchify(y, run["F"], run["h"], run["w"])

    def unpatchify(self, y, F, h, w):
        """[F L, 4 C] -> [F, C, h, w]: here the channel is fastest."""
        y = y.reshape(F, h // 2, w // 2, 2, 2, self.C)
        return y.transpose(0, 5, 1, 3, 2, 4).reshape(F, self.C, h, w)

    def __call__(self, x, t, kv, caches, at, run):
        """The flow [F, C, h, w] of x; run: start, clean."""
        F, _, h, w = x.shape
        run = dict(run, F=F, h=h, w=w)
        self.tap(at + "/x", x)
        e, e0 = self.embed_time(t)
        self.tap(at + "/e", e)
        self.tap(at + "/e0", e0)
        y = self.embed_patches(x)
        self.tap(at + "/tokens", y)
        for i in range(self.layers):
            y = self.block(i, y, e0, kv[i], caches[i], f"{at}/block.{i}", run)
        flow = self.head(y, e, at, run).astype(mx.float32)
        self.tap(at + "/flow", flow)
        return flow


# ---- caches ---------------------------------------------------------------------

class Fifo:
    """The first S frames and the newest, K in all, at their positions in the
    video. k and v are [frames, L, H, D], keys before rotation."""

    def __init__(self, o):
        self.K, self.S = o.budget, o.sink
        self.number, self.seen = [], 0
        self.k = self.v = None

    def take(self, slots):
        slots = mx.array(slots)
        self.k, self.v = self.k[slots], self.v[slots]

    def append(self, k, v):
        self.k = k if self.k is None else mx.concatenate([self.k, k])
        self.v = v if self.v is None else mx.concatenate([self.v, v])

    def write(self, k, v, start):
        """Only the first pass of a chunk evicts; the others overwrite."""
        F = len(k)
        if start + F > self.seen:
            if len(self.number) + F > self.K:
                self.evict(len(self.number) + F - self.K)
            self.number += range(start, start + F)
            self.seen = start + F
        elif len(self.number) > F:
            self.take(list(range(len(self.number) - F)))
        else:
            self.k = self.v = None
        self.append(k, v)

    def evict(self, n):
        left = list(range(self.S)) + list(range(self.S + n, len(self.number)))
        self.take(left)
        self.number = [self.number[i] for i in left]

    def commit(self, q, clean, tap, at):
        pass

    def positions(self, start, F):
        return np.array(self.number), np.arange(start, start + F)


def statistics(x):
    """Mean and deviation of every channel over frames and tokens."""
    x = x.astype(mx.float64).reshape(-1, *x.shape[-2:])
    mean = x.mean(0)
    return mean, mx.maximum(mx.sqrt(mx.square(x - mean).mean(0)), 1e-6)


def edit(x, trusted, tau):
    """TAME: a frame [L, H, D] is drawn towards the trusted frames."""
    to_mean, to_sd = trusted
    mean, sd = statistics(x)
    y = to_sd * (x.astype(mx.float64) - mean) / sd + to_mean
    return ((1 - tau) * x.astype(mx.float64) + tau * y).astype(x.dtype)


class Tether(Fifo):
    """Sink, memory and recent frames; the position of a frame is its slot."""
    alpha, tau = 0.35, 0.35

    def __init__(self, o):
        super().__init__(o)
        self.M, self.R = o.memory, o.recent
        self.member = self.aside = None

    def evict(self, n):
        """The oldest recent frames are set aside until the clean pass."""
        first = self.S + self.M
        out = mx.array(list(range(first, first + n)))
        self.aside = self.k[out], self.v[out]
        self.aside_number = [self.seen - self.R + i for i in range(n)]
        left = list(range(first)) + list(range(first + n, self.K))
        self.take(left)
        self.number = [self.number[i] for i in left]

    def positions(self, start, F):
        slots = np.arange(len(self.number))
        return slots, slots[-F:]

    def commit(self, q, clean, tap, at):
        """The clean pass selects, edits and writes back, then attends."""
        if not clean or len(self.number) < self.K:
            return
        if self.member is None:
            self.member = list(range(self.S, self.S + self.M))
        if self.aside is None:
            return
        at += "/admit.0"
        number = self.member + self.aside_number
        memory = slice(self.S, self.S + self.M)
        k = mx.concatenate([self.k[memory], self.aside[0]])
        v = mx.concatenate([self.v[memory], self.aside[1]])
        keep = self.select(q, k, number, tap, at)
        trusted = self.S + self.M
        stat_k, stat_v = statistics(self.k[:trusted]), \
            statistics(self.v[:trusted])
        for name, (mean, sd) in (("k", stat_k), ("v", stat_v)):
            tap(f"{at}/tame.mean_{name}", mean)
            tap(f"{at}/tame.sd_{name}", sd)
        new_k, new_v = [], []
        for c in keep:
            key, value = k[c], v[c]
            if c >= self.M:
                key = edit(key, stat_k, self.tau)
                value = edit(value, stat_v, self.tau)
                tap(f"{at}/tame.k/c.{c}", key)
                tap(f"{at}/tame.v/c.{c}", value)
            new_k.append(key)
            new_v.append(value)
        self.k = mx.concatenate([self.k[:self.S], mx.stack(new_k),
                                 self.k[trusted:]])
        self.v = mx.concatenate([self.v[:self.S], mx.stack(new_v),
                                 self.v[trusted:]])
        self.member = [number[c] for c in keep]
        self.aside = None

    def select(self, q, k, number, tap, at):
        """GRAB: the M candidates with the largest scores, in their order."""
        H, D = q.shape[-2:]
        q = np.array(q.astype(mx.float32)).astype(np.float64)
        k = np.array(k.astype(mx.float32)).astype(np.float64)
        mean_q, mean_k = q.mean((0, 1)).ravel(), k.mean(1).reshape(len(k), -1)
        logit = mean_k @ mean_q / (H * math.sqrt(D))
        mass = np.exp(logit - logit.max())
        mass /= mass.sum()
        number = np.array(number)
        sigma = max(1, 0.5 * (number.max() - number.min() + 1))
        near = np.exp(-abs(number[:, None] - number) / sigma) * mass
        np.fill_diagonal(near, 0)
        div = np.maximum(0, 1 - near.max(1))
        score = mass + self.alpha * div
        best = sorted(range(len(score)), key=lambda c: -score[c])[:self.M]
        keep = np.zeros(len(score), np.uint8)
        keep[best] = 1
        for name, x in (("candidates", number), ("mass", mass), ("div", div),
                        ("score", score), ("keep", keep)):
            tap(f"{at}/grab.{name}", x)
        return sorted(best)


# ---- the sampler ----------------------------------------------------------------

def philox(counter, key):
    """Philox4x32-10: counters [n, 4] -> words [n, 4]."""
    low = np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3 = (counter[:, i].astype(np.uint64) for i in range(4))
    k0, k1 = (np.uint64(k) for k in key)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = ((b >> np.uint64(32)) ^ c1 ^ k0, b & low,
                          (a >> np.uint64(32)) ^ c3 ^ k1, a & low)
        k0 = (k0 + np.uint64(0x9E3779B9)) & low
        k1 = (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack([c0, c1, c2, c3], 1)


def noise(shape, seed, start, stream):
    """[F, C, h, w] of the generator tn1: a value depends on its address."""
    F, n = shape[0], math.prod(shape[1:])
    out = []
    for frame in range(start, start + F):
        counter = np.zeros((-(-n // 4), 4), np.uint64)
        counter[:, 0] = np.arange(len(counter))
        counter[:, 1], counter[:, 2] = frame, stream
        word = philox(counter, (seed & 0xFFFFFFFF, seed >> 32))
        r = np.sqrt(-2 * np.log((word[:, 0::2] + 0.5) / 2**32))
        turn = word[:, 1::2] * (2 * np.pi / 2**32)
        z = np.stack([r * np.cos(turn), r * np.sin(turn)], -1)
        out.append(z.reshape(-1)[:n].reshape(shape[1:]))
    return mx.array(np.stack(out).astype(np.float32))


SHIFT = 5
U = 1 - np.arange(1000) / 1000
SIGMA = (SHIFT * U / (1 + (SHIFT - 1) * U)).astype(np.float32)
TIME = SIGMA * np.float32(1000)
STEPS = [float(TIME[1000 - d]) for d in (1000, 750, 500, 250)]


def sigma_of(t):
    return float(SIGMA[np.argmin(abs(TIME.astype(np.float64) - t))])


def make_chunk(model, kv, caches, seed, shape, start, chunk):
    """Four denoising passes, then the clean pass at t = 0."""
    x = noise(shape, seed, start, 0)
    for j, t in enumerate(STEPS + [0]):
        at = f"chunk.{chunk}/step.{j}"
        flow = model(x, t, kv, caches, at,
                     {"start": start, "clean": j == len(STEPS)})
        x0 = x - sigma_of(t) * flow
        model.tap(at + "/x0", x0)
        if j < len(STEPS) - 1:
            s = sigma_of(STEPS[j + 1])
            x = (1 - s) * x0 + s * noise(shape, seed, start, j + 1)
        elif j == len(STEPS) - 1:
            x = latents = x0
    return latents


def rollout(model, text, o):
    """latents [N, C, h, w] in chunks of 3."""
    w, h = (int(n) // 8 for n in o.size.split("x"))
    policy = {"fifo": Fifo, "tether": Tether}[o.cache]
    caches = [policy(o) for _ in range(model.layers)]
    kv = model.embed_text(text)
    return mx.concatenate([
        make_chunk(model, kv, caches, o.seed, (3, model.C, h, w), start,
                   start // 3) for start in range(0, o.latents, 3)])


# ---- the program ----------------------------------------------------------------

def options(words):
    p = argparse.ArgumentParser()
    for name in ("model", "embeds", "dump"):
        p.add_argument(name)
    for name, value in (("latents", 9), ("budget", 6), ("sink", 1),
                        ("memory", 2), ("recent", 3), ("seed", 0)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--cache", choices=("fifo", "tether"), default="fifo")
    p.add_argument("--size", default="48x32")
    p.add_argument("--dtype", default="float32")
    return p.parse_args(words)


def run(words):
    """{name: array} of a rollout, in the order of execution."""
    o, tensors = options(words), {}

    def tap(name, x):
        if isinstance(x, mx.array):
            x = np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)
        tensors[name] = x
    model = Transformer(o.model, tap, getattr(mx, o.dtype))
    rollout(model, mx.load(o.embeds)["text"][0], o)
    mx.save_safetensors(o.dump, {            # MLX writes no F64
        name: mx.array(x.astype(np.float32) if x.dtype == np.float64 else x)
        for name, x in tensors.items()}, {"format": "mlx"})
    return tensors


if __name__ == "__main__":
    run(None)
