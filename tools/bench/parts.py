"""parts.py: the text encoder and the VAE's decoder beside PyTorch, in turns.

    python3 tools/bench/parts.py text|vae --python VENV/bin/python

SPDX-License-Identifier: Apache-2.0

Published widths, random weights. text: a layer of umT5-XXL at 512 tokens. vae:
one latent frame (4 pictures) with its history. tether's figure is the difference
of two runs of the program, of 5 layers or frames and of 1, so that start, loading
and the first frame count for neither side. PyTorch runs 4 layers or the same
frame again and again, warmed up. Medians of --rounds; seconds."""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

MORE = 4            # layers or latent frames in which tether's two runs differ
TOKENS, WIDTH, HEADS, FFN = 512, 4096, 64, 10240


def options():
    p = argparse.ArgumentParser()
    add = p.add_argument
    add("what", choices=("text", "vae"))
    add("--build", default="build/gcc-O2", help="folder of tether's build")
    add("--python", default=sys.executable, help="what has torch")
    add("--sides", default="tether-f32,tether-vdp,torch-f32,torch-bf16")
    add("--threads", type=int, default=os.cpu_count())
    add("--rounds", type=int, default=3)
    add("-W", type=int, default=416)
    add("-H", type=int, default=240)
    add("--serve", help=argparse.SUPPRESS)
    return p.parse_args()


# ---- tether ------------------------------------------------------------------

def safetensors(path, tensors):
    """tensors: name -> (type, shape, bytes)"""
    head, at = {}, 0
    for name, (kind, shape, data) in tensors.items():
        head[name] = {"dtype": kind, "shape": shape,
                      "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)


class Tether:
    def __init__(self, o, kind, folder):
        self.program = os.path.join(o.build, "tether")
        self.folder, self.runs = folder, []
        for n in (1, 1 + MORE):
            words = self.text(o, n) if o.what == "text" else self.vae(o, n)
            self.runs.append(words + [
                "--vae-class" if o.what == "vae" else "--class", kind,
                "-q", "-t", str(o.threads), "--overwrite"])
        self.once()

    def at(self, name):
        return os.path.join(self.folder, name)

    def make(self, o, name, *words):
        if not os.path.exists(self.at(name)):
            subprocess.run([os.path.join(o.build, "tools", "make_checkpoint"),
                            *words, self.at(name)], check=True,
                           stderr=subprocess.DEVNULL)
        return self.at(name)

    def text(self, o, layers):
        model = self.make(o, "t5_%d.pth" % layers, "--t5-vocab", "1000",
                          "--t5-layers", str(layers), "--t5")
        number = struct.Struct("<%dq" % TOKENS)
        shape = [1, TOKENS]
        safetensors(self.at("ids.st"), {
            "ids": ("I64", shape, number.pack(*(i % 999 for i in range(TOKENS)))),
            "mask": ("I64", shape, number.pack(*[1] * TOKENS))})
        return ["embed", "--text-encoder", model, "--ids", self.at("ids.st"),
                "-o", self.at("text.st")]

    def vae(self, o, frames):
        model = self.make(o, "vae.pth", "--vae")
        shape = [1, frames, 16, o.H // 8, o.W // 8]
        count = frames * 16 * shape[3] * shape[4]
        values = struct.pack("<%df" % count, *(
            (i * 7919 % 2003 - 1001) * 1e-3 for i in range(count)))
        name = self.at("latents_%d.st" % frames)
        safetensors(name, {"latents": ("F32", shape, values)})
        return ["decode", "--vae", model, "--latents", name,
                "-o", self.at("video.y4m")]

    def once(self):
        took = []
        for words in self.runs:
            begin = time.perf_counter()
            subprocess.run([self.program, *words], check=True)
            took.append(time.perf_counter() - begin)
        return (took[1] - took[0]) / MORE


# ---- PyTorch -----------------------------------------------------------------

def encoder(torch, dtype):
    """MORE layers of umT5: no bias, a bias of positions per layer, gated GELU."""
    F = torch.nn.functional

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, n, m in (("q", WIDTH, WIDTH), ("k", WIDTH, WIDTH),
                               ("v", WIDTH, WIDTH), ("o", WIDTH, WIDTH),
                               ("gate", WIDTH, FFN), ("fc1", WIDTH, FFN),
                               ("fc2", FFN, WIDTH)):
                setattr(self, name, torch.nn.Linear(n, m, bias=False))
            self.norm1 = torch.nn.RMSNorm(WIDTH)
            self.norm2 = torch.nn.RMSNorm(WIDTH)
            self.register_buffer("bias", torch.randn(1, HEADS, TOKENS, TOKENS))

        def forward(self, x):
            a = self.norm1(x)
            q, k, v = (part(a).view(TOKENS, HEADS, -1).transpose(0, 1)[None]
                       for part in (self.q, self.k, self.v))
            y = F.scaled_dot_product_attention(q, k, v, self.bias, scale=1.0)
            x = x + self.o(y[0].transpose(0, 1).flatten(1))
            a = self.norm2(x)
            a = self.fc1(a) * F.gelu(self.gate(a), approximate="tanh")
            return x + self.fc2(a)

    layers = torch.nn.Sequential(*(Layer() for _ in range(MORE)))
    layers = layers.eval().to(dtype)
    x = torch.randn(TOKENS, WIDTH, dtype=dtype)
    return lambda: layers(x), MORE


def decoder(torch, dtype, width, height):
    """One latent frame of Wan's VAE in a stream: its convolutions see the two
    frames before theirs. channels_last, which oneDNN likes best."""
    F, d = torch.nn.functional, 96
    weights, history = [], []

    def conv(n, m, *k):
        weights.append(torch.randn(m, n, *k).mul_((n * 9) ** -0.5).to(dtype))
        layout = (torch.channels_last_3d if len(k) == 3
                  else torch.channels_last)
        w = weights[-1].to(memory_format=layout)
        if len(k) == 2:
            return lambda x: F.conv2d(x[0].transpose(0, 1), w, padding=k[1] // 2
                                      ).transpose(0, 1)[None]
        at = len(history)
        history.append(None)

        def run(x):
            if k[0] == 1:
                return F.conv3d(x, w)
            old = history[at]
            if old is None:
                old = torch.zeros_like(x[:, :, :1]).repeat(1, 1, 2, 1, 1)
            y = torch.cat((old, x), 2).contiguous(memory_format=layout)
            history[at] = y[:, :, -2:].clone()
            return F.conv3d(y, w, padding=(0, k[1] // 2, k[2] // 2))
        return run

    def norm(x):
        return F.silu(F.normalize(x, dim=1) * x.shape[1] ** 0.5)

    def res(n, m):
        one, two = conv(n, m, 3, 3, 3), conv(m, m, 3, 3, 3)
        short = conv(n, m, 1, 1, 1) if n != m else lambda x: x
        return lambda x: short(x) + two(norm(one(norm(x))))

    def attention(c):
        qkv, out = conv(c, 3 * c, 1, 1, 1), conv(c, c, 1, 1, 1)

        def run(x):
            q, k, v = qkv(norm(x)).flatten(2).transpose(1, 2)[:, None].chunk(
                3, -1)
            y = F.scaled_dot_product_attention(q, k, v)
            return x + out(y[:, 0].transpose(1, 2).reshape(x.shape))
        return run

    def up(n, m, time_too):
        when, where = conv(n, 2 * n, 3, 1, 1) if time_too else None, conv(
            n, m, 3, 3)

        def run(x):
            if when:
                a, b = when(x).chunk(2, 1)
                x = torch.stack((a, b), 3).flatten(2, 3)
            return where(x.repeat_interleave(2, 3).repeat_interleave(2, 4))
        return run

    steps = [conv(16, 4 * d, 3, 3, 3), res(4 * d, 4 * d), attention(4 * d),
             res(4 * d, 4 * d), *(res(4 * d, 4 * d) for _ in range(3)),
             up(4 * d, 2 * d, True), res(2 * d, 4 * d), res(4 * d, 4 * d),
             res(4 * d, 4 * d), up(4 * d, 2 * d, True),
             *(res(2 * d, 2 * d) for _ in range(3)), up(2 * d, d, False),
             *(res(d, d) for _ in range(3)), norm, conv(d, 3, 3, 3, 3)]
    z = torch.randn(1, 16, 1, height // 8, width // 8, dtype=dtype)

    def run():
        x = z
        for step in steps:
            x = step(x)
        assert x.shape == (1, 3, 4, height, width)
        return x
    return run, 1


def serve(o):
    """Answers every line with seconds."""
    import torch
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    dtype = torch.bfloat16 if o.serve.endswith("bf16") else torch.float32
    with torch.inference_mode():
        run, parts = (encoder(torch, dtype) if o.what == "text"
                      else decoder(torch, dtype, o.W, o.H))
        run()
        run()
        print("ready", torch.__version__, flush=True)
        for _ in sys.stdin:
            begin = time.perf_counter()
            run()
            print((time.perf_counter() - begin) / parts, flush=True)


class Torch:
    def __init__(self, o, side):
        self.process = subprocess.Popen(
            [o.python, "-W", "ignore", __file__, o.what, "--serve", side,
             "--threads", str(o.threads), "-W", str(o.W), "-H", str(o.H)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = self.process.stdout.readline().split()
        if said[:1] != ["ready"]:
            sys.exit(side + " did not start")
        print(side + ": torch " + said[1])

    def once(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main():
    o = options()
    if o.serve:
        return serve(o)
    with tempfile.TemporaryDirectory() as folder:
        sides = {s: Tether(o, s.split("-")[1], folder)
                 if s.startswith("tether") else Torch(o, s)
                 for s in o.sides.split(",")}
        took = {s: [] for s in sides}
        for turn in range(o.rounds):
            for s in list(sides)[::-1] if turn % 2 else sides:
                time.sleep(0.5)              # others' threads fall asleep
                took[s].append(sides[s].once())
    print("side             seconds      least .. most")
    for s, t in took.items():
        print("%-14s %9.3f %9.3f .. %.3f" % (s, statistics.median(t), min(t),
                                             max(t)))


if __name__ == "__main__":
    main()
