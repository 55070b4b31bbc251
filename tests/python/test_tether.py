"""tools/python/tether.py against the library and the program of a build.

SPDX-License-Identifier: Apache-2.0

    TETHER=BUILD/tether TETHER_LIB=BUILD/libtether.so... \
        python3 tests/python/test_tether.py

Known answers  formulas of ops.h in numpy's float64; the golden operators
  themselves, given as somebody else's; runs of the program."""
import os
import pathlib
import platform
import re
import signal
import sys
import tempfile
import threading
import types
import zipfile

import numpy as np

sys.path.insert(0, "tools/python")
import tether                                             # noqa: E402

DEMO = "ref_data/demo"
PROMPT = "a red circle moves left and bounces, on a blue background"
counts = [0, 0]
np.seterr(all="ignore")         # inputs of the checks overflow on purpose


def check(ok, what):
    counts[not ok] += 1
    if not ok:
        print("FAIL python/tether:", what)


def near(got, want, what, most=2e-6):
    check(np.shape(got) == np.shape(want)
          and np.max(np.abs(got - want)) <= most * np.max(np.abs(want)), what)


def sentence(f, part, what):
    """f raises tether.Error whose sentence has `part`."""
    try:
        f()
        check(False, f"{what}: nothing was raised")
    except tether.Error as e:
        check(part in str(e), f"{what}: {e}")


rng = np.random.default_rng(1)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_environment():
    """A process that flushes subnormal numbers, or rounds upwards, gets the
    library's bits, keeps its own way, and has it in its own functions."""
    c = tether.library().raw
    flush = {"x86_64": 0x8040, "aarch64": 1 << 24}.get(platform.machine())
    if not flush:
        return
    x = np.array([1e-40, -3e-39, 2.5], np.float32)
    want, ours = tether.silu(x), c.tt_fpenv_get()
    inside = []

    def silu(x):
        inside.append(c.tt_fpenv_get())
        return x / (1 + np.exp(-x))
    try:
        c.tt_fpenv_set(ours | flush)
        got = tether.silu(x)
        plain = tether.check({"silu": silu}, rounds=2)
        declared = tether.check({"silu": silu}, "f32+ftz", rounds=2)
        after = c.tt_fpenv_get()
    finally:
        c.tt_fpenv_set(ours)
    check(got.tobytes() == want.tobytes(), f"golden: {got}, not {want}")
    check("declare --arith f32+ftz" in plain.headline, plain.headline)
    check(bool(declared), declared.headline)
    check(after == ours | flush, f"the host has its own again: {after:x}")
    check(set(inside) == {ours | flush}, "its functions have it too")


def test_operators():
    x, w, b = normal(5, 7), normal(3, 7), normal(3)
    d = x.astype(np.float64)
    near(tether.linear(x, w, b), d @ w.T.astype(np.float64) + b, "linear")
    near(tether.linear(x, w.astype(np.float16)),
         d @ w.astype(np.float16).T.astype(np.float64), "linear, f16 weight")
    near(tether.silu(x), d / (1 + np.exp(-d)), "silu")
    near(tether.rms_norm(x, w[0], 1e-6), w[0] * d / np.sqrt(
        (d * d).mean(1, keepdims=True) + 1e-6), "rms_norm")
    near(tether.modulate(x, x[:1], x[1:2]), d * (1 + d[0]) + d[1], "modulate")
    near(tether.col_mean(x), d.mean(0), "col_mean", 1e-15)
    q, k = normal(4, 2, 6), normal(9, 2, 6)
    mask = np.arange(9) != 4
    logits = np.einsum("thd,nhd->htn", q, k) / np.sqrt(6)
    p = np.exp(np.where(mask, logits, -np.inf))
    want = np.einsum("htn,nhd->thd", p / p.sum(-1, keepdims=True), k)
    near(tether.attention(q, k, k, key_mask=mask), want, "attention")
    pos = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])
    angle = np.stack([pos[:, 0] * 1.0, pos[:, 1] * 1.0, pos[:, 2] * 1.0], 1)
    z = (q[..., ::2] + 1j * q[..., 1::2]) * np.exp(1j * angle)[:, None]
    near(tether.rope(q, pos), np.stack([z.real, z.imag], -1).reshape(q.shape),
         "rope")
    frames, kernel = [None, normal(4, 5, 2)], normal(3, 2, 3, 3, 2)
    padded = np.pad(frames[1], ((1, 1), (1, 1), (0, 0)))
    want = sum(padded[u:u + 4, v:v + 5] @ kernel[:, 1, u, v].T
               for u in range(3) for v in range(3))
    near(tether.conv(frames, kernel, pad_top=1, pad_left=1), want, "conv")
    check(not np.array_equal(tether.linear(normal(3, 64), w := normal(2, 64)),
                             tether.linear(x := normal(3, 64), w))
          and not np.array_equal(tether.linear(x, w, cls="amx"),
                                 tether.linear(x, w)), "another class")
    sentence(lambda: tether.linear(x, normal(2, 3)), "must be [n, i]",
             "shapes that do not fit")
    sentence(lambda: tether.silu(x, cls="sm10"), "sm10", "an unknown class")


def test_sizes():
    """Operands that are too short are refused, not read beyond their end."""
    x, c, q = normal(5, 7), normal(7), normal(4, 2, 6)
    frames, kernel = [normal(4, 5, 2), None], normal(3, 2, 1, 1, 2)
    for part, f, *args in (
            ("linear: b has 2 values, not 3", tether.linear, x, normal(3, 7),
             normal(2)),
            ("conv: frame 1 has 38 values, not 40", tether.conv,
             [frames[0], normal(19, 2)], kernel),
            ("conv: b has 1 values, not 3", tether.conv, frames, kernel, c[:1]),
            ("must be [Hi, Wi, Cin]", tether.conv, [None, None], kernel),
            ("layer_norm: b has 0 values, not 7", tether.layer_norm, x, c),
            ("rms_norm: w has 6 values, not 7", tether.rms_norm, x, c[:6]),
            ("channel_norm: gamma has 0 values", tether.channel_norm, x, None),
            ("modulate: shift has 7 values, not 14", tether.modulate, x, x[:2],
             c),
            ("gate_add: gate has 7 values, not 35", tether.gate_add, x, x, c,
             1),
            ("gate_add: y has 28 values, not 35", tether.gate_add, x, x[:4], c),
            ("add: y has 28 values, not 35", tether.add, x, x[:4]),
            ("mul: y has 7 values, not 35", tether.mul, x, c),
            ("rel_bias has 16 values, not 14", tether.attention, q, q, q, 1,
             normal(2, 8)),
            ("as many queries as keys", tether.attention, q[:1], q, q, 1,
             normal(2, 7)),
            ("key_mask has 3 values, not 4", tether.attention, q, q, q, 1, None,
             np.ones(3)),
            ("not in 0 ... 1", tether.rope, q, np.full((4, 3), 2),
             np.ones((2, 3)), np.ones((2, 3))),
            ("rope: sin has 3 values, not 6", tether.rope, q,
             np.zeros((4, 3)), np.ones((2, 3)), np.ones((1, 3))),
            ("col_mean: x (5, 7, 1) must be", tether.col_mean, x[..., None]),
            ("col_moment: mean has 6 values", tether.col_moment, x, c[:6]),
            ("col_blend: target has 8 values, not 7", tether.col_blend, x, c, c,
             normal(8), 1)):
        sentence(lambda: f(*args), part, f"{f.__name__}, {part}")


def test_judging():
    # every operator's arrays there and back: golden given as a stranger's; in
    # the second round rows are wider than what is read of them
    ours = {op: getattr(tether, op) for op in tether.OPS}
    r = tether.check(ours, rounds=2)
    check(bool(r) and r["bits"]["equal"] == r["bits"]["of"] > 100,
          f"golden through Python: {r}")
    r = tether.check({"gelu_tanh": lambda x: x / (1 + np.exp(-1.702 * x))},
                     rounds=1)
    check(not r and "gelu_tanh" in r.headline and "1.702" in str(r),
          f"a wrong GELU: {r.headline}")
    x, w, b = normal(6, 40), normal(9, 40), normal(9)
    y = tether.linear(x, w, b)
    check(bool(tether.judge("linear", y, x, w, b)), "judge: ours")
    r = tether.judge("linear", y - b, x, w, b)
    check(not r and "bias" in r.first["hint"], f"judge: {r.headline}")
    low = tether.linear(x.astype(np.float16), w)
    check(not tether.judge("linear", low, x, w)
          and tether.judge("linear", low, x, w, arith="f16"),
          "judge: f16 passes as f16 alone")

    def broken(x):
        raise KeyError("mine")
    try:
        tether.check({"silu": broken}, rounds=1)
        check(False, "an exception of a candidate is lost")
    except KeyError:
        check(True, "")

    def stopped(x):
        raise KeyboardInterrupt
    try:
        tether.check({"silu": stopped}, rounds=1)
        check(False, "an interrupt in a candidate is lost")
    except KeyboardInterrupt:
        check(True, "")
    sentence(lambda: tether.check({"relu": abs}), "there are linear",
             "an unknown operator")
    sentence(lambda: tether.judge("silu", x, x, arith="fp3"), "bf16-stored",
             "an unknown arithmetic")


def write_torch(path, storage, tensors):
    """A PyTorch zip of bfloat16: {name of one letter: (offset, sizes, strides)
    in the storage}, all below 256."""
    def text(t):
        return b"X" + len(t).to_bytes(4, "little") + t.encode()

    def ints(values):
        return b"(" + b"".join(b"K" + bytes([v]) for v in values) + b"t"
    pickle = b"\x80\2}("
    for name, (offset, sizes, strides) in tensors.items():
        pickle += (text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(("
                   + text("storage") + b"ctorch\nBFloat16Storage\n"
                   + text("0") + text("cpu") + b"K" + bytes([len(storage)])
                   + b"tQK" + bytes([offset]) + ints(sizes) + ints(strides)
                   + b"\x89ccollections\nOrderedDict\n)RtR")
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("r/data.pkl", pickle + b"u.")
        z.writestr("r/data/0", (storage.astype("<f4").view("<u4") >> 16)
                   .astype("<u2").tobytes())


def test_unsupported():
    """NotImplementedError: a shape that is neither right nor wrong."""
    def even(x):
        if x.size % 2:
            raise NotImplementedError("100% even")
        return x / (1 + np.exp(-x))

    def none(**_):
        raise NotImplementedError
    r = tether.check({"silu": even})
    said = [v for v in r.verdicts if v["outcome"] == "unsupported"]
    check(r and len(said) == r["counts"]["unsupported"] > 4
          and all(v["hint"].startswith("100% even (") and v["metrics"] is None
                  for v in said), f"unsupported: {r}")
    r = tether.check({"add": none})
    check(not r and r.first is None and not r["compared"], f"nothing: {r}")


def test_strides(folder):
    """bf16 that is transposed, expanded or a part of its storage."""
    path, n = folder / "strided.pt", np.arange(1, 13)
    write_torch(path, n, {"p": (0, (3, 4), (4, 1)), "t": (0, (4, 3), (1, 4)),
                          "e": (11, (2, 3), (0, 0)), "c": (2, (3,), (4,))})
    got, rows = tether.load(path), n.reshape(3, 4)
    for name, want in (("p", rows), ("t", rows.T), ("e", np.full((2, 3), 12)),
                       ("c", rows[:, 2])):
        check(np.array_equal(got[name], want) and got[name].dtype == np.float32,
              f"strided.pt, {name}: {got[name]}")


def test_files(folder):
    a = {"b": np.arange(6.0).reshape(2, 3), "a": normal(4),
         "n": np.array([1, -2]), "none": np.zeros((0, 3), np.float32)}
    path = folder / "a.safetensors"
    tether.save(path, a, who="a test")
    got = tether.load(path)
    check(list(got) == list(a) and all(
        np.array_equal(got[n], a[n]) and got[n].dtype == a[n].dtype
        for n in a), f"save and load: {got}")
    check(list(tether.load(path, "n*")) == ["n", "none"], "load: a pattern")
    check(tether.diff(path, path)[0], "diff: equal")
    tether.save(folder / "c.safetensors", {**a, "a": a["a"] + 1})
    same, said = tether.diff(path, folder / "c.safetensors")
    check(not same and "tensor: a " in said, f"diff: {said}")
    w = tether.weights(DEMO)
    check(w["blocks.0.self_attn.q.weight"].shape == (128, 128), "weights")
    check("decoder.conv1.weight" in tether.weights(DEMO, "vae"), "VAE weights")
    sentence(lambda: tether.load(folder / "no"), "No such file", "load")


def test_run(folder):
    path = folder / "latents.safetensors"
    same = dict(model=DEMO, prompt=PROMPT, latents=6, no_decode=True,
                threads=1)
    with tether.Run(record="chunk.*/x", latents_out=path, **same) as run:
        x0 = np.concatenate(list(run))
        tensors = run.tensors
        check(run.setting("width") == "64", "a setting that the model gave")
    kept = tether.load(path)
    check(np.array_equal(x0.ravel(), next(iter(kept.values())).ravel()),
          "chunks are the file's latents")
    check(len(tensors) == 10 and all(n.endswith("/x") for n in tensors),
          f"recorded: {list(tensors)}")
    with tether.Run(inject=tensors, **same) as run:
        check(np.array_equal(np.concatenate(list(run)), x0),
              "its own tensors injected")
    other = {"chunk.0/step.0/x": 0 * tensors["chunk.0/step.0/x"]}
    with tether.Run(inject=other, **same) as run:
        check(not np.array_equal(next(run), x0[:3]), "zeros injected")
    sigmoid = {"silu": lambda x: 1 / (1 + np.exp(-x))}
    with tether.Run(functions=sigmoid, **same) as run:
        next(run)
        first = run.report().first
        check(first["op"] == "silu" and "without the factor x" in first["hint"],
              f"a wrong SiLU in a run: {first}")
    sentence(lambda: tether.Run(modle="x"), "modle", "an unknown setting")
    sentence(lambda: tether.Run(model="nowhere", prompt="x"), "nowhere",
             "a model that is not there")


def test_program(folder):
    words = ["-m", DEMO, "-p", PROMPT, "--latents", "3", "--no-decode",
             "--steps", "1000,500"]
    dump = folder / "dump.safetensors"
    tether.tether("generate", "-q", *words, "--dump", dump, "--latents-out",
                  folder / "l.safetensors")
    theirs = tether.load(dump)
    r = tether.validate(dump, words)
    check(bool(r) and r["compared"] == len(theirs), f"our own dump: {r}")
    name = "chunk.0/step.1/block.2/cross_attn"
    theirs[name] = theirs[name] * 1.01
    tether.save(dump, theirs)
    r = tether.validate(dump, words)
    check(not r and r.first["path"] == name and "1.01" in r.first["hint"],
          f"one tensor scaled: {r.headline}")
    sentence(lambda: tether.validate(folder / "no", words), "No such file",
             "a dump that is not there")


def test_hosts(folder):
    """What hosts of this file do: threads, forks, zeros in names."""
    def new(**more):
        return tether.Run(model=DEMO, prompt=PROMPT, size="16x16", latents=9,
                          no_decode=True, **more)
    with new() as run:
        chunks = want = np.concatenate(list(run))
    run, got, failed = new(), [], []

    def take():
        try:
            got.extend(x.sum() for x in run)
        except BaseException as e:          # shown by the check
            failed.append(e)
    threads = [threading.Thread(target=take) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    run.close()
    check(not failed and len(got) == 3 and np.isclose(sum(got), want.sum()),
          f"one run in four threads: {got} {failed}")
    sentence(lambda: next(run), "closed", "a run that is closed")
    sentence(lambda: new(seed="1\0" "2"), "NUL", "a zero in a setting")
    sentence(lambda: tether.Run(model=DEMO, prompt="a\0b"), "NUL",
             "a zero in a prompt")
    sentence(lambda: tether.load("a\0b"), "NUL", "a zero in a name")
    x = np.random.default_rng(1).standard_normal(2000000, np.float32)
    want = tether.silu(x)
    child = os.fork()
    if not child:
        signal.alarm(30)
        with new() as run:
            same = np.array_equal(np.concatenate(list(run)), chunks)
        same = same and tether.check({"silu": tether.silu}, rounds=1)
        os._exit(7 if same and np.array_equal(tether.silu(x), want) else 8)
    status = os.waitpid(child, 0)[1]
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 7,
          f"a fork after use: {status}")


def test_versions():
    check(tether.version().startswith(
        tether.tether("--version").stdout.split()[1]), "version")
    fields = tether.OPS["silu"]
    tether.OPS["silu"] = fields + [("more", tether.I64)]
    sentence(lambda: tether.Library(tether.library_path()),
             "of another version", "structs of another size")
    tether.OPS["silu"] = fields


def test_members():
    """Ctx names the members of tt_ctx in their order. The size alone does not
    hold it: a flag that is missing may lie in padding."""
    header = pathlib.Path("include/tether/context.h").read_text()
    body = re.search(r"struct tt_ctx \{(.*?)\n\} tt_ctx;", header, re.S)[1]
    members = re.sub(r"/\*.*?\*/", "", body, flags=re.S).split(";")[:-1]
    names = [re.search(r"\(\*(\w+)\)\(|(\w+)(?:\[\w+\])?$", m.strip())
             for m in members]
    names = [m[1] or m[2] for m in names]
    mine = [name for name, _ in tether.Ctx._fields_]
    check(names == mine, f"members of tt_ctx: {names}, of Ctx: {mine}")
    header = pathlib.Path("include/tether/rollout.h").read_text()
    sizes = [int(re.search(rf"define {n} (\d+)", header)[1])
             for n in ("TT_TABLE", "TT_MAX_STEPS")]
    mine = dict(tether._Schedule._fields_)
    check(sizes == [mine["sigma"]._length_, mine["t"]._length_],
          f"members of tt_schedule: {sizes}")
    times, sigmas = tether.schedule()
    check(times[-1] == 0 and len(sigmas) == 5 and times == sorted(times)[::-1],
          f"steps {times}")


def test_processor():
    """One of diffusers that calls no norm_q gets a sentence. torch is needed
    for the import alone, so a name stands for it where it is absent."""
    there = "torch" in sys.modules
    sys.modules.setdefault("torch", types.ModuleType("torch"))
    import tether_torch
    if not there:
        del sys.modules["torch"]
    theirs = types.ModuleType("theirs")
    theirs.dispatch_attention_fn = lambda q, k, v: v
    sys.modules["theirs"] = theirs
    block = type("Block", (), {"__module__": "theirs"})()
    seen = tether_torch.Operators(0)
    seen.array = np.asarray
    undo = seen.attention(types.SimpleNamespace(blocks=[block]))
    x = normal(1, 2, 2, 4)
    check(theirs.dispatch_attention_fn(x, x, x) is x and not seen.calls,
          "outside of a block")
    seen.state["at"] = "blocks.0.attn1"
    sentence(lambda: theirs.dispatch_attention_fn(x, x, x),
             "blocks.0.attn1: its processor calls neither norm_q", "custom")
    seen.state.update(q=x, k=x, pos=np.zeros((2, 3)))
    theirs.dispatch_attention_fn(x, x, x)
    check(len(seen.calls) == 3, "q, k and attention are seen")
    undo.remove()


with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as tmp:
    tmp = pathlib.Path(tmp)
    test_operators()
    test_environment()
    test_sizes()
    test_judging()
    test_unsupported()
    test_files(tmp)
    test_strides(tmp)
    test_run(tmp)
    test_program(tmp)
    test_hosts(tmp)
    test_versions()
    test_members()
    test_processor()
print(f"python/tether: {counts[0]} passed, {counts[1]} failed")
sys.exit(counts[1] > 0)
