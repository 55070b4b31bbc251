"""mlx_port.py, a port to MLX, against tether: it must pass, with faults fail.

SPDX-License-Identifier: Apache-2.0

    TETHER=build/tether python3 tests/python/check_mlx.py
    TETHER=... python3 tests/python/check_mlx.py seeds FIRST LAST [TYPE ARITH]
    TETHER=... python3 tests/python/check_mlx.py unseen OUT.tsv [FAULT...]

`make check-mlx` runs the first; all need numpy, mlx and `make f64`. The second
runs the right port with many seeds (float32 f32, or as `bfloat16 bf16-stored`)
and says how near to its limit any tensor came. The third plants each fault of
mlx_faults.txt, lets `tether validate` find it, and writes a line of OUT.tsv:
the first tensor that differs from the right port by more than 3e-6, the first
that tether calls wrong, what it says, and a label that a person gave to these
words for this fault. They are kept in mlx_labels.tsv:
`named` is the mistake or what has the same effect, `place` where or how
precisely something is off, `none` that nothing was said, `misleading` another
mistake than the one that was made. New words get the label `?`. JOBS=2 runs
two at a time."""
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types

# before numpy: threads that wait for each other cost more than they help here
os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import mlx.core                                       # noqa: F401
    import numpy as np
except ImportError as e:
    print(f"SKIP python/mlx: not run: {e}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

HERE = pathlib.Path(__file__).parent
PORT = (HERE / "mlx_port.py").read_text()
TETHER = os.environ.get("TETHER", "build/tether")
MODEL = "ref_data/demo"
TEXT, DUMP = "text.safetensors", "dump.safetensors"
PROMPT = "a red circle moves left and bounces, on a blue background"
POLICIES = {
    "fifo": "--cache fifo --budget 6 --sink 1 --latents 9",
    "tether": "--cache tether --budget 9 --sink 2 --memory 4 --recent 3 "
              "--latents 15"}


def tether(*words):
    return subprocess.run([TETHER, *map(str, words)], capture_output=True,
                          text=True)


def run(source, policy, folder, *more):
    """What a port with this source computes: {name: array}, in order."""
    port = types.ModuleType("port")
    exec(compile(source, "port", "exec"), vars(port))
    return port.run([MODEL, str(folder / TEXT), str(folder / DUMP), "--size",
                     "48x32", *POLICIES[policy].split(), *more])


def report(policy, folder, arith="f32", seed=0):
    out = folder / "report.json"
    r = tether("validate", "--dump", folder / DUMP, "--arith", arith,
               "--json", out, "--overwrite", "--", "generate", "-m", MODEL,
               "-W", 48, "-H", 32, *POLICIES[policy].split(),
               "--embeds", folder / TEXT, "--seed", seed)
    if r.returncode not in (0, 1):
        raise RuntimeError(f"tether validate: {r.returncode}: {r.stderr}")
    return json.loads(out.read_text())


def prepare(folder):
    r = tether("embed", "-m", MODEL, "-p", PROMPT, "-o", folder / TEXT,
               "--overwrite")
    if r.returncode:
        sys.exit(f"tether embed: {r.stderr}")


# ---- faults ---------------------------------------------------------------------

def faults():
    """{name: (policy, what, edits)}, edits: [old, new] of the port's text."""
    made, last = {}, ""
    for line in (HERE / "mlx_faults.txt").read_text().splitlines():
        kind, text = line[:1], line[2:]
        if kind == "=":
            name, *policy = text.split()
            made[name] = [(policy or ["fifo"])[0], "", edits := []]
        elif made and kind == "!":
            made[name][1] = text
        elif made and kind in ("-", "+"):
            if kind == "-" and last != "-":
                edits.append([[], []])
            edits[-1][kind == "+"].append(text)
        last = kind
    return made


def planted(edits):
    source = PORT
    for old, new in (["\n".join(x) for x in e] for e in edits):
        if source.count(old) != 1:
            raise SystemExit(f"{source.count(old)} times in the port: {old}")
        source = source.replace(old, new)
    return source


def first_difference(right, wrong):
    for name in list(right) + [n for n in wrong if n not in right]:
        a, b = right.get(name), wrong.get(name)
        if a is None or b is None or a.shape != b.shape:
            return name
        if not np.all(abs(a.astype(np.float64) - b) <= 3e-6):
            return name
    return None


def judge(name):
    """(truth, first wrong tensor, what was said) of a fault."""
    policy, _, edits = faults()[name]
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        prepare(folder)
        if policy not in judge.right:
            judge.right[policy] = run(PORT, policy, folder)
        try:
            truth = first_difference(judge.right[policy],
                                     run(planted(edits), policy, folder))
        except Exception as e:
            return name, f"broken: {e}", "", ""
        if truth is None:
            return name, "does not act", "", ""
        r = report(policy, folder)
    path = r["verdicts"][r["first"]]["path"] if r["first"] is not None else ""
    said = re.sub(r"^FAIL: first wrong tensor: ", "", r["headline"])
    return name, truth, path, said.replace("\n", " ").replace("\t", " ")


judge.right = {}


def hint(said):
    """Words of the headline without place and numbers, for the labels."""
    said = re.sub(r"(; )?given theirs up to [^;]*|none of the \d+ mistakes[^;]*"
                  r"|it arises in [^;]*| \(explains \d+ of \d+ failures\)"
                  r"|: not in .*", "",
                  said)
    return re.sub(r"-?\d[\d.]*(e[-+]\d+)?", "#", re.sub(
        r"^\S+( at \[[^]]*\])?(: )?|; the largest failure.*", "", said)).strip(" ;")


def labels():
    for line in (HERE / "mlx_labels.tsv").read_text().splitlines():
        name, label, said = line.split("\t")
        yield (name, said), label


def unseen(out, names):
    known = dict(labels())
    every = faults()
    count = {}
    with multiprocessing.get_context("spawn").Pool(
            int(os.environ.get("JOBS", "1"))) as pool, open(out, "w") as f:
        for name, truth, path, said in pool.imap(judge, names or every):
            right = "right" if path == truth else "wrong" if path else "lost"
            label = known.get((name, hint(said)), "?") if hint(said) else "none"
            f.write("\t".join([name, right, label, said, every[name][1], truth,
                               path]) + "\n")
            f.flush()
            for word in (right, label):
                count[word] = count.get(word, 0) + 1
    print(len(names or every), "faults:", ", ".join(
        f"{n} {word}" for word, n in sorted(count.items())))


# ---- the check ------------------------------------------------------------------

def honest(seed, policy, dtype, arith):
    """The report of the right port and its largest error, in limits."""
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        prepare(folder)
        run(PORT, policy, folder, "--dtype", dtype, "--seed", str(seed))
        r = report(policy, folder, arith, seed)
    worst = max(r["verdicts"], key=lambda v: v.get("ratio") or 0)
    print(f"seed {seed}, {policy}, {arith}: {r['headline']}; at most "
          f"{worst['ratio']:.2f} of a limit, {worst['path']}", flush=True)
    return r


def seeds(first, last, dtype="float32", arith="f32"):
    refused = sum(not honest(seed, "tether" if seed % 5 == 4 else "fifo",
                             dtype, arith)["passed"]
                  for seed in range(int(first), int(last)))
    print(f"{refused} refused")
    return refused > 0


def main():
    counts = [0, 0]

    def check(ok, what):
        counts[not ok] += 1
        if not ok:
            print("FAIL python/mlx:", what)
    print("mlx", mlx.core.__version__)
    # 2: logits are stored, 5: other places of rounding, 21: a row of bad luck
    for policy, seed, dtype, arith in (
            ("fifo", 0, "float32", "f32"), ("tether", 0, "float32", "f32"),
            ("fifo", 2, "bfloat16", "bf16-stored"),
            ("fifo", 5, "bfloat16", "bf16-stored"),
            ("fifo", 21, "float32", "f32"),
            ("tether", 0, "bfloat16", "bf16-stored")):
        r = honest(seed, policy, dtype, arith)
        check(r["passed"], f"{policy}, {seed}, {arith}: {r['headline']}")
        check(r["compared"] > 800, f"{r['compared']} compared")
    for name in ("rope-halves", "tame-tau-0.6"):
        _, truth, path, said = judge(name)
        print(name + ":", said)
        check(path == truth, f"{name} is at {truth}, not at {path}")
    print(f"{counts[0]} passed, {counts[1]} failed")
    return counts[1] > 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["seeds"]:
        sys.exit(seeds(*sys.argv[2:]))
    if sys.argv[1:2] == ["unseen"]:
        unseen(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
