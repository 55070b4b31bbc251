"""pool.py: latents of training clips, written once for the transformer.

SPDX-License-Identifier: Apache-2.0

    python pool.py --out DIR [--short N] [--long N]

DIR/short_<n>.npz: 256 clips of 3 latent frames; DIR/long_<n>.npz: 64 clips of
21. `z` float16 [clips, T, 16, 8, 8] and `combination`, the index in the fixed
order of data.combinations(). Files that exist are kept.
"""
import argparse
import os

import numpy as np

import data
import latent


def write(code, path, first, clips, latents):
    index = {c: i for i, c in enumerate(data.combinations())}
    frames = 4 * latents - 3
    z, which = [], []
    for n in range(first, first + clips):
        c, seed = data.training_clip(n)
        z.append(code.of_video(data.clip(c, seed, frames)))
        which.append(index[c])
    np.savez(path + ".tmp.npz", z=np.stack(z).astype(np.float16),
             combination=np.array(which))
    os.replace(path + ".tmp.npz", path)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True)
    p.add_argument("--short", type=int, default=48)
    p.add_argument("--long", type=int, default=48)
    a = p.parse_args()
    code = latent.load(f"{a.out}/code.npz")
    for n in range(max(a.short, a.long)):
        for kind, limit, clips, latents, base in (
                ("short", a.short, 256, 3, 10 ** 6),
                ("long", a.long, 64, 21, 2 * 10 ** 6)):
            path = f"{a.out}/{kind}_{n}.npz"
            if n < limit and not os.path.exists(path):
                write(code, path, base + n * clips, clips, latents)


if __name__ == "__main__":
    main()
