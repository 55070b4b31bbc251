#!/usr/bin/env python3
"""check.py: are your operators right on the cases of this folder?

SPDX-License-Identifier: Apache-2.0

    python3 check.py MODULE [--arith bf16] [--only 'op_silu*'] [--xfail FILE]
                            [--save FOLDER]
    PORT=MODULE ARITH=bf16 ONLY=... XFAIL=... SAVE=... pytest check.py

Needs numpy alone. MODULE.py has functions with the names and arguments of
example.py, as many as you like; one that raises NotImplementedError does not
support that case. XFAIL lists names that may fail, one a line, with * and ?.
SAVE keeps the results: `tether validate check` names their mistakes.

The limits are those of `tether validate check` (src/validate/verdict.c)."""
import argparse
import fnmatch
import functools
import importlib
import json
import os
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
RULE = json.loads((HERE / "arith.json").read_text())
SLACK = RULE["slack"]
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8",
         "I32": "<i4", "U8": "u1"}
EPSILON = {"f32": 2.0 ** -23, "bf16": 2.0 ** -7, "f16": 2.0 ** -10,
           "tf32": 2.0 ** -10}


# ---- files ----------------------------------------------------------------------

def read(path):
    """{name: array} of a safetensors file, in the order of its data."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:start])
    head.pop("__metadata__", None)
    out = {}
    for name, t in sorted(head.items(), key=lambda i: i[1]["data_offsets"]):
        a, b = t["data_offsets"]
        x = np.frombuffer(raw[start + a:start + b], TYPES[t["dtype"]])
        if t["dtype"] == "BF16":
            x = (x.astype("<u4") << 16).view("<f4")
        out[name] = x.reshape(t["shape"])
    return out


def write(path, tensors):
    head, data = {}, b""
    for name, x in tensors.items():
        kind = "F64" if x.dtype == "f8" else "F32" if x.dtype.kind == "f" else "I64"
        x = np.ascontiguousarray(x, TYPES[kind])
        head[name] = {"dtype": kind, "shape": x.shape,
                      "data_offsets": (len(data), len(data) + x.nbytes)}
        data += x.tobytes()
    head = json.dumps(head).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)


# ---- limits ---------------------------------------------------------------------

def rounded(x, form):
    x = x.astype(np.float32)
    if form == "f16":
        return x.astype(np.float16).astype(float)
    drop = {"bf16": 16, "tf32": 13}.get(form)
    if not drop:
        return x.astype(float)
    u = x.view(np.uint32)
    u = (u + (1 << drop - 1) - 1 + (u >> drop & 1)) >> drop << drop
    return np.where(np.isfinite(x), u.astype(np.uint32).view(np.float32),
                    x).astype(float)


def limits(got, want, emul, a, c, operator):
    """(outcome, times what is allowed, index of the worst value, does f16
    overflow)."""
    form = a["stored"] if a["stored"] != "f32" else a["product"]
    there = got[np.isfinite(got)]
    emul = rounded(emul, form if (there == rounded(there, form)).all() else "f32")
    n, narrow = len(want), a["product"] in ("f16", "bf16")
    if not n:
        return "pass", 0.0, 0, False
    group = c * -(-64 // c)                 # rows that are checked together
    starts = np.arange(0, n, group)
    e, g = abs(emul - want), abs(got - want)
    ok = np.isfinite(e) & np.isfinite(g)

    def total(x, axis=None):                # of finite values
        x = np.where(ok, x, 0)
        return np.add.reduceat(x, starts) if axis is None else \
            x.reshape(-1, c).sum(0) if axis == 0 else x.sum()
    least = 2.0 ** (-25 if a["stored"] == "f16" else
                    -149 if a["product"] == "f32" else -116)
    half = np.maximum(least, EPSILON[a["stored"]] / 2 * abs(want))
    rel = np.sqrt(total(e * e, 1) / (total(want * want, 1) or np.inf))
    rows, count = total(want * want), total(1.0)
    row = np.maximum(rel * np.sqrt(rows / np.maximum(count, 1)),
                     np.maximum.reduceat(np.where(ok, e, 0), starts))
    row = np.repeat(row, group)[:n]
    times = g / (SLACK * np.maximum(row, half))
    # f16 that overflows on the way says nothing
    over = (a["product"] == "f16") & np.isfinite(want) & ~np.isfinite(emul)
    passed = over & (times <= 1)
    same = (got == emul) | (np.isnan(got) & np.isnan(emul)) | (
        (np.isinf(got) | (abs(got) == 65504))
        & (np.signbit(got) == np.signbit(want)) & ~np.isnan(got))
    skipped = over & ~passed & same
    wrong = np.where(np.isnan(got) | np.isnan(emul),
                     np.isnan(got) != np.isnan(emul),
                     np.where(np.isinf(got) | np.isinf(emul), got != emul,
                              ~np.isfinite(want))) & ~passed & ~skipped
    fine = np.isfinite(times) & ~passed & ~skipped & ~wrong
    floor = np.sqrt((half[fine] ** 2).sum())
    most = max(SLACK / (4 if n // c >= 64 else 2) * np.sqrt(total(e * e, 1)),
               SLACK / 2 * floor)
    worst = np.where(wrong, np.inf, np.where(fine, times, 0))
    ratio = max(worst.max(), np.sqrt(total(g * g, 1)) / most if most else 0)
    if skipped.all() and ratio <= 1:
        return "not checked", ratio, 0, True
    if operator and narrow:
        ratio = max(ratio, slope(got - want, emul - want, want, half, total,
                                 rows, count, group, form))
        if n // c >= 16:
            by = [total(x, 0) for x in (e * e, rel * rel * want * want,
                                        half * half)]
            by = np.maximum.reduce(by)
            ratio = max(ratio, (np.sqrt(total(g * g, 0)[by > 0] / by[by > 0])
                                / (SLACK / 2)).max(initial=0))
    return ("pass" if ratio <= 1 else "mismatch", ratio, int(worst.argmax()),
            skipped.any())


def slope(g, e, want, half, total, rows, count, group, form):
    scale = np.repeat(np.where(rows > 0, count / np.where(rows > 0, rows, 1), 0),
                      group)[:len(want)]
    n = count[rows > 0].sum()
    if n < 64:
        return 0
    got, emul, error = (total(scale * x, 1) for x in (
        g * want, e * want, np.maximum(e * e, half * half)))
    error = max(np.sqrt(error / n), EPSILON[form] / np.sqrt(12))
    return min(abs(got), abs(got - emul)) / n / (error * (0.5 + 8 / np.sqrt(n)))


def cut(got, t):
    """How much it looks like numbers that are cut, not rounded; above 1: they
    are (src/validate/hint/rounding.c)."""
    ratio, best = 0, 0.5
    for i, numbers in enumerate(t["numbers"]):
        even = t[f"even.{i}"].astype(float)
        g, d = got - even, t[f"cut.{i}"] - even
        ok = np.isfinite(g) & np.isfinite(d)
        g, d = g[ok], d[ok]
        if not (d * d).sum() or not (g * g).sum():
            continue
        share = (g * d).sum() / (d * d).sum()
        left = ((g - d) ** 2).sum() / (g * g).sum()
        least = 0.6 + min(4 / np.sqrt(len(g)), 0.3)
        if least < share <= 1.4 and left < best and \
                numbers / 2 * np.log2(1 / max(left, 1 / 256)) >= 20:
            ratio, best = max(ratio, share / least), left / 2
    return ratio


def fits(a, b):
    """Shapes equal up to axes of 1 and to merging neighbours."""
    a, b = ([d for d in s if d != 1] for s in (a, b))
    while a and b:
        x, y = a.pop(), b.pop()
        if 0 in (x, y):
            return x == y
        while x < y and a:
            x *= a.pop()
            if x > y:
                return False
        while y < x and b:
            y *= b.pop()
            if y > x:
                return False
        if x != y:
            return False
    return a == b


# ---- cases ----------------------------------------------------------------------

def arguments(c, t, shape):
    """What a function of that operator is given, by name."""
    op = c.get("op")
    if op is None:                          # the block
        return {**t, "network": c["network"], "grid": c["grid"]}
    given = dict(t)
    for name, key in (("eps", "eps"), ("tau", "tau"), ("scale", "scale"),
                      ("rows", "rows_per_group")):
        if key in c:
            given[name] = c[key]
    if op == "conv":
        frame = [t.get(f"frame.{i}") for i in range(c["kernel"][0])]
        size = [d * c["stride"] // c["up"] for d in shape[:2]]
        empty = np.zeros_like(next((f for f in frame if f is not None), np.zeros(
            (*size, t["w"].shape[-1]), "f4")))
        given = {"frames": [empty if f is None else f for f in frame],
                 "w": t["w"], "b": t.get("b"), "out": shape[:2], **{
                     k: c[k] for k in ("stride", "pad_top", "pad_left", "up")}}
    elif op == "channel_norm":
        given["gamma"] = given.pop("w")
    elif op in ("add", "mul", "gelu_tanh", "silu"):
        given = {k: x.reshape(-1) for k, x in t.items()}
    elif op == "rope":
        by = np.concatenate([10000.0 ** (-np.arange(n) / max(n, 1))
                             for n in c["pairs"]])
        angle = np.arange(t["pos"].max(initial=0) + 1)[:, None] * by
        given.update(cos=np.cos(angle), sin=np.sin(angle))
    return given


@functools.lru_cache(1)
def results(folder, f):
    """{name: array} of one case by function f; or why there is none."""
    c = json.loads((folder / "case.json").read_text())
    want = read(folder / "expected.safetensors")
    t = read(folder / "inputs.safetensors")
    if "op" not in c:
        t = {k.split("/")[-1]: x for k, x in t.items()}
        t["weights"] = {k.split(".", 2)[2]: x for k, x in read(
            folder / "weights.safetensors").items()}
    try:
        with np.errstate(all="ignore"):
            y = f(**arguments(c, t, next(iter(want.values())).shape))
        y = {"y": y} if "op" in c else {
            k: y[k.split("block.0/")[1]] for k in want
            if k.split("block.0/")[1] in y}
        y = {k: np.asarray(x) for k, x in y.items()}
        return {k: x.astype("f4") if x.dtype.name == "bfloat16" else x
                for k, x in y.items()}
    except NotImplementedError as error:
        return ("unsupported", str(error) or f"{c.get('op', 'block')} raises "
                "NotImplementedError")
    except Exception as error:
        return "missing", f"{type(error).__name__}: {error}"


def paths(only="*"):
    """Names: CASE/TENSOR, as in the reports of `tether validate check`."""
    return [f"{f.parent.name}/{name}" for f in sorted(HERE.glob(
        "*/expected.safetensors")) for name in read(f)
        if fnmatch.fnmatchcase(f"{f.parent.name}/{name}", only)]


def verdict(path, module, arith="f32", save=None):
    """(outcome, times what is allowed, hint); None: no such function."""
    case, name = path.split("/", 1)
    folder, a = HERE / case, RULE["arith"][arith]
    c = json.loads((folder / "case.json").read_text())
    f = getattr(module, c.get("op", c["kind"]), None)
    if f is None:
        return None
    y = results(folder, f)
    if save:
        save.mkdir(parents=True, exist_ok=True)
        if isinstance(y, dict):
            write(save / f"{case}.safetensors", y)
        elif y[0] == "unsupported":
            (save / f"{case}.unsupported").write_text(y[1] + "\n")
    if not isinstance(y, dict):
        return y[0], 0.0, y[1]
    if name not in y:
        return "missing", float("inf"), "not returned"
    want, emul, oracle = (
        read(file)[name] if file.exists() else None for file in (
            folder / f"expected{s}.safetensors" for s in ("", f"_{arith}", "_f64")))
    got, shape = y[name], want.shape
    if got.dtype.kind != "f" or not fits(got.shape, shape):
        return "misshapen", 0.0, f"{got.dtype} {got.shape}, expected {shape}"
    row = shape[-1] if shape else 1
    if "op" not in c:
        row = next((int(np.prod(shape[i:])) for i in reversed(range(len(shape)))
                    if np.prod(shape[i:]) >= 32), want.size)
    with np.errstate(all="ignore"):
        got = got.astype(float).reshape(-1)
        outcome, ratio, at, skipped = limits(got, *(
            x.astype(float).reshape(-1) for x in (
                want if oracle is None else oracle, emul)), a, max(row, 1),
            "op" in c)
        cuts = folder / f"cut_{arith}.safetensors"
        if outcome == "pass" and not skipped and cuts.exists():
            is_cut = cut(got, read(cuts))
            if is_cut:
                return "mismatch", is_cut, "results or inputs are cut, not rounded"
    at = [int(i) for i in np.unravel_index(at, shape)] if want.size else []
    return outcome, float(ratio), "" if outcome == "pass" else \
        f"{ratio:.3g} times what is allowed, at {at}"


def expected(path, file):
    lines = pathlib.Path(file).read_text().splitlines() if file else []
    return any(fnmatch.fnmatchcase(path, line.split("#")[0].strip())
               for line in lines)


# ---- pytest ---------------------------------------------------------------------

def pytest_generate_tests(metafunc):
    if "path" in metafunc.fixturenames:
        metafunc.parametrize("path", paths(os.environ.get("ONLY", "*")))


def test_case(path):
    import pytest
    sys.path.insert(0, os.getcwd())
    env = os.environ.get
    v = verdict(path, importlib.import_module(env("PORT", "example")),
                env("ARITH", "f32"),
                pathlib.Path(env("SAVE")) if env("SAVE") else None)
    if v is None or v[0] in ("unsupported", "not checked"):
        pytest.skip(f"{v[0]}: {v[2]}" if v else "no such function")
    if v[0] != "pass" and expected(path, env("XFAIL")):
        pytest.xfail(v[2])
    if v[0] != "pass":
        pytest.fail(f"{path}: {v[0]}: {v[2]}", pytrace=False)


# ---- the command ----------------------------------------------------------------

def main():
    parse = argparse.ArgumentParser(usage=__doc__.split("\n\n")[2])
    parse.add_argument("module")
    parse.add_argument("--arith", default="f32", choices=RULE["arith"])
    parse.add_argument("--only", default="*")
    parse.add_argument("--xfail")
    parse.add_argument("--save", type=pathlib.Path)
    o = parse.parse_args()
    sys.path.insert(0, os.getcwd())
    module, count, first = importlib.import_module(o.module), {}, ""
    for path in paths(o.only):
        v = verdict(path, module, o.arith, o.save)
        what = "without a function" if v is None else v[0]
        if what in ("mismatch", "missing", "misshapen"):
            what = "xfail" if expected(path, o.xfail) else what
        count[what] = count.get(what, 0) + 1
        if what in ("mismatch", "missing", "misshapen"):
            first = first or f"FAIL: first wrong tensor: {path}: {v[2]}"
            print(f"{what:10} {path}: {v[2]}")
    if not first and not count.get("pass"):
        first = "FAIL: nothing was compared"
    print(first or f"PASS: {count['pass']} tensors")
    print(", ".join(f"{n} {what}" for what, n in count.items()))
    return 1 if first else 0


if __name__ == "__main__":
    sys.exit(main())
