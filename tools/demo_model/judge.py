"""judge.py: what does a video of the demo model show? By image analysis.

SPDX-License-Identifier: Apache-2.0

Per frame: the background template nearest in the median; the mask of pixels
that differ from it; colour from the median of the mask; shape and angle from
the best overlap with templates of equal area and centroid. Per video: majority
over frames 0, 4 .. 40; motion from frames 0 to 20, where nothing bounces;
bouncing, shrinking and turning on, separately, until frame 80. A frame
without object counts as wrong everywhere.

verdict() knows nothing of the generator but colours and shapes. Its own error
is measured by `python judge.py`: on the held-out clips, and on the same with
noise of 27 dB; each must be right in at least 97 %.
"""
import numpy as np

import data

MASK, SMALLEST = 0.45, 40
VOTES = range(0, 41, 4)
SHIFT, GROWTH, TURN = 5.0, 1.5, 30.0     # pixels, area ratio, degrees
ANGLES = {"circle": (0,), "square": range(0, 90, 15),
          "triangle": range(0, 120, 15)}
_grid = np.mgrid[0:data.SIZE, 0:data.SIZE].astype(np.float32)


def template(shape, angle, cx, cy, area):
    """Mask of the shape with this centroid and area."""
    unit = {"circle": np.pi, "square": 4 * data.SIDE ** 2,
            "triangle": 0.75 * 3 ** 0.5 * data.CORNER ** 2}[shape]
    r = (area / unit) ** 0.5
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    dx, dy = _grid[1] - cx, _grid[0] - cy
    return data.signed_distance(shape, c * dx + s * dy, c * dy - s * dx, r) > 0


def fit(mask, shape, cx, cy, area, angles):
    """(IoU, angle) of the best template."""
    best = (0.0, 0)
    for angle in angles:
        t = template(shape, angle, cx, cy, area)
        iou = (mask & t).sum() / max(1, (mask | t).sum())
        best = max(best, (float(iou), angle))
    return best


def frame(image):
    """One image [3, H, W] in [-1, 1] -> dict; without "shape" if there is no
    object."""
    apart = {b: np.abs(image - data.background(b)).sum(0)
             for b in data.BACKGROUNDS}
    back = min(apart, key=lambda b: np.median(apart[b]))
    mask = apart[back] > MASK
    found = {"background": back, "area": int(mask.sum()), "iou": 0.0}
    if found["area"] < SMALLEST:
        return found
    colour = np.median(image[:, mask], 1)
    gaps = {k: float(np.abs(colour - v).sum())
            for k, v in data.COLOURS.items()}
    found["colour"] = min(gaps, key=gaps.get)
    found["colour_gap"] = gaps[found["colour"]]
    cy, cx = (float(g[mask].mean()) for g in _grid)
    found["x"], found["y"], found["mask"] = cx, cy, mask
    fits = {s: fit(mask, s, cx, cy, found["area"], a)
            for s, a in ANGLES.items()}
    found["shape"] = max(fits, key=lambda s: fits[s][0])
    found["iou"] = fits[found["shape"]][0]
    return found


def majority(values):
    values = [v for v in values if v is not None]
    return max(sorted(set(values)), key=values.count) if values else None


def turning(frames, shape):
    """Degrees turned between the first and the last of `frames`, following
    the best angle of the shape from frame to frame in steps of 5."""
    if shape not in ("square", "triangle"):
        return 0.0
    period, total, last = {"square": 90, "triangle": 120}[shape], 0.0, None
    for f in frames:
        if "shape" not in f:
            return 0.0
        angle = fit(f["mask"], shape, f["x"], f["y"], f["area"],
                    range(0, period, 5))[1]
        if last is not None:
            step = (angle - last + period / 2) % period - period / 2
            total += step
        last = angle
    return total


def motion(frames, shape):
    """Class of motion from the frames 0 to 20 (given in steps of 2)."""
    if "shape" not in frames[0] or "shape" not in frames[-1]:
        return None
    a, b = frames[0], frames[-1]
    dx, dy = b["x"] - a["x"], b["y"] - a["y"]
    if max(abs(dx), abs(dy)) > SHIFT:
        if abs(dx) > abs(dy):
            return "moves right" if dx > 0 else "moves left"
        return "moves down" if dy > 0 else "moves up"
    if b["area"] > GROWTH * a["area"] or a["area"] > GROWTH * b["area"]:
        return "grows and"
    if abs(turning(frames, shape)) > TURN:
        return "spins in"
    return "still"


def comes_back(frames, kind):
    """Does a moving object turn round, a growing one shrink, a turning one
    go on turning, between frame 20 and the end?"""
    if any("shape" not in f for f in frames):
        return False
    if kind.startswith("moves"):
        axis = "x" if kind.split()[1] in ("left", "right") else "y"
        at = np.array([f[axis] for f in frames])
        fell = (np.maximum.accumulate(at) - at).max()
        rose = (at - np.minimum.accumulate(at)).max()
        return bool(fell > SHIFT and rose > SHIFT)
    area = np.array([f["area"] for f in frames])
    if kind == "grows and":
        return bool(area.max() > GROWTH * area.min())
    return abs(turning(frames, majority(f["shape"] for f in frames))) > TURN


def verdict(video, asked):
    """video [F, 3, H, W] in [-1, 1], asked = combination -> dict of 0 / 1 and
    measures."""
    votes = [frame(video[i]) for i in VOTES if i < len(video)]
    shape = majority(f.get("shape") for f in votes)
    early = [frame(video[i]) for i in range(0, 21, 2)]
    want = " ".join(asked[2].split()[:2])
    seen = motion(early, shape)
    late = [frame(video[i]) for i in range(20, len(video), 4)]
    present = np.mean(["shape" in f for f in votes])

    def right(key, value):
        return float(majority(f.get(key) or "none" for f in votes) == value)
    return {"colour": right("colour", asked[0]),
            "shape": right("shape", asked[1]),
            "background": right("background", asked[3]),
            "motion": float(seen == want), "seen_motion": seen or "none",
            "again": float(len(late) > 1 and comes_back(late, want)),
            "present": float(present),
            "iou": float(np.mean([asked_iou(f, asked[1]) for f in votes])),
            "colour_gap": float(np.mean([f.get("colour_gap", 2.0)
                                         for f in votes]))}


def asked_iou(f, shape):
    """Overlap with the best template of the shape that was asked for."""
    if "shape" not in f:
        return 0.0
    return fit(f["mask"], shape, f["x"], f["y"], f["area"], ANGLES[shape])[0]


KEYS = ("background", "colour", "shape", "motion", "again", "present", "iou",
        "colour_gap")


def summary(verdicts):
    return {k: float(np.mean([v[k] for v in verdicts])) for k in KEYS}


def line(s):
    return " ".join(f"{k} {s[k]:.3f}" if k in ("iou", "colour_gap")
                    else f"{k} {100 * s[k]:.1f} %" for k in KEYS)


def main():
    rng, clean, noisy = np.random.default_rng(5), [], []
    for c, seed in data.held_out_clips():
        v = data.clip(c, seed)
        clean.append(verdict(v, c))
        noise = rng.normal(0, 2 * 10 ** (-27 / 20), v.shape)
        noisy.append(verdict(np.clip(v + noise, -1, 1).astype(np.float32), c))
    for name, rows in (("generated", clean), ("with noise, 27 dB", noisy)):
        s = summary(rows)
        print(f"{name}: {line(s)}")
        for k in KEYS[:6]:
            assert s[k] >= 0.97, (name, k, s[k])


if __name__ == "__main__":
    main()
