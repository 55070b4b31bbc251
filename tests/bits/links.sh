#!/bin/sh
# links.sh: compile and link for systems that are not here.
#
#   sh tests/bits/links.sh MAKE "ZIG cc -target" TARGET...
#
# SPDX-License-Identifier: Apache-2.0
#
# A warning fails as well. `make check-links` calls it.
make=$1
zig=$2
shift 2
this=links
. tests/script.sh
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tether-links-XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' HUP INT TERM
for target; do
    # shellcheck disable=SC2086
    if ! $zig $target -dumpmachine > /dev/null 2>&1; then
        skip "$target: $zig does not work: pip install ziglang"
        continue
    fi
    check "$target links" $make CC="$zig $target" AR="${zig% cc*} ar" OPT=-O1 \
        CFLAGS=-g0 tether-program shared
    is "warnings for $target" "$(grep -c warning: "$tmp/log")" 0
done
total
