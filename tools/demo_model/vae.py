"""vae.py: the Wan2.1 VAE of any width, in the closed form used for training.

Source: wan/modules/vae.py of Wan2.1 (structure, parameter names). Where the
official code streams chunks through a cache, this one runs the whole clip:
zero history for every causal convolution, the two outputs of each time
convolution interleaved. Both give the same numbers (test_demo.py).

SPDX-License-Identifier: Apache-2.0

Layout inside: [batch, time, channels, height, width]. A causal 3x3x3
convolution is a 2-D one over the frame and its two predecessors, stacked
along the channels, because 2-D convolutions are what a CPU does well.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

# The constants of the published latent scale (src/vae).
MEAN = (-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
        0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921)
STD = (2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
       3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160)


def frames_2d(x):
    return x.flatten(0, 1).contiguous(memory_format=torch.channels_last)


class CausalConv(nn.Module):
    """kernel (kt, k, k), kt - 1 zero frames in front, stride 1."""

    def __init__(self, cin, cout, kt, k):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(cout, cin, kt, k, k))
        self.bias = nn.Parameter(torch.zeros(cout))
        nn.init.kaiming_normal_(self.weight, nonlinearity="linear")
        self.flat = False     # only the tap of the current frame, see flat()

    def forward(self, x):
        b, t = x.shape[:2]
        w = self.weight
        cout, cin, kt, k, _ = w.shape
        if self.flat or t == 1:                # zero frames contribute nothing
            w, kt = w[:, :, -1:], 1
        if kt > 1:
            x = F.pad(x, (0, 0, 0, 0, 0, 0, kt - 1, 0))
            x = torch.cat([x[:, a:a + t] for a in range(kt)], 2)
        w = w.transpose(1, 2).reshape(cout, kt * cin, k, k)
        y = F.conv2d(frames_2d(x), w, self.bias, padding=k // 2)
        return y.unflatten(0, (b, t))


class NormSilu(torch.autograd.Function):
    """silu(x / rms(x) * gamma) of channels-last rows [M, C] in bf16. The sum
    over few channels is a product with a matrix of ones, which a CPU does
    faster than a short reduction. Training only."""

    @staticmethod
    def forward(ctx, x, gamma):
        c = x.shape[1]
        mean = torch.full((c, c), 1.0 / c, dtype=x.dtype)
        r = ((x * x) @ mean).clamp_min_(1e-12).rsqrt_()
        u = x * r
        ctx.save_for_backward(u, r, gamma, mean)
        return F.silu(u * gamma.to(x.dtype))

    @staticmethod
    def backward(ctx, dy):
        u, r, gamma, mean = ctx.saved_tensors
        g = gamma.to(u.dtype)
        dh = torch.ops.aten.silu_backward(dy, u * g)
        ones = torch.ones(1, dy.shape[0], dtype=dy.dtype)
        dgamma = (ones @ (dh * u))[0].float()
        dh.mul_(g)
        m = (dh * u) @ mean
        return torch.addcmul(dh, u, m, value=-1).mul_(r), dgamma


class Norm(nn.Module):
    def __init__(self, c, images=False):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(c, *([1] * (2 if images else 3))))

    def forward(self, x):                      # [..., C, H, W]
        c = self.gamma.shape[0]
        n = x.pow(2).sum(-3, keepdim=True).clamp_min(1e-24).rsqrt()
        return x * (n * c ** 0.5) * self.gamma.view(c, 1, 1).to(x.dtype)

    def silu(self, x):                         # [B, T, C, H, W]
        if x.dtype != torch.bfloat16:
            return F.silu(self(x))
        b, t, c, h, w = x.shape
        rows = x.permute(0, 1, 3, 4, 2).reshape(-1, c)
        y = NormSilu.apply(rows, self.gamma.flatten())
        return y.view(b, t, h, w, c).permute(0, 1, 4, 2, 3)


class Res(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.residual = nn.ModuleDict({
            "0": Norm(cin), "2": CausalConv(cin, cout, 3, 3),
            "3": Norm(cout), "6": CausalConv(cout, cout, 3, 3)})
        if cin != cout:
            self.shortcut = CausalConv(cin, cout, 1, 1)
        # the block starts as the identity (or its projection)
        nn.init.zeros_(self.residual["6"].weight)

    def forward(self, x):
        r = self.residual
        h = self.shortcut(x) if hasattr(self, "shortcut") else x
        y = r["2"](r["0"].silu(x))
        return r["6"](r["3"].silu(y)) + h


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = Norm(c, images=True)
        self.to_qkv = nn.Conv2d(c, 3 * c, 1)
        self.proj = nn.Conv2d(c, c, 1)
        nn.init.zeros_(self.proj.weight)
        nn.init.zeros_(self.proj.bias)

    def forward(self, x):
        b, t, c, h, w = x.shape
        y = x.flatten(0, 1)
        q, k, v = self.to_qkv(self.norm(y)).flatten(2).transpose(1, 2).chunk(
            3, -1)
        o = torch.softmax(q @ k.transpose(1, 2) * c ** -0.5, -1) @ v
        o = o.transpose(1, 2).unflatten(2, (h, w))
        return (self.proj(o) + y).unflatten(0, (b, t))


class Up(nn.Module):
    def __init__(self, c, time):
        super().__init__()
        self.resample = nn.ModuleDict({"1": nn.Conv2d(c, c // 2, 3, padding=1)})
        if time:
            self.time_conv = CausalConv(c, 2 * c, 3, 1)

    def forward(self, x):
        b, t, c = x.shape[:3]
        if hasattr(self, "time_conv") and t > 1:
            y = self.time_conv(x[:, 1:])
            y = y.unflatten(2, (2, c)).flatten(1, 2)
            x = torch.cat([x[:, :1], y], 1)
        t = x.shape[1]
        x = F.interpolate(frames_2d(x), scale_factor=2, mode="nearest")
        return self.resample["1"](x).unflatten(0, (b, t))


class Down(nn.Module):
    def __init__(self, c, time):
        super().__init__()
        self.resample = nn.ModuleDict({"1": nn.Conv2d(c, c, 3, stride=2)})
        if time:
            self.time_conv = CausalConv(c, c, 3, 1)
            self.time_conv.strided = True

    def forward(self, x):
        b, t = x.shape[:2]
        x = self.resample["1"](F.pad(frames_2d(x), (0, 1, 0, 1)))
        x = x.unflatten(0, (b, t))
        if hasattr(self, "time_conv") and t > 1:
            w, c = self.time_conv.weight, x.shape[2]
            y = torch.cat([x[:, a:t - 2 + a:2] for a in range(3)], 2)
            y = F.conv2d(frames_2d(y), w[..., 0, 0].transpose(1, 2).reshape(
                c, 3 * c, 1, 1), self.time_conv.bias)
            x = torch.cat([x[:, :1], y.unflatten(0, (b, t // 2))], 1)
        return x


def middle(c):
    return nn.ModuleDict({"0": Res(c, c), "1": Attention(c), "2": Res(c, c)})


def head(c, out):
    return nn.ModuleDict({"0": Norm(c), "2": CausalConv(c, out, 3, 3)})


def run(modules, x):
    for m in modules.values():
        x = m(x)
    return x


class Decoder(nn.Module):
    def __init__(self, d, z):
        super().__init__()
        self.conv1 = CausalConv(z, 4 * d, 3, 3)
        self.middle = middle(4 * d)
        self.upsamples = nn.ModuleDict()
        widths = [4 * d, 4 * d, 4 * d, 2 * d, d]
        for s in range(4):
            cin = widths[s] // (2 if s else 1)
            cout = widths[s + 1]
            for i in range(3):
                self.upsamples[str(4 * s + i)] = Res(cin if i == 0 else cout,
                                                     cout)
            if s < 3:
                self.upsamples[str(4 * s + 3)] = Up(cout, s < 2)
        self.head = head(d, 3)

    def forward(self, x):
        x = run(self.upsamples, run(self.middle, self.conv1(x)))
        return self.head["2"](self.head["0"].silu(x))


class Encoder(nn.Module):
    def __init__(self, d, z):
        super().__init__()
        self.conv1 = CausalConv(3, d, 3, 3)
        self.downsamples = nn.ModuleDict()
        widths, n = [d, d, 2 * d, 4 * d, 4 * d], 0
        for s in range(4):
            for i in range(2):
                self.downsamples[str(n)] = Res(widths[s + (i > 0)],
                                               widths[s + 1])
                n += 1
            if s < 3:
                self.downsamples[str(n)] = Down(widths[s + 1], s > 0)
                n += 1
        self.middle = middle(4 * d)
        self.head = head(4 * d, 2 * z)

    def forward(self, x):
        x = run(self.middle, run(self.downsamples, self.conv1(x)))
        return self.head["2"](self.head["0"].silu(x))


class VAE(nn.Module):
    def __init__(self, dim=12, z=16):
        super().__init__()
        self.encoder, self.conv1 = Encoder(dim, z), CausalConv(2 * z, 2 * z,
                                                               1, 1)
        self.conv2, self.decoder = CausalConv(z, z, 1, 1), Decoder(dim, z)

    def encode(self, video):
        """[B, F, 3, H, W] -> mu [B, T, z, h, w], not normalised."""
        return self.conv1(self.encoder(video)).chunk(2, 2)[0]

    def decode(self, mu):
        """[B, T, z, h, w], not normalised -> video, not clamped."""
        return self.decoder(self.conv2(mu))

    def flatten(self):
        """Set the taps that look at earlier latent frames to zero and leave
        them out, so that a latent frame and its pixels are trained on their
        own; unflatten() puts the (zero) taps back in."""
        for m in self.modules():
            if isinstance(m, Down) and hasattr(m, "time_conv"):
                m.time_conv.weight.data[:, :, 0] = 0
            elif isinstance(m, CausalConv) and m.weight.shape[2] > 1:
                if not getattr(m, "strided", False):
                    m.flat = True
                    m.weight.data[:, :, :-1] = 0

    def unflatten(self):
        for m in self.modules():
            if isinstance(m, CausalConv):
                m.flat = False
