"""diffusers' transformer and VAE and transformers' umT5 against tether.

SPDX-License-Identifier: Apache-2.0

    TETHER=... TETHER_LIB=... python3 tests/python/check_torch.py FOLDER \
        [wide|wide-vae]

`make check-python` runs it; it needs numpy, torch, diffusers, transformers and
accelerate. The weights are those of the model in FOLDER, converted by `tether
convert`: random ones of make_checkpoint, since the VAE of ref_data/demo looks
at one frame alone. Their three models make a whole run: prompt, one chunk of
all frames, pictures. `tether validate` judges every tensor. Then faults are
planted in copies of their modules, and must be found. `wide` and `wide-vae`
are for models of real width (`make check-python-wide`): smaller pictures and no
faults; in `wide` no VAE, and therefore more tokens."""
import contextlib
import inspect
import json
import os
import pathlib
import re
import sys
import tempfile
import textwrap

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
try:
    import diffusers
    import numpy as np
    import torch
    import transformers
    from diffusers.models.autoencoders import autoencoder_kl_wan as their_vae
    from diffusers.models.transformers import transformer_wan as their_dit
except ImportError as e:
    print(f"SKIP python/torch: {e}")
    print("python/torch: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

sys.path.insert(0, "tools/python")
import tether                                             # noqa: E402
import tether_torch                                       # noqa: E402

FOLDER = sys.argv[1]
PROMPT = "a red circle moves left and bounces, on a blue background"
FRAMES = 3
WIDE = len(sys.argv) > 2
DECODED = sys.argv[2:] != ["wide"]
SIDE = 64 if not WIDE else 16 if DECODED else 32
SIZE = ["-W", SIDE, "-H", SIDE]
KINDS = (("transformer", "dit"), ("text_encoder", "text-encoder")) + (
    (("vae", "vae"),) if DECODED else ())
STEPS = (1000, 500)
counts = [0, 0]
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
diffusers.utils.logging.set_verbosity_error()
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def check(ok, what):
    counts[not ok] += 1
    if not ok:
        print("FAIL python/torch:", what)


# ---- their models with our weights ----------------------------------------------

def convert(tmp):
    """Folders that diffusers and transformers read."""
    c = json.loads(pathlib.Path(FOLDER, "config.json").read_text())
    paths = {}
    for kind, option in KINDS:
        path = tmp / f"{kind}.safetensors"
        tether.tether("convert", FOLDER, "--model", option, "-o", path,
                      "--layout", "diffusers", "--dtype", "f32")
        paths[kind] = tether.load(path)
    w = paths["text_encoder"]
    d_ff, dim = w["encoder.block.0.layer.1.DenseReluDense.wi_0.weight"].shape
    bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"
    buckets, heads = w[bias + ".weight"].shape
    layers = sum(bool(re.fullmatch(r"encoder\.block\.\d+\.layer\.0"
                                   r"\.layer_norm\.weight", n)) for n in w)
    made = {
        "transformer": diffusers.WanTransformer3DModel(
            num_attention_heads=c["num_heads"],
            attention_head_dim=c["dim"] // c["num_heads"],
            in_channels=c["in_dim"], out_channels=c["out_dim"],
            text_dim=c.get("text_dim", 4096), freq_dim=c["freq_dim"],
            ffn_dim=c["ffn_dim"], num_layers=c["num_layers"], eps=c["eps"]),
        "text_encoder": transformers.UMT5EncoderModel(
            transformers.UMT5Config(
                vocab_size=len(w["shared.weight"]), d_model=dim, d_ff=d_ff,
                d_kv=w["encoder.block.0.layer.0.SelfAttention.q.weight"]
                .shape[0] // heads, num_layers=layers, num_heads=heads,
                relative_attention_num_buckets=buckets,
                feed_forward_proj="gated-gelu"))}
    if "vae" in paths:
        made["vae"] = diffusers.AutoencoderKLWan(
            base_dim=len(paths["vae"]["encoder.conv_in.bias"]))
    for kind, model in made.items():
        model.load_state_dict({n: torch.from_numpy(np.array(x))
                               for n, x in paths[kind].items()},
                              strict=kind != "text_encoder")
        model.save_pretrained(tmp / kind)
    # diffusers pads in its pipeline and keeps no number of rows
    file = tmp / "transformer" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()),
                                "text_len": c["text_len"]}))
    check(np.array_equal(made["text_encoder"].shared.weight.detach().numpy(),
                         w["shared.weight"]), "umT5 has our embedding")
    return c


CLASSES = {"transformer": ("diffusers", "WanTransformer3DModel"),
           "vae": ("diffusers", "AutoencoderKLWan"),
           "text_encoder": ("transformers", "UMT5EncoderModel")}


def models(tmp, dtype):
    """As their users load them: some modules stay in float32 by their word."""
    made = {}
    for kind, _ in KINDS:
        package, name = CLASSES[kind]
        made[kind] = getattr(sys.modules[package], name).from_pretrained(
            tmp / kind, torch_dtype=dtype).eval()
    return made


def words(tmp):
    return ["-m", FOLDER, "-p", PROMPT, "--latents", FRAMES, "--chunk", FRAMES,
            *SIZE, "--steps", ",".join(map(str, STEPS)), "-q",
            "--noise", tmp / "noise.safetensors",
            *(["-o", tmp / "out.apng"] if DECODED else []),
            "--latents-out", tmp / "latents.safetensors", "--overwrite",
            *([] if DECODED else ["--no-decode"])]


def run(parts, tmp, config):
    """Prompt, sampler and decoder, watched."""
    ids = [int(i) for i in tether.tether("tokenize", "-m", FOLDER, "-p",
                                         PROMPT).stdout.split()]
    n = config["text_len"]
    ids = torch.tensor([ids + [0] * (n - len(ids))])
    mask = (torch.arange(n) < (ids != 0).sum())[None].long()
    noise = tether.load(tmp / "noise.safetensors")
    with torch.no_grad(), tether.watch(parts, names="diffusers",
                                       operators=True) as seen:
        text = parts["text_encoder"](ids, mask).last_hidden_state.float()
        text = (text * mask[..., None]).numpy()
        seen.tensors["text/prompt_embeds"] = text
        z = tether_torch.sample(parts["transformer"], seen, text[0], noise,
                                STEPS)
        if not DECODED:
            return seen
        vae = parts["vae"]
        shape = (1, -1, 1, 1, 1)
        z = torch.from_numpy(z).transpose(0, 1)[None]
        z = z * torch.tensor(vae.config.latents_std).view(shape) \
            + torch.tensor(vae.config.latents_mean).view(shape)
        vae.decode(z.to(vae.dtype), return_dict=False)
    return seen


# ---- faults in copies of their modules ------------------------------------------

@contextlib.contextmanager
def planted(module, cls, method, old, new):
    """cls.method with `old` replaced in its source, for the time being."""
    right = getattr(cls, method)
    source = textwrap.dedent(inspect.getsource(right))
    source = source.replace("super().__init__()",
                            "torch.nn.Module.__init__(self)")
    if old not in source:
        raise SystemExit(f"{cls.__name__}.{method} of this version has no "
                         f"{old!r}")
    made = {}
    exec(source.replace(old, new), vars(module), made)
    setattr(cls, method, made[method])
    try:
        yield
    finally:
        setattr(cls, method, right)


def rounded_sinusoid():
    """Their time sinusoid in double, as Wan's own code has it."""
    right = diffusers.models.embeddings.Timesteps.forward

    def forward(self, t):
        half = self.num_channels // 2
        angle = t.double()[:, None] * 10000.0 ** (
            -torch.arange(half).double() / half)
        return torch.cat([angle.cos(), angle.sin()], 1).float()
    return right, forward


FAULTS = (
    ("scale and shift exchanged", r"block\.0/self_attn\.[qkv]|block\.0/ffn",
     "scale and shift exchanged",
     their_dit, their_dit.WanTransformerBlock, "forward",
     "shift_msa, scale_msa, gate_msa", "scale_msa, shift_msa, gate_msa"),
    ("wrong split of the RoPE axes", r"block\.0/self_attn$", "pairs are split",
     their_dit, their_dit.WanRotaryPosEmbed, "__init__",
     "2 * (attention_head_dim // 6)", "2 * (attention_head_dim // 6 - 1)"),
    ("VAE cache off by one frame", r"vae/frame\.2/up\.8", "one frame too old",
     their_vae, their_vae.WanResidualBlock, "forward",
     "cache_x = x[:, :, -CACHE_T:, :, :].clone()",
     "cache_x = (x[:, :, -CACHE_T - 1:-1] if x.shape[2] > CACHE_T else "
     "x[:, :, -CACHE_T:]).clone()"),
)


# ---- what is said ---------------------------------------------------------------

def kind(path):
    return re.sub(r"\.\d+", ".N", re.sub(r"^chunk\.\d+/step\.\d+/", "",
                                         path))


def table(reports):
    """Markdown: per kind of tensor the largest relative L2 error, and the
    largest error in units of the allowed one."""
    rows = {}
    for i, r in enumerate(reports):
        for v in r.verdicts:
            if v["metrics"]:
                row = rows.setdefault((kind(v["path"]), v["op"]),
                                      [[0, 0, 0] for _ in reports])[i]
                row[0] += 1
                row[1] = max(row[1], v["metrics"]["rel_l2"] or 0)
                row[2] = max(row[2], v["ratio"] or 0)
    for (name, op), cells in rows.items():
        print(f"| `{name}` | {op} |", " | ".join(
            f"{c[0]} | {c[1]:.1e} | {c[2]:.2f}" for c in cells), "|")


def wrong(report):
    return [v for v in report.verdicts
            if v["outcome"] not in ("pass", "tie", "not checked")]


def main(tmp):
    config = convert(tmp)
    print("diffusers", diffusers.__version__, "transformers",
          transformers.__version__, "torch", torch.__version__)
    tether.tether("noise", "-q", *SIZE, "--latents", FRAMES, "--chunk", FRAMES,
                  "--steps", len(STEPS), "-o", tmp / "noise.safetensors")

    # the loader in the other direction: what they saved gives our bits
    back = ["generate", *words(tmp), *(["--no-decode"] if DECODED else [])]
    sums = []
    for more in ([], ["--dit", tmp / "transformer", "--text-encoder",
                      tmp / "text_encoder"]):
        tether.tether(*back, *more)
        sums.append(tether.load(tmp / "latents.safetensors"))
    check(all(np.array_equal(a, b) for a, b in zip(
        sums[0].values(), sums[1].values())),
        "their files give other bits than ours")

    # float32, as it comes; then with the sinusoid that differs in double
    float32 = models(tmp, torch.float32)
    if not WIDE:
        r = run(float32, tmp, config).report(words(tmp))
        print("as it comes, f32:", r.headline)
        check({kind(v["path"]) for v in wrong(r)} <= {"e"},
              f"more than the time embedding differs: {r}")
    right, double = rounded_sinusoid()
    diffusers.models.embeddings.Timesteps.forward = double
    seen = run(float32, tmp, config)
    r32 = seen.report(words(tmp))
    judged = [(at, r.headline) for at, r in seen.judge() if not r]
    print(len(seen.operators.calls), "single operators, f32")
    check(len(seen.operators.calls) > (100 if DECODED else 4) and not judged,
          f"single operators: {judged}")
    diffusers.models.embeddings.Timesteps.forward = right
    print("sinusoid in double, f32:", r32.headline)
    check(bool(r32), f"f32: {r32}")

    # golden latents enter whatever the sampler makes: it was given no noise
    none = {n: np.zeros((k * FRAMES, 16, SIDE // 8, SIDE // 8)) for n, k in (
        ("noise", 1), ("renoise", len(STEPS) - 1))}
    with tether.watch(float32["transformer"], feed=seen.tensors) as fed:
        tether_torch.sample(float32["transformer"], fed,
                            seen.tensors["text/prompt_embeds"][0], none, STEPS)
    check(all(np.allclose(fed.tensors[n], x, atol=1e-5) for n, x in
              seen.tensors.items() if n.endswith("/tokens")),
          "golden inputs do not reach the transformer")

    r16 = run(models(tmp, torch.bfloat16), tmp, config).report(
        words(tmp), arith="bf16-stored")
    print("as it comes, bf16:", r16.headline)
    check(bool(r16), f"bf16: {r16}")
    table([r32, r16])

    for what, where, named, *fault in () if WIDE else FAULTS:
        with planted(*fault):
            seen = run(models(tmp, torch.float32), tmp, config)
        r = seen.report(words(tmp))
        bad = [v for v in wrong(r) if kind(v["path"]) != "e"]
        path = bad[0]["path"] if bad else "nothing"
        at, said = next(((at, r.first["hint"]) for at, r in seen.judge()
                         if not r), ("nowhere", ""))
        print(f"| {what} | `{path}` | `{at}` | {said} |")
        check(re.search(where, path), f"{what} is not located: {path}")
        check(named in said, f"{what} is not named: {at}: {said}")


with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
    main(pathlib.Path(folder))
print(f"python/torch: {counts[0]} passed, {counts[1]} failed")
sys.exit(counts[1] > 0)
