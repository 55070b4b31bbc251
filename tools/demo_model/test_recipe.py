"""test_recipe.py: the training code against the reference vectors.

SPDX-License-Identifier: Apache-2.0

    python test_recipe.py [--out DIR]

Needs requirements.txt. The networks compute in float64 what the official code
does (ref_data); teacher forcing equals the cached calls; folding the latent
scale changes nothing; flat training equals the full network; the generator is
the one the model was trained on. With the folder of a training run, the code
and a step of every part too.
"""
import argparse
import glob
import hashlib
import json
import os

import numpy as np
import torch
from safetensors.torch import load_file

import data
import dit
import export
import judge
import latent
import tokenizer
import umt5
import vae

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                    "ref_data")


def close(what, a, b, limit):
    error = float((a - b).abs().max())
    print(f"{what}: {error:.1e}")
    assert error <= limit, what


def double(path):
    return {k: v.double() if v.is_floating_point() else v
            for k, v in load_file(path).items()}


def test_data():
    """Changing the generator would change what the judge expects."""
    h = hashlib.sha256()
    for c, seed in data.held_out_clips()[:8]:
        v = data.clip(c, seed, 9)
        h.update(np.round((v + 1) * 100).astype(np.uint8).tobytes())
    train, held = data.split()
    assert len(train) == 327 and len(held) == 64 and not set(train) & set(held)
    for c in data.combinations():          # no bounce in the first 1.5 s
        if c[2].startswith("moves"):
            x, y, _, _ = data.trajectory(c, 2)
            d = np.diff(x if c[2].split()[1] in ("left", "right") else y)
            assert abs(d[:24].sum()) > 23.9, c
    print("data:", h.hexdigest()[:16])
    assert h.hexdigest().startswith(DATA), "the generator has changed"


def test_vae():
    r = f"{ROOT}/vae_full_a"
    w, given, want = (double(f"{r}/{n}.safetensors")
                      for n in ("weights", "inputs", "expected_f64"))
    m = vae.VAE(w["decoder.head.0.gamma"].shape[0]).double()
    m.load_state_dict(w)
    mean = torch.tensor(vae.MEAN).double().view(16, 1, 1)
    std = 1 / (1 / torch.tensor(vae.STD)).double().view(16, 1, 1)
    for key, x in given.items():
        x, name = x.transpose(1, 2), key.split(".")[0]
        if name.startswith("dec"):
            y, e = m.decode(x * std + mean), want[name + ".video_raw"]
        else:
            x = x[:, :1 + (x.shape[1] - 1) // 4 * 4]
            y, e = (m.encode(x) - mean) / std, want[name + ".z"]
        close(name, y.transpose(1, 2), e, 1e-6)
    m.flatten()
    z, v = torch.randn(1, 4, 16, 2, 2).double(), torch.rand(1, 13, 3, 16,
                                                            16).double()
    flat = m.decode(z), m.encode(v)
    m.unflatten()
    close("flat decoder", flat[0], m.decode(z), 1e-12)
    close("flat encoder", flat[1], m.encode(v), 1e-12)
    before, w = m.encode(v), {k: v.clone() for k, v in m.state_dict().items()}
    pixels = m.decode(z)
    export.fold(w)
    m.load_state_dict(w)
    close("folded encoder", (m.encode(v) - mean) / std, before, 1e-6)
    close("folded decoder", m.decode(z * std + mean), pixels, 1e-6)


def test_dit():
    r = f"{ROOT}/dit/models/tiny_a"
    with open(f"{r}/config.json") as f:
        c = json.load(f)
    m = dit.Dit(c["dim"], c["num_layers"], c["ffn_dim"], c["num_heads"],
                c["freq_dim"], c["text_dim"]).double()
    m.load_state_dict(double(glob.glob(f"{r}/*.safetensors")[0]))
    r = f"{ROOT}/dit/tiny_a_forward"
    given, want = (double(f"{r}/{n}.safetensors")
                   for n in ("inputs", "expected_f64"))
    texts, past = m.texts(given["text"]), [[] for _ in m.blocks]
    for i, start in enumerate((0, 3, 3)):
        y, kept = m.call(given["latent"][i], given["t"][i][None], start, texts,
                         past)
        close(f"flow {i}", y, want["flow"][i], 1e-11)
        if i == 0:
            past = [[kv] for kv in kept]
    clean, noisy = torch.randn(2, 2, 9, 16, 8, 8).double()
    sigma = torch.rand(2, 3).double().repeat_interleave(3, 1)
    y, past = m.teacher(clean, noisy, sigma, texts), [[] for _ in m.blocks]
    for n in range(3):
        s = slice(3 * n, 3 * n + 3)
        flow, _ = m.call(noisy[:, s], 1000 * sigma[:, s], 3 * n, texts, past)
        close(f"teacher forcing, chunk {n}", y[:, s], flow, 1e-12)
        _, kept = m.call(clean[:, s], torch.zeros(2, 3), 3 * n, texts, past)
        for p, kv in zip(past, kept):
            p.append(kv)


def test_umt5():
    r = f"{ROOT}/t5_basic"
    w, given, want = (double(f"{r}/{n}.safetensors")
                      for n in ("weights", "inputs", "expected_f64"))
    m = umt5.Encoder(300, 32, 4, 8, 64, 3).double()
    m.load_state_dict(w)
    y = m(given["ids"].long(), given["mask"])
    close("umT5", y, want["prompt_embeds"], 1e-12)


def test_run(out):
    """The state of a training run."""
    t = tokenizer.Tokenizer(f"{out}/spiece.model")
    for word in tokenizer.grammar_words():
        assert len(t.sp.encode(word)) == 1, word
    code = latent.load(f"{out}/code.npz")
    z = np.stack([code.of_video(data.clip(*data.training_clip(n)))
                  for n in range(40)])
    print("code: mean square", float((z ** 2).mean()))
    assert 0.8 < (z ** 2).mean() < 1.2


DATA = "56820f92e09668e2"

if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out")
    a = p.parse_args()
    torch.manual_seed(0)
    with torch.no_grad():
        test_data()
        test_vae()
        test_dit()
        test_umt5()
        if a.out:
            test_run(a.out)
    judge.main()
    print("all passed")
