#!/usr/bin/env python3
"""Run cases of `tether validate export` through PyTorch and write the answers.

SPDX-License-Identifier: Apache-2.0

    tether validate export cases
    python3 tools/run_case_torch.py cases results [bf16]
    tether validate check cases --got results --partial --arith bf16

Replace a line of OPS by your own module to have it judged. Needs torch and
safetensors."""
import json, pathlib, sys
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

cases, results = map(pathlib.Path, sys.argv[1:3])
low = torch.bfloat16 if sys.argv[3:] == ["bf16"] else torch.float32
cast = lambda t: t.to(low).float()      # inputs of products; sums are float32

def linear(t, c):
    return F.linear(cast(t["x"]), cast(t["w"].float()), t.get("b"))

def attention(t, c):
    q, k, v = (cast(t[n]).transpose(0, 1) for n in "qkv")     # [H, tokens, D]
    logits = q @ k.transpose(1, 2) * c["scale"]
    if "rel_bias" in t:                  # entry j-i+N-1 for query i, key j
        n = k.shape[1]
        place = torch.arange(n)[None] - torch.arange(n)[:, None] + n - 1
        logits = logits + t["rel_bias"][:, place]
    if "key_mask" in t:
        logits = logits.masked_fill(t["key_mask"] == 0, -torch.inf)
    return (cast(logits.softmax(-1)) @ v).transpose(0, 1).contiguous()

OPS = {
    "linear": linear,
    "attention": attention,
    "layer_norm": lambda t, c: F.layer_norm(
        t["x"], t["x"].shape[-1:], t.get("w"), t.get("b"), c["eps"]),
    "rms_norm": lambda t, c: t["x"] * torch.rsqrt(
        t["x"].pow(2).mean(-1, keepdim=True) + c["eps"]) * t["w"],
    "gelu_tanh": lambda t, c: F.gelu(t["x"], approximate="tanh"),
    "silu": lambda t, c: F.silu(t["x"]),
}

results.mkdir(exist_ok=True)
for path in sorted(cases.glob("*/case.json")):
    case = json.loads(path.read_text())
    if case.get("op") in OPS:
        tensors = load_file(path.parent / "inputs.safetensors")
        y = OPS[case["op"]](tensors, case)
        save_file({"y": y.contiguous()}, results / f"{path.parent.name}.safetensors")
