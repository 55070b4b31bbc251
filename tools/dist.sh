#!/bin/sh
# dist.sh: static programs by each cross compiler that is installed.
#
#   sh tools/dist.sh MAKE "ZIG cc -target"
#
# SPDX-License-Identifier: Apache-2.0
set -eu
make=$1
zig=$2

static() {   # name compiler [OMP=no]
    # shellcheck disable=SC2086
    if $2 -dumpmachine >/dev/null 2>&1; then
        $make CC="$2" ${3:-} CFLAGS=-g0 LDLIBS="-s -static" NAME="$1" program-stage
    else
        echo "  $1 is left out: $2 is not installed"
    fi
}

case $(uname -m) in
aarch64 | arm64) ;;
*) static linux-aarch64 aarch64-linux-gnu-gcc ;;
esac
# the libgomp that musl-gcc finds is glibc's
static linux-x86_64-musl musl-gcc OMP=no
static windows-x86_64 x86_64-w64-mingw32-gcc-posix
static linux-aarch64-musl "$zig aarch64-linux-musl"
