"""policies.py: drift, motion and recognition of each cache policy.

SPDX-License-Identifier: Apache-2.0

    python policies.py --out DIR [--latents 240] [--prompts 64] [--policies A,B]

The same prompts, seeds and noise for every policy. Latents are kept in DIR and
reused, so the command can be interrupted and one row made again alone. Output
in DIR: table.md and table.csv, summary.md (the last segment alone), index.html
(curves: mean over the prompts) and strip_<policy>.png (12 pictures over the
whole length, a row each of the first prompt and of the one in the middle).
Needs the program and numpy.

Per segment of latent frames and video:
  mean, std   rms distance, over the channels, of the means and standard
              deviations of a latent from those of the video's first 3,
              averaged over the segment (the drift of `tether analyze`)
  change      rms difference of successive latents
  background, colour, present, iou, moving
              of the last 12 latents, decoded on their own from 1 latent
              earlier, which is exact for this VAE: its convolutions do not
              look back; moving: the object still does what the prompt says
Each figure: mean over the prompts, its standard error, and the difference to
the first policy of the list with the standard error paired by prompt.
"""
import argparse
from concurrent.futures import ThreadPoolExecutor
import os
import struct
import sys
import zlib

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import data                                             # noqa: E402
import judge                                            # noqa: E402
import tether                                           # noqa: E402

POLICIES = {
    "fifo-sink3": ["--cache", "fifo", "--sink", 3],
    "fifo-sink0": ["--cache", "fifo", "--sink", 0],
    "tether": ["--cache", "tether"],
    "tether-paper": ["--cache", "tether", "--preset", "paper"],
    "tether-tau0": ["--cache", "tether", "--tau", 0],
    "tether-alpha0": ["--cache", "tether", "--alpha", 0],
    "infinity": ["--cache", "infinity"],
    "memrope": ["--cache", "memrope"],
    "deep-sink": ["--cache", "deep-sink"],
    "deep-forcing": ["--cache", "deep-forcing"],
    "full": ["--cache", "full"],
    "causvid-rolling": ["--cache", "causvid-rolling"],
    "causvid": ["--cache", "causvid"],
}
CLIP, OVERLAP = 21, 3           # latents of a causvid clip, and shared by two
SHORT = ((12, 21), (21, 45), (45, 90), (90, 150), (150, 240))
LONG = SHORT + ((240, 480), (480, 720), (720, 960))
WINDOW, LEAD = 12, 1
KEYS = ("mean", "std", "change", "background", "colour", "present", "iou",
        "moving", "selected")


def moving(frames, motion):
    """Does the object move as the prompt says, within these frames?"""
    if any("shape" not in f for f in frames):
        return 0.0
    x, y, area = (np.array([f[k] for f in frames], float)
                  for k in ("x", "y", "area"))
    reach = {"x": np.ptp(x), "y": np.ptp(y)}
    if motion.startswith("moves"):
        axis = "x" if motion.split()[1] in ("left", "right") else "y"
        other = "y" if axis == "x" else "x"
        return float(reach[axis] > judge.SHIFT and reach[axis] > reach[other])
    if motion.startswith("grows"):
        return float(area.max() > judge.GROWTH * area.min())
    shape = judge.majority(f["shape"] for f in frames)
    return float(abs(judge.turning(frames, shape)) > judge.TURN)


def drift(z, a, b):
    """Drift of frames [a, b) against the first three, and their change."""
    m, s = z.mean((2, 3)), z.std((2, 3))
    first = z[:3].transpose(1, 0, 2, 3).reshape(z.shape[1], -1)
    dm = np.sqrt(((m - first.mean(1)) ** 2).mean(1))
    ds = np.sqrt(((s - first.std(1)) ** 2).mean(1))
    step = np.sqrt(((z[1:] - z[:-1]) ** 2).mean((1, 2, 3)))
    return dm[a:b].mean(), ds[a:b].mean(), step[a - 1:b - 1].mean()


def latents(program, policy, a, i, combination):
    """Name and latents [a.latents, 16, 8, 8] of prompt i."""
    name, options = f"{policy}_{a.latents}_{a.seed + i}", POLICIES[policy]
    count = a.latents
    if policy == "causvid":      # clips with an overlap instead of one video
        count, clips = CLIP, -(-(a.latents - OVERLAP) // (CLIP - OVERLAP))
        options = options + ["--rollouts", clips]
    z = program.rollouts(name, data.prompt(combination), a.seed + i, count,
                         *options, trace=True)
    z = np.concatenate([z[0]] + [clip[OVERLAP:] for clip in z[1:]])
    return name, z[:a.latents]


def selected(admitted, a, b):
    """Frames admitted while latents [a, b) were made; `admitted` counts from
    the beginning, at the end of each chunk of 3."""
    return admitted[b // 3 - 1] - admitted[a // 3 - 1]


def segment(program, name, z, admitted, a, b, asked):
    """All figures of one segment."""
    low = max(0, b - WINDOW - LEAD)
    video = program.decode(name, z[low:b])[-4 * WINDOW:]
    frames = [judge.frame(v) for v in video[::4]]

    def share(key, value):
        return float(np.mean([f.get(key) == value for f in frames]))
    return drift(z, a, b) + (
        share("background", asked[3]), share("colour", asked[0]),
        float(np.mean(["shape" in f for f in frames])),
        float(np.mean([judge.asked_iou(f, asked[1]) for f in frames])),
        moving(frames, asked[2]), selected(admitted, a, b))


def measure(program, policy, a, combinations, segments):
    """[prompt, segment, key] of one policy."""
    def one(i):
        c = combinations[i]
        name, z = latents(program, policy, a, i, c)
        counters = program.trace(name).get("counters",  # of a memory only
                                           np.zeros((a.latents // 3, 1, 3)))
        admitted = counters[:, :, 0].mean(1)
        return [segment(program, f"{name}_{b}", z, admitted, s, b, c)
                for s, b in segments]
    with ThreadPoolExecutor(a.jobs) as pool:
        return np.array(list(pool.map(one, range(len(combinations)))))


def png(path, rgb):
    """[h, w, 3] bytes as a PNG."""
    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body
                + struct.pack(">I", zlib.crc32(kind + body)))
    h, w = rgb.shape[:2]
    lines = np.pad(rgb.reshape(h, -1), ((0, 0), (1, 0))).tobytes()
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n"
                + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def strip(program, policy, a, combinations):
    """12 pictures of two prompts over the whole length: this VAE decodes every
    latent frame by itself, the last of its four pictures is shown."""
    when = np.linspace(1, a.latents - 1, 12).round().astype(int)
    rows = []
    for i in (0, len(combinations) // 2):
        _, z = latents(program, policy, a, i, combinations[i])
        v = program.decode(f"{policy}_strip", z[np.r_[0, when]])[4::4]
        rows.append(np.concatenate(list(v), 2))
    v = np.concatenate(rows, 1).transpose(1, 2, 0)
    png(f"{program.folder}/strip_{policy}.png",
        ((v + 1) * 127.5).round().astype(np.uint8))


def curves(program, names, a, count):
    """index.html: one curve of drift a policy, the mean over the prompts (not causvid,
    whose files hold clips)."""
    files = [(n, f"{program.folder}/{n}_{a.latents}_{a.seed + i}.safetensors")
             for n in names if n != "causvid" for i in range(count)]
    program.run("analyze", *(f for _, f in files), "--labels",
                ",".join(n for n, _ in files), "--average", "--window", 12,
                "--html", "-o", program.folder)


def cell(x, base):
    """Mean +- standard error, and the difference to `base`."""
    n = max(1, len(x)) ** 0.5
    text = f"{x.mean():.3f} ± {x.std(ddof=1) / n:.3f}"
    if base is not None:
        d = x - base
        text += f" ({d.mean():+.3f} ± {d.std(ddof=1) / n:.3f})"
    return text


def write(folder, rows, segments, a):
    base = next(iter(rows.values()))
    with open(f"{folder}/table.md", "w") as f:
        f.write(f"{len(base)} held-out prompts, seeds from {a.seed}, "
                f"{a.latents} latent frames; mean ± standard error (difference"
                f" to {next(iter(rows))} ± its standard error, paired)\n")
        for k, key in enumerate(KEYS):
            f.write(f"\n{key}\n\n| policy | " + " | ".join(
                f"{s}-{b - 1}" for s, b in segments) + " |\n|---"
                + "|---" * len(segments) + "|\n")
            for name, r in rows.items():
                f.write(f"| {name} | " + " | ".join(
                    cell(r[:, i, k], None if r is base else base[:, i, k])
                    for i in range(len(segments))) + " |\n")
    with open(f"{folder}/summary.md", "w") as f:
        f.write(f"latents {segments[-1][0]}-{segments[-1][1] - 1}; mean ± "
                "standard error; second line: difference to "
                f"{next(iter(rows))} ± its standard error, paired\n\n"
                "| policy | " + " | ".join(KEYS) + " |\n|---"
                + "|---" * len(KEYS) + "|\n")
        for name, r in rows.items():
            f.write(f"| `{name}` | " + " | ".join(
                cell(r[:, -1, k], None if r is base else base[:, -1, k])
                .replace(" (", "<br>").replace(")", "")
                for k in range(len(KEYS))) + " |\n")
    with open(f"{folder}/table.csv", "w") as f:
        f.write("policy,prompt,segment," + ",".join(KEYS) + "\n")
        for name, r in rows.items():
            for p in range(len(r)):
                for i, (s, b) in enumerate(segments):
                    f.write(f"{name},{p},{s}-{b - 1},"
                            + ",".join(f"{v:.6g}" for v in r[p, i]) + "\n")


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True)
    p.add_argument("--program", default=f"{root}/build/tether")
    p.add_argument("--model", default=f"{root}/ref_data/demo")
    p.add_argument("--policies", default=",".join(POLICIES))
    p.add_argument("--latents", type=int, default=240)
    p.add_argument("--prompts", type=int, default=64)
    p.add_argument("--seed", type=int, default=5000)
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    names = [n for n in a.policies.split(",")
             if n != "full" or a.latents <= 240]
    _, held = data.split()
    combinations = held[::max(1, len(held) // a.prompts)][:a.prompts]
    segments = [s for s in LONG if s[1] <= a.latents]
    program, rows = tether.Tether(a.program, a.model, a.out), {}
    for name in names:
        rows[name] = measure(program, name, a, combinations, segments)
        strip(program, name, a, combinations)
        write(a.out, rows, segments, a)
        last = rows[name][:, -1].mean(0)
        print(name, " ".join(f"{k} {v:.3f}" for k, v in zip(KEYS, last)),
              flush=True)
    curves(program, list(rows), a, len(combinations))


if __name__ == "__main__":
    main()
