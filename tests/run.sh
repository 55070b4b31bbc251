#!/bin/sh
# run.sh: run every test program of a build folder; the last line counts.
#
#   sh tests/run.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# Each program prints its failures and ends with "NAME: N passed, N failed",
# with ", N skipped" where it said "SKIP NAME: why". A program that dies
# without that line counts as one failure. tests/*/*.sh are run too, with the
# build folder as argument, under the same convention. As many run at once as
# there are cores, at most 8 (JOBS=n: n): most of them are small, and use one
# core most of the time. What they write stands in a folder of this run, which
# they must leave empty; their output is kept in BUILD/test.out (guard.out).
#
# A program that is not at its end after LIMIT seconds (default 1200) is stopped,
# and fails by name.
#
# ONLY="io/ text/" runs the programs with such a word in their names and nothing
# else; RUN stands before each of them (an emulator, for cross builds). With
# GUARDED=FILE programs in C run on the guard device (tests/guard.sh), but for
# those whose names are the first words of lines of FILE.

build=$1
self=$0

# --one: run COMMAND, keep its output and its counts, print what matters.
one() {   # name command...
    name=$1
    mine=$OUT/$(echo "$name" | tr '/ ' '__')
    shift
    start=$(date +%s)
    # in the foreground: some tests have children that look at a terminal
    timeout --foreground 9 true 2>/dev/null &&
        set -- timeout --foreground -k 10 "${LIMIT:-1200}" "$@"
    "$@" > "$mine.log" 2>&1
    rc=$?
    line=$(grep -E ' [0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' \
        "$mine.log" | tail -n 1)
    if [ -z "$line" ]; then
        echo "0 1 0 $name" > "$mine.count"
        printf 'FAIL %s: ended with status %s before its last line\n%s\n' \
            "$name" "$rc" "$(tail -n 20 "$mine.log")"
        return
    fi
    # shellcheck disable=SC2046
    set -- $(echo "${line##*: }" | tr -cd '0-9 ')
    f=$2
    said=$(grep -vE ' passed, |^SKIP ' "$mine.log")
    if [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
        said="$said
FAIL $name: ended with status $rc after its last line"
        f=1
    fi
    echo "$1 $f ${3:-0} $name" > "$mine.count"
    printf '%s%s (%s s)\n' "${said:+$said
}" "$line" $(($(date +%s) - start))
}

if [ "${2:-}" = --one ]; then
    shift 2
    one "$@"
    exit 0
fi

chosen() {   # path
    [ -n "${GUARDED:-}" ] && grep -q "^${1%.c} " "$GUARDED" && return 1
    [ -z "${ONLY:-}" ] && return
    for word in $ONLY; do
        case $1 in *"$word"*) return 0 ;; esac
    done
    return 1
}

# One line a program: its name and the command, words as xargs reads them.
programs() {
    for src in tests/*/test_*.c; do
        name=${src#tests/}
        name=${name%%/*}/${name##*/test_}
        chosen "$name" && echo "${name%.c} ${RUN:-} '$build/${src%.c}'"
    done
    [ -n "${GUARDED:-}" ] || for t in tests/*/test_*.sh; do
        name=${t#tests/}
        name=${name%%/*}/${name##*/test_}
        [ -f "$t" ] && [ -z "${RUN:-}" ] && chosen "${name%.sh}" &&
            echo "$t sh '$t' '$build'"
    done
    [ -z "${ONLY:-}" ] || return
    # the bits of this build; a double build has no stored ones
    version=$("$build/tether" --version)
    case $version in
    *"compute type double"* | *"compute type f64"*) ;;
    *) echo "bits '$build/check_bits' ${GUARDED:+--guard }--demo" \
        "'$build/demo-random'" ;;
    esac
    [ -z "${GUARDED:-}" ] || return
    # the reference cases on the other backends that run here
    for backend in golden blas; do
        case $version in *"$backend (default)"*) continue ;; esac
        why=$("$build/tether" noise -q -W 16 -H 16 --latents 1 --chunk 1 \
            --overwrite --backend $backend -o "$TMPDIR/noise" 2>&1) || {
            echo "SKIP cases on $backend: $why" > "$OUT/$backend.log"
            echo "0 0 1 cases on $backend" > "$OUT/$backend.count"
            continue
        }
        for t in dit/test_cases rollout/test_cases; do
            echo "$backend/$t env TT_TEST_BACKEND=$backend '$build/tests/$t'"
        done
    done
    rm -f "$TMPDIR/noise"
}

# ---- the folders of this run -----------------------------------------------
work=$(mktemp -d "${TMPDIR:-/tmp}/tether.XXXXXX" 2>/dev/null) || {
    echo "FAIL run.sh: TMPDIR=${TMPDIR:-/tmp} is no folder that can be written"
    echo "0 passed, 1 failed"
    exit 1
}
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
OUT=$work/out
TMPDIR=$work/tmp
export OUT TMPDIR
mkdir "$OUT" "$TMPDIR"

programs > "$OUT/programs"
want=$(($(grep -c . "$OUT/programs") + $(find "$OUT" -name '*.count' | wc -l)))
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
[ -z "${JOBS:-}" ] && [ "$jobs" -gt 8 ] && jobs=8
# shellcheck disable=SC2016
xargs -P "$jobs" -L 1 sh "$self" "$build" --one < "$OUT/programs"

# ---- the account -----------------------------------------------------------
set -- "$OUT"/*.count
if [ $# -ne "$want" ] || [ ! -f "$1" ]; then
    echo "FAIL run.sh: $# of $want programs left a count"
    echo "0 1 0 run.sh" > "$OUT/lost.count"
fi
left=$(ls -A "$TMPDIR" | tr '\n' ' ')
if [ -n "$left" ]; then
    echo "FAIL run.sh: tests left files behind: $left"
    echo "0 1 0 run.sh" > "$OUT/left.count"
fi
kept=$build/test.out
[ -z "${GUARDED:-}" ] || kept=$build/guard.out
rm -rf "$kept"
cp -R "$OUT" "$kept"
grep -h '^SKIP ' "$OUT"/*.log
cat "$OUT"/*.count | awk '
    {
        p += $1; f += $2; s += $3
        if ($2) {
            n = $2
            sub(/^[0-9]+ [0-9]+ [0-9]+ /, "")
            printf "failed: %d of %s\n", n, $0
        }
    }
    END {
        printf "%d passed, %d failed%s\n", p, f, s ? ", " s " skipped" : ""
        exit f > 0 || p == 0
    }'
