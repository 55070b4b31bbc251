#!/bin/sh
# coverage.sh: how much of src the tests run, and the ten files with the least.
#
#   sh tests/coverage.sh [ROW...]    default: every row, from zero
#
# SPDX-License-Identifier: Apache-2.0
#
# tests   every test, or those of ONLY="io/ text/"
# levels  bits of the operators on every instruction set of this CPU
# faults  the commands, one call for memory or a file of every path failing
# cuda    make check-cuda: what of the backend runs on the host
# ranks   make check-ranks, where an MPI is installed
# report  nothing more: what earlier rows have counted
#
# Rows that are named add to what earlier ones have counted. The build has no
# OpenMP and does not count atomically: threads of a team may lose counts.
#
# Counted are lines and branches of src, headers too, as gcov sees them. Not
# counted: third_party, CUDA kernels, which a C++ compiler runs, and what no row
# compiles. What several files include is counted once. A branch counts when it
# was taken, those of macros too (TT_TRY: both the success and the failure).
# Fails when a row does, and under LINES_MIN (default 92) and BRANCHES_MIN (80)
# percent.
export LIMIT="${LIMIT:-7200}"     # seconds of a test (tests/run.sh)
flags='--coverage -fprofile-update=single -include tests/coverage.h'

counting() {   # arguments of make
    make --no-print-directory CC=gcc OPT=-O1 OMP=no CFLAGS="$flags" "$@"
}

# What TT_CPU may be here, as the program says it.
levels() {
    TT_CPU=none "$build/tether" inspect none 2>&1 |
        sed -n 's/.* here it can be \(.*\), or unset.*/\1/p' | tr -d ,
}

# Folders of objects: without MPI, and with one.
folders() {
    find "$build" "$build"-mpicc* -name src -type d -prune 2>/dev/null
}

report() {
    folders | while read -r folder; do find "$folder" -name '*.gcno'; done |
        sort | while read -r data; do
        gcov -t -b -c "$data" 2>/dev/null
    done | LC_ALL=C awk -v want="${LINES_MIN:-92}" \
        -v also="${BRANCHES_MIN:-80}" '
    # "     12*:   34:text", of a line with code; "branch  0 taken 5"
    /^ *[^ :]+: *[0-9]+:/ {
        count = $0
        sub(/:.*/, "", count)
        gsub(/[ *]/, "", count)
        line = $0
        sub(/^[^:]*: */, "", line)
        text = line
        sub(/:.*/, "", line)
        if (line == 0) {
            sub(/^0:/, "", text)
            if (sub(/^Source:/, "", text)) {
                name = text
                counts = name ~ /^src\/.*\.[ch]$/ && name !~ /third_party/
            }
            next
        }
        at = name SUBSEP line
        if (!counts || count == "-") next
        if (!(at in ran)) lines[name]++
        if (!ran[at]) {
            ran[at] = count ~ /^[1-9]/
            done[name] += ran[at]
        }
        next
    }
    /^branch/ && counts {
        key = at SUBSEP $2
        if (!(key in taken)) {
            branches++
            ways[name]++
        }
        if (!taken[key]) {
            taken[key] = $3 == "taken" && $4 > 0
            followed += taken[key]
            gone[name] += taken[key]
        }
    }
    END {
        for (name in lines) {
            all += lines[name]
            executed += done[name]
        }
        if (!all) {
            print "no data: make coverage builds and runs the tests"
            exit 1
        }
        for (i = 0; i < 10; i++) {
            worst = ""
            for (name in lines)
                if (lines[name] >= 10 && !(name in shown) \
                    && (worst == "" || done[name] / lines[name] \
                                       < done[worst] / lines[worst]))
                    worst = name
            if (worst == "") break
            shown[worst] = 1
            printf "%6.1f %% of %4d lines, %5.1f %% of %4d branches  %s\n", \
                100 * done[worst] / lines[worst], lines[worst], \
                100 * gone[worst] / (ways[worst] + !ways[worst]), \
                ways[worst], worst
        }
        l = 100 * executed / all
        b = 100 * followed / branches
        printf "lines %.1f %% of %d, branches %.1f %% of %d\n", \
            l, all, b, branches
        if (l < want) print "FAIL coverage: lines under " want " %"
        if (b < also) print "FAIL coverage: branches under " also " %"
        exit l < want || b < also
    }'
}

row() {   # name
    case $1 in
    tests)
        if [ -n "${ONLY:-}" ]; then counting ONLY="$ONLY" test-some
        else counting test; fi ;;
    levels)
        for level in $(levels); do
            echo "TT_CPU=$level"
            TT_CPU=$level "$build/check_bits" --small \
                --demo "$build/demo-random" || return
        done ;;
    faults)
        FAULTS=paths "$build/tests/faults/test_faults" ;;
    cuda)
        counting check-cuda ;;
    ranks)
        counting check-ranks ;;
    report) ;;
    *)
        echo "coverage.sh: no row is called $1"
        return 1 ;;
    esac
}

unset MAKEFLAGS MAKELEVEL
build=$(counting -s build-folder)
mkdir -p build
bad=0
if [ $# -eq 0 ]; then
    find build -path "$build*" -name '*.gcda' -exec rm -f {} + 2>/dev/null
    set -- tests levels faults cuda ranks
fi
[ "$1" = report ] || counting tests bits-programs > build/coverage.log 2>&1 || {
    tail -n 20 build/coverage.log
    exit 1
}
for name; do
    row "$name" || bad=1
done
[ -z "${ONLY:-}" ] || LINES_MIN=0 BRANCHES_MIN=0
report || bad=1
exit $bad
