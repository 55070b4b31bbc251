#!/usr/bin/env python3
"""Write src/text/tables.c from Python's unicodedata and html.entities.

SPDX-License-Identifier: Apache-2.0

Only facts of the Unicode Character Database and of the public list of the HTML
standard are taken. Usage: python3 tools/gen_text.py > src/text/tables.c
"""
import html
import unicodedata as ud
from html.entities import html5

HANGUL = range(0xAC00, 0xD7A4)
DIGITS = [chr(c) for c in range(32, 127) if chr(c) not in '"?\\']
ONE, TWO, THREE = 58, 79, 91  # first digits of numbers of 1, 2, 3 digits


def pack(n):
    """n >= 0 as text; text/tables.h has the other direction."""
    base = len(DIGITS)
    if n < ONE:
        return DIGITS[n]
    n -= ONE
    for first, last, size in (ONE, TWO, 1), (TWO, THREE, 2), (THREE, base, 3):
        if n < (last - first) * base**size:
            tail = [DIGITS[n // base**i % base] for i in range(size)]
            return DIGITS[first + n // base**size] + "".join(reversed(tail))
        n -= (last - first) * base**size
    raise ValueError(n)


def signed(n):
    return pack(2 * n if n >= 0 else -2 * n - 1)


def literal(text, width=73):
    lines = [text[i:i + width] for i in range(0, len(text), width)] or [""]
    return "\n".join('    "%s"' % line for line in lines)


def emit(what, name, texts):
    """Strings of at most 4,095 characters, the last one NULL."""
    print("/* %s */\nconst char *const %s[] = {" % (what, name))
    print(",\n".join(map(literal, texts)) + ",\n    0};\n")


def split(cells):
    """cells, joined to strings that compilers must take."""
    texts = [""]
    for cell in cells:
        if len(texts[-1]) + len(cell) > 4000:
            texts.append("")
        texts[-1] += cell
    return texts


def ranges(pairs):
    """[(cp, value)] ascending -> [(first, last, value)]."""
    out = []
    for cp, v in pairs:
        if out and out[-1][1] == cp - 1 and out[-1][2] == v:
            out[-1][1] = cp
        else:
            out.append([cp, cp, v])
    return out


def unicode_tables():
    every = range(0x110000)
    classes, end = [], 0
    for a, b, v in ranges((c, ud.combining(chr(c))) for c in every
                          if ud.combining(chr(c))):
        classes.append(pack(a - end) + pack(b - a) + pack(v))
        end = b
    parts, c0, a0, b0 = [], 0, 0, 0
    for c in every:
        d = ud.decomposition(chr(c))
        if not d or d.startswith("<") or c in HANGUL:
            continue
        a, b = ([int(x, 16) for x in d.split()] + [0])[:2]
        # A pair composes when NFC itself puts it together again.
        whole = b and ud.normalize("NFC", chr(a) + chr(b)) == chr(c)
        kind = 2 if whole else 1 if b else 0
        parts.append(pack((c - c0 - 1) * 3 + kind) + signed(a - a0)
                     + (signed(b - b0) if b else ""))
        c0, a0, b0 = c, a, b or b0
    zeros, last = [], 0
    for c in every:
        if ud.category(chr(c)) == "Nd" and ud.decimal(chr(c)) == 0:
            zeros.append(pack(c - last))
            last = c
    width, last = [], 0
    for c in range(0xFF5F, 0xFFF0):
        k = ord(ud.normalize("NFKC", chr(c))[0])
        width.append(signed(k - last))
        last = k
    emit("{gap to the range before, its size, canonical combining class}",
         "uni_classes", split(classes))
    emit("{gap and kind, change of 1st, [of 2nd part]}: decompositions",
         "uni_parts", split(parts))
    emit("{gap}: the zero of each run of ten decimal digits", "uni_zeros",
         split(zeros))
    emit("{change}: NFKC (its first code point) of U+FF5F..U+FFEF",
         "uni_width", split(width))


def entity(name, before, cps, bare):
    """One name of a letter, its first letter left out."""
    same = 0
    while same < min(len(name), len(before)) and name[same] == before[same]:
        same += 1
    rest = name[same:]
    more = len(cps) - 1
    return (pack(same) + pack(len(rest) * 4 + bare * 2 + more) + rest
            + signed(cps[0] - 0x2200) + (pack(cps[1]) if more else ""))


def html_tables():
    letters = [chr(c) for c in (*range(65, 91), *range(97, 123))]
    texts, upper = dict.fromkeys(letters, ""), {}
    last = dict.fromkeys(letters, "")
    for name in sorted({key.rstrip(";") for key in html5}):
        text, first = html5[name + ";"], name[0]
        texts[first] += entity(name[1:], last[first], [ord(c) for c in text],
                               name in html5)
        last[first] = name[1:]
        if name == name.lower():
            upper |= {c: c.upper() for c in text if c.upper() != c}
    cells, at = [], 0
    for c in sorted(upper):
        if len(upper[c]) == 1:
            cells.append(pack(ord(c) - at) + signed(ord(upper[c]) - ord(c)))
            at = ord(c)
    emit("{common letters, 4 rest + 2 bare + two, rest, 1st[, 2nd]}: names of"
         "\n * A..Z and a..z without that letter",
         "html5_names", [texts[c] for c in letters])
    emit("{gap, change}: upper case of what lower-case names stand for",
         "html5_upper", split(cells))


print("""/* tables.c: characters and their names. Generated by a tool.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  tools/gen_text.py: Unicode Character Database %s, the public
 *         list of the HTML standard
 * Holds   numbers as tables.h reads them. Hangul syllables are not listed:
 *         nfc.c computes them. */
#include "text/tables.h"
""" % ud.unidata_version)
unicode_tables()
html_tables()
