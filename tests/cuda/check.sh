#!/bin/sh
# check.sh: the CUDA kernels on the CPU against golden, and what they may use.
#
#   sh tests/cuda/check.sh BUILD [all]
#
# SPDX-License-Identifier: Apache-2.0
#
# The programs of BUILD/shim have the backend cuda, which finds the driver of
# tests/cuda/driver.cpp there. Every operator is compared with golden, and the
# digests of cases of ref_data with the stored ones: some of them, or, with
# `all`, every one. The last line counts.
build=$1
extent=
[ $# -gt 1 ] || extent=--small
passed=0
failed=0
logs=$(mktemp -d "${TMPDIR:-/tmp}/tether.XXXXXX") || exit 1
trap 'rm -rf "$logs"' EXIT
LD_LIBRARY_PATH=$build/shim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

start() {   # name, command...: a program whose last line counts
    log=$logs/$1
    shift
    { "$@" > "$log" 2>&1; echo $? > "$log.rc"; } &
}

add() {   # name: what that program said
    name=$1
    log=$logs/$name
    rc=$(cat "$log.rc")
    line=$(grep -E ' [0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
    p=$(expr "$line" : '.* \([0-9]*\) passed')
    f=$(expr "$line" : '.* \([0-9]*\) failed')
    if [ -z "$line" ]; then
        echo "FAIL cuda/$name: ended with status $rc before its last line"
        tail -n 5 "$log"
        p=0 f=1
    fi
    [ "$f" -eq 0 ] || grep '^FAIL' "$log" | head -n 20
    echo "cuda/$name: $p passed, $f failed"
    passed=$((passed + p))
    failed=$((failed + f))
}

start kernels "$build/shim/check_kernels"
# shared memory of sm_80 and of sm_86: smaller blocks of attention
start attention_sm_80 env TT_SHIM_SHARED=166912 \
    "$build/shim/check_kernels" attention
start attention_sm_86 env TT_SHIM_SHARED=101376 \
    "$build/shim/check_kernels" attention
# shellcheck disable=SC2086
start bits "$build/shim/check_bits" --class f32 --backend cuda $extent \
    --demo "$build/demo-random"
wait
for name in kernels attention_sm_80 attention_sm_86 bits; do add $name; done

# what the program says of itself, and where there is no driver
told() {   # name, words that it says, command...
    name=$1
    words=$2
    shift 2
    "$@" > "$logs/told" 2>&1
    if grep -q "$words" "$logs/told"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL cuda/$name: not \"$words\": $(head -n 2 "$logs/told")"
    fi
}
mkdir "$logs/none"
echo none > "$logs/none/libcuda.so.1"
told version 'cuda (not run on hardware)' "$build/shim/tether" --version
told driver 'libcuda.so.1 was not found; install the NVIDIA driver' \
    env LD_LIBRARY_PATH="$logs/none" "$build/shim/tether" noise -q -W 16 -H 16 \
    --latents 1 --chunk 1 --overwrite --backend cuda -o "$logs/noise"
[ ! -e "$logs/noise" ] || { failed=$((failed + 1)); echo "FAIL cuda/driver"; }
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
