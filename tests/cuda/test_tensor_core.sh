#!/bin/sh
# test_tensor_core.sh: do kernels of mma.sync compute the classes sm80 and sm90?
#
#   sh tests/cuda/test_tensor_core.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# The kernels of tensor_core.h run on fibers (shim.h) in three orders of threads,
# and their bits are compared with golden's. nvcc, where it is installed, must
# compile them for sm_80 and sm_90 without spilling a register.
build=$1
this=cuda/tensor_core
. tests/script.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/tether.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

flags='-std=c++17 -Iinclude -Isrc -Itests/cuda -I.'
CXX=${CXX:-c++}

# The library brings OpenMP of its compiler, or none.
linked() {
    for omp in -fopenmp -lomp -l:libomp.so.5 ''; do
        # shellcheck disable=SC2086
        $CXX -o "$work/run" "$work"/*.o "$build/libtether.a" $omp -pthread -ldl \
            -lm 2> "$work/why" && return 0
    done
    return 1
}

fibers() {
    for source in tests/cuda/tensor_core.cc tests/cuda/shim.cpp; do
        # shellcheck disable=SC2086
        $CXX $flags -O2 -ffp-contract=off -Wall -Wextra -Wshadow -c \
            -o "$work/$(basename $source).o" $source 2>> "$work/said" || {
            fail "$CXX cannot compile $source: $(head -n 3 "$work/said")"
            return
        }
    done
    grep warning: "$work/said" && fail "warnings"
    linked || { skip "$CXX cannot link $build/libtether.a (a build of another \
compiler or with sanitizers): $(head -n 1 "$work/why")"; return; }
    for order in forward reverse random; do
        TT_SHIM_ORDER=$order "$work/run" > "$work/log" 2>&1
        line=$(tail -n 1 "$work/log")
        grep '^FAIL' "$work/log"
        case $line in
        *' passed, 0 failed')
            line=${line% passed*}
            passed=$((passed + ${line##* })) ;;
        *) fail "threads in $order order: $line" ;;
        esac
    done
}

nvcc_of() {
    command -v nvcc || { [ -x /usr/local/cuda/bin/nvcc ] &&
        echo /usr/local/cuda/bin/nvcc; }
}

compiled() {
    nvcc=$(nvcc_of) || {
        skip "no nvcc: install the CUDA toolkit to compile the kernels"
        return
    }
    for arch in sm_80 sm_90; do
        # shellcheck disable=SC2086
        if ! "$nvcc" $flags -arch=$arch -Xptxas -v -cubin -o "$work/cubin" \
            tests/cuda/tensor_core.cu > "$work/log" 2>&1; then
            fail "nvcc, $arch: $(grep -m 1 error "$work/log")"
            continue
        fi
        clean=$(grep -c ' 0 bytes spill stores, 0 bytes spill loads' "$work/log")
        if [ "$clean" -eq 2 ]; then passed=$((passed + 1)); else
            fail "$arch: $(grep -m 1 'spill' "$work/log")"
        fi
    done
}

case $build in
*-double*) skip "a double build has class f32 alone" ;;
*) if command -v "$CXX" > /dev/null; then fibers; else
       skip "no C++ compiler ($CXX)"; fi
   compiled ;;
esac
finish
