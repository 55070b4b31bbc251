#!/bin/sh
# sass.sh: what nvcc makes of the kernels, for every GPU of the Makefile.
#
#   sh tests/cuda/sass.sh NVCC "80 86 89 90 100 120" "NVCC FLAGS"
#
# SPDX-License-Identifier: Apache-2.0
#
# Nothing runs on a GPU. For every compute capability: each kernel compiles, has
# no spilled register and no stack, and its shared memory is there on that GPU;
# where cuobjdump is, the share of multiply-adds in the inner loop of the three
# kernels of products is at least what it was. The programs that measure compile
# too, as tools/gpu/measure.sh compiles them. The last line counts.
nvcc=$1
this=cuda/sass
. tests/script.sh

if [ -z "$nvcc" ]; then
    skip "nvcc is not installed"
    total
    exit
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/sass.XXXXXX") || exit 1
tmp=$work                   # of check
trap 'rm -rf "$work"' EXIT
dump=${CUOBJDUMP:-$(dirname "$nvcc")/cuobjdump}
command -v "$dump" > /dev/null 2>&1 || dump=cuobjdump
command -v "$dump" > /dev/null 2>&1 || dump=
# cuobjdump asks nvdisasm, next to it or of PATH
if [ -z "$dump" ]; then
    skip "cuobjdump is not installed: shares of multiply-adds"
elif ! command -v "$(dirname "$(command -v "$dump")")/nvdisasm" > /dev/null 2>&1 &&
    ! command -v nvdisasm > /dev/null 2>&1; then
    skip "nvdisasm, which cuobjdump needs, is not installed: shares of" \
        "multiply-adds"
    dump=
fi

# bytes of shared memory that an expression of args.h says
bytes() {
    printf '#include "ops/cuda/args.h"\nvalue=(%s)\n' "$1" |
        ${CC:-cc} -E -P -Iinclude -Isrc -x c - | sed -n 's/^value=//p' |
        { read -r value; eval "echo \$(($value))"; }
}
tile=$(bytes TILE_SHARED)
mma=$(bytes MMA_SHARED)
mma_attention=$(bytes MMA_ATTENTION_SHARED)
wgmma=$(bytes "WGMMA_SHARED(WGMMA_GELU_COLS)")
wgmma_attention=$(bytes WGMMA_ATTENTION_SHARED)
wgmma_conv=$(bytes "WGMMA_CONV_SHARED(192)")

room() {   # capability: bytes that a block may have (CUDA's programming guide)
    case $1 in
    80 | 87) echo 166912 ;;
    90 | 100 | 103) echo 232448 ;;
    *) echo 101376 ;;
    esac
}

least() {   # kernel, capability: least share of multiply-adds in its inner loop
    case $1 in
    linear_vec) echo 0.84 ;;
    conv_vec) echo 0.70 ;;
    attention_64) echo 0.86 ;;
    mma_linear) echo 0.17 ;;
    mma_conv) echo 0.155 ;;
    mma_attention_128)          # ptxas copies fragments on sm_120
        [ "$2" -ne 120 ] && echo 0.58 || echo 0.43 ;;
    *) echo 0 ;;
    esac
}

# All of them, as many at a time as there are cores: $work/sm_80/linear.cubin
# and what was said; without a cubin it did not compile.
for arch in $2; do
    mkdir "$work/sm_$arch"
    for source in src/ops/cuda/*.cu; do
        code=sm_$arch
        case $source in
        */wgmma_*) [ "$arch" -ne 90 ] || code=sm_90a ;;
        esac
        echo "$code '$source' '$work/sm_$arch/$(basename "$source" .cu)'"
    done
done > "$work/all"
# shellcheck disable=SC2016
xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 sh -c '"$1" $2 -arch="$3" \
    -Xptxas -v -cubin -o "$5.cubin" "$4" > "$5.log" 2>&1' nvcc "$nvcc" "$3" \
    < "$work/all"

"$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/nvcc \1/p'
for arch in $2; do
    for size in "$tile" "$mma" "$mma_attention"; do
        [ "$size" -le "$(room "$arch")" ] && pass ||
            fail "sm_$arch: a block of $size bytes has no room"
    done
    for size in "$wgmma" "$wgmma_attention" "$wgmma_conv"; do
        [ "$arch" -ne 90 ] || [ "$size" -le "$(room 90)" ] ||
            fail "sm_90: blocks of $size bytes have no room"
    done
    for q in 64 32 16; do
        [ "$(bytes "ATTENTION_SHARED($q)")" -le "$(room "$arch")" ] && break
    done
    [ "$(bytes "ATTENTION_SHARED($q)")" -le "$(room "$arch")" ] && pass ||
        fail "sm_$arch: attention has no room"
    echo "sm_$arch: heads of 128 by attention_$q"
    seen=
    for source in src/ops/cuda/*.cu; do
        out=$work/sm_$arch/$(basename "$source" .cu)
        if [ ! -f "$out.cubin" ]; then
            fail "sm_$arch: $source does not compile: $(head -n 1 "$out.log")"
            continue
        fi
        # C7xxx: what ptxas makes of wgmma when it may not overlap
        ! grep -q 'warning\|(C7' "$out.log" ||
            fail "sm_$arch: $source: $(grep -m 1 'warning\|(C7' "$out.log")"
        : > "$out.loops"
        [ -z "$dump" ] || "$dump" -sass "$out.cubin" |
            awk -f tests/cuda/sass.awk > "$out.loops"
        awk -v arch="$arch" '
            FILENAME == ARGV[1] { loop[$1] = $4; next }
            /Compiling entry function/ { name = $7; gsub("\047", "", name) }
            /bytes stack frame/ { stack = $1; spilled = $5 + $9 }
            /Used [0-9]+ registers/ {
                match($0, /Used [0-9]+/)
                used = substr($0, RSTART + 5, RLENGTH - 5)
                print name, used, stack + spilled, loop[name] + 0
            }' "$out.loops" "$out.log" > "$out.table"
        while read -r name used spilled share; do
            seen="$seen $name"
            if [ "$spilled" -ne 0 ] || [ "$used" -gt 255 ]; then
                fail "sm_$arch: $name has $used registers and $spilled bytes" \
                    "of stack and spills"
            else
                pass
            fi
            [ "$share" = 0 ] || echo "sm_$arch: $name: $used registers," \
                "$share of the inner loop are multiply-adds"
            [ -z "$dump" ] || awk -v a="$share" -v b="$(least "$name" "$arch")" \
                'BEGIN { exit a < b }' ||
                fail "sm_$arch: $name: $share of the inner loop are" \
                    "multiply-adds, less than $(least "$name" "$arch")"
        done < "$out.table"
        [ -s "$out.table" ] || fail "sm_$arch: $source has no kernel"
    done
    for name in linear_vec conv_vec attention_64 mma_linear mma_conv \
        mma_attention_128 blocks wgmma_linear wgmma_linear_gelu \
        wgmma_attention wgmma_conv_96 \
        wgmma_conv_192; do
        case " $seen " in
        *" $name "*) pass ;;
        *) fail "sm_$arch: there is no kernel $name" ;;
        esac
    done
    for source in tools/gpu/*.cu; do
        [ "$arch" -ne 90 ] && code=sm_$arch || code=sm_90a
        # shellcheck disable=SC2086
        check "sm_$arch: $source" "$nvcc" -O2 $3 -arch="$code" -c \
            -o "$work/measure.o" "$source"
        ! grep -q warning "$tmp/log" ||
            fail "sm_$arch: $source: $(grep -m 1 warning "$tmp/log")"
    done
done
total
