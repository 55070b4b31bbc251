#!/bin/sh
# test_golden.sh: src/golden stays short, and needs nothing else.
#
# SPDX-License-Identifier: Apache-2.0
#
#   lines     3,100 of code together, without blanks and comments; 450 of a file,
#             with them
#   includes  golden.h and headers of C11; no other file of the repository
#   never     threads, atomics, intrinsics, assembler, attributes, environment
#   compiler  one line without -D and -I, from another folder
# A copy with one fault of each kind shows that they are found.
build=$1
this=house/golden
. tests/script.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/house_golden.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

code_lines() {   # of C files: neither blank nor comment
    cat "$@" | awk '{
        line = $0
        while (1) {
            if (inside) {
                if (!(at = index(line, "*/"))) { line = ""; break }
                line = substr(line, at + 2)
                inside = 0
            }
            if (!(at = index(line, "/*"))) break
            kept = kept substr(line, 1, at - 1)
            line = substr(line, at + 2)
            inside = 1
        }
        if ((kept line) ~ /[^ ]/) n++
        kept = ""
    } END { print n + 0 }'
}

complaints() {   # folder
    n=$(code_lines "$1"/*.[ch])
    [ "$n" -le 3100 ] || echo "$n lines of code, more than 3100"
    wc -l "$1"/*.[ch] | awk '$2 != "total" && $1 > 450 {
        print $2 " has " $1 " lines, more than 450" }'
    grep -Hn '^ *# *include' "$1"/*.[ch] | grep -vE ':# *include ("golden.h"|<'\
'(float|limits|math|stdarg|stdbool|stddef|stdint|stdio|stdlib|string).h>)$' \
        | sed 's/^/include: /'
    grep -HnE '_Pragma|# *pragma|__asm|[^_]asm *\(|__attribute__|__builtin' \
        "$1"/*.[ch] | grep -v '#pragma STDC FP_CONTRACT OFF' \
        | sed 's/^/no C11: /'
    grep -HniE 'pthread|thrd_|_Atomic|getenv|immintrin|arm_neon|openmp' \
        "$1"/*.[ch] | sed 's/^/not here: /'
    (cd "$1" && ${CC:-cc} -std=c11 -O0 -Wall -Wextra -Wpedantic ./*.c -lm \
        -o "$work/program" 2>&1) | sed 's/^/compiler: /'
}

complaints src/golden > "$work/said"
if [ -s "$work/said" ]; then fail "$(cat "$work/said")"; else pass; fi
echo "$(code_lines src/golden/*.[ch]) lines of code"

mkdir "$work/copy"
shown() {   # complaint, file, a line that is wrong there
    rm -f "$work/copy/"*
    cp src/golden/*.[ch] "$work/copy"
    chmod u+w "$work/copy/"*
    printf '%s\n' "$3" >> "$work/copy/$2"
    complaints "$work/copy" > "$work/said"
    if grep -q "$1" "$work/said"; then
        pass
    else
        fail "\"$3\" in $2 is not found: $(cat "$work/said")"
    fi
}
shown 'include: ' noise.c '#include "tether/ops.h"'
shown 'include: ' noise.c '#include <pthread.h>'
shown 'no C11: ' noise.c '#pragma GCC optimize("fast-math")'
shown 'not here: ' noise.c '/* reads getenv */'
shown 'compiler: ' noise.c 'static int unused;'
shown 'more than 450' noise.c "$(yes '' | head -n 450; echo '/* end */')"
shown 'more than 3100' noise.c "$(yes ';' | head -n 1000)"
finish
