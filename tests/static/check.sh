#!/bin/sh
# check.sh: what three analyzers say of src and tools.
#
#   sh tests/static/check.sh [gcc] [clang-tidy] [cppcheck]    default: all three
#
# SPDX-License-Identifier: Apache-2.0
#
# gcc's -fanalyzer, clang-tidy (its checks: tidy.yaml), cppcheck. Each file is
# analyzed with the flags that make gives it; facts.h tells gcc and clang what
# they cannot see. A finding is a failure unless exceptions.txt has it with its
# reason; an exception that nothing needs is named. That a tool finds the
# mistake of probe.c is seen first. All that was said is in build/static. The
# exceptions are those of gcc 12, clang-tidy 14 and cppcheck 2.10: other
# versions find other things.
#
# FILES="io/ cli/": files with such a word in their paths. JOBS (default: the
# cores) files at once.
facts='-include tests/static/facts.h'

# --one TOOL FILE FLAGS...: what gcc or clang-tidy says of one file.
if [ "${1:-}" = --one ]; then
    tool=$2
    file=$3
    shift 3
    [ "$file" = src/core/context.c ] && facts=      # that is where tt_fail is
    case $tool in
    gcc) # shellcheck disable=SC2086
        gcc "$@" $facts -fanalyzer -c -o /dev/null "$file" 2>&1 ;;
    clang-tidy) # shellcheck disable=SC2086
        clang-tidy --quiet --config-file=tests/static/tidy.yaml "$file" -- \
            "$@" $facts 2>&1 | sed "s|^$PWD/||" ;;
    esac
    exit 0
fi

chosen() {   # path
    [ -z "${FILES:-}" ] && return
    for word in $FILES; do
        case $1 in *"$word"*) return 0 ;; esac
    done
    return 1
}

# "FILE FLAGS..." a line, for the files that are chosen.
files() {   # compiler
    folder=$(make -s CC="$1" OPT=-O1 build-folder)
    make -s CC="$1" OPT=-O1 "$folder/gen/cache_policies.h" \
        "$folder/gen/viewer.h"
    make -n -B V=1 CC="$1" OPT=-O1 all 2>/dev/null | sed -nE \
        "s/^$1 (.*) -MMD -MP -c -o [^ ]* ((src|tools)[^ ]*)\$/\2 \1/p" |
        while read -r file flags; do
            chosen "$file" && printf '%s %s\n' "$file" "$flags"
        done
}

# All that it says of the files of build/static/TOOL.files.
look() {   # tool
    case $1 in
    cppcheck) # shellcheck disable=SC2046
        cppcheck -q -j "$jobs" --std=c11 --library=posix --library=gnu \
            --enable=warning,performance,portability -D_GNU_SOURCE \
            -D__GNUC__ -Iinclude -Isrc \
            '--template={file}:{line}:{column}: {severity}: {message} [{id}]' \
            $(cut -d' ' -f1 "build/static/$1.files") 2>&1 ;;
    *) xargs -P "$jobs" -L 1 sh "$0" --one "$1" < "build/static/$1.files" ;;
    esac
}

# What is no exception; of all files, the exceptions that nothing needs too.
judge() {   # tool
    awk -v tool="$1" -v all="${FILES:+no}" '
        FILENAME != "-" {
            if ($1 == tool) {
                file[++n] = $2
                check[n] = $3
                sub(/:$/, "", check[n])
            }
            next
        }
        /^src\/third_party\// { next }      # kept as its authors wrote it
        /^[^ :]+:[0-9]+:[0-9]+: (fatal )?(warning|error|performance|portability|style)/ {
            path = $0
            sub(/:.*/, "", path)
            name = $NF ~ /^\[.*\]$/ ? substr($NF, 2, length($NF) - 2) : "none"
            sub(/^-W/, "", name)
            excepted = 0
            for (i = 1; i <= n; i++)
                if (check[i] == name && (file[i] == "*" || file[i] == path))
                    excepted = used[i] = 1
            if (!excepted && !seen[$0]++) print
        }
        END {
            for (i = 1; i <= n; i++)
                if (all == "" && !used[i])
                    print "note: nothing needs the exception " tool " " \
                          file[i] " " check[i] > "/dev/stderr"
        }' tests/static/exceptions.txt -
}

unset MAKEFLAGS MAKELEVEL
export LC_ALL=C
probe=tests/static/probe.c
tools=${*:-gcc clang-tidy cppcheck}
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
passed=0
failed=0
skipped=0
mkdir -p build/static
for tool in $tools; do
    if ! command -v "$tool" > /dev/null 2>&1; then
        skipped=$((skipped + 1))
        echo "SKIP check-static: $tool is not installed"
        continue
    fi
    echo "$probe -Iinclude" > "build/static/$tool.files"
    if ! look "$tool" | judge "$tool" 2> /dev/null | grep -q "^$probe:"; then
        failed=$((failed + 1))
        echo "FAIL check-static: $tool does not find the mistake in $probe"
        continue
    fi
    compiler=gcc
    [ "$tool" = clang-tidy ] && compiler=clang
    files $compiler > "build/static/$tool.files"
    look "$tool" > "build/static/$tool.log"
    judge "$tool" < "build/static/$tool.log" > "build/static/$tool.found"
    n=$(grep -c . "build/static/$tool.files")
    if [ -s "build/static/$tool.found" ] || [ "$n" -eq 0 ]; then
        failed=$((failed + 1))
        cat "build/static/$tool.found"
        echo "FAIL check-static: $tool: $(grep -c . \
            "build/static/$tool.found") findings in $n files"
    else
        passed=$((passed + 1))
        echo "$tool: clean, $n files"
    fi
done
echo "$passed passed, $failed failed$([ $skipped -gt 0 ] &&
    echo ", $skipped skipped")"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
