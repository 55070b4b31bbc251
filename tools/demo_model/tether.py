"""tether.py: run the program, read and write its files. Needs numpy alone.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import subprocess

import numpy as np

TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def load(path):
    """A safetensors file as a dictionary of arrays."""
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        body = f.read()
    return {k: np.frombuffer(body[v["data_offsets"][0]:v["data_offsets"][1]],
                             TYPES[v["dtype"]]).reshape(v["shape"])
            for k, v in head.items() if k != "__metadata__"}


def save(path, name, array):
    """One float32 tensor as a safetensors file."""
    a = np.ascontiguousarray(array, "<f4")
    head = json.dumps({name: {"dtype": "F32", "shape": list(a.shape),
                              "data_offsets": [0, a.nbytes]}}).encode()
    with open(path, "wb") as f:
        f.write(len(head).to_bytes(8, "little") + head + a.tobytes())


class Tether:
    """The program with a model; intermediate files in `folder`."""

    def __init__(self, program, model, folder):
        self.program, self.model, self.folder = program, model, folder
        os.makedirs(folder, exist_ok=True)

    def run(self, *args):
        command = [self.program] + [str(a) for a in args] + ["-t", "1", "-q"]
        r = subprocess.run(command, capture_output=True, text=True)
        if r.returncode:
            raise RuntimeError(" ".join(command) + "\n" + r.stderr)

    def rollouts(self, name, text, seed, frames, *options, trace=False):
        """Latents [N, T, 16, 8, 8] of a prompt, N = 1 but for causvid; a file
        of that name is reused. trace: with every decision of the cache policy,
        see trace()."""
        path = f"{self.folder}/{name}.safetensors"
        if not os.path.exists(path):
            if trace:
                options += ("--trace-cache", self.trace_path(name))
            self.run("generate", "-m", self.model, "-p", text, "-s", seed,
                     "-W", 64, "-H", 64, "--latents", frames, "--no-decode",
                     "--latents-out", path + ".part", *options)
            os.replace(path + ".part", path)
        return load(path)["latents"]

    def latents(self, *args):
        """The latents [T, 16, 8, 8] of one rollout."""
        return self.rollouts(*args)[0]

    def trace_path(self, name):
        return f"{self.folder}/{name}.trace.safetensors"

    def trace(self, name):
        """The decisions rollouts(..., trace=True) recorded."""
        return load(self.trace_path(name))

    def decode(self, name, latents):
        """[T, 16, h, w] -> video [F, 3, H, W], clamped."""
        a, b = (f"{self.folder}/{name}.{k}.safetensors" for k in ("z", "v"))
        save(a, "latents", latents[None])
        self.run("decode", "-m", self.model, "--latents", a, "--raw-out", b)
        v = load(b)["video_raw"][0].transpose(1, 0, 2, 3)
        os.remove(a)
        os.remove(b)
        return np.clip(v, -1, 1)

    def encode(self, name, video):
        """[F, 3, H, W] -> latents [T, 16, h, w]"""
        a, b = (f"{self.folder}/{name}.{k}.safetensors" for k in ("v", "z"))
        save(a, "video", video.transpose(1, 0, 2, 3)[None])
        self.run("encode", "-m", self.model, "--raw-in", a, "-o", b)
        z = load(b)["latents"][0]
        os.remove(a)
        os.remove(b)
        return z
