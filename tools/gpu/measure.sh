#!/bin/sh
# measure.sh: what a machine with a GPU says about the backend cuda.
#
#   sh tools/gpu/measure.sh right|fast OUT [BUILD [SECONDS]]
#
# SPDX-License-Identifier: Apache-2.0
#
# Two commands of at most SECONDS each (default 585), without network; BUILD is
# one with CUDA=1 (default build/gcc-O2-cuda), made elsewhere if need be:
#     make CUDA=1 cuda-programs
#   right   the device; every operator against golden; the stored digests of
#           ref_data; the demo run and a layer of true size against the CPU's;
#           10^8 sums of the tensor cores against their definition; a part of
#           the operators under compute-sanitizer
#   fast    ceilings; a layer of true size with the profile of its operators; a
#           chunk of 30 layers behind 21 cached frames; 21 latents decoded; the
#           same shapes in PyTorch
# Classes are f32 and that of the GPU's tensor cores. Every phase has a time
# limit and leaves a log in OUT; OUT/measure-WHAT.json says how each ended. A
# phase that cannot be done here (no GPU, no compute-sanitizer, no nvcc) is said
# to be so, and the others go on.
what=${1:-}
out=${2:-}
build=${3:-build/gcc-O2-cuda}
case $what in right | fast) ;; *) what= ;; esac
if [ -z "$what" ] || [ -z "$out" ]; then
    echo "usage: sh tools/gpu/measure.sh right|fast OUT [BUILD [SECONDS]]" >&2
    exit 2
fi
mkdir -p "$out" || exit 1
json=$out/measure-$what.json
end=$(($(date +%s) + ${4:-585}))
done_=0
failed=0
missing=0
entries=

entry() {
    echo "$1: $2 ($3 s) $4"
    [ -z "$entries" ] || entries="$entries,"
    entries="$entries
    {\"phase\": \"$1\", \"state\": \"$2\", \"seconds\": $3, \"said\": \"$4\"}"
}

cannot() {   # name, why
    missing=$((missing + 1))
    entry "$1" "not done: $2" 0 ""
}

# One phase: its name, seconds it may take, the command. Status 3 of a command
# says that something is not there.
phase() {
    name=$1
    start=$(date +%s)
    limit=$2
    [ "$limit" -le $((end - start)) ] || limit=$((end - start))
    shift 2
    if [ "$limit" -lt 1 ]; then
        cannot "$name" "its time is over"
        return
    fi
    timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1
    rc=$?
    seconds=$(($(date +%s) - start))
    last=$(tail -n 1 "$out/$name.log" | tr -d '"\\' | tr -c '[:print:]' ' ')
    case $rc in
    0) state=done; done_=$((done_ + 1)) ;;
    3) cannot "$name" "$last"; return ;;
    124 | 137) state="over its time"; failed=$((failed + 1)) ;;
    *) state=failed; failed=$((failed + 1)) ;;
    esac
    entry "$name" "$state" "$seconds" "$last"
}

run() {   # name, seconds, command: where there is a GPU
    if [ -n "$why" ]; then cannot "$1" "$why"; else phase "$@"; fi
}

have() {   # program: else its phases are said to be missing
    command -v "$1" > /dev/null 2>&1
}

why=
if [ ! -x "$build/tether" ] || [ ! -x "$build/check_kernels" ]; then
    why="$build has no programs (make CUDA=1 cuda-programs)"
elif ! have nvidia-smi || ! nvidia-smi -L > "$out/device.log" 2>&1; then
    why="there is no GPU here"
fi
run device 60 nvidia-smi --format=csv,noheader \
    --query-gpu=name,driver_version,memory.total,clocks.max.sm
capability=90
[ -n "$why" ] || capability=$(nvidia-smi --query-gpu=compute_cap \
    --format=csv,noheader | head -n 1 | tr -d '. ')
class=sm90
[ "$capability" -ge 90 ] || class=sm80

# A program of tools/gpu, compiled here.
compile() {   # name
    nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null)
    arch=$capability
    [ "$arch" -ne 90 ] || arch=90a
    if [ -n "$why" ] || [ -z "$nvcc" ]; then
        cannot "$1" "${why:-nvcc is not installed}"
        return 1
    fi
    "$nvcc" -O2 -std=c++17 -arch="sm_$arch" -Iinclude -Isrc -o "$out/$1" \
        "tools/gpu/$1.cu" > "$out/$1.log" 2>&1 && return
    cannot "$1" "nvcc: $(head -n 1 "$out/$1.log" | tr -d '"\\')"
    return 1
}

demo=$build/demo-random
layer=$out/layer
model=$out/model
make_layer() {
    mkdir -p "$layer"
    run layer_model 60 "$build/tools/make_checkpoint" --layers 1 \
        --dit "$layer/diffusion_pytorch_model.safetensors" \
        --config "$layer/config.json"
}

generate() {   # name, seconds, backend
    run "$1" "$2" "$build/tether" generate -q -m "$demo" -p "a cat" \
        --size 64x64 --latents 9 --no-decode --profile --backend "$3" \
        --overwrite --latents-out "$out/$3.safetensors"
}

# Do two logs have the same digest of a flow?
equal_flow() {   # name, log, log
    run "$1" 10 sh -c 'a=$(grep "^flow " "$1"); [ -n "$a" ] &&
        [ "$a" = "$(grep "^flow " "$2")" ] && echo "equal: $a"' - "$2" "$3"
}

# Cases of every kernel that this GPU takes: numbers of kind 0, and operators
# whose cases have no kinds. The search for races looks at every access to
# shared memory: products of a few tiles, and one of many.
sanitized='tool=$1 program=$2
    shift 2
    for cases; do
        compute-sanitizer --tool $tool --error-exitcode 1 \
            $([ $tool != memcheck ] || echo --report-api-errors no) \
            "$program" "$cases" || exit
    done'
sanitize() {   # tool, seconds, cases
    tool=$1
    limit=$2
    shift 2
    if have compute-sanitizer; then
        run "$tool" "$limit" sh -c "$sanitized" - "$tool" \
            "$build/check_kernels" "$@"
    else
        cannot "$tool" "compute-sanitizer is not installed"
    fi
}

right() {
    run kernels 120 "$build/check_kernels"
    run kernels_whole 30 "$build/check_kernels" "whole tiles"
    run kernels_mma 60 env TT_CUDA_PRODUCTS=mma "$build/check_kernels" "$class"
    for c in f32 $class; do
        run "bits_$c" 150 "$build/check_bits" --class "$c" --backend cuda \
            --brief --demo "$demo"
    done
    generate demo_gpu 30 cuda
    generate demo_cpu 30 exact
    # the begin of the file names the backend; its end is 9 latents
    run demo_equal 30 sh -c 'tail -c 36864 "$1/cuda.safetensors" > "$1/flow" &&
        tail -c 36864 "$1/exact.safetensors" | cmp - "$1/flow"' - "$out"
    for b in cuda exact; do
        run "vae_$b" 60 "$build/tether" decode -q -m "$demo" --backend $b \
            --vae-class "$class" --latents "$out/exact.safetensors" \
            --overwrite --raw-out "$out/$b.raw"
    done
    run vae_equal 30 cmp "$out/cuda.raw" "$out/exact.raw"
    make_layer
    for c in f32 $class; do
        for b in cuda exact; do
            run "layer_${c}_$b" 100 "$build/tools/bench_chunk" -m "$layer" \
                --passes 2 --prime 1 --backend $b --class "$c"
        done
        equal_flow "layer_${c}_equal" "$out/layer_${c}_cuda.log" \
            "$out/layer_${c}_exact.log"
    done
    compile steps && run steps 120 "$out/steps" 100
    set -- stored "whole tiles" total most choose locate pick narrow words
    sanitize memcheck 90 "kind 0" "conv variant 1" "$@"
    sanitize synccheck 90 "kind 0" "conv variant 1" "$@"
    sanitize racecheck 150 "$@" "linear 64x132x257 kind 0" \
        "attention T65 N513 H2 D128 kind 0" "attention T9 N33 H3 D22 kind 0" \
        "conv variant 9" "norm_modulate"
}

fast() {
    compile peak && run peak 30 "$out/peak"
    if have python3; then
        run torch 90 python3 tools/gpu/torch_compare.py
    else
        cannot torch "python3 is not installed"
    fi
    make_layer
    for c in f32 $class; do
        run "operators_$c" 60 "$build/tools/bench_chunk" -m "$layer" \
            --backend cuda --class "$c"
    done
    run operators_mma 60 env TT_CUDA_PRODUCTS=mma \
        "$build/tools/bench_chunk" -m "$layer" --backend cuda --class "$class"
    mkdir -p "$model"
    run model 150 "$build/tools/make_checkpoint" --dtype bf16 \
        --preset wan1.3b "$model" --parts dit,vae
    for c in f32 $class; do
        run "chunk_$c" 90 "$build/tools/bench_chunk" -m "$model" \
            --backend cuda --class "$c" --profile 0
    done
    run latents 60 "$build/tether" generate -q -m "$demo" -p "a cat" \
        --size 832x480 --latents 21 --no-decode --backend cuda --overwrite \
        --latents-out "$out/latents.safetensors"
    for c in f32 $class; do
        run "decode_$c" 120 "$build/tether" decode -q -m "$model" \
            --backend cuda --vae-class "$c" --overwrite \
            --latents "$out/latents.safetensors" --raw-out "$out/frames.raw"
    done
}

$what
rm -rf "$layer" "$model" "$out/steps" "$out/peak" "$out/frames.raw"
printf '{"what": "%s", "version": "%s", "phases": [%s\n]}\n' "$what" \
    "$("$build/tether" --version 2> /dev/null | head -n 1 | tr -d '"\\')" \
    "$entries" > "$json"
echo "$done_ done, $failed failed, $missing not possible here: $json"
[ "$failed" -eq 0 ]
