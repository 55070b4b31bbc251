"""data.py: the procedural video the demo model is trained and judged on.

SPDX-License-Identifier: Apache-2.0

A clip is 81 frames of 64x64 pixels at 16 fps: one coloured shape on a plain or
striped background that moves and bounces, grows and shrinks, or spins. Its
prompt follows the grammar

    a COLOUR SHAPE MOTION , on a BACKGROUND background

Speeds and periods are constants, so that after the first frame everything is
a function of what is visible; the random decisions are the place, the size and
nothing else. A clip is a function of (combination, seed) alone.

Pixels are float32 in [-1, 1], layout [frame, channel, row, column].
"""
import itertools

import numpy as np

SIZE, FRAMES, FPS = 64, 81, 16
SPEED = 1.0               # pixels per frame
PULSE, TURN = 48, 64      # frames per period of growing, of turning
PULSE_DEPTH = 0.30        # radius between 0.7 and 1.3 of its mean
RADIUS = {"moves": (11.0, 14.5), "grows": (11.5, 13.5), "spins": (12.0, 15.0)}
FREE = 25.0               # frames before the first bounce: more than 1.5 s

COLOURS = {
    "red": (0.90, -0.80, -0.80), "green": (-0.80, 0.60, -0.70),
    "blue": (-0.70, -0.50, 0.95), "yellow": (0.90, 0.80, -0.80),
    "white": (0.95, 0.95, 0.95), "purple": (0.55, -0.80, 0.80),
}
SHAPES = ("circle", "square", "triangle")
MOTIONS = ("moves left and bounces", "moves right and bounces",
           "moves up and bounces", "moves down and bounces",
           "grows and shrinks", "spins in place")
BACKGROUNDS = ("blue", "gray", "black", "striped")
PLAIN = {"blue": (-0.85, -0.35, 0.25), "gray": (0.05, 0.05, 0.05),
         "black": (-0.90, -0.90, -0.90)}
BROWNS = ((-0.10, -0.40, -0.65), (-0.45, -0.65, -0.80))
STRIPE = 16               # pixels per period, along x and along y
HELD_OUT = 64


def combinations():
    """All 391 (colour, shape, motion, background), in a fixed order."""
    return [c for c in itertools.product(COLOURS, SHAPES, MOTIONS, BACKGROUNDS)
            if not (c[0] == "blue" and c[3] == "blue")
            and not (c[1] == "circle" and c[2] == "spins in place")]


def split():
    """(training, held out): 327 and 64 combinations, drawn once for all."""
    every = combinations()
    order = np.random.default_rng(20260101).permutation(len(every))
    held = sorted(order[:HELD_OUT])
    train = sorted(order[HELD_OUT:])
    return [every[i] for i in train], [every[i] for i in held]


def prompt(combination):
    colour, shape, motion, background = combination
    return f"a {colour} {shape} {motion} , on a {background} background"


def background(name):
    """[3, SIZE, SIZE]"""
    if name in PLAIN:
        colour = np.array(PLAIN[name], np.float32)
        return np.broadcast_to(colour[:, None, None], (3, SIZE, SIZE)).copy()
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    wave = 0.5 + 0.5 * np.sin(2 * np.pi * (x + y) / STRIPE)
    a, b = (np.array(c, np.float32)[:, None, None] for c in BROWNS)
    return (b + (a - b) * wave).astype(np.float32)


# Half extents of the bounding box of a shape of radius 1 that does not turn,
# and how far the box centre lies below the centre of rotation.
SIDE = 0.90               # half side of a square
CORNER = 1.30             # circumradius of a triangle
EXTENT = {"circle": (1.0, 1.0, 0.0), "square": (SIDE, SIDE, 0.0),
          "triangle": (CORNER * 0.8660254, CORNER * 0.75, CORNER * 0.25)}


def signed_distance(shape, x, y, radius):
    """Distance to the edge, positive inside; x, y from the centre of
    rotation, y down. For the triangle the distance to the nearest side line,
    which is what anti-aliasing needs."""
    if shape == "circle":
        return radius - np.sqrt(x * x + y * y)
    if shape == "square":
        return SIDE * radius - np.maximum(np.abs(x), np.abs(y))
    inner = CORNER * radius * 0.5
    return inner - np.maximum(y, np.maximum(0.8660254 * x - 0.5 * y,
                                            -0.8660254 * x - 0.5 * y))


def bounce(start, path, frames):
    """Triangle wave on [0, path] from `start`, upwards first."""
    s = (start + SPEED * frames) % (2 * path)
    return path - np.abs(s - path)


def trajectory(combination, seed, frames=FRAMES):
    """Centre of rotation x, y, radius and angle of every frame."""
    _, shape, motion, _ = combination
    rng = np.random.default_rng([20260102, seed])
    u = rng.random(3)
    t = np.arange(frames, dtype=np.float64)
    lo, hi = RADIUS[motion.split()[0]]
    radius = np.full(frames, lo + (hi - lo) * u[0])
    angle = np.zeros(frames)
    middle = (SIZE - 1) / 2
    x = np.full(frames, middle + 16 * (u[1] - 0.5))
    y = np.full(frames, middle + 16 * (u[2] - 0.5))
    ex, ey, below = EXTENT[shape]
    if motion.startswith("moves"):
        word = motion.split()[1]
        across = word in ("left", "right")
        r = radius[0]
        half = (ex if across else ey) * r
        path = SIZE - 1 - 2 * half
        start = (u[1] if across else u[2]) * max(path - FREE, 0.0)
        s = half + bounce(start, path, t)
        if word in ("left", "up"):
            s = SIZE - 1 - s
        # s is the centre of the box along the path; the centre of rotation
        # of a triangle lies `below` it.
        if across:
            x, y = s, y + below * r
        else:
            y = s + below * r
    elif motion.startswith("grows"):
        radius = radius * (1 - PULSE_DEPTH * np.cos(2 * np.pi * t / PULSE))
    else:
        angle = 2 * np.pi * t / TURN
    return x, y, radius, angle


def masks(shape, x, y, radius, angle):
    """Coverage [frames, SIZE, SIZE] in [0, 1]."""
    py, px = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    one = (slice(None), None, None)
    dx = px[None] - np.asarray(x, np.float32)[one]
    dy = py[None] - np.asarray(y, np.float32)[one]
    c = np.cos(angle).astype(np.float32)[one]
    s = np.sin(angle).astype(np.float32)[one]
    r = np.asarray(radius, np.float32)[one]
    d = signed_distance(shape, c * dx + s * dy, c * dy - s * dx, r)
    return np.clip(d + 0.5, 0.0, 1.0)


def clip(combination, seed, frames=FRAMES):
    """The video [frames, 3, SIZE, SIZE]."""
    return render(combination, *trajectory(combination, seed, frames))


def render(combination, x, y, radius, angle):
    colour, shape, _, back = combination
    a = masks(shape, x, y, radius, angle)[:, None]
    c = np.array(COLOURS[colour], np.float32)[None, :, None, None]
    return (background(back)[None] * (1 - a) + c * a).astype(np.float32)


def training_clip(index):
    """Number `index` of the endless training set: (combination, seed)."""
    train, _ = split()
    rng = np.random.default_rng([20260103, index])
    return train[rng.integers(len(train))], int(rng.integers(1 << 30)) * 2


def held_out_clips():
    """The 64 held-out combinations with their seeds (odd: never trained)."""
    _, held = split()
    return [(c, 2 * i + 1) for i, c in enumerate(held)]
