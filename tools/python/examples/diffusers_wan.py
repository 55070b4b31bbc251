"""diffusers' Wan transformer with the weights of the demo model, checked.

SPDX-License-Identifier: Apache-2.0

    python3 tools/python/examples/diffusers_wan.py [--bug]

Needs torch and diffusers. --bug: GELU by erf instead of tanh."""
import json
import pathlib
import sys
import tempfile

import diffusers
import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tether                                             # noqa: E402
import tether_torch                                       # noqa: E402

MODEL = "ref_data/demo"
SIZE = ["-W", 64, "-H", 64, "--latents", 3, "--chunk", 3]
with tempfile.TemporaryDirectory() as folder:
    at = pathlib.Path(folder)
    tether.tether("convert", MODEL, "--model", "dit", "--layout", "diffusers",
                  "--dtype", "f32", "-o", at / "dit")
    tether.tether("embed", "-m", MODEL, "-p", "a red circle", "-o", at / "text")
    tether.tether("noise", *SIZE, "-o", at / "noise")
    c = json.loads(pathlib.Path(MODEL, "config.json").read_text())
    theirs = diffusers.WanTransformer3DModel(
        num_attention_heads=c["num_heads"], num_layers=c["num_layers"],
        attention_head_dim=c["dim"] // c["num_heads"], ffn_dim=c["ffn_dim"],
        freq_dim=c["freq_dim"], text_dim=c["text_dim"], eps=c["eps"])
    theirs.load_state_dict({name: torch.from_numpy(np.array(x)) for name, x in
                            tether.load(at / "dit").items()})
    if "--bug" in sys.argv:
        for block in theirs.blocks:
            block.ffn.net[0].approximate = "none"
    text = next(iter(tether.load(at / "text").values())).reshape(
        -1, c["text_dim"])
    with tether.watch(theirs, names="diffusers") as seen:
        tether_torch.sample(theirs, seen, text, tether.load(at / "noise"))
    report = seen.report(
        ["-m", MODEL, "--embeds", at / "text", "--noise", at / "noise", *SIZE,
         "--latents-out", at / "latents", "--no-decode"], arith="f32+time32")
print(report)
sys.exit(not report)
