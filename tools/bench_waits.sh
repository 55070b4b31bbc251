#!/bin/sh
# bench_waits.sh: how long threads wait for each other at the ends of loops.
#
#   sh tools/bench_waits.sh BUILD COMMAND [OPTION...]
#
# SPDX-License-Identifier: Apache-2.0
#
# Runs BUILD/tether with the rest of the line and prints every parallel region
# by its function: calls, wall seconds, and the seconds that threads which were
# done waited for the last one. Needs GNU's OpenMP, a compiler and nm; one
# process is looked at, so no `mpirun`.
#
#   sh tools/bench_waits.sh build/gcc-O2 generate -p "a red circle" -o out.y4m

case ${1:---help} in
--help) sed -n '3,/^$/s/^# \{0,1\}//p' "$0" | sed '/SPDX/,$d'; exit 0 ;;
esac
build=$1
shift
[ -x "$build/tether" ] || {
    echo "bench_waits.sh: no program $build/tether" >&2
    exit 2
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
${CC:-cc} -O2 -shared -fPIC -fopenmp -o "$work/waits.so" \
    "${0%/*}/bench/waits.c" -ldl || exit 1

# as the program sets them for itself: it would start anew, and lose the file
OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=4000 WAITS=$work/waits \
    LD_PRELOAD=$work/waits.so "$build/tether" "$@" || exit 1
[ -s "$work/waits" ] || {
    echo "bench_waits.sh: no parallel region of GNU's OpenMP was seen" >&2
    exit 1
}
nm "$build/tether" | awk '{ print $1, $3 }' | sort > "$work/names"
sort "$work/waits" | join -a 1 - "$work/names" | awk '
    $1 != last { print $5 == "" ? $1 : $5, $2, $3, $4 }
    { last = $1 }' | sort -k 4,4nr |
    awk 'BEGIN { printf "%-40s %9s %10s %10s\n", "region", "calls", "seconds",
                        "waited" }
         { printf "%-40s %9d %10.3f %10.3f\n", $1, $2, $3, $4
           s += $3; w += $4 }
         END { printf "%-40s %9s %10.3f %10.3f\n", "all", "", s, w }'
