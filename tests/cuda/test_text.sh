#!/bin/sh
# test_text.sh: what stands in the text of the CUDA kernels, and what may not.
#
# SPDX-License-Identifier: Apache-2.0
#
#   words     no atomic operation, no approximate function, no other rounding
#             than to nearest, no flush to zero; in a .cu file no instruction
#             by hand and no name of the compiler's own but barriers. Two
#             approximate instructions are allowed, in kernel.h: exp2_near, for
#             weights of attention alone (softmax.h), and reciprocal_near
#   numbers   no + - * / of floats and no conversion that might round: the text
#             compiles with numbers that have no operators (strict.h). SKIP
#             without a C++ compiler
#   program   a build without CUDA=1 does not have the word CUDA in it
# Texts made here show that each of these is found.
build=$1
this=cuda/text
. tests/script.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/text.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# ---- words -------------------------------------------------------------------
# FILE:LINE: word of everything that is forbidden, comments left out
forbidden() {
    awk -v math='^(exp|log|pow|sin|cos|tanh|sqrt|fma|rcp)[fl]?$' '
        FNR == 1 { comment = 0 }
        {
            line = $0
            gsub(/\/\*[^*]*\*\//, "", line)
            if (comment && sub(/.*\*\//, "", line)) comment = 0
            if (comment) next
            if (sub(/\/\*.*/, "", line)) comment = 1
            sub(/\/\/.*/, "", line)
            rest = line
            while (match(rest, /[A-Za-z_][A-Za-z_0-9.]*/)) {
                word = substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
                if (word ~ /^(ex2|rcp)\.approx\.ftz\.f32$/ &&
                    FILENAME == "src/ops/cuda/kernel.h" && !allowed[word]++)
                    continue
                bad = word ~ /[aA]tomic|approx|fast|_r[zud]($|_)|\.r[zmp]\./ ||
                    word ~ /\.ftz|__frcp|rsqrt|__(exp|log|sin|cos|tan|pow)/ ||
                    rest ~ /^\(/ && word ~ math ||
                    word ~ /^__(fdividef|saturatef|tanhf)$/
                if (FILENAME ~ /\.cu$/ && (word == "asm" || word ~ /^__/) &&
                    word !~ /^__sync(threads|warp)$/)
                    bad = 1
                if (bad) print FILENAME ":" FNR ": " word
            }
        }' "$@"
}

shown() {   # word that is forbidden, or nothing; a line of a kernel
    printf '%s\n' "$2" > "$work/probe.cu"
    said=$(forbidden "$work/probe.cu" | sed 's/.*: //' | tr '\n' ' ')
    if [ "$said" = "${1:+$1 }" ]; then pass; else fail "of \"$2\": $said"; fi
}
shown atomicAdd 'atomicAdd(&y[i], x);'
shown __expf 'y = __expf(x); /* __logf */'
shown rsqrtf 'y = rsqrtf(x);'
shown __fmaf_rz 'y = __fmaf_rz(x, x, x);'
shown __fmaf_rn 'y = __fmaf_rn(x, x, x);'
shown asm 'asm("nothing");'
shown expf 'y = expf(x);'
shown '' 'y = fma_rn(x, x, x); __syncthreads(); /* expf, atomic */'
printf '%s\n' 'asm("ex2.approx.ftz.f32 %0, %1;");' > "$work/probe.h"
if [ "$(forbidden "$work/probe.h" | grep -c approx)" -eq 1 ]; then
    pass
else
    fail "an approximate instruction in a header is not found"
fi

said=$(grep -lw exp2_near src/ops/cuda/*.cu src/ops/cuda/*.h | sed 's/.*\///' | tr '\n' ' ')
if [ "$said" = 'kernel.h softmax.h ' ]; then pass; else
    fail "exp2_near is for softmax.h alone, and stands in $said"
fi

set -- src/ops/cuda/*.cu src/ops/cuda/*.h
[ $# -ge 8 ] || fail "only $# files of kernels found"
said=$(forbidden "$@")
if [ -z "$said" ]; then pass; else fail "forbidden: $said"; fi
if grep -nE 'use_fast_math|-ftz=true|-prec-(div|sqrt)=false|-fmad' Makefile \
        tools/make/*.mk
then fail "make asks nvcc for other arithmetic"; else pass; fi

# ---- the program without it --------------------------------------------------
case $build in
'' | *-cuda*) ;;
*)
    if [ "$(grep -ci 'libcuda' "$build/tether")" -eq 0 ]; then
        pass
    else
        fail "$build/tether has to do with CUDA"
    fi ;;
esac

# ---- numbers -----------------------------------------------------------------
cxx=${CXX:-}
for c in g++ clang++ c++; do
    [ -n "$cxx" ] || ! command -v $c > /dev/null 2>&1 || cxx=$c
done
strict() {   # file: does it compile?
    $cxx -std=c++17 -fsyntax-only -w -Iinclude -Isrc -Itests/cuda -x c++ \
        -include tests/cuda/strict.h "$1" > "$work/said" 2>&1
}
if [ -z "$cxx" ]; then
    skip "no C++ compiler: numbers without operators (g++)"
else
    refused() {   # a statement that must not compile
        printf '#include "ops/cuda/kernel.h"\n%s\n%s\n' \
            'void f(float x, double d, int n, tt_silu_args a) {' \
            "$1; (void)x; (void)d; (void)n; (void)a; }" > "$work/probe.cu"
        if strict "$work/probe.cu"; then fail "compiles: $1"; else pass; fi
    }
    for s in 'x = x + x' 'x = 2.0f * x' 'x += x' 'x = a.x[0] - x' 'd = d / d' \
        'x = n' 'x = (float)d' 'd = x' 'x = a.n' 'n = (int)x' 'x++'; do
        refused "$s"
    done
    printf '#include "ops/cuda/kernel.h"\nfloat f(float x) { %s }\n' \
        'return x > 1.0f ? -x : fma_rn(x, 2.0f, x);' > "$work/probe.cu"
    if strict "$work/probe.cu"; then
        pass
    else
        fail "right text does not compile: $(head -n 3 "$work/said")"
    fi
    for file in src/ops/cuda/*.cu; do
        if strict "$file"; then
            pass
        else
            fail "$file does more with numbers than kernel.h allows:" \
                "$(grep -m 3 error "$work/said")"
        fi
    done
fi
finish
