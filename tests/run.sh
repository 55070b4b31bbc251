#!/bin/sh
# run.sh: run every test program of a build folder; the last line counts.
#
#   sh tests/run.sh BUILD [--one NAME COMMAND...]
#
# SPDX-License-Identifier: Apache-2.0
#
# Each program prints its failures and ends with "NAME: N passed, N failed". A
# program that dies without that line counts as one failure. tests/*/*.sh are
# run too, with the build folder as argument, under the same convention. As
# many run at once as there are cores, at most 8 (JOBS=n: n): most of them are
# small, and use one core most of the time.
#
# ONLY="io/ text/" runs the programs with such a word in their names and nothing
# else; RUN stands before each of them (an emulator, for cross builds).

# Threads that wait for each other sleep: on a busy machine, or where several
# programs share one, spinning threads keep the ones they wait for from running.
OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
export OMP_WAIT_POLICY

build=$1
out=$build/test.out
self=$0

# --one: run COMMAND, keep its output and its counts, print what matters.
one() {   # name command...
    name=$1
    mine=$out/$(echo "$name" | tr '/ ' '__')
    shift
    start=$(date +%s)
    "$@" > "$mine.log" 2>&1
    rc=$?
    line=$(grep -E ' [0-9]+ passed, [0-9]+ failed$' "$mine.log" | tail -n 1)
    if [ -z "$line" ]; then
        echo "0 1" > "$mine.count"
        printf 'FAIL %s: ended with status %s before its last line\n%s\n' \
            "$name" "$rc" "$(tail -n 20 "$mine.log")"
        return
    fi
    p=$(echo "$line" | sed 's/.* \([0-9]*\) passed.*/\1/')
    f=$(echo "$line" | sed 's/.* \([0-9]*\) failed$/\1/')
    said=$(grep -v ' passed, ' "$mine.log")
    if [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
        said="$said
FAIL $name: ended with status $rc after its last line"
        f=1
    fi
    echo "$p $f" > "$mine.count"
    printf '%s%s (%s s)\n' "${said:+$said
}" "$line" $(($(date +%s) - start))
}

if [ "${2:-}" = --one ]; then
    shift 2
    one "$@"
    exit 0
fi

chosen() {   # path
    [ -z "${ONLY:-}" ] && return
    for word in $ONLY; do
        case $1 in *"$word"*) return 0 ;; esac
    done
    return 1
}

# One line a program: its name and the command, words without blanks.
programs() {
    for src in tests/*/test_*.c; do
        chosen "${src%/*}/${src##*/test_}" && echo "${src%.c} ${RUN:-} $build/${src%.c}"
    done
    [ -z "${ONLY:-}" ] || return
    # the bits of this build; a double build has no stored ones
    version=$("$build/tether" --version)
    case $version in
    *"compute type double"* | *"compute type f64"*) ;;
    *) echo "bits $build/check_bits --demo $build/demo-random" ;;
    esac
    # the reference cases on the other backends that run here
    for backend in golden blas; do
        case $version in *"$backend (default)"*) continue ;; esac
        why=$("$build/tether" noise -W 8 -H 8 --latents 1 --chunk 1 \
            --backend $backend -o "$out/noise" 2>&1) || {
            echo "note: cases not run on $backend: $why" >&2
            continue
        }
        for t in dit/test_cases rollout/test_cases; do
            echo "$backend/$t env TT_TEST_BACKEND=$backend $build/tests/$t"
        done
    done
    for t in tests/*/test_*.sh; do
        [ -f "$t" ] && echo "$t sh $t $build"
    done
}

rm -rf "$out"
mkdir -p "$out"
programs > "$out/programs"
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
[ -z "${JOBS:-}" ] && [ "$jobs" -gt 8 ] && jobs=8
# shellcheck disable=SC2016
xargs -P "$jobs" -L 1 sh "$self" "$build" --one < "$out/programs"
want=$(grep -c . "$out/programs")
set -- "$out"/*.count
if [ $# -ne "$want" ] || [ ! -f "$1" ]; then
    echo "FAIL run.sh: $# of $want programs left a count"
    failed=1
fi
cat "$out"/*.count | awk -v more="${failed:-0}" '
    { p += $1; f += $2 }
    END {
        f += more
        printf "%d passed, %d failed\n", p, f
        exit f > 0 || p == 0
    }'
