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
brief=
filter=
[ $# -gt 1 ] || extent=--small brief=--brief filter='--filter dit/'
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
    elif [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "FAIL cuda/$name: ended with status $rc after its last line"
        tail -n 5 "$log"
        f=1
    fi
    [ "$f" -eq 0 ] || grep '^FAIL' "$log" | head -n 20
    echo "cuda/$name: $p passed, $f failed"
    passed=$((passed + p))
    failed=$((failed + f))
}

all="waits kernels attention_sm_80 attention_sm_86 linear_sm_80 conv_sm_80 linear_mma attention_mma conv_mma"
start waits "$build/shim/check_waits"
# shellcheck disable=SC2086
start kernels "$build/shim/check_kernels" $brief
# other GPUs: smaller blocks of attention, other steps of tensor cores
start attention_sm_80 env TT_SHIM_GPU=80 "$build/shim/check_kernels" $brief attention
start attention_sm_86 env TT_SHIM_GPU=86 "$build/shim/check_kernels" $brief attention
start linear_sm_80 env TT_SHIM_GPU=80 "$build/shim/check_kernels" $brief "sm80 linear"
start conv_sm_80 env TT_SHIM_GPU=80 "$build/shim/check_kernels" "sm80 conv"
# class sm90 without wgmma
for what in linear attention conv; do
    # shellcheck disable=SC2086
    start ${what}_mma env TT_CUDA_PRODUCTS=mma "$build/shim/check_kernels" \
        $brief "sm90 $what"
done
for class in f32 sm80 sm90; do
    gpu=90
    some=$filter
    [ $class != sm80 ] || gpu=80
    [ $class != f32 ] || some=
    # shellcheck disable=SC2086
    start bits_$class env TT_SHIM_GPU=$gpu "$build/shim/check_bits" \
        --class $class --backend cuda $extent $some --demo "$build/demo-random"
    all="$all bits_$class"
done
wait
for name in $all; do add "$name"; done

# What a chunk of the demo model moves: the third one less the second, 5 passes
# of 6 layers. Patches go in, four outputs and the last tokens come out, each
# with one wait; nothing else. With GELU, gates and modulation as kernels of
# their own there would be 179 launches more.
for latents in 6 9; do
    TT_SHIM_COUNT=$logs/count "$build/shim/tether" generate -q --no-decode \
        -m "$build/demo-random" -p "a cat" --size 64x64 --latents $latents \
        --checkpoint-every 0 --backend cuda \
        -o "$logs/$latents.safetensors" > "$logs/bus" 2>&1
done
awk 'NR == 1 { split($0, a); next }
    {
        printf "a chunk: %d launches, %d puts of %d bytes, %d gets of %d " \
            "bytes, %d waits\n", $1 - a[1], $3 - a[3], $6 - a[6], $8 - a[8],
            $11 - a[11], $13 - a[13]
        bad = $1 - a[1] > 930 || $3 - a[3] != 5 || $6 - a[6] > 61440 ||
            $8 - a[8] != 5 || $11 - a[11] > 74000 || $13 - a[13] != 5
    }
    END { exit bad || NR != 2 }' "$logs/count" > "$logs/chunk"
if [ $? -eq 0 ]; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAIL cuda/bus: $(cat "$logs/chunk" "$logs/bus")"
fi
cat "$logs/chunk"

# rotated keys stay on the device by default, where it has room: the same bytes
for room in 8000000000 2000000; do
    TT_SHIM_ROOM=$room "$build/shim/tether" generate -q --no-decode \
        -m "$build/demo-random" -p "a cat" --size 16x16 --latents 6 \
        --backend cuda --latents-out "$logs/keep-$room" \
        --record "$logs/keep.$room" 2>> "$logs/keep"
done
if cmp -s "$logs/keep-8000000000" "$logs/keep-2000000" &&
    grep -q '"keys_kept": true' "$logs/keep.8000000000" &&
    grep -q '"keys_kept": false' "$logs/keep.2000000"
then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAIL cuda/keep-keys: $(cat "$logs/keep")"
fi

# slots of bf16 numbers: the CPU's latents, which are the end of a file
for backend in cuda exact; do
    "$build/shim/tether" generate -q --no-decode -m "$build/demo-random" \
        -p "a cat" --size 16x16 --latents 9 --cache fifo --budget 6 \
        --class sm90 --backend $backend --latents-out "$logs/half" \
        >> "$logs/halves" 2>&1
    tail -c 2304 "$logs/half" > "$logs/half.$backend"
    rm -f "$logs/half"
done
if cmp "$logs/half.cuda" "$logs/half.exact" >> "$logs/halves" 2>&1
then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAIL cuda/bf16 cache: $(cat "$logs/halves")"
fi

# the VAE in a class: the pictures, and their latents, that the CPU has. Of
# widths that are whole eights, and of others. What goes out are pictures.
for class in sm80 sm90; do
    for vae in vae_full_a vae_pth; do
        at=$logs/$vae.$class
        for backend in exact cuda; do
            export TT_SHIM_GPU=${class#sm} TT_SHIM_COUNT="$at.$backend.count"
            set -- -q --vae ref_data/$vae/weights.safetensors \
                --vae-class $class --backend $backend
            "$build/shim/tether" decode "$@" --latents "$logs/keep-8000000000" \
                --raw-out "$at.$backend.raw" -o "$at.$backend.y4m" &&
                "$build/shim/tether" encode "$@" -i "$at.$backend.y4m" \
                    -o "$at.$backend.z"
        done > "$at" 2>&1
        if cmp "$at.exact.raw" "$at.cuda.raw" >> "$at" 2>&1 &&
            cmp "$at.exact.z" "$at.cuda.z" >> "$at" 2>&1 &&
            head -n 1 "$at.cuda.count" | grep -q '21 gets .* 21 waits'
        then passed=$((passed + 1)); else
            failed=$((failed + 1))
            echo "FAIL cuda/$vae in $class: $(cat "$at" "$at.cuda.count")"
        fi
    done
done
unset TT_SHIM_GPU TT_SHIM_COUNT

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
told version 'cuda (run on sm_90 alone)' "$build/shim/tether" --version
told vae-class 'compute in class sm90, not in sm80; ask for class sm90' \
    "$build/shim/tether" decode -q --backend cuda --vae-class sm80 --vae \
    ref_data/vae_full_a/weights.safetensors --latents "$logs/keep-8000000000" \
    -o "$logs/none.y4m"
told driver 'libcuda.so.1 was not found; install the NVIDIA driver' \
    env LD_LIBRARY_PATH="$logs/none" "$build/shim/tether" noise -q -W 16 -H 16 \
    --latents 1 --chunk 1 --overwrite --backend cuda -o "$logs/noise"
[ ! -e "$logs/noise" ] || { failed=$((failed + 1)); echo "FAIL cuda/driver"; }
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
