"""train.py: the demo model from nothing, in one command.

SPDX-License-Identifier: Apache-2.0

    python train.py --out DIR [--vae MIN] [--dit MIN] [--model MODEL_DIR]

Needs requirements.txt. Every part keeps its state in DIR and goes on from what
is there, so the command may be stopped at any time and given again; a part
that has had its minutes is left alone. In the order of need:

  code.npz      the latent code (latent.py)          seconds
  spiece.model  the tokenizer (tokenizer.py)          seconds
  short_*, long_*  latents of training clips (pool.py)  minutes
  decoder.pt    flat, then full windows (train_vae.py)
  encoder.pt    the same
  dit.pt        text encoder and transformer (train_dit.py)

Decoder, encoder and transformer need the code alone and not one another, so on
several cores --parallel starts all three at once. At the end the model folder
is written and evaluated.
"""
import argparse
import os
import subprocess
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def spent(path):
    """Minutes a part has been trained for."""
    if not os.path.exists(path):
        return 0.0
    return torch.load(path, weights_only=True)["spent"] / 60


def start(script, *args):
    return subprocess.Popen([sys.executable, os.path.join(HERE, script)]
                            + [str(a) for a in args])


def wait(jobs):
    for j in jobs:
        if j.wait():
            raise SystemExit(f"{j.args[1]} failed")


def stages(out, part, script, minutes):
    """Half of the time at full rate, a quarter each for the two ends: flat,
    then full windows with decay. The transformer has a decay only."""
    head = [script] + ([part] if part != "dit" else []) + ["--out", out]
    path = f"{out}/{part}.pt"
    plan = ([(0.6, []), (1.0, ["--stage", "full", "--decay", "--lr", 1e-3])]
            if part != "dit" else [(0.7, []), (1.0, ["--decay"])])
    for share, options in plan:
        left = share * minutes - spent(path)
        if left > 0.1:
            yield head + ["--minutes", f"{left:.2f}"] + options


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True)
    p.add_argument("--vae", type=float, default=40, help="minutes each half")
    p.add_argument("--dit", type=float, default=90, help="minutes")
    p.add_argument("--model", help="where the model folder goes")
    p.add_argument("--parallel", action="store_true")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    if not os.path.exists(f"{a.out}/code.npz"):
        import latent
        latent.fit().save(f"{a.out}/code.npz")
    if not os.path.exists(f"{a.out}/spiece.model"):
        wait([start("tokenizer.py", "--out", a.out)])
    wait([start("pool.py", "--out", a.out)])
    parts = [list(stages(a.out, "decoder", "train_vae.py", a.vae)),
             list(stages(a.out, "encoder", "train_vae.py", a.vae)),
             list(stages(a.out, "dit", "train_dit.py", a.dit))]
    if a.parallel:
        while any(parts):
            wait([start(*q.pop(0)) for q in parts if q])
    else:
        for q in parts:
            for step in q:
                wait([start(*step)])
    if a.model:
        wait([start("export.py", "--state", a.out, "--out", a.model)])
        for what in ("vae", "prompts"):
            wait([start("evaluate.py", what, "--model", a.model)])


if __name__ == "__main__":
    main()
