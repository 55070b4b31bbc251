"""export.py: the training state as a model folder in the Wan2.1 layout.

SPDX-License-Identifier: Apache-2.0

    python export.py --state DIR --out MODEL_DIR

EMA weights, bf16 safetensors (the two 1x1x1 convolutions that carry the
latent scale stay F32), config.json, the tokenizer, and SHA256SUMS.
"""
import argparse
import hashlib
import json
import os
import shutil

import torch
from safetensors.torch import save_file

import data
import tokenizer
import train_dit
import train_vae
import vae

FILES = ("config.json", "diffusion_pytorch_model.safetensors",
         "models_t5_umt5-xxl-enc-bf16.safetensors", "Wan2.1_VAE.safetensors",
         "google/umt5-xxl/spiece.model")


def fold(w):
    """Put the published latent scale into conv1 and conv2, in place: the
    program turns z into z * STD + MEAN before conv2, and back after conv1."""
    mean, std = torch.tensor(vae.MEAN), torch.tensor(vae.STD)
    n = len(mean)
    c1, b1 = w["conv1.weight"], w["conv1.bias"]
    c1[:n] *= std.view(n, 1, 1, 1, 1)
    b1[:n] = b1[:n] * std + mean
    c1[n:], b1[n:] = 0.0, -8.0             # log-variance: nothing reads it
    c2, b2 = w["conv2.weight"], w["conv2.bias"]
    c2 /= std.view(1, n, 1, 1, 1)
    b2 -= (c2[:, :, 0, 0, 0] * mean).sum(1)


def vae_weights(state):
    model = vae.VAE(train_vae.WIDTH, train_vae.CHANNELS)
    model.flatten()
    w = {k: v.clone() for k, v in model.state_dict().items()}
    for part in ("decoder", "encoder"):
        path = f"{state}/{part}.pt"
        if os.path.exists(path):
            w.update(torch.load(path, weights_only=True)["ema"])
    fold(w)
    return {k: v.float() if k.split(".")[0] in ("conv1", "conv2")
            else v.bfloat16() for k, v in w.items()}


OTHER_TEXTS = ("", "a", "an orange hexagon flies past", "caf\u00e9 \u2615",
               "RED circle", "a  red   circle", "bounces,on")


def write_tokens(spiece, path):
    """What SentencePiece itself makes of texts, for the tests: one text and
    its ids, </s> included, per line; the text is already cleaned."""
    t = tokenizer.Tokenizer(spiece)
    texts = [data.prompt(c) for c in data.combinations()[::13]]
    texts += [x.replace(" ,", ",") for x in texts[::4]]
    with open(path, "w") as f:
        for x in texts + [" ".join(x.split()) for x in OTHER_TEXTS]:
            f.write(x + "\t" + " ".join(map(str, t(x))) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--state", required=True)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    os.makedirs(f"{a.out}/google/umt5-xxl", exist_ok=True)

    def save(tensors, name):
        save_file({k: v.contiguous() for k, v in tensors.items()},
                  f"{a.out}/{name}", metadata={"format": "pt"})
    ema = torch.load(f"{a.state}/dit.pt", weights_only=True)["ema"]
    for part, name in (("dit.", FILES[1]), ("text.", FILES[2])):
        save({k[len(part):]: v.bfloat16() for k, v in ema.items()
              if k.startswith(part)}, name)
    save(vae_weights(a.state), FILES[3])
    shutil.copyfile(f"{a.state}/spiece.model", f"{a.out}/{FILES[4]}")
    write_tokens(f"{a.out}/{FILES[4]}", f"{a.out}/tokens.tsv")
    c = train_dit.CONFIG
    with open(f"{a.out}/config.json", "w") as f:
        json.dump({"_class_name": "WanModel", "dim": c["dim"], "eps": 1e-6,
                   "ffn_dim": c["ffn"], "freq_dim": c["freq"],
                   "in_dim": c["channels"], "model_type": "t2v",
                   "num_heads": c["heads"], "num_layers": c["layers"],
                   "out_dim": c["channels"], "patch_size": [1, 2, 2],
                   "tether": {"height": data.SIZE, "width": data.SIZE},
                   "text_dim": c["text_dim"],
                   "text_len": train_dit.TEXT_LEN}, f, indent=2)
        f.write("\n")
    with open(f"{a.out}/SHA256SUMS", "w") as f:
        for name in FILES:
            with open(f"{a.out}/{name}", "rb") as g:
                f.write(f"{hashlib.sha256(g.read()).hexdigest()}  {name}\n")
    size = sum(os.path.getsize(f"{a.out}/{n}") for n in FILES)
    print(f"{a.out}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
