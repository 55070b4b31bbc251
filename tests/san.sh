#!/bin/sh
# san.sh: the tests under the sanitizers, and a sample under valgrind.
#
#   sh tests/san.sh [WORD...]        rows whose names hold every WORD
#
# SPDX-License-Identifier: Apache-2.0
#
# A row is clean when its tests pass and nothing complains: the programs end at
# the first complaint. ONLY="io/ text/" takes these tests. Else the rows of
# addresses and undefined behaviour take every test, those of threads the tests
# that have threads. Logs are in build/san; the last line counts the rows.
#
# Exceptions: what clang's OpenMP keeps of its threads is no leak. gcc's OpenMP
# does not say to the thread sanitizer what waits for what, so gcc's row has the
# threads of a team alone. clang's says it (libarcher, which comes with it) when
# its own code is left out.
words=$*
export LIMIT="${LIMIT:-7200}"     # seconds of a test (tests/run.sh)
passed=0
failed=0
skipped=0
mkdir -p build/san
unset MAKEFLAGS MAKELEVEL
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)

count() {   # row's name, its log, exit status
    if [ "$3" -eq 0 ]; then
        passed=$((passed + 1))
        echo "$1: clean ($(tail -n 1 "$2"))"
    else
        failed=$((failed + 1))
        grep -hE '^FAIL|ERROR: |WARNING: Thread|runtime error|^SUMMARY' "$2"
        echo "FAIL check-san: $1: $(tail -n 1 "$2"); all of it is in $2"
    fi
}

# Is this row chosen, and can it run?
row() {   # name, program that it needs
    name=$1
    for word in $words; do
        case $name in *"$word"*) ;; *) return 1 ;; esac
    done
    command -v "$2" > /dev/null 2>&1 && return
    skipped=$((skipped + 1))
    echo "SKIP check-san: $name: $2 is not installed"
    return 1
}

tests() {   # tests of the row, or "all"; arguments of make
    only=${ONLY:-$1}
    shift
    log=build/san/$(echo "$name" | tr ' ' '-').log
    if [ "$only" = all ]; then
        make --no-print-directory -j"$jobs" OPT=-O1 "$@" test
    else
        make --no-print-directory -j"$jobs" OPT=-O1 "$@" ONLY="$only" test-some
    fi > "$log" 2>&1
    count "$name" "$log" $?
}

# Commands on the small model, under valgrind, which knows no AVX-512: no
# error, and no block that nothing points to any more.
sample() {
    make --no-print-directory -j"$jobs" all || return
    program=$(make -s build-folder)/tether
    run="env TT_CPU=avx2 OMP_NUM_THREADS=1 valgrind -q --error-exitcode=9
        --leak-check=full --errors-for-leak-kinds=definite $program"
    $run generate -q -m ref_data/demo -p red -W 32 -H 32 --latents 3 \
        -o "$work/v.y4m" --trace-cache "$work/t.safetensors" &&
    $run decode -q -m ref_data/demo \
        --latents "$work/v.latents.safetensors" -o "$work/p/%05d.png" &&
    $run encode -q -m ref_data/demo -i "$work/v.y4m" \
        -o "$work/l.safetensors" &&
    $run convert -q ref_data/dit/models/tiny_a -o "$work/c.safetensors" &&
    $run diff "$work/t.safetensors" "$work/t.safetensors"
}

# clang's OpenMP never frees what it keeps of its threads. The list is not in the
# source, which the test of the installation hides from its programs.
work=$(mktemp -d "${TMPDIR:-/tmp}/san.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
echo 'leak:libomp.so' > "$work/known.txt"
export LSAN_OPTIONS="suppressions=$work/known.txt:print_suppressions=0"
threads='team/team rollout/ranks dit/parts core/core core/threads'
row "gcc address undefined" gcc &&
    tests all CC=gcc OMP=no SAN=address,undefined
row "clang address undefined" clang &&
    tests all CC=clang SAN=address,undefined
row "gcc thread" gcc &&
    tests 'team/team rollout/ranks dit/parts' CC=gcc OMP=no SAN=thread
export TSAN_OPTIONS='ignore_noninstrumented_modules=1 halt_on_error=1'
row "clang thread" clang &&
    tests "$threads" CC=clang SAN=thread
if row "valgrind" valgrind; then
    sample > build/san/valgrind.log 2>&1
    rc=$?
    [ $rc -eq 0 ] && echo "5 commands" >> build/san/valgrind.log
    count "valgrind" build/san/valgrind.log $rc
fi

echo "$passed passed, $failed failed$([ $skipped -gt 0 ] &&
    echo ", $skipped skipped")"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
