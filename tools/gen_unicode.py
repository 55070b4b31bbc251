#!/usr/bin/env python3
"""Write src/text/unicode_table.c from Python's unicodedata.

SPDX-License-Identifier: Apache-2.0

Only character properties (facts of the Unicode Character Database) are taken.
Usage: python3 tools/gen_unicode.py > src/text/unicode_table.c
"""
import unicodedata as ud

HANGUL = range(0xAC00, 0xD7A4)


def emit(cells, width=76):
    line = ""
    for cell in cells:
        cell += ", "
        if len(line) + len(cell) > width:
            print("    " + line.rstrip())
            line = ""
        line += cell
    if line:
        print("    " + line.rstrip())


def table(kind, name, cells):
    print("const %s %s[] = {" % (kind, name))
    emit(cells)
    print("};\nconst int %s_count = %d;\n" % (name, len(cells)))


def ranges(pairs):
    """[(cp, value)] ascending -> [(first, last, value)]."""
    out = []
    for cp, v in pairs:
        if out and out[-1][1] == cp - 1 and out[-1][2] == v:
            out[-1][1] = cp
        else:
            out.append([cp, cp, v])
    return out


def main():
    every = range(0x110000)
    classes = ranges((c, ud.combining(chr(c))) for c in every
                     if ud.combining(chr(c)))
    single = []
    for c in every:
        d = ud.decomposition(chr(c))
        if d and not d.startswith("<") and c not in HANGUL:
            parts = [int(x, 16) for x in d.split()]
            assert len(parts) <= 2
            single.append((c, parts[0], parts[1] if len(parts) > 1 else 0))
    # A pair composes when NFC itself puts it together again.
    pairs = [(a, b, c) for c, a, b in single
             if b and ud.normalize("NFC", chr(a) + chr(b)) == chr(c)]
    width = []
    for c in range(0xFF01, 0xFFF0):
        k = ud.normalize("NFKC", chr(c))
        width.append([ord(x) for x in k] if k != chr(c) else [c])
    digits = [c for c in every if ud.category(chr(c)) == "Nd"
              and ud.decimal(chr(c)) == 0]
    assert all(ud.category(chr(z + i)) == "Nd" for z in digits
               for i in range(10))
    assert sum(ud.category(chr(c)) == "Nd" for c in every) == 10 * len(digits)

    print("""/* unicode_table.c: character properties. Generated, do not edit.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  tools/gen_unicode.py, Unicode Character Database %s.
 * Holds   every table is sorted by its leading members. Hangul syllables are
 *         not listed: nfc.c computes them. */
#include "text/clean.h"
""" % ud.unidata_version)
    print("/* {first, last, canonical combining class} */")
    table("uni_range", "uni_classes",
          ["{0x%x,0x%x,%d}" % tuple(r) for r in classes])
    print("/* {code point, its canonical decomposition (one step), 0} */")
    table("uni_triple", "uni_decompositions",
          ["{0x%x,0x%x,0x%x}" % s for s in single])
    print("/* {first, second, composite}; exclusions are left out */")
    table("uni_triple", "uni_compositions",
          ["{0x%x,0x%x,0x%x}" % p for p in sorted(pairs)])
    print("/* the zero of each run of ten decimal digits */")
    table("uint32_t", "uni_zeros", ["0x%x" % z for z in digits])
    print("/* NFKC of U+FF01..U+FFEF, itself where it has none; U+FFE3 alone is\n"
          " * two code points, U+0020 U+0304, and stands here as its first */")
    assert [len(w) for w in width].count(2) == 1
    assert width[0xFFE3 - 0xFF01] == [0x20, 0x304]
    table("uint16_t", "uni_width", ["0x%x" % w[0] for w in width])


main()
