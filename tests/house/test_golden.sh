#!/bin/sh
# test_golden.sh: src/golden stays short, and needs nothing else.
#
# SPDX-License-Identifier: Apache-2.0
#
#   lines     3,000 together, 450 of a file; 100 columns
#   includes  golden.h and headers of C11; no other file of the repository
#   never     threads, atomics, intrinsics, assembler, attributes, environment
#   compiler  one line without -D and -I, from another folder
# A copy with one fault of each kind shows that they are found.
build=$1
this=house/golden
. tests/script.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/house_golden.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

complaints() {   # folder
    n=$(cat "$1"/*.[ch] | wc -l)
    [ "$n" -le 3000 ] || echo "$n lines, more than 3000"
    awk 'length($0) > 100 { print FILENAME ":" FNR ": more than 100 columns" }' \
        "$1"/*.[ch]
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
shown 'more than 3000' noise.c "$(yes ';' | head -n 400)"
shown 'more than 100 columns' noise.c "/* $(printf %100s .) */"
finish
