#!/usr/bin/env python3
"""vbench_scores.py: totals of VBench and quality drift, from files of scores.

SPDX-License-Identifier: Apache-2.0

    python3 tools/vbench_scores.py results.json -o scores

FILE is one of
    JSON {"subject_consistency": 0.97, ...}; VBench's own result files, where
         a value is a list that starts with the score, work too
    CSV  dimension,score
         -> normalised scores, quality, semantic, total
    CSV  video,clip,score  or JSON {"video": [clip scores]}
         -> quality drift: first clip minus last clip, averaged over videos
         (in percent points; --ends widens the ends)
Written as scores or quality_drift .csv and .json in FOLDER, in the form of
`tether analyze`. A missing dimension counts as 0, as in VBench. An imaging
quality above 1 counts as percent. Needs no package.

Source  VBench scripts/constant.py and cal_final_score.py: published range of
        every dimension; quality = weighted mean of seven, semantic = plain
        mean of nine, total = (4 quality + semantic) / 5. Paper: TetherCache
        reports the difference of imaging quality between the first and the
        last clip and does not say how long a clip is; we take whatever clips
        were scored.
"""
import argparse
import csv
import io
import json
import math
import os
import sys

# (name, lowest, highest, weight in the quality score; 0: semantic)
RULES = (
    ("subject_consistency", 0.1462, 1, 1),
    ("background_consistency", 0.2615, 1, 1),
    ("temporal_flickering", 0.6293, 1, 1),
    ("motion_smoothness", 0.706, 0.9975, 1),
    ("dynamic_degree", 0, 1, 0.5),
    ("aesthetic_quality", 0, 1, 1),
    ("imaging_quality", 0, 1, 1),
    ("object_class", 0, 1, 0),
    ("multiple_objects", 0, 1, 0),
    ("human_action", 0, 1, 0),
    ("color", 0, 1, 0),
    ("spatial_relationship", 0, 1, 0),
    ("scene", 0, 0.8222, 0),
    ("appearance_style", 0.0009, 0.2855, 0),
    ("temporal_style", 0, 0.364, 0),
    ("overall_consistency", 0, 0.364, 0),
)
NAMES = [rule[0] for rule in RULES]


class Refusal(Exception):
    """A sentence for the user."""


# ---- arithmetic ------------------------------------------------------------

def plain(name):
    return name.lower().replace(" ", "_").replace("-", "_")


def total(quality, semantic):
    return (4 * quality + semantic) / 5


def combine(raw):
    """(normalised scores, quality, semantic, total) of scores by name."""
    normal = {name: (raw[name] - low) / (high - low) if name in raw else 0.0
              for name, low, high, _ in RULES}
    quality = (sum(w * normal[name] for name, _, _, w in RULES)
               / sum(w for _, _, _, w in RULES))
    plain_ones = [normal[name] for name, _, _, w in RULES if not w]
    semantic = sum(plain_ones) / len(plain_ones)
    return normal, quality, semantic, total(quality, semantic)


def ends_of(clips, ends):
    """Means of the first and the last k clips: `ends`, or that share."""
    k = int(ends if ends >= 1 else ends * len(clips) + 0.5)
    k = max(1, min(k, len(clips)))
    return sum(clips[:k]) / k, sum(clips[-k:]) / k


# ---- reading ---------------------------------------------------------------

def is_number(x):
    return (isinstance(x, (int, float)) and not isinstance(x, bool)
            and math.isfinite(x))


def read_json(path, text):
    """Lines (name, clip or None, score)."""
    try:
        root = json.loads(text, parse_int=float)
    except (ValueError, RecursionError) as why:
        raise Refusal(f"{path}: {why}") from why
    lines = []
    for name, value in root.items():
        values = value if isinstance(value, list) else [value]
        if not values or not is_number(values[0]):
            raise Refusal(f"{path}: \"{name}\" is neither a score nor a list "
                          "that starts with one")
        if plain(name) in NAMES or not isinstance(value, list):
            lines.append((name, None, values[0]))
        elif all(map(is_number, values)):
            lines += [(name, clip, x) for clip, x in enumerate(values)]
        else:
            raise Refusal(f"{path}: the clips of \"{name}\" must be numbers")
    return lines


def read_csv(path, text):
    lines = []
    rows = csv.reader(io.StringIO(text), skipinitialspace=True)
    for at, row in enumerate(rows, 1):
        row = [field.strip() for field in row]
        try:
            numbers = [float(field) for field in row[1:]]
        except ValueError:
            numbers = []
        if len(numbers) in (1, 2) and all(map(math.isfinite, numbers)):
            lines.append((row[0], numbers[0] if len(numbers) == 2 else None,
                          numbers[-1]))
        elif at > 1 and row:  # the first may name the columns
            raise Refusal(f"{path}, line {at}: expected dimension,score or "
                          "video,clip,score")
    return lines


def read(path):
    if os.path.exists(path) and not os.path.isfile(path):
        raise Refusal(f"{path} is no regular file")
    try:
        with open(path, encoding="utf-8", newline="") as f:
            text = f.read()
    except (OSError, UnicodeDecodeError) as why:
        raise Refusal(f"{path} cannot be read: {why}") from why
    is_json = text.lstrip().startswith("{")
    try:
        lines = read_json(path, text) if is_json else read_csv(path, text)
    except csv.Error as why:
        raise Refusal(f"{path}: {why}") from why
    if not lines:
        raise Refusal(f"{path} holds no scores")
    if len({clip is None for _, clip, _ in lines}) > 1:
        raise Refusal(f"{path} mixes scores of dimensions and of clips")
    return lines


# ---- tables ----------------------------------------------------------------

def totals(path, lines):
    """The table, and what to say about it."""
    raw, say = {}, []
    for name, _, score in lines:
        if plain(name) not in NAMES:
            raise Refusal(f"{path}: \"{name}\" is not a dimension of VBench")
        # MUSIQ's own scale is 0..100.
        percent = plain(name) == "imaging_quality" and score > 1
        raw[plain(name)] = score / 100 if percent else score
    normal, quality, semantic, both = combine(raw)
    rows = [[name, raw.get(name), normal[name], weight]
            for name, _, _, weight in RULES]
    say += [f"missing, counted as 0: {name}" for name in NAMES
            if name not in raw]
    for name, x in ("quality", quality), ("semantic", semantic), ("total",
                                                                  both):
        rows.append([name, None, x, None])
        say.append(f"{name:<8} {100 * x:6.2f}")
    return rows, say


def drift(lines, ends):
    rows, sums = [], []
    # scores 0..1 are shown in percent points
    scale = 1 if any(score > 1 for _, _, score in lines) else 100
    videos = {}
    for name, _, score in sorted(lines, key=lambda x: x[:2]):
        videos.setdefault(name, []).append(score)
    for name, clips in videos.items():
        first, last = (scale * x for x in ends_of(clips, ends))
        sums.append(first - last)
        rows.append([name, len(clips), first, last, first - last])
    mean = sum(sums) / len(sums)
    rows.append(["mean", len(lines), None, None, mean])
    return rows, [f"quality drift {mean:.2f} (first minus last clip, mean of "
                  f"{len(sums)} video{'s' if len(sums) > 1 else ''})"]


# ---- writing ---------------------------------------------------------------

def number(x):
    return f"{x:.9g}"


def as_csv(columns, rows):
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow(columns)
    for row in rows:
        sheet.writerow(["" if x is None else x if isinstance(x, str)
                        else number(x) for x in row])
    return out.getvalue()


def as_json(columns, rows):
    def field(x):
        return number(x) if is_number(x) else json.dumps(x, ensure_ascii=False)
    lines = ["[" + ", ".join(map(field, row)) + "]" for row in rows]
    return (f'{{"columns": {json.dumps(columns)},\n"rows": [\n'
            + ",\n".join(lines) + "\n]}\n")


def keep(path, source, begins, overwrite):
    """Refuse to replace the scores, or what is no table of ours."""
    if not os.path.exists(path):
        return
    if os.path.samefile(path, source):
        raise Refusal(f"{path} would write over the scores; give -o another "
                      "folder")
    if overwrite or not os.path.isfile(path):
        return
    with open(path, "rb") as f:
        head = f.read(len(begins))
    if head and head != begins.encode():
        raise Refusal(f"{path} would be replaced, and it is no table of "
                      "scores; give -o another folder, or --overwrite")


def save(path, text):
    part = f"{path}.{os.getpid()}.part"
    with open(part, "w", encoding="utf-8", newline="") as f:
        f.write(text)
    os.replace(part, path)


def write(a, name, columns, rows):
    files = {".csv": as_csv(columns, rows), ".json": as_json(columns, rows)}
    for ending, text in files.items():
        keep(os.path.join(a.output, name + ending), a.file,
             text[:text.index("\n")], a.overwrite)
    os.makedirs(a.output, exist_ok=True)
    for ending, text in files.items():
        save(os.path.join(a.output, name + ending), text)


def main():
    p = argparse.ArgumentParser(
        description="Totals of VBench, or quality drift from first to last "
        "clip, from scores in JSON or CSV.")
    p.add_argument("file", metavar="FILE",
                   help="scores per dimension or per clip")
    p.add_argument("-o", "--output", metavar="FOLDER", default=".",
                   help="where the tables go (default: here)")
    p.add_argument("--ends", metavar="X", type=float, default=1.0,
                   help="quality drift: how many clips make the first and the "
                   "last (default 1), or below 1 which share of them")
    p.add_argument("--overwrite", action="store_true",
                   help="replace files that are no tables of scores, too")
    a = p.parse_args()
    if not 0 < a.ends < math.inf:
        p.error("--ends must be positive")
    lines = read(a.file)
    if lines[0][1] is None:
        rows, say = totals(a.file, lines)
        write(a, "scores", ["dimension", "score", "normalised", "weight"],
              rows)
    else:
        rows, say = drift(lines, a.ends)
        write(a, "quality_drift", ["video", "clips", "first", "last",
                                   "quality_drift"], rows)
    print("\n".join(say))


if __name__ == "__main__":
    try:
        main()
    except (Refusal, OSError) as problem:
        sys.exit(f"vbench_scores.py: {problem}")
