"""compare.py: a layer-pass of tether and of other runtimes, in turns.

    python3 tools/bench/compare.py --build build/gcc-O2 --python VENV/bin/python

SPDX-License-Identifier: Apache-2.0

Every side is a process that is kept alive and asked for one unit of work at a
time over a pipe; every other round has the order reversed. tether's side is
tools/bench_chunk of the build: one layer with random weights, and what its
cache does, which the peers (peers.py) are spared. A side that cannot be
started is named and left out. The multiply-add peak is tether's.

On a machine that is busy with other work, --threads 1 --cpu takes CPU seconds
for all figures. "cores" is CPU seconds / seconds: less than --threads says how
busy it was."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DIM, FFN, TEXT = 1536, 8960, 512
PRODUCTS = {"q": (DIM, DIM), "ffn0": (DIM, FFN), "ffn2": (FFN, DIM)}
# tether-amx is to be named, where there is AMX; "of peak" stays multiply-adds'
SIDES = ",".join(r + "-" + t for r, types in (
    ("tether", ("f32", "vdp")), *((r, ("f32", "bf16")) for r in (
        "torch", "compile", "zentorch", "openvino"))) for t in types)


def options():
    p = argparse.ArgumentParser(epilog="sides: " + SIDES)
    add = p.add_argument
    add("--build", default="build/gcc-O2", help="folder of tether's build")
    add("--tether", default="", help="more options of bench_chunk, in one word")
    add("--models", metavar="DIR", help="where tether's layers are or shall "
        "stay, DIR/f32 and DIR/bf16 (0.5 GB)")
    add("--python", default=sys.executable, help="what has the packages")
    add("--sides", default=SIDES)
    add("--threads", type=int, default=os.cpu_count())
    add("--rounds", type=int, default=5)
    add("-W", type=int, default=832)
    add("-H", type=int, default=480)
    add("-K", type=int, default=21, help="frames in the cache")
    add("--rows", help="of linear layers to be timed instead: 91,273,1560,4680")
    add("--cpu", action="store_true", help="count CPU seconds")
    add("--json", metavar="FILE")
    return p.parse_args()


def model(o, dtype):
    """The folder of a layer in this type."""
    folder = os.path.join(o.models, dtype)
    config = os.path.join(folder, "config.json")
    if not os.path.exists(config):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(
            [os.path.join(o.build, "tools", "make_checkpoint"), "--layers", "1",
             "--dtype", dtype, "--config", config, "--dit",
             os.path.join(folder, "diffusion_pytorch_model.safetensors")],
            check=True, stderr=subprocess.DEVNULL)
    return folder


class Side:
    def __init__(self, o, name):
        runtime, kind = name.split("-")
        L = o.W // 16 * (o.H // 16)
        if runtime == "tether":
            words = [os.path.join(o.build, "tools", "bench_chunk"),
                     "-m", model(o, "f32" if kind == "f32" else "bf16"),
                     "--class", kind, "-t", o.threads, "-W", o.W, "-H", o.H,
                     "--budget", o.K, "--prime", 0, "--serve", 1,
                     *o.tether.split()]
        else:
            words = [o.python, "-W", "ignore", os.path.join(HERE, "peers.py"),
                     name, 3 * L, o.K * L, o.threads]
        self.name, self.said, self.ended = name, "", None
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [str(w) for w in words], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log)

    def ready(self):
        """Waits. self.said: what it is, or why it is not ready."""
        for line in self.process.stdout:
            word, _, self.said = line.strip().partition(" ")
            if word in ("ready", "skip"):
                return word == "ready"
        self.log.seek(0)
        self.said = self.log.read().strip().split("\n")[-1]
        return False

    def ask(self, work):
        """Seconds and CPU seconds. None: it has ended, and will not be asked
        again."""
        if self.ended:
            return None
        try:
            self.process.stdin.write(work + "\n")
            self.process.stdin.flush()
            wall, cpu = self.process.stdout.readline().split()
        except (OSError, ValueError):
            self.ended = work
            print("left out: %s ended in: %s" % (self.name, work), flush=True)
            return None
        return float(wall), float(cpu)


def start(o):
    sides = []
    for name in o.sides.split(","):
        side = Side(o, name)
        good = side.ready()
        print("" if good else "left out: ", name, ": ", side.said, sep="",
              flush=True)
        sides += [side] if good else []
    return sides or sys.exit("no side could be started")


def jobs(o):
    """(name, request, floating-point operations)"""
    L = o.W // 16 * (o.H // 16)
    T, N = 3 * L, o.K * L
    if not o.rows:
        return [("layer, %d queries, %d keys" % (T, N), "layer",
                 T * (12 * DIM * DIM + 4 * DIM * FFN + 4 * (N + TEXT) * DIM))]
    return [("linear %d x %d -> %d" % (rows, n, m), "linear %d %s %d" % (
        rows, name, 1 + 15e9 // (rows * n * m)), 2 * rows * n * m)
        for rows in map(int, o.rows.split(","))
        for name, (n, m) in PRODUCTS.items()]


def peak(o, sides):
    """GFLOP/s."""
    for s in sides:
        answer = s.ask("peak") if s.name.startswith("tether") else None
        if answer:
            return answer[1] * o.threads if o.cpu else answer[0]
    return 0


def measure(o, sides, todo):
    """Answers by work and side; of a side that ended none."""
    took = {name: {s.name: [] for s in sides} for name, _, _ in todo}
    for turn in range(-1, o.rounds):            # the first is not counted
        for name, request, _ in todo:
            for s in sides[::-1] if turn % 2 else sides:
                time.sleep(0.6)                 # others' threads fall asleep
                t = s.ask(request)
                if turn >= 0:
                    took[name][s.name].append(t)
    return {name: {s.name: t[s.name] for s in sides if not s.ended}
            for name, t in took.items()}


def table(o, name, work, took, top):
    """Prints it; what it says, for the JSON."""
    def figure(t):
        return 1e3 * (t[1] / o.threads if o.cpu else t[0])
    bases = [s for s in took if s.startswith("tether")]
    middle = {s: statistics.median(map(figure, t)) for s, t in took.items()}
    print("\n%s: %.1f GFLOP\nside           median ms        least .. most"
          "    CPU ms  cores    GF/s  of peak" % (name, work * 1e-9), *bases)
    rows = []
    for s, times in took.items():
        wall, cpu = ([1e3 * x for x in t] for t in zip(*times))
        ms, rate = sorted(map(figure, times)), work / middle[s] * 1e-6
        rows.append({"work": name, "side": s, "ms": middle[s], "gflops": rate,
                     "wall_ms": wall, "cpu_ms": cpu,
                     "ratio": {b: middle[s] / middle[b] for b in bases}})
        print("%-14s %9.2f %9.2f ..%9.2f %9.2f %6.2f %7.1f %8.2f" % (
            s, middle[s], ms[0], ms[-1], statistics.median(cpu),
            sum(cpu) / sum(wall), rate, rate / top if top else 0), *(
                "%*.2f" % (len(b), middle[s] / middle[b]) for b in bases))
    return rows


def main():
    o = options()
    kept = tempfile.TemporaryDirectory()
    o.models = o.models or kept.name
    sides, todo, rows = start(o), jobs(o), []
    peaks = [peak(o, sides)]
    took = measure(o, sides, todo)
    peaks.append(peak(o, sides))
    print("\n%d threads, %d rounds, %s; multiply-add peak %.1f GF/s before, "
          "%.1f after\nbelow tether-CLASS: time of the side / time of that; "
          "above 1: tether is faster" % (
              o.threads, o.rounds, "CPU seconds / threads" if o.cpu
              else "wall seconds", *peaks))
    for name, _, work in todo:
        rows += table(o, name, work, took[name], max(peaks))
    if not rows:
        sys.exit("no side came to its end")
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"sides": {s.name: s.said for s in sides},
                       "threads": o.threads, "cpu": o.cpu, "peaks": peaks,
                       "rows": rows}, f, indent=1)
    for s in sides:
        if s.ended:
            s.process.kill()
        else:
            s.process.stdin.close()
        s.process.wait()


if __name__ == "__main__":
    main()
