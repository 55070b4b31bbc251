#!/usr/bin/env python3
"""Write src/text/html5_table.c from the HTML5 entity list of Python's library.

SPDX-License-Identifier: Apache-2.0

The list itself is the public one of the HTML standard; only names and code
points are taken. Usage: python3 tools/gen_html5.py > src/text/html5_table.c
"""
import html
from html.entities import html5

HEAD = """/* html5_table.c: HTML5 character names. Generated, do not edit.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  tools/gen_html5.py, from the public list of the HTML standard.
 * Holds   both tables are sorted by strcmp; names are stored without '&' and
 *         ';'; unused code points are 0. */
#include "text/clean.h"

"""


def rows(table):
    line = ""
    for name in sorted(table):
        cell = "{%s}, " % table[name]
        if len(line) + len(cell) > 76:
            yield "    " + line.rstrip()
            line = ""
        line += cell
    yield "    " + line.rstrip()


def main():
    names, upper = {}, {}
    for key, text in html5.items():
        name = key.rstrip(";")
        cps = [ord(c) for c in text]
        assert len(cps) <= 2 and (key in (name, name + ";"))
        assert html5[name + ";"] == text
        cps += [0] * (2 - len(cps))
        bare = 1 if name in html5 else 0
        names[name] = '"%s", %d, {0x%x, 0x%x}' % (name, bare, *cps)
        # ftfy also decodes all-upper-case forms of all-lower-case names,
        # where html.unescape makes nothing of them.
        if key.endswith(";") and key == key.lower():
            u = key.upper()
            if html.unescape("&" + u) == "&" + u:
                cps = [ord(c) for c in text.upper()]
                assert len(cps) <= 3
                cps += [0] * (3 - len(cps))
                upper[u[:-1]] = '"%s", {0x%x, 0x%x, 0x%x}' % (u[:-1], *cps)
    print(HEAD, end="")
    print("const html5_name html5_names[] = {")
    print("\n".join(rows(names)))
    print("};\nconst int html5_names_count = %d;\n" % len(names))
    print("const html5_upper html5_uppers[] = {")
    print("\n".join(rows(upper)))
    print("};\nconst int html5_uppers_count = %d;" % len(upper))


main()
