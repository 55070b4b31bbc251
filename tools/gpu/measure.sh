#!/bin/sh
# measure.sh: what a machine with a GPU says about the backend cuda.
#
#   sh tools/gpu/measure.sh right|fast OUT [BUILD]
#
# SPDX-License-Identifier: Apache-2.0
#
# Two commands of at most ten minutes each, without network; BUILD is a build
# with CUDA=1 (default build/gcc-O2-cuda), made elsewhere if need be:
#     make CUDA=1 cuda-programs
#   right   the device; every operator against golden, and a part of them under
#           compute-sanitizer; the stored digests of ref_data; the demo run
#           against the CPU's
#   fast    a chunk of the demo model, and of one layer of true size, with the
#           profile of its operators
# Every phase has a time limit and leaves a log in OUT; OUT/measure.json says how
# each ended. A phase that cannot be done here (no GPU, no compute-sanitizer)
# is said to be so, and the others go on.
what=${1:-}
out=${2:-}
build=${3:-build/gcc-O2-cuda}
case $what in right | fast) ;; *) what= ;; esac
if [ -z "$what" ] || [ -z "$out" ]; then
    echo "usage: sh tools/gpu/measure.sh right|fast OUT [BUILD]" >&2
    exit 2
fi
mkdir -p "$out" || exit 1
json=$out/measure-$what.json
done_=0
failed=0
missing=0

# One phase: its name, seconds it may take, the command.
phase() {
    name=$1
    limit=$2
    shift 2
    start=$(date +%s)
    timeout "$limit" "$@" > "$out/$name.log" 2>&1
    rc=$?
    seconds=$(($(date +%s) - start))
    last=$(tail -n 1 "$out/$name.log" | tr -d '"\\' | tr -c '[:print:]' ' ')
    case $rc in
    0) state=done; done_=$((done_ + 1)) ;;
    124) state="over its time"; failed=$((failed + 1)) ;;
    *) state=failed; failed=$((failed + 1)) ;;
    esac
    entry "$name" "$state" "$seconds" "$last"
}

cannot() {   # name, why
    missing=$((missing + 1))
    entry "$1" "not done: $2" 0 ""
}

entry() {
    echo "$1: $2 ($3 s) $4"
    [ -z "$entries" ] || entries="$entries,"
    entries="$entries
    {\"phase\": \"$1\", \"state\": \"$2\", \"seconds\": $3, \"said\": \"$4\"}"
}

device_is() { command -v nvidia-smi && nvidia-smi -L; }

entries=
if [ ! -x "$build/tether" ] || [ ! -x "$build/check_kernels" ]; then
    why="$build has no programs (make CUDA=1 cuda-programs)"
elif ! device_is > "$out/device.log" 2>&1; then
    why="there is no GPU here"
else
    why=
fi
run() {   # name, seconds, command: where there is a GPU
    if [ -n "$why" ]; then cannot "$1" "$why"; else phase "$@"; fi
}
run device 60 nvidia-smi --format=csv,noheader \
    --query-gpu=name,driver_version,memory.total,clocks.max.sm

demo=$build/demo-random
generate() {   # name, seconds, backend, folder
    run "$1" "$2" "$build/tether" generate -q -m "$demo" -p "a cat" \
        --size 64x64 --latents 9 --no-decode --profile --backend "$3" \
        --overwrite -o "$out/$3.safetensors"
}

if [ "$what" = right ]; then
    run kernels 120 "$build/check_kernels"
    if ! command -v compute-sanitizer > /dev/null 2>&1; then
        cannot sanitizer "compute-sanitizer is not installed"
    else
        for tool in memcheck racecheck; do
            run "$tool" 120 compute-sanitizer --tool $tool --error-exitcode 1 \
                "$build/check_kernels" "kind 0"
        done
    fi
    run bits 180 "$build/check_bits" --class f32 --backend cuda --brief \
        --demo "$demo"
    generate demo_gpu 30 cuda
    generate demo_cpu 30 exact
    run demo_equal 30 cmp "$out/cuda.safetensors" "$out/exact.safetensors"
else
    generate demo_gpu 60 cuda
    layer=$out/layer
    mkdir -p "$layer"
    run layer_model 60 "$build/tools/make_checkpoint" --layers 1 \
        --dit "$layer/diffusion_pytorch_model.safetensors" \
        --config "$layer/config.json"
    run layer_gpu 200 "$build/tools/bench_chunk" -m "$layer" --backend cuda
    run layer_cpu 250 "$build/tools/bench_chunk" -m "$layer" --passes 1
    rm -rf "$layer"
fi

printf '{"what": "%s", "version": "%s", "phases": [%s\n]}\n' "$what" \
    "$("$build/tether" --version 2> /dev/null | head -n 1 | tr -d '"\\')" \
    "$entries" > "$json"
echo "$done_ done, $failed failed, $missing not possible here: $json"
[ "$failed" -eq 0 ]
