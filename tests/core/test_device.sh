#!/bin/sh
# test_device.sh: no file of team, dit, cache, vae and text reads or writes a
# value.
#
# SPDX-License-Identifier: Apache-2.0
#
# clang compiles them with a tt_real that must not be dereferenced (tensor.h).
# Team's mpi.c, which knows bytes alone, is left out: there may be no MPI.
# A probe that does it in four ways shows that the look works. `make
# check-device` runs this alone.
build=$1
this=core/device
. tests/script.sh

clang=${CLANG:-clang}
look() {   # file: what clang says of it
    "$clang" -std=c11 -D_GNU_SOURCE -DTT_CHECK_DEVICE -Iinclude -Isrc \
        -I"$build/gen" \
        -fsyntax-only -Wno-ignored-attributes -Werror=noderef \
        -ferror-limit=0 "$@" 2>&1
}

probe() {
    cat <<'C'
#include <string.h>
#include "core/device.h"
float probe(tt_ctx *ctx, tt_real *x, const tt_real *y);
float probe(tt_ctx *ctx, tt_real *x, const tt_real *y)
{
    float read = y[1];
    x[2] = read;
    memcpy(x, &read, 4);
    tt_put(ctx, x, y, 1);
    return read;
}
C
}

if ! "$clang" --version > /dev/null 2>&1; then
    skip "there is no clang; 'make deps' names its package"
else
    if [ "$(probe | look -x c - | grep -c 'error:')" -eq 4 ]; then pass
    else fail "four accesses of the probe are not seen by $clang"; fi
    for file in src/team/[!m]*.c src/dit/*.c src/cache/*.c src/cache/*/*.c src/vae/*.c \
        src/text/*.c; do
        if said=$(look "$file"); then pass
        else fail "$file touches values: $said"; fi
    done
fi
finish
