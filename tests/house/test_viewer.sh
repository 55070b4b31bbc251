#!/bin/sh
# test_viewer.sh: tools/viewer stays small and alone, and what it names is there.
#
# SPDX-License-Identifier: Apache-2.0
#
#   lines    2,500 together with tools/web; 110 columns
#   names    each function that a source() line names is in that file of
#            src/golden
#   places   by_slot or by_time of golden, as run.js says of each policy
#   never    markup from text and code from text, here and in tools/web:
#            innerHTML, eval, document.write; here also fetch(, import, http
#   bytes    the build has the files as they are, in the order of their names
# A copy with one fault of each kind shows that they are found.
build=$1
this=house/viewer
. tests/script.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/house_viewer.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# "FUNCTION FILE" for every name of a source(...) line, which may be broken.
names() {   # folder
    cat "$1"/*.js | tr -s ' \n' '  ' |
        grep -oE "\[('[a-z_]*'(, )?)+\], '[a-z_]*\.c'" | tr -d "[]'," |
        awk '{ for (i = 1; i < NF; i++) print $i, $NF }'
}

positions() {   # folder: POLICY slot|frame of the table of run.js
    sed -n '/^const POSITIONS/,/};/p' "$1/run.js" | tr -d " '" | tr '{,}' '\n' |
        grep : | tr : ' ' | sort | xargs
}
positions_of_golden() {   # three others move the times of what they hold
    cat src/golden/*.c | tr '\n' ' ' | tr ';' '\n' |
        sed -nE '/\.positions = by_slot/s/.*\.name = "([^"]*)".*/\1 slot/p
            /\.positions/!s/.*\.name = "([^"]*)".*/\1 frame/p' |
        grep -v '^deep-\|^rolling-sink' | sort | xargs
}

complaints() {   # folder
    n=$(cat "$1"/* tools/web/* | wc -l)
    [ "$n" -le 2500 ] || echo "$n lines, more than 2500"
    awk 'length($0) > 110 { print FILENAME ":" FNR ": more than 110 columns" }' \
        "$1"/* tools/web/*
    names "$1" | while read -r name file; do
        grep -qE "(^|[ *])$name\(" "src/golden/$file" 2> /dev/null \
            || echo "src/golden/$file has no function $name"
    done
    [ "$(positions "$1")" = "$(positions_of_golden)" ] \
        || echo "positions: $(positions "$1"), in golden $(positions_of_golden)"
    grep -HnE 'innerHTML|outerHTML|insertAdjacent|eval\(|document\.write|XMLHttp|'\
'new Function' "$1"/*.js tools/web/*.js "$1"/*.html tools/web/*.html 2> /dev/null \
        | sed 's/^/never: /'
    grep -HnE 'fetch\(|import[ (]' "$1"/*.js | sed 's/^/never: /'
    grep -Hn 'http:\|https:\|url(http' "$1"/* | grep -v 'www.w3.org/2000/svg' \
        | sed 's/^/never: /'
}

complaints tools/viewer > "$work/said"
if [ -s "$work/said" ]; then fail "$(cat "$work/said")"; else pass; fi
is "names are found" "$(names tools/viewer | grep -c .)" 25

plant() {   # what is said, file, line
    rm -rf "$work/copy"
    cp -r tools/viewer "$work/copy"
    chmod -R u+w "$work/copy"     # the source may be read-only
    printf '%s\n' "$3" >> "$work/copy/$2"
    complaints "$work/copy" > "$work/said"
    if grep -q "$1" "$work/said"; then pass; else fail "$1: not found"; fi
}
plant 'never: .*innerHTML' dom.js 'x.innerHTML = text'
plant 'positions' run.js "const POSITIONS = {tether: 'frame'};"
plant 'never: .*fetch' film.js 'fetch("data")'
plant 'no function grab_nothing' run.js \
    "source('', ['grab_score', 'grab_nothing'], 'tethercache.c');"
plant 'more than 110 columns' runs.js "// $(printf '%120s' x)"
plant 'more than 2500' viewer.css "$(yes '/**/' | head -n 2500)"

# The bytes of the build, from the numbers of its array.
awk '/viewer_script/ { on = 1; next } /^}/ { on = 0 } on' \
    "$build/gen/viewer.h" | tr ',' '\n' | grep -c . > "$work/bytes"
is "bytes of the scripts" "$(cat "$work/bytes")" \
    "$(cat tools/viewer/*.js | wc -c | tr -d ' ')"
finish
