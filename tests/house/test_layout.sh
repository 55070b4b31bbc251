#!/bin/sh
# test_layout.sh: the source looks as if one hand had written it.
#
# SPDX-License-Identifier: Apache-2.0
#
#   header     a C file begins with "/* NAME: " and a sentence; the header of
#              every file, scripts too, names the licence
#   blanks     no tab, no blank at the end of a line
#   width      80 columns in src and include, and in C files of tests and tools;
#              src/golden has 100 (test_golden.sh)
#   operators  lead a line, and do not end the one before; these two not in
#              validate, cli, ops and cuda, of src and tests
#   zero       an object of zeros is {0}, not { 0 }
#   systems    none is asked for outside src/os
#   includes   no room includes a higher one, or one beside it (src/README.md)
# layout.awk complains; files made here show that it finds each of these.
this=house/layout
. tests/script.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/layout.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
awk -f tests/house/levels.awk src/README.md > "$work/levels"
if [ "$(grep -c . "$work/levels")" -ge 11 ]; then
    pass
else
    fail "src/README.md gives $(grep -c . "$work/levels") rooms a level"
fi

layout() { LC_ALL=C awk -f tests/house/layout.awk "$work/levels" "$@"; }

# ---- wrong files are found wrong -------------------------------------------
mkdir -p "$work/src/cache"
top=$PWD
shown() {   # complaint, header and text of a file of cache
    printf "$2" > "$work/src/cache/probe.c"
    (cd "$work" && LC_ALL=C awk -f "$top/tests/house/layout.awk" levels \
        src/cache/probe.c) > "$work/said"
    if [ -z "$1" ] && [ ! -s "$work/said" ]; then
        pass
    elif [ -n "$1" ] && grep -q "$1" "$work/said"; then
        pass
    else
        fail "of a probe it should say \"$1\", but says: $(cat "$work/said")"
    fi
}
head='/* probe.c: a sentence.\n *\n * SPDX-License-Identifier: Apache-2.0 */\n'
wide=$(awk 'BEGIN { while (i++ < 81) printf "x" }')
shown '' "$head"'#include "ops/bf16.h"\n#include "cache/window.h"\n'
shown 'does not begin' "${head#???}"
shown 'has no end' "/* probe.c: a sentence\n *${head#*sentence.\\n \*}"
shown 'no licence' '/* probe.c: a sentence. */\n'
shown ':4: a tab' "$head\tint i;\n"
shown ':4: a blank' "${head}int i; \n"
shown 'a question for the system' "${head}#ifdef _WIN32\n#endif\n"
shown 'a question for the system' "${head}char a[] = \"/proc/self/exe\";\n"
shown 'written {0}' "${head}int a[2] = { 0 };\n"
shown ':4: 81 columns' "$head$wide\n"
shown ':5: an operator at' "${head}int a = 1\n    + 2 *\n    3;\n"
shown ':4: an operator at' "${head}int a = b && /* why */\n    c;\n"
shown ':4: an operator at' "${head}int a = b ? 1 :\n    c;\n"
shown '' "${head}/* a &&\n * b */\nint a =\n    1 /* + */\n    + b;\nx: y++;\n"
shown 'a higher room' "$head#include \"dit/model.h\"\n"
echo '2 cache' > "$work/levels"
echo '2 dit' >> "$work/levels"
shown 'a room beside it' "$head#include \"dit/model.h\"\n"
awk -f tests/house/levels.awk src/README.md > "$work/levels"

# ---- the tree ---------------------------------------------------------------
files=$(find -H src include tests tools -name third_party -prune -o -type f \
    \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cpp' -o -name '*.sh' -o -name '*.awk' \) -print)
if [ "$(echo "$files" | grep -c .)" -gt 400 ]; then
    pass
else
    fail "only $(echo "$files" | grep -c .) files found"
fi
# shellcheck disable=SC2086
layout $files > "$work/said"
if [ -s "$work/said" ]; then fail "$(cat "$work/said")"; else pass; fi
finish
