#!/bin/sh
# coverage.sh: how much of src the tests run, and the ten files with the least.
#
#   sh tests/coverage.sh BUILD       a build with --coverage whose tests have run
#
# SPDX-License-Identifier: Apache-2.0
#
# Lines and branches of src, headers too, without third_party, as gcov counts
# them; what several files include is counted once. A branch counts when it was
# taken. What no build without CUDA, MPI or another CPU compiles is not there.
# Fails under LINES_MIN (default 92) and BRANCHES_MIN (80) percent.
build=$1
find "$build/src" -name '*.gcno' | sort | while read -r data; do
    gcov -t -b -c "$data" 2>/dev/null
done | LC_ALL=C awk -v want="${LINES_MIN:-92}" -v also="${BRANCHES_MIN:-80}" '
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
                counts = name ~ /^src\// && name !~ /third_party/
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
        if (!(key in taken)) branches++
        if (!taken[key]) {
            taken[key] = $3 == "taken" && $4 > 0
            followed += taken[key]
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
            printf "%6.1f %% of %4d lines  %s\n", \
                100 * done[worst] / lines[worst], lines[worst], worst
        }
        l = 100 * executed / all
        b = 100 * followed / branches
        printf "lines %.1f %% of %d, branches %.1f %% of %d\n", \
            l, all, b, branches
        if (l < want) print "FAIL coverage: lines under " want " %"
        if (b < also) print "FAIL coverage: branches under " also " %"
        exit l < want || b < also
    }'
