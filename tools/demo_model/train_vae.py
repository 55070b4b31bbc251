"""train_vae.py: the decoder and the encoder, each against the given code.

SPDX-License-Identifier: Apache-2.0

    python train_vae.py decoder|encoder --out DIR [--minutes M] [--stage S]

Stage `flat`: every convolution sees the current frame only (the earlier taps
are zero), a sample is the first latent frame of a clip and a random later one,
and a batch mixes many clips. Nothing is learned from a transient of short
clips, and quality does not depend on the length. The model that ships ends
here. Stage `full`: all taps, windows of 5 to 21 latent frames, from where the
first stage ended. Tried once at a rate of 1e-3 with the optimiser's state
kept: the held-out PSNR fell from 31 to 15 dB within 100 steps, and it was
undone. Start it with a fresh state and a tenth of the rate.

Resumable: DIR/<part>.pt holds weights, EMA, optimiser and step. A line of
measured quality goes to DIR/<part>.log every few minutes.
"""
import argparse
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

import data
import latent
import vae

WIDTH, CHANNELS = 12, 16
EMA = 0.998


def sample(code, rng, later):
    """One clip: frames 0 and those of `later` latent frames from a random
    place, and the code of both."""
    combination, seed = data.training_clip(int(rng.integers(1 << 40)))
    at = int(rng.integers(1, 22 - later))
    track = data.trajectory(combination, seed)
    keep = np.r_[0, 4 * at - 3:4 * (at + later - 1) + 1]
    v = data.render(combination, *(t[keep] for t in track))
    return v, code.of_video(v)


def batch(code, rng, n, later):
    v, z = zip(*(sample(code, rng, later) for _ in range(n)))
    return torch.from_numpy(np.stack(v)), torch.from_numpy(np.stack(z)).float()


def edges(x):
    return x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]


def pixel_loss(y, v):
    loss = (y - v).abs().mean() + (y - v).pow(2).mean()
    for a, b in zip(edges(y), edges(v)):
        loss = loss + 0.25 * (a - b).abs().mean()
    return loss


def psnr(y, v):
    """Peak signal to noise of values in [-1, 1], as of a range of 1."""
    return float(-10 * torch.log10(((y.clamp(-1, 1) - v) / 2).pow(2).mean()))


def segments(y, v):
    return [psnr(y[:, a:b], v[:, a:b])
            for a, b in ((0, 1), (1, 9), (9, 41), (41, 81))]


@torch.no_grad()
def evaluate(model, code, part, clips=8):
    """PSNR by segment on held-out clips: of the decoder from the exact code,
    or of the whole round trip."""
    rows, err = [], []
    for c, s in data.held_out_clips()[::64 // clips]:
        v = data.clip(c, s)
        z = torch.from_numpy(code.of_video(v))[None].float()
        v = torch.from_numpy(v)[None]
        with torch.autocast("cpu", torch.bfloat16):
            if part == "encoder":
                q = model.encode(v).float()
                err.append(float((q - z).pow(2).mean().sqrt()))
                z = q
            y = model.decode(z).float()
        rows.append(segments(y, v))
    mean = np.mean(rows, 0)
    text = "PSNR " + " ".join(f"{m:.2f}" for m in mean)
    return text + (f" code rms error {np.mean(err):.3f}" if err else "")


def load_part(model, path, part):
    """The EMA weights of another part's checkpoint, if it exists."""
    if os.path.exists(path):
        ema = torch.load(path, weights_only=True)["ema"]
        model.load_state_dict({k: v for k, v in ema.items()
                               if k.startswith(part)}, strict=False)


def prefixes(part):
    return ("decoder.", "conv2.") if part == "decoder" else ("encoder.",
                                                             "conv1.")


def train(a):
    torch.set_num_threads(1)
    code = latent.load(f"{a.out}/code.npz")
    path = f"{a.out}/{a.part}.pt"
    torch.manual_seed(1 if a.part == "decoder" else 2)
    model = vae.VAE(WIDTH, CHANNELS)
    model.flatten()
    names = prefixes(a.part)
    params = {k: p for k, p in model.named_parameters() if k.startswith(names)}
    opt = torch.optim.AdamW(params.values(), lr=a.lr, betas=(0.9, 0.99),
                            weight_decay=0.0)
    ema = {k: p.detach().clone() for k, p in params.items()}
    step, spent = 0, 0.0
    if os.path.exists(path):
        state = torch.load(path, weights_only=True)
        for k, p in params.items():
            p.data.copy_(state["model"][k])
        ema, step, spent = state["ema"], state["step"], state["spent"]
        opt.load_state_dict(state["opt"])
    if a.stage == "full":
        model.unflatten()
    if a.part == "encoder":
        load_part(model, f"{a.out}/decoder.pt", prefixes("decoder"))
    rng = np.random.default_rng([20260105, step, len(a.part)])
    begin = saved = time.time()
    first, tally = step, []
    while time.time() - begin < 60 * a.minutes:
        done = min(1.0, (time.time() - begin) / (60 * a.minutes))
        lr = a.lr * min(1, (step - first + 1) / 50)
        if a.decay:
            lr *= max(0.02, 0.5 + 0.5 * math.cos(math.pi * done))
        for g in opt.param_groups:
            g["lr"] = lr
        later = 1 if a.stage == "flat" else int(rng.choice([4, 8, 20]))
        v, z = batch(code, rng, max(1, a.batch // later), later)
        with torch.autocast("cpu", torch.bfloat16):
            if a.part == "decoder":
                noise = torch.rand(z.shape[0], 1, 1, 1, 1) * 0.2
                y = model.decode(z + noise * torch.randn_like(z))
                loss = pixel_loss(y.float(), v)
            else:
                q = model.encode(v)
                loss = (q.float() - z).pow(2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params.values(), 1.0)
        opt.step()
        step += 1
        keep = min(EMA, step / (step + 10))
        for k, p in params.items():
            ema[k].lerp_(p.detach(), 1 - keep)
        tally.append(float(loss.detach()))
        now = time.time()
        if now - saved > 60 * a.every or now - begin >= 60 * a.minutes:
            spent += now - saved
            live = {k: p.detach().clone() for k, p in params.items()}
            for k, p in params.items():
                p.data.copy_(ema[k])
            text = evaluate(model, code, a.part)
            for k, p in params.items():
                p.data.copy_(live[k])
            torch.save({"model": live, "ema": ema, "opt": opt.state_dict(),
                        "step": step, "spent": spent}, path + ".new")
            os.replace(path + ".new", path)
            with open(f"{a.out}/{a.part}.log", "a") as f:
                f.write(f"{a.stage} {spent / 60:.1f} min step {step} lr "
                        f"{lr:.5f} loss {np.mean(tally):.4f} {text}\n")
            saved, tally = time.time(), []


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("part", choices=("decoder", "encoder"))
    p.add_argument("--out", required=True)
    p.add_argument("--minutes", type=float, default=30)
    p.add_argument("--stage", choices=("flat", "full"), default="flat")
    p.add_argument("--batch", type=int, default=24)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--decay", action="store_true", help="end the stage")
    p.add_argument("--every", type=float, default=2.5, help="minutes")
    train(p.parse_args())
