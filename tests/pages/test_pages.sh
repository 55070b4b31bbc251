#!/bin/sh
# test_pages.sh: what the pages (*.md) and the comments of the source point to
# exists, and what the pages promise about themselves is so.
#
# SPDX-License-Identifier: Apache-2.0
#
#   links     every relative link of a page resolves, its #heading too
#   paths     every path of the source tree that stands in `...` on a page
#             exists (a trailing * is a pattern)
#   cited     every *.md that the source, the Makefile, a script or a page names
#             is in the tree
#   copied    the four files of src/ops/README.md "Elementary functions"
#             compile without the rest, and give exp(-1)
#   plug-in   mine.c of README.md compiles, and validate says what stands there
# Each look is first shown to find what it looks for.
build=$1
this=pages/pages
. tests/script.sh
check() {   # condition..., then a sentence in $what
    if "$@"; then pass; else fail "$what"; fi
}

tree='README.md Makefile .github src include tests tools ref_data'
pages() { find README.md .github src include tests tools ref_data \
    -name '*.md' -type f; }
sources() { find Makefile src include tests tools .ci -type f \( -name '*.[ch]' \
    -o -name '*.sh' -o -name '*.py' -o -name Makefile -o -name '*.mk' -o -name run \); }

# ---- links -------------------------------------------------------------------
links() {   # page: the targets of its links, one a line
    grep -o '](\([^)]*\))' "$1" | sed 's/^](//; s/)$//' \
        | grep -v '^[a-z]*://'
}

heading_of() {   # page anchor: does a heading make this anchor?
    sed -n 's/^##* //p' "$1" | tr 'A-Z' 'a-z' \
        | sed 's/[^a-z0-9 _-]//g; s/ /-/g' | grep -qx -- "$2"
}

link_ok() {   # page target
    file=${2%%#*}
    case $2 in *'#'*) anchor=${2#*#} ;; *) anchor= ;; esac
    if [ -n "$file" ]; then file=$(dirname "$1")/$file; else file=$1; fi
    [ -e "$file" ] || return 1
    [ -z "$anchor" ] || heading_of "$file" "$anchor"
}

# ---- paths -------------------------------------------------------------------
paths() {   # page: words in `...` that begin with a folder of the tree
    grep -o '`[^`]*`' "$1" | tr -d '`' | tr ' ,' '\n\n' \
        | grep -E '^(src|include|tests|tools|ref_data|\.github|\.ci)/' \
        | sed 's/[.:;]*$//'
}

path_ok() {   # path, perhaps a pattern; NAME stands for any name
    # shellcheck disable=SC2086
    set -- $(echo "$1" | sed 's/NAME/*/g')
    [ -e "$1" ]
}

# ---- cited -------------------------------------------------------------------
cited() {   # source: every *.md it names
    grep -oE '[A-Za-z0-9_./-]*[A-Za-z0-9_]\.md' "$1" | sort -u
}

cited_ok() {   # source name: from the top, beside the source, or by its name
    case $2 in
    */*) [ -e "$2" ] || [ -e "$(dirname "$1")/$2" ] ;;
    *) # shellcheck disable=SC2086
        [ -n "$(find $tree -name "$2" -type f | head -n 1)" ] ;;
    esac
}

# What a program writes is not a page of the tree.
written='/table.md /summary.md table.md summary.md /faults.md /mutation.md'

# ---- the looks find what they look for ----------------------------------------
probe=$build/pages_probe
rm -rf "$probe"
mkdir -p "$probe"
printf '%s\n' '# A page of its own' '[a](nothing.md) [b](#a-page-of-its-own)' \
    '[c](#nothing) `src/nothing.c`' > "$probe/page.md"
printf '%s\n' '/* see nothing_at_all.md section 2 */' > "$probe/source.c"
what="the probe's three links are seen"
check [ "$(links "$probe/page.md" | grep -c .)" -eq 3 ]
what="a link to nothing is seen"
if link_ok "$probe/page.md" nothing.md; then fail "$what"; else pass; fi
if link_ok "$probe/page.md" '#nothing'; then fail "$what"; else pass; fi
what="a good anchor is accepted"
check link_ok "$probe/page.md" '#a-page-of-its-own'
what="a path to nothing is seen"
if path_ok "$(paths "$probe/page.md")"; then fail "$what"; else pass; fi
what="a cited page that is not there is seen"
if cited_ok "$probe/source.c" "$(cited "$probe/source.c")"
then fail "$what"; else pass; fi

# ---- the tree ------------------------------------------------------------------
for page in $(pages); do
    for target in $(links "$page"); do
        what="$page: the link $target leads nowhere"
        check link_ok "$page" "$target"
    done
    for path in $(paths "$page"); do
        what="$page: $path does not exist"
        check path_ok "$path"
    done
done
for source in $(sources) $(pages); do
    for name in $(cited "$source"); do
        case " $written " in *" $name "*) continue ;; esac
        case $source:$name in tests/pages/* | *:share/*) continue ;; esac
        what="$source cites $name, which is not in the tree"
        check cited_ok "$source" "$name"
    done
done
what="README.md has more than 200 lines"
check [ "$(wc -l < README.md)" -le 200 ]

# ---- copied --------------------------------------------------------------------
mkdir -p "$probe"
cp src/golden/math.c src/golden/golden.h "$probe/"
printf '%s\n' '#include "golden.h"' \
    'int main(void) { printf("%a\n", golden_expf(-1)); return 0; }' \
    > "$probe/main.c"
what="the copy of math.c does not compile alone"
check ${CC:-cc} -std=c11 -o "$probe/main" "$probe/main.c" "$probe/math.c" -lm
want=$(sed -n 's/^| exp(-1) | `\(0x[^`]*\)` |$/\1/p' src/ops/README.md)
what="the copy of math.c does not give the page's exp(-1), $want"
check [ -n "$want" ] && check [ "$("$probe/main")" = "$want" ]

# ---- the plug-in of README.md --------------------------------------------------
# A double build has another silu to write.
case $("$build/tether" --version) in
*"compute type double"* | *"compute type f64"*) ;;
*)
    sed -n '/^#include <math.h>/,/^```/p' README.md | grep -v '^```' \
        > "$probe/mine.c"
    what="mine.c of README.md does not compile"
    check ${CC:-cc} -shared -fPIC -Iinclude "$probe/mine.c" -o "$probe/mine.so"
    want=$(sed -n '/^FAIL: first wrong/,/^```/p' README.md | grep -v '^```' \
        | tr '\n' ' ' | sed 's/ *$//')
    got=$("$build/tether" validate --backend "$probe/mine.so" 2>/dev/null \
        | head -n 1)
    what="README.md shows \"$want\", validate says \"$got\""
    check [ -n "$want" ] && check [ "$got" = "$want" ] ;;
esac
rm -rf "$probe"

finish && [ "$passed" -gt 0 ]
