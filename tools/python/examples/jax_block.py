"""A transformer block in JAX, checked on the case of a kit.

SPDX-License-Identifier: Apache-2.0

    tether validate export --kit kit
    python3 tools/python/examples/jax_block.py kit [--bug]

Needs numpy and jax. --bug: the shift and the scale of the FFN are exchanged."""
import sys

import jax
import jax.numpy as jnp

jax.config.update("jax_default_matmul_precision", "float32")


def linear(w, name, x):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def norm(x, eps):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + eps)


def rms(x, w, eps):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def rotate(x, pos):
    c = x.shape[-1] // 2
    axes = (c - 2 * (c // 3), c // 3, c // 3)      # frame, row, column
    angle = jnp.concatenate([p[:, None] * 10000.0 ** (-jnp.arange(n) / n)
                             for p, n in zip(pos, axes)], 1)[:, None]
    a, b, cos, sin = x[..., ::2], x[..., 1::2], jnp.cos(angle), jnp.sin(angle)
    return jnp.stack((a * cos - b * sin, a * sin + b * cos), -1).reshape(x.shape)


def attend(w, who, x, y, heads, eps, turn=lambda z: z):
    q, k, v = (linear(w, f"{who}.{n}", z) for n, z in zip("qkv", (x, y, y)))
    q, k = (rms(z, w[f"{who}.norm_{n}.weight"], eps) for n, z in zip("qk", (q, k)))
    q, k, v = (z.reshape(len(z), heads, -1) for z in (q, k, v))
    p = jnp.einsum("thd,nhd->htn", turn(q), turn(k)) * q.shape[-1] ** -0.5
    o = jnp.einsum("htn,nhd->thd", jax.nn.softmax(p, -1), v).reshape(x.shape)
    return linear(w, who + ".o", o), {who + ".q": q, who + ".k": k, who + ".v": v}


def block(tokens, e0, context, weights, network, grid):
    w = {name: jnp.asarray(x, jnp.float32) for name, x in weights.items()}
    heads, eps, T = int(network["heads"]), network["eps"], len(tokens)
    e = jnp.repeat(w["modulation"] + e0, T // len(e0), 0).transpose(1, 0, 2)
    t, per = jnp.arange(T), grid[0] * grid[1]
    pos = (t // per, t % per // grid[1], t % grid[1])
    x = norm(tokens, eps) * (1 + e[1]) + e[0]
    y, out = attend(w, "self_attn", x, x, heads, eps, lambda z: rotate(z, pos))
    x = tokens + y * e[2]
    z = norm(x, eps) * w["norm3.weight"] + w["norm3.bias"]
    cross, more = attend(w, "cross_attn", z, jnp.asarray(context), heads, eps)
    x = x + cross
    scale, shift = (e[3], e[4]) if "--bug" in sys.argv else (e[4], e[3])
    z = linear(w, "ffn.0", norm(x, eps) * (1 + scale) + shift)
    ffn = linear(w, "ffn.2", jax.nn.gelu(z, approximate=True))
    return {**out, **more, "self_attn": y, "cross_attn": cross, "ffn": ffn,
            "out": x + ffn * e[5]}


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    import check
    wrong = [(path, verdict) for path in check.paths("model_block/*") for verdict
             in [check.verdict(path, sys.modules[__name__])] if verdict[0] != "pass"]
    print("FAIL: first wrong tensor: %s: %s" % wrong[0] if wrong else "PASS")
    sys.exit(bool(wrong))
