"""example.py: every operator and one block in numpy, for check.py.

SPDX-License-Identifier: Apache-2.0

Each function has the arguments of a function for tether.check; None: there is
no such operand. Replace any of them by yours."""
import numpy as np

F = np.float32


def linear(x, w, b=None):
    y = x @ w.astype(F).T
    return y if b is None else y + b


def attention(q, k, v, scale, rel_bias=None, key_mask=None):
    """q [T, H, D], k and v [N, H, D]; rel_bias [H, 2N-1]; key_mask [N], 0: the
    key is not seen."""
    logits = np.einsum("thd,nhd->htn", q, k) * F(scale)
    n = len(k)
    bias = np.zeros_like(logits)
    if rel_bias is not None:
        bias += rel_bias[:, np.arange(n) - np.arange(n)[:, None] + n - 1]
    if key_mask is not None:
        bias[..., key_mask == 0] = np.finfo(F).min
    logits = logits + bias
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return np.einsum("htn,nhd->thd", p / p.sum(-1, keepdims=True), v)


def conv(frames, w, b, stride, pad_top, pad_left, up, out):
    """frames: kt of [Hi, Wi, Cin], oldest first; w [Cout, kt, kh, kw, Cin]."""
    kh, kw = w.shape[2:4]
    y = np.zeros((*out, len(w)), F) if b is None else np.tile(b, (*out, 1))
    for a, f in enumerate(frames):
        f = f.repeat(up, 0).repeat(up, 1)
        behind = [max(0, (o - 1) * stride + k - f.shape[i] - p) for i, (o, k, p)
                  in enumerate(((out[0], kh, pad_top), (out[1], kw, pad_left)))]
        f = np.pad(f, ((pad_top, behind[0]), (pad_left, behind[1]), (0, 0)))
        for i in range(kh):
            for j in range(kw):
                at = f[i:i + stride * out[0]:stride, j:j + stride * out[1]:stride]
                y = y + at[:out[0], :out[1]] @ w[:, a, i, j].astype(F).T
    return y


def layer_norm(x, w=None, b=None, eps=1e-6):
    d = x - x.mean(-1, keepdims=True, dtype=float)
    y = (d / np.sqrt((d * d).mean(-1, keepdims=True) + eps)).astype(F)
    return y if w is None else y * w + b


def rms_norm(x, w, eps=1e-6):
    mean = (x.astype(float) ** 2).mean(-1, keepdims=True)
    return (x / np.sqrt(mean + eps)).astype(F) * w


def channel_norm(x, gamma):
    norm = np.sqrt((x.astype(float) ** 2).sum(-1, keepdims=True))
    y = (x / np.maximum(norm, 1e-12)).astype(F)
    return y * F(np.sqrt(x.shape[-1])) * gamma


def modulate(x, scale, shift, rows):
    g = np.arange(len(x)) // rows
    return x * (1 + scale[g]) + shift[g]


def gate_add(x, y, gate, rows):
    return x + y * gate[np.arange(len(x)) // rows]


def add(x, y):
    return x + y


def mul(x, y):
    return x * y


def gelu_tanh(x):
    u = F(np.sqrt(2 / np.pi)) * (x + F(0.044715) * x * x * x)
    return x / (1 + np.exp(-2 * u))


def silu(x):
    return x / (1 + np.exp(-x))


def rope(x, pos, cos, sin, pairs=None):
    """pos [T, 3]: frame, row, column. cos, sin [positions, D / 2]."""
    c = x.shape[-1] // 2
    axis = np.repeat(np.arange(3), (c - 2 * (c // 3), c // 3, c // 3))
    cos, sin = (t[pos[:, axis], np.arange(c)][:, None] for t in (cos, sin))
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack((a * cos - b * sin, a * sin + b * cos), -1).reshape(
        x.shape).astype(F)


def col_mean(x):
    return x.mean(0, dtype=float)


def col_moment(x, mean):
    return ((x - mean) ** 2).sum(0)


def col_blend(x, target, tau, mean=None, gain=None):
    if mean is not None:
        target = gain * (x - mean) + target
    return ((1 - tau) * x + tau * target).astype(F)


def block(tokens, e0, context, weights, network, grid):
    """Block 0 on an empty cache: tokens [T, dim] of whole frames, e0 [nt, 6,
    dim], context [text_len, dim]. grid: rows and columns of a frame."""
    w, eps, H = weights, network["eps"], int(network["heads"])
    T, dim = tokens.shape
    per, rows = grid[0] * grid[1], T // len(e0)
    t = np.arange(T)
    pos = np.stack((t // per, t % per // grid[1], t % grid[1]), 1).astype(int)
    c = dim // H // 2
    by = np.concatenate([10000.0 ** (-np.arange(n) / max(n, 1)) for n in (
        c - 2 * (c // 3), c // 3, c // 3)])
    angle = np.arange(pos.max() + 1)[:, None] * by
    e = w["modulation"].astype(F) + e0

    def project(name, x):
        return linear(x, w[name + ".weight"], w[name + ".bias"].astype(F))

    def qkv(who, x, y):
        q, k, v = (project(f"{who}.{n}", z) for n, z in zip("qkv", (x, y, y)))
        q = rms_norm(q, w[who + ".norm_q.weight"].astype(F), eps)
        k = rms_norm(k, w[who + ".norm_k.weight"].astype(F), eps)
        return [z.reshape(len(z), H, -1) for z in (q, k, v)]

    def attend(who, q, k, v):
        y = attention(q, k, v, (dim / H) ** -0.5)
        return project(who + ".o", y.reshape(T, dim))
    out = {}
    x = modulate(layer_norm(tokens, eps=eps), e[:, 1], e[:, 0], rows)
    q, k, v = out["self_attn.q"], out["self_attn.k"], out["self_attn.v"] = \
        qkv("self_attn", x, x)
    q, k = (rope(z, pos, np.cos(angle), np.sin(angle)) for z in (q, k))
    out["self_attn"] = attend("self_attn", q, k, v)
    x = gate_add(tokens, out["self_attn"], e[:, 2], rows)
    y = layer_norm(x, w["norm3.weight"].astype(F), w["norm3.bias"].astype(F), eps)
    q, k, v = out["cross_attn.q"], out["cross_attn.k"], out["cross_attn.v"] = \
        qkv("cross_attn", y, context)
    out["cross_attn"] = attend("cross_attn", q, k, v)
    x = add(x, out["cross_attn"])
    y = modulate(layer_norm(x, eps=eps), e[:, 4], e[:, 3], rows)
    out["ffn"] = project("ffn.2", gelu_tanh(project("ffn.0", y)))
    out["out"] = gate_add(x, out["ffn"], e[:, 5], rows)
    return out
