"""train_dit.py: text encoder and transformer together, by teacher forcing.

SPDX-License-Identifier: Apache-2.0

    python train_dit.py --out DIR [--minutes M] [--decay]

Flow matching: mean (v - (noise - x0))^2 at x = (1 - sigma) x0 + sigma noise.
sigma is drawn per chunk: 70 % of the time one of the four inference levels,
else from the shifted schedule. More than half of the steps see one chunk (the
first, where everything is decided), the rest 2 to 7 chunks with the clean
ones before them. Muon for the matrices inside the blocks, AdamW for the rest.

With --workers N this is one of N processes (--rank 0 .. N-1) that average
their gradients; each draws its own clips. Two of them use two cores better
than two threads do.

Resumable: DIR/dit.pt. DIR/dit.log has the error of x0 by level and chunk.
"""
import argparse
import glob
import math
import os
import time

import numpy as np
import torch
import torch.distributed as dist

import data
import dit
import tokenizer
import umt5

CONFIG = dict(dim=128, layers=6, ffn=512, heads=4, freq=256, text_dim=64,
              channels=16)
TEXT = dict(dim=64, heads=4, head_dim=16, ffn=128, layers=2, buckets=32)
TEXT_LEN = 32
EMA = 0.998


class Muon(torch.optim.Optimizer):
    """Momentum, then the nearest orthogonal matrix by five Newton-Schulz
    steps (Jordan et al. 2024)."""

    def __init__(self, params, lr=0.02, momentum=0.95, decay=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - g["momentum"])
                u = p.grad.lerp(m, g["momentum"])
                x = u / (u.norm() + 1e-7)
                tall = x.shape[0] > x.shape[1]
                x = x.T if tall else x
                for _ in range(5):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
                x = x.T if tall else x
                scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - g["lr"] * g["decay"])
                p.add_(x, alpha=-g["lr"] * scale)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.text = umt5.Encoder(tokenizer.VOCAB, **TEXT)
        self.dit = dit.Dit(**CONFIG)

    def states(self, ids, mask):
        """[B, n] -> [B, TEXT_LEN, text_dim]"""
        x = self.text(ids, mask)
        return torch.nn.functional.pad(x, (0, 0, 0, TEXT_LEN - x.shape[1]))


class Prompts:
    """Token ids of every combination, with and without the space before the
    comma."""

    def __init__(self, path):
        t = tokenizer.Tokenizer(path)
        texts = [data.prompt(c) for c in data.combinations()]
        self.ids = [[t(x), t(x.replace(" ,", ","))] for x in texts]

    def __call__(self, which, rng=None):
        rows = [self.ids[i][0 if rng is None else int(rng.integers(2))]
                for i in which]
        n = max(map(len, rows))
        ids = torch.tensor([r + [0] * (n - len(r)) for r in rows])
        mask = torch.tensor([[1] * len(r) + [0] * (n - len(r)) for r in rows])
        return ids, mask


class Pool:
    """The latents written so far by pool.py."""

    def __init__(self, out):
        self.out, self.seen = out, {}

    def refresh(self):
        for kind in ("short", "long"):
            for f in glob.glob(f"{self.out}/{kind}_*.npz"):
                if f not in self.seen and not f.endswith(".tmp.npz"):
                    self.seen[f] = (kind, dict(np.load(f)))
        self.z, self.c = {}, {}
        for kind in ("short", "long"):
            parts = [d for k, d in self.seen.values() if k == kind]
            if parts:
                self.z[kind] = np.concatenate([d["z"] for d in parts])
                self.c[kind] = np.concatenate([d["combination"]
                                               for d in parts])

    def draw(self, rng, n, frames):
        kind = "short" if frames == 3 and "short" in self.z else "long"
        i = rng.integers(len(self.z[kind]), size=n)
        z = self.z[kind][i, :frames].astype(np.float32)
        return torch.from_numpy(z), self.c[kind][i]


def levels(rng, n, chunks):
    u = rng.random((n, chunks))
    shifted = 5 * u / (1 + 4 * u)
    exact = np.array(dit.STEPS)[rng.integers(4, size=(n, chunks))]
    s = np.where(rng.random((n, chunks)) < 0.7, exact, shifted)
    return torch.from_numpy(np.repeat(s, dit.CHUNK, 1)).float()


def mix(x0, noise, sigma):
    s = sigma[..., None, None, None]
    return (1 - s) * x0 + s * noise


@torch.no_grad()
def probe(model, pool, prompts, clips=48):
    """Mean squared error of x0 by level (columns) and chunk 0, 1, 2, last."""
    rng = np.random.default_rng(7)
    g = torch.Generator().manual_seed(7)
    kind = 21 if "long" in pool.z else 3
    x0, which = pool.draw(rng, clips if kind == 3 else clips // 2, kind)
    states = model.states(*prompts(which))
    texts, rows = model.dit.texts(states), []
    for s in dit.STEPS:
        noise = torch.randn(x0.shape, generator=g)
        sigma = torch.full(x0.shape[:2], s)
        v = model.dit.teacher(x0, mix(x0, noise, sigma), sigma, texts).float()
        err = (s * (v - (noise - x0))).pow(2).mean((0, 2, 3, 4))
        rows.append(err.unflatten(0, (-1, 3)).mean(1)[[0, 1, 2, -1]
                                                      if kind == 21 else [0]])
    return " | ".join(" ".join(f"{float(r[i]):.3f}" for r in rows)
                      for i in range(len(rows[0])))


def split_parameters(model):
    matrices = [p for n, p in model.dit.named_parameters()
                if n.startswith("blocks.") and p.ndim == 2]
    ids = {id(p) for p in matrices}
    return matrices, [p for p in model.parameters() if id(p) not in ids]


def window(rng):
    """Latent frames and clips of one step, over all workers."""
    if rng.random() < 0.55:
        return 3, 64
    frames = int(rng.choice([6, 12, 21], p=[0.4, 0.3, 0.3]))
    return frames, {6: 32, 12: 16, 21: 8}[frames]


def average(model, workers, stop):
    """The mean gradient of all workers; true when any of them wants to stop."""
    if workers == 1:
        return stop
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.cat([g.flatten() for g in grads]
                     + [torch.tensor([float(stop)])])
    dist.all_reduce(flat)
    flat /= workers
    for g, part in zip(grads, flat[:-1].split([g.numel() for g in grads])):
        g.copy_(part.view_as(g))
    return bool(flat[-1] > 0)


def train(a):
    torch.set_num_threads(1)
    torch.manual_seed(3)
    if a.workers > 1:
        meet = f"{os.path.abspath(a.out)}/meet"
        dist.init_process_group("gloo", init_method=f"file://{meet}",
                                rank=a.rank, world_size=a.workers)
    model, path = Model(), f"{a.out}/dit.pt"
    prompts, pool = Prompts(f"{a.out}/spiece.model"), Pool(a.out)
    matrices, rest = split_parameters(model)
    muon = Muon(matrices, lr=a.lr)
    adam = torch.optim.AdamW(rest, lr=a.lr / 20, betas=(0.9, 0.98),
                             weight_decay=0.0)
    ema = {k: p.detach().clone() for k, p in model.state_dict().items()}
    step, spent = 0, 0.0
    if os.path.exists(path):
        s = torch.load(path, weights_only=True)
        model.load_state_dict(s["model"])
        muon.load_state_dict(s["muon"])
        adam.load_state_dict(s["adam"])
        ema, step, spent = s["ema"], s["step"], s["spent"]
    shared = np.random.default_rng([20260106, step])
    rng = np.random.default_rng([20260107, step, a.rank])
    noise_of = torch.Generator().manual_seed(1000003 + 2 * step + a.rank)
    pool.refresh()
    begin = saved = time.time()
    first, tally, stop = step, [], False
    while not stop:
        share = min(1.0, (step - first + 1) / 30)
        if a.decay:
            done = min(1.0, (time.time() - begin) / (60 * a.minutes))
            share *= max(0.03, 0.5 + 0.5 * math.cos(math.pi * done))
        muon.param_groups[0]["lr"] = a.lr * share
        adam.param_groups[0]["lr"] = a.lr / 20 * share
        frames, n = window(shared)
        n = max(1, n // a.workers)
        x0, which = pool.draw(rng, n, frames)
        sigma = levels(rng, n, frames // 3)
        noise = torch.randn(x0.shape, generator=noise_of)
        with torch.autocast("cpu", torch.bfloat16):
            texts = model.dit.texts(model.states(*prompts(which, rng)))
            # the context may be a little wrong, as it is at inference
            k = torch.rand(n, 1, 1, 1, 1, generator=noise_of) * a.context
            past = (1 - k) * x0 + k * torch.randn(x0.shape, generator=noise_of)
            v = model.dit.teacher(past, mix(x0, noise, sigma), sigma, texts)
            loss = (v.float() - (noise - x0)).pow(2).mean()
        muon.zero_grad(set_to_none=True)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        stop = average(model, a.workers,
                       time.time() - begin >= 60 * a.minutes)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        muon.step()
        adam.step()
        step += 1
        if a.rank:
            continue
        keep = min(EMA, step / (step + 10))
        for k, p in model.state_dict().items():
            ema[k].lerp_(p, 1 - keep)
        tally.append(float(loss.detach()))
        now = time.time()
        if now - saved > 60 * a.every or stop:
            spent += (now - saved) * a.workers
            live = {k: p.clone() for k, p in model.state_dict().items()}
            pool.refresh()
            model.load_state_dict(ema)
            text = probe(model, pool, prompts)
            model.load_state_dict(live)
            torch.save({"model": live, "ema": ema, "muon": muon.state_dict(),
                        "adam": adam.state_dict(), "step": step,
                        "spent": spent}, path + ".new")
            os.replace(path + ".new", path)
            with open(f"{a.out}/dit.log", "a") as f:
                f.write(f"{spent / 60:.1f} min step {step} lr "
                        f"{a.lr * share:.4f} loss {np.mean(tally):.4f} "
                        f"x0 error {text}\n")
            saved, tally = time.time(), []


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True)
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--lr", type=float, default=0.02, help="of Muon")
    p.add_argument("--context", type=float, default=0.1)
    p.add_argument("--decay", action="store_true", help="end the training")
    p.add_argument("--every", type=float, default=2.5, help="minutes")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--rank", type=int, default=0)
    train(p.parse_args())
