"""train.py: the demo model from nothing, in one command.

SPDX-License-Identifier: Apache-2.0

    python train.py --out DIR [--vae MIN] [--dit MIN] [--model MODEL_DIR]

Needs requirements.txt. Every part keeps its state in DIR and goes on from what
is there, so the command may be stopped at any time and given again; a part
that has had its minutes is left alone. In the order of need:

  code.npz      the latent code (latent.py)          seconds
  spiece.model  the tokenizer (tokenizer.py)          seconds
  short_*, long_*  latents of training clips (pool.py)  minutes
  decoder.pt, encoder.pt  each against the code (train_vae.py)
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


def stages(out, part, minutes):
    """The first 70 % of the time at full rate, then a decay to almost none."""
    script = ["train_dit.py"] if part == "dit" else ["train_vae.py", part]
    for share, options in ((0.7, []), (1.0, ["--decay"])):
        left = share * minutes - spent(f"{out}/{part}.pt")
        if left > 0.1:
            yield script + ["--out", out, "--minutes", f"{left:.2f}"] + options


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
    parts = [list(stages(a.out, "decoder", a.vae)),
             list(stages(a.out, "encoder", a.vae)),
             list(stages(a.out, "dit", a.dit))]
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
