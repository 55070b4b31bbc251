"""The kit of `tether validate export --kit` says what `validate check` says.

SPDX-License-Identifier: Apache-2.0

    TETHER=... python3 tests/python/test_kit.py     (test_kit.sh)

A right port in numpy and wrong ones, in float32 and in 16 bits: check.py checks
them and keeps their results, and each of its verdicts is that of the program."""
import functools
import importlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

import numpy as np

TETHER = os.path.abspath(os.environ["TETHER"])
F = np.float32
FAILS = ("mismatch", "missing", "misshapen")
counts = [0, 0]


def expect(ok, what):
    counts[not ok] += 1
    if not ok:
        print("FAIL python/kit:", what)


def run(*words):
    return subprocess.run(list(map(str, words)), text=True, capture_output=True)


def ports(right):
    """{name: (arithmetic, functions in the place of the right ones)}"""
    def bits(x, drop, half):
        u = np.ascontiguousarray(x, F).view(np.uint32)
        u = (u + half * ((1 << drop - 1) - 1 + (u >> drop & 1))) >> drop << drop
        return np.where(np.isfinite(x), u.astype(np.uint32).view(F), x)

    def even(x):
        return bits(x, 16, 1)

    def cut(x):
        return bits(x, 16, 0)

    def inputs(to):
        def low(f):
            def g(*args, **given):
                given = {k: to(v) if k in "xwqkv" else [to(t) for t in v]
                         if k == "frames" else v for k, v in given.items()}
                return f(*map(to, args), **given)
            return g
        return {op: low(getattr(right, op))
                for op in ("linear", "attention", "conv")}

    def results(to):
        def low(f):
            return lambda **given: to(np.asarray(f(**given), F))
        made = {**{op: getattr(right, op) for op in OPS}, **inputs(even)}
        return {op: low(f) for op, f in made.items()}

    def unsupported(x):
        if x.size % 2:
            raise NotImplementedError("an odd number of values")
        return right.silu(x)

    def dies(**_):
        raise ZeroDivisionError("by zero")

    def offset(x, w, b=None):
        y = right.linear(x, w, b)
        y[:, -1] += 0.02 * abs(y).mean()
        return y
    return {
        "right": ("f32", {}),
        "another arithmetic": ("f16", {}),
        "less than it says": ("f32", inputs(even)),
        "bf16": ("bf16", inputs(even)),
        "bf16 cut": ("bf16", inputs(cut)),
        "bf16 stored": ("bf16-stored", results(even)),
        "bf16 stored, cut": ("bf16-stored", results(cut)),
        "gelu by erf": ("f32", {"gelu_tanh": lambda x: (x / (1 + np.exp(
            -1.702 * x))).astype(F)}),
        "silu without x": ("f32", {"silu": lambda x: 1 / (1 + np.exp(-x))}),
        "eps 1e-5": ("f32", {"rms_norm": lambda x, w, eps: right.rms_norm(
            x, w, 1e-5), "layer_norm": lambda x, w=None, b=None, eps=0:
            right.layer_norm(x, w, b, 1e-5)}),
        "scale": ("bf16", {**inputs(even), "attention": lambda q, k, v, scale,
                           **more: right.attention(q, k, v, 1.05 * scale,
                                                   **more)}),
        "a column": ("bf16", {**inputs(even), "linear": offset}),
        "flattened": ("f32", {"channel_norm": lambda x, gamma:
                              right.channel_norm(x, gamma).reshape(1, -1, 1)}),
        "whole numbers": ("f32", {"add": lambda x, y: np.zeros(x.shape, int)}),
        "block: no gate": ("f32", {"block": lambda **given: {
            **right.block(**given), "out": given["tokens"]}}),
        "block in bf16": ("bf16-stored", {"block": lambda **given: {
            k: even(x) for k, x in right.block(**given).items()}}),
        "dies": ("f32", {"mul": dies}),
        "unsupported": ("f32", {"silu": unsupported}),
    }


def compare(check, right, name, arith, functions, tmp):
    """Every verdict of check.py is that of `validate check`."""
    module = types.SimpleNamespace(**{
        **{op: getattr(right, op) for op in (*OPS, "block")}, **functions})
    got = tmp / name
    mine = {p: check.verdict(p, module, arith, got) for p in check.paths()}
    report = tmp / "report.json"
    p = run(TETHER, "validate", "check", check.HERE, "--got", got, "--arith",
            arith, "--json", report, "--overwrite")
    expect(p.returncode in (0, 1), f"{name}: {p.stderr}")
    theirs = {v["path"]: v["outcome"]
              for v in json.loads(report.read_text())["verdicts"]}
    other = []
    for path, v in mine.items():
        case = path.split("/")[0]
        outcome = theirs.get(path, theirs.get(case, "absent"))
        if v[0] != outcome:
            other.append(f"{path}: {v}, not {outcome}")
    expect(not other, f"{name}: {len(other)} of {len(mine)} verdicts differ, "
           f"the first {other[:3]}")
    return sum(v[0] in FAILS for v in mine.values())


SCHEMA = json.loads(pathlib.Path(
    "src/validate/report/validate.schema.json").read_text())
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool,
         "integer": int, "number": (int, float), "null": type(None)}


def unlike(x, s, at=""):
    """Where a value is not what the schema says; every member has to be in it,
    but for the metrics."""
    kinds = s.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(x, KINDS[k]) and not (
            isinstance(x, bool) and k != "boolean") for k in kinds):
        yield f"{at}: {x!r} is not {kinds}"
    if x not in s.get("enum", [x]) or x != s.get("const", x):
        yield f"{at}: {x!r}"
    if isinstance(x, dict):
        known = s.get("properties", {})
        yield from (f"{at}: no {n}" for n in s.get("required", []) if n not in x)
        yield from (f"{at}: {n} is unknown" for n in x
                    if n not in known and n not in s.get("required", []))
        for n, v in x.items():
            yield from unlike(v, known.get(n, {}), f"{at}/{n}")
    for i, v in enumerate(x if isinstance(x, list) else []):
        yield from unlike(v, s.get("items", {}), f"{at}/{i}")


def reports(tmp):
    """Reports of each way are what the schema says."""
    made = tmp / "backend.json"
    expect(run(TETHER, "validate", "--backend", "golden", "--op", "silu",
               "--no-calls", "--no-rollout", "--json", made).returncode == 0, "a report")
    dump, own = tmp / "dump", ["generate", "-m", "ref_data/demo", "-p", "a",
                               "-W", 32, "-H", 32, "--latents", 3]
    run(TETHER, *own, "--no-decode", "-q", "--latents-out", tmp / "latents",
        "--dump", dump, "--backend", "arith-bf16")
    failed = tmp / "dump.json"
    p = run(TETHER, "validate", "--dump", dump, "--json", failed, "--", *own)
    expect(p.returncode == 1, f"a report of failures: {p.stderr}")
    for path in (made, failed, tmp / "report.json"):
        report = json.loads(path.read_text())
        bad = list(unlike(report, SCHEMA))
        expect(not bad and report["verdicts"], f"{path.name}: {bad[:3]}")
        report["verdicts"][0]["outcome"] = "right"
        del report["first"]
        expect(len(list(unlike(report, SCHEMA))) == 2, "what is none is seen")


def as_tests(kit, tmp):
    """Under pytest: a name for every tensor, and what may fail."""
    if not importlib.util.find_spec("pytest"):
        print("note: pytest is not installed: check.py did not run under it")
        return
    (tmp / "mine.py").write_text(
        "from example import *\n"
        "def silu(x): return 1 / (1 + np.exp(-x))\n"
        "def gelu_tanh(x): raise NotImplementedError('no gelu')\n"
        "del conv\n")
    (tmp / "known").write_text("# known\nop_silu_*/y\n")
    env = {**os.environ, "PORT": "mine", "PYTHONPATH": f"{tmp}:{kit}"}

    def tests(**more):
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider",
             str(kit / "check.py")], env={**env, **more}, text=True, cwd=tmp,
            capture_output=True)
    p = tests()
    expect(p.returncode == 1 and "check.py::test_case[op_silu_0/y]" in p.stdout
           and "FAILED" in p.stdout and "no gelu" in p.stdout
           and "no such function" in p.stdout, f"pytest: {p.stdout[-2000:]}")
    p = tests(XFAIL=str(tmp / "known"))
    expect(p.returncode == 0 and "28 xfailed" in p.stdout, "pytest with known "
           f"failures: {p.stdout[-2000:]}")


def as_command(kit, tmp):
    def says(*words):
        p = subprocess.run([sys.executable, kit / "check.py", *words], text=True,
                           cwd=tmp, capture_output=True)
        return p.returncode, p.stdout
    expect(says("example", "--only", "op_silu*") == (
        0, "PASS: 30 tensors\n30 pass\n"), "the command")
    (tmp / "none.py").write_text("def silu(x): raise NotImplementedError\n")
    expect(says("none") == (1, "FAIL: nothing was compared\n379 without a "
                            "function, 30 unsupported\n"), "nothing compared")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        kit = tmp / "kit"
        p = run(TETHER, "validate", "export", "--kit", kit)
        expect(p.returncode == 0, p.stderr)
        sys.path.insert(0, str(kit))
        check, right = map(importlib.import_module, ("check", "example"))
        check.read = functools.lru_cache(None)(check.read)
        size = sum(f.stat().st_size for f in kit.glob("**/*"))
        expect(size < 60e6, f"{size} bytes: some 10 MB as .tar.xz")
        as_command(kit, tmp)
        as_tests(kit, tmp)
        for name, (arith, functions) in ports(right).items():
            wrong = compare(check, right, name, arith, functions, tmp)
            honest = name in ("right", "bf16", "bf16 stored", "block in bf16",
                              "unsupported", "flattened")
            expect(honest == (wrong == 0), f"{name}: {wrong} wrong")
        reports(tmp)


OPS = ("linear attention conv layer_norm rms_norm channel_norm modulate gate_add "
       "add mul gelu_tanh silu rope col_mean col_moment col_blend").split()
main()
print(f"python/kit: {counts[0]} passed, {counts[1]} failed")
sys.exit(counts[1] > 0)
