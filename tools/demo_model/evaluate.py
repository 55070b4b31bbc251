"""evaluate.py: how good is the demo model? Needs the program and numpy.

SPDX-License-Identifier: Apache-2.0

    python evaluate.py vae     [--model DIR] [--count N] [--frames F]
    python evaluate.py prompts [--set held-out|training] [--seed S] [--many]
    python evaluate.py free    a few prompts outside the grammar

`vae` encodes and decodes held-out 81-frame clips: PSNR (range 1) of frames 0,
1-8, 9-40, 41-80, and the judge's verdict on the result. `prompts` generates 21
latent frames for each prompt and judges the video; --many uses 24 denoising
steps instead of four, with the same seeds. Averages are followed by the
verdict on every video when --list is given.
"""
import argparse
from concurrent.futures import ThreadPoolExecutor
import os
import sys
import tempfile

try:
    import numpy as np

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import data                                         # noqa: E402
    import judge                                        # noqa: E402
    import tether                                       # noqa: E402
except ImportError as missing:
    if not {"-h", "--help"} & set(sys.argv):
        sys.exit(f"evaluate.py: {missing}; pip install numpy")

MANY = ",".join(str(1000 - round(i * 1000 / 24)) for i in range(24))
FREE = ("a yellow triangle spins in place, on a black background",
        "a tiny orange hexagon moves left and bounces, on a gray background",
        "the blue circle quickly moves up and bounces, on a striped background",
        "red square", "a green circle grows and shrinks")


def psnr(a, b):
    return -10 * np.log10(np.mean(((a - b) / 2) ** 2))


def vae(program, a):
    clips = data.held_out_clips()[::max(1, 64 // a.count)]

    def one(clip):
        c, seed = clip
        name, v = f"vae_{seed}", data.clip(*clip, a.frames)
        y = program.decode(name, program.encode(name, v))
        return ([psnr(y[s], v[s]) for s in (slice(0, 1), slice(1, 9),
                                            slice(9, 41), slice(41, 81),
                                            slice(-20, None))],
                judge.verdict(y, c))
    rows = run(one, clips, a.jobs)
    p = np.array([r[0] for r in rows])
    print(f"VAE, {len(clips)} held-out clips of {a.frames} frames, PSNR of "
          "frames 0 / 1-8 / 9-40 / 41-80 / the last 20: "
          + " / ".join(f"{m:.2f}" for m in p.mean(0))
          + f" dB; worst clip {p[:, 3].min():.2f} dB in 41-80")
    print("judge:", judge.line(judge.summary([r[1] for r in rows])))


def run(one, items, jobs):
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, items))


def chosen(which, count):
    """Combinations: held out, or as many of the training ones."""
    train, held = data.split()
    if which == "held-out":
        return held[::max(1, len(held) // count)][:count]
    order = np.random.default_rng(3).permutation(len(train))[:count]
    return [train[i] for i in sorted(order)]


def prompts(program, a):
    options = ["--steps", MANY] if a.many else []
    combinations = chosen(a.set, a.count)

    def one(i):
        c, seed = combinations[i], a.seed + i
        name = f"{a.set}_{seed}" + ("_many" if a.many else "")
        z = program.latents(name, data.prompt(c), seed, a.latents, *options)
        return judge.verdict(program.decode(name, z), c)
    rows = run(one, range(len(combinations)), a.jobs)
    print(f"{len(rows)} {a.set} prompts, seeds from {a.seed}, "
          f"{24 if a.many else 4} steps: {judge.line(judge.summary(rows))}")
    if a.list:
        for c, r in zip(combinations, rows):
            print(data.prompt(c), *(f"{k} {r[k]:.2f}" for k in judge.KEYS),
                  r["seen_motion"])


def free(program, a):
    """No target: what the first frames show."""
    for i, text in enumerate(FREE):
        z = program.latents(f"free_{i}", text, a.seed + i, a.latents)
        f = judge.frame(program.decode(f"free_{i}", z)[20])
        print(f"{text!r}:", f.get("colour", "no"), f.get("shape", "object"),
              "on", f["background"])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.join(here, "..", "..")
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("what", choices=("vae", "prompts", "free"))
    p.add_argument("--program", default=f"{root}/build/tether")
    p.add_argument("--model", default=f"{root}/ref_data/demo")
    p.add_argument("--set", choices=("held-out", "training"),
                   default="held-out")
    p.add_argument("--count", type=int, default=64)
    p.add_argument("--seed", type=int, default=1000)
    p.add_argument("--latents", type=int, default=21)
    p.add_argument("--frames", type=int, default=81, help="of vae")
    p.add_argument("--many", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = tether.Tether(a.program, a.model, folder)
        {"vae": vae, "prompts": prompts, "free": free}[a.what](program, a)


if __name__ == "__main__":
    main()
