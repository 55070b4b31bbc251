"""latent.py: the latent code of the demo model, a fixed function of pixels.

SPDX-License-Identifier: Apache-2.0

The published VAE finds its own code. Here the code is given, so that encoder,
decoder and transformer can be trained apart from each other and at the same
time, each by plain regression. Per latent pixel (8x8 pixels of 4 frames; the
first latent frame counts its single frame four times):

  channels 0-2   mean colour, on the principal axes of the training set
  channels 3-15  the first 13 principal components of the figure: how far each
                 of the 256 pixels is from every background colour, 0 to 1

Channels have mean 0; the deviation is 1 for the colours, and for the figure
falls with that of the component to the power 0.3 (their mean square is 1), so
that fine detail counts less than place. fold() gives the two 1x1x1 convolutions
that turn this scale into the one of the published constants and back.
"""
import numpy as np

import data

COLOUR, FIGURE = 3, 13
CLIPS = 300               # of the training set, for means and axes


def figure(video):
    """[F, 3, H, W] -> [F, H, W]: 0 on background, 1 on anything else. The
    browns are a line between two colours, the others points."""
    r, g, b = video[:, 0], video[:, 1], video[:, 2]

    def far(c):
        return np.abs(r - c[0]) + np.abs(g - c[1]) + np.abs(b - c[2])
    nearest = far(data.PLAIN["blue"])
    for name in ("gray", "black"):
        np.minimum(nearest, far(data.PLAIN[name]), out=nearest)
    dark = np.array(data.BROWNS[1], np.float32)
    step = np.array(data.BROWNS[0], np.float32) - dark
    k = step / (step ** 2).sum()
    along = np.clip((r - dark[0]) * k[0] + (g - dark[1]) * k[1]
                    + (b - dark[2]) * k[2], 0, 1)
    np.minimum(nearest, far([dark[i] + along * step[i] for i in range(3)]),
               out=nearest)
    return np.minimum(nearest / np.float32(0.9), 1)


def blocks(frames):
    """[4, C, H, W] -> [H/8, W/8, C, 256]"""
    f, c, h, w = frames.shape
    x = frames.reshape(f, c, h // 8, 8, w // 8, 8)
    return x.transpose(2, 4, 1, 0, 3, 5).reshape(h // 8, w // 8, c, f * 64)


def groups(video):
    """The groups of four frames that make one latent frame each."""
    yield np.repeat(video[:1], 4, 0)
    for i in range(1, video.shape[0] - 3, 4):
        yield video[i:i + 4]


class Code:
    def __init__(self, arrays):
        self.a = {k: np.asarray(v, np.float32) for k, v in arrays.items()}

    def of_group(self, frames):
        """[4, 3, H, W] -> [16, H/8, W/8]"""
        a = self.a
        rgb = blocks(frames).mean(-1)
        fig = blocks(figure(frames)[:, None])[:, :, 0]
        z = np.concatenate([(rgb - a["rgb_mean"]) @ a["rgb_axes"],
                            (fig - a["fig_mean"]) @ a["fig_axes"]], -1)
        return (z * a["scale"]).transpose(2, 0, 1)

    def of_video(self, video):
        """[F, 3, H, W] -> [T, 16, H/8, W/8]"""
        return np.stack([self.of_group(g) for g in groups(video)])

    def save(self, path):
        np.savez(path, **self.a)


def load(path):
    return Code(dict(np.load(path)))


def fit():
    """Means, axes and scales over the first CLIPS training clips."""
    rgb, fig = [], []
    for n in range(CLIPS):
        v = data.clip(*data.training_clip(n))
        at = np.random.default_rng([20260104, n]).integers(1, 21, 3)
        for i in at:
            g = v[4 * i - 3:4 * i + 1]
            rgb.append(blocks(g).mean(-1).reshape(-1, 3))
            fig.append(blocks(figure(g)[:, None])[:, :, 0].reshape(-1, 256))
    rgb, fig = np.concatenate(rgb), np.concatenate(fig)

    def axes(x, k):
        mean = x.mean(0)
        value, vector = np.linalg.eigh(np.cov(x - mean, rowvar=False))
        value, vector = value[::-1][:k], vector[:, ::-1][:, :k]
        sign = np.sign(vector[np.abs(vector).argmax(0), np.arange(k)])
        return mean, vector * sign, np.sqrt(value), value.sum() / (
            x - mean).var(0).sum()
    rm, ra, rs, _ = axes(rgb, COLOUR)
    fm, fa, fs, share = axes(fig, FIGURE)
    weak = fs ** -0.7
    weak *= np.sqrt(FIGURE / ((fs * weak) ** 2).sum())
    print(f"figure: {100 * share:.2f} % of the variance in {FIGURE} components;"
          f" deviations {np.round(fs * weak, 2)}")
    return Code({"rgb_mean": rm, "rgb_axes": ra, "fig_mean": fm, "fig_axes": fa,
                 "scale": np.concatenate([1 / rs, weak])})
