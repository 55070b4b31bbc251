#!/bin/sh
# measure.sh: what a machine with a GPU says about the backend cuda.
#
#   sh tools/gpu/measure.sh pack DIR BUILD...
#   sh tools/gpu/measure.sh [-n] [-p "PHASE ..."] [-s SECONDS] CALL OUT BUILD...
#
# SPDX-License-Identifier: Apache-2.0
#
# BUILD is one of `make CUDA=1 cuda-programs`, made elsewhere: the machine needs
# neither nvcc nor a network. `pack` copies what the phases need of each BUILD to
# DIR/1, DIR/2 ..., with the digest of a layer that the CPU here computes, and
# says how large it all is. The last BUILD is the one whose bits are checked;
# speed is that of all of them, which take turns: of others bench_chunk and tether
# are enough. CALL is
#   first   (300 s) device probe layer kernels torch operators chunk ncu steps
#   second  (420 s) bits demo sanitize f32 mma variants chunk decode
# or `all`, with -p. Every command has a limit, and nothing goes on after SECONDS
# in all. A phase that cannot be done here (no GPU, no ncu, no PyTorch) is said
# to be not run, and the others go on. OUT has a log of each command, the clock
# and power while it ran, and OUT/measure-CALL.json; tables come last.
# -n prints commands and limits in place of running them, and what is missing.
usage() {
    sed -n 's/^#   \(sh .*\)/\1/p' "$0" >&2
    exit 2
}

raced="tether tools/bench_chunk"
checked="check_kernels check_bits gpu/probe gpu/steps tools/make_checkpoint"

pack() {   # DIR BUILD...
    [ $# -ge 2 ] || usage
    dir=$1
    n=0
    shift
    for b; do
        n=$((n + 1))
        to=$dir/$n
        programs=$raced
        [ $n -lt $# ] || programs="$raced $checked"
        for f in $programs; do
            mkdir -p "$(dirname "$to/$f")" || exit 1
            strip -o "$to/$f" "$b/$f" || exit 1
        done
    done
    cp -R "$b/demo-random" "$to/" || exit 1
    strip -o "$to/libtether.so" "$b"/libtether.so.* || exit 1
    model=$(mktemp -d) || exit 1
    "$to/tools/make_checkpoint" --layers 1 --config "$model/config.json" \
        --dit "$model/diffusion_pytorch_model.safetensors" > "$model/log" &&
        "$to/tools/bench_chunk" -m "$model" --passes 2 --prime 1 \
            --class sm90 --profile 0 > "$model/log" &&
        grep '^flow ' "$model/log" > "$to/flow" || exit 1
    rm -rf "$model"
    du -sk "$dir" | awk '{ printf "%.1f MiB in %s\n", $1 / 1024, $2 }'
}

if [ "${1:-}" = pack ]; then
    shift
    pack "$@"
    exit
fi

dry=
phases=
given=
while getopts np:s: o; do
    case $o in
    n) dry=yes ;;
    p) phases=$OPTARG ;;
    s) given=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
call=${1:-}
case $call in
first) all="device probe layer kernels torch operators chunk ncu steps" most=300 ;;
second) all="bits demo sanitize f32 mma variants chunk decode" most=420 ;;
all) all=$phases most=420 ;;
*) usage ;;
esac
if [ $# -lt 3 ] || [ -z "$all" ]; then usage; fi
phases=${phases:-$all}
out=$2
shift 2
mkdir -p "$out" || exit 1
builds=$#
n=0
for b; do               # of any names: OUT/build.1, OUT/build.2 ...
    n=$((n + 1))
    for f in $raced $([ $n -lt $builds ] || echo "$checked"); do
        [ ! -x "$b/$f" ] || continue
        echo "$b has no $f: make CUDA=1 cuda-programs" >&2
        exit 2
    done
    ln -sfn "$(cd "$b" && pwd)" "$out/build.$n"
done
build=$out/build.$n
end=$(($(date +%s) + ${given:-$most}))
planned=0
done_=0
failed=0
missing=0
entries=

have() {   # program
    command -v "$1" > /dev/null 2>&1
}

none=
class=sm90
if ! have nvidia-smi || ! nvidia-smi -L > "$out/device.log" 2>&1; then
    none="there is no GPU here"
elif [ "$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader |
    head -n 1 | tr -d '. ')" -lt 90 ]; then
    class=sm80
fi

entry() {   # name, state, seconds, what was said
    said=$(printf '%s' "$4" | tr -d '"\\' | tr -c '[:print:]' ' ')
    echo "$1: $2 ($3 s) $said"
    entries="${entries:+$entries,}
    {\"phase\": \"$1\", \"state\": \"$2\", \"seconds\": $3, \"said\": \"$said\"}"
}

skip() {   # name, why
    missing=$((missing + 1))
    entry "$1" "not run: $2" 0 ""
}

# Clocks while the GPU was busy: samples of half the greatest power or more.
clock_of() {   # samples: clock, power
    awk -F', *' '{ mhz[NR] = $1; w[NR] = $2; if ($2 > most) most = $2 }
        END {
            for (i = 1; i <= NR; i++) if (w[i] >= most / 2) {
                if (!n++ || mhz[i] < low) low = mhz[i]
                if (mhz[i] > high) high = mhz[i]
            }
            if (n) printf "%d to %d MHz, at most %.0f W", low, high, most
        }' "$1"
}

# A command: its name, the seconds it may take, the words. Status 3 says that
# something is not there.
run() {
    name=$1
    limit=$2
    shift 2
    planned=$((planned + limit))
    if [ -n "$dry" ]; then
        printf '%-18s %3d s  %s\n' "$name" "$limit" "$*" | cut -c 1-150
        have "$1" || echo "  missing: $1"
        return
    fi
    start=$(date +%s)
    [ "$limit" -le $((end - start)) ] || limit=$((end - start))
    if [ -n "$none" ] || [ "$limit" -lt 1 ]; then
        skip "$name" "${none:-its time is over}"
        return
    fi
    nvidia-smi --query-gpu=clocks.sm,power.draw --format=csv,noheader,nounits \
        -lms 100 > "$out/$name.clocks" 2>&1 &
    sampler=$!
    timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1
    rc=$?
    kill "$sampler" 2> /dev/null
    wait "$sampler" 2> /dev/null
    said="$(tail -n 1 "$out/$name.log"); $(clock_of "$out/$name.clocks")"
    seconds=$(($(date +%s) - start))
    case $rc in
    0) state="done"; done_=$((done_ + 1)) ;;
    3) skip "$name" "$said"; return ;;
    124 | 137) state="over its time"; failed=$((failed + 1)) ;;
    *) state=failed; failed=$((failed + 1)) ;;
    esac
    entry "$name" "$state" "$seconds" "$said"
}

# All builds in turn: bench_chunk with these words.
turns() {   # name, turns, seconds of each, words
    what=$1
    many=$2
    each=$3
    shift 3
    turn=1
    while [ "$turn" -le "$many" ]; do
        b=1
        while [ "$b" -le "$builds" ]; do
            run "$what.$b.$turn" "$each" \
                "$out/build.$b/tools/bench_chunk" --backend cuda "$@"
            b=$((b + 1))
        done
        turn=$((turn + 1))
    done
}

# Medians of a phase of turns: a row an operator, or a pass; columns are builds.
table() {   # name
    set -- "$1" "$out/$1".*.*.log
    [ -f "$2" ] || return
    echo "$1: median of seconds in all (GFLOP/s)$(
        awk -v n="$builds" 'BEGIN { for (i = 1; i <= n; i++)
            printf "%22s", "build " i }')"
    b=1
    while [ "$b" -le "$builds" ]; do
        cat "$out/$1.$b".*.clocks > "$out/clocks"
        echo "build $b: $(clock_of "$out/clocks")"
        b=$((b + 1))
    done
    shift
    awk -v n="$builds" '
        FNR == 1 { k = split(FILENAME, part, "."); b = part[k - 2] }
        function add(row, s, rate) {
            if (!(row in seen)) { seen[row] = 1; name[++rows] = row }
            s_[row, b, ++m[row, b]] = s
            if (rate > best[row, b]) best[row, b] = rate
        }
        /^pass [0-9]+/ { add("pass" (/clean/ ? ", clean" : ""),
                             $(NF - 1), 0); next }
        /^[a-z_ ]+ +[0-9.]+ +[0-9.]+%/ {
            i = match($0, / +[0-9.]+ +[0-9.]+%/)
            k = split(substr($0, i), f, " ")
            add(substr($0, 1, i - 1), f[1], k > 3 ? f[4] : 0)
        }
        END {
            for (r = 1; r <= rows; r++) {
                row = name[r]
                printf "%-38s", row
                for (b = 1; b <= n; b++) {
                    k = m[row, b]
                    for (i = 1; i <= k; i++) for (j = i + 1; j <= k; j++)
                        if (s_[row, b, j] < s_[row, b, i]) {
                            t = s_[row, b, i]
                            s_[row, b, i] = s_[row, b, j]
                            s_[row, b, j] = t
                        }
                    text = k ? sprintf("%.6f", s_[row, b, int((k + 1) / 2)]) : "-"
                    if (best[row, b])
                        text = text sprintf(" (%.0f)", best[row, b])
                    printf "%22s", text
                }
                print ""
            }
        }' "$@"
}

# ---- phases ------------------------------------------------------------------

demo=$build/demo-random
layer=$out/layer
model=$out/model
have_layer=
have_model=

need_layer() {
    [ -z "$have_layer" ] || return
    have_layer=yes
    mkdir -p "$layer"
    run layer_model 20 "$build/tools/make_checkpoint" --layers 1 \
        --dit "$layer/diffusion_pytorch_model.safetensors" \
        --config "$layer/config.json"
}

need_model() {
    [ -z "$have_model" ] || return
    have_model=yes
    mkdir -p "$model"
    run model 60 "$build/tools/make_checkpoint" --dtype bf16 \
        --preset wan1.3b "$model" --parts dit,vae
}

phase_device() {
    run device 5 nvidia-smi --format=csv,noheader \
        --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit
}

phase_probe() { run probe 20 "$build/gpu/probe"; }
phase_steps() { run steps 30 "$build/gpu/steps" 30; }

phase_kernels() {
    run attention 20 "$build/check_kernels" --brief "$class attention"
    run whole_tiles 10 "$build/check_kernels" "whole tiles"
    run linear 10 "$build/check_kernels" --brief "$class linear"
    run conv 10 "$build/check_kernels" --brief "$class conv"
}

# The digest is that of the CPU: of `pack`, or computed here.
# shellcheck disable=SC2016
phase_layer() {
    need_layer
    if [ ! -f "$build/flow" ] || [ $class != sm90 ]; then
        run layer_cpu 60 "$build/tools/bench_chunk" -m "$layer" --passes 2 \
            --prime 1 --profile 0 --class $class
        cp "$out/layer_cpu.log" "$out/flow" 2> /dev/null
    else
        cp "$build/flow" "$out/flow"
    fi
    run layer 15 sh -c '"$1" -m "$2" --passes 2 --prime 1 --profile 0 \
        --backend cuda --class "$3" > "$4/layer_gpu.log" || exit
        grep "^flow " "$4/layer_gpu.log" "$4/flow"
        a=$(grep "^flow " "$4/flow")
        [ "$a" = "$(grep "^flow " "$4/layer_gpu.log")" ] && echo "equal: $a"' \
        - "$build/tools/bench_chunk" "$layer" $class "$out"
}

phase_operators() { need_layer; turns operators 3 6 -m "$layer" --class $class; }
phase_variants() { need_layer; turns variants 5 6 -m "$layer" --class $class; }
phase_f32() { need_layer; turns f32 1 15 -m "$layer" --class f32; }

phase_mma() {
    need_layer
    TT_CUDA_PRODUCTS=mma
    export TT_CUDA_PRODUCTS
    run mma_kernels 30 "$build/check_kernels" --brief "$class"
    turns mma 1 10 -m "$layer" --class $class
    unset TT_CUDA_PRODUCTS
}

# Times, units and stalls of every launch of a noisy pass and a clean one.
phase_ncu() {
    if [ -z "$dry" ] && ! have ncu; then
        skip ncu "ncu is not installed"
        return
    fi
    need_layer
    for c in $class f32; do
        run "ncu_$c" 40 ncu --clock-control none --section SpeedOfLight \
            --section WarpStateStats --section MemoryWorkloadAnalysis --csv \
            -c 70 "$build/tools/bench_chunk" -m "$layer" --passes 2 --prime 0 \
            --profile 0 --backend cuda --class "$c"
    done
}

phase_chunk() {
    need_model
    turns chunk 2 12 -m "$model" --class $class --profile 0 --keep-keys 1
}

phase_torch() {
    if [ -z "$dry" ] && ! have python3; then
        skip torch "python3 is not installed"
        return
    fi
    for TETHER_LIB in "$build"/libtether.so*; do :; done
    export TETHER_LIB
    run torch 60 python3 tools/gpu/torch_compare.py $class
}

phase_bits() {
    for c in f32 $class; do
        run "bits_$c" 60 "$build/check_bits" --class "$c" --backend cuda \
            --brief --demo "$demo"
    done
}

# A rollout and its frames: the bytes of the CPU?
# shellcheck disable=SC2016
phase_demo() {
    for b in cuda exact; do
        run "demo_$b" 20 "$build/tether" generate -q -m "$demo" -p "a cat" \
            --size 64x64 --latents 9 --no-decode --class $class --backend $b \
            --overwrite --latents-out "$out/$b.safetensors"
        run "vae_$b" 20 "$build/tether" decode -q -m "$demo" --backend $b \
            --vae-class $class --latents "$out/exact.safetensors" \
            --overwrite --raw-out "$out/$b.raw"
    done
    # the beginning of the file names the backend; its end is 9 latents
    run demo_equal 10 sh -c 'tail -c 36864 "$1/cuda.safetensors" > "$1/latents" &&
        tail -c 36864 "$1/exact.safetensors" | cmp - "$1/latents" &&
        cmp "$1/cuda.raw" "$1/exact.raw" && echo equal' - "$out"
}

# The search for races looks at every access to shared memory: few tiles.
phase_sanitize() {
    for tool in memcheck synccheck racecheck; do
        if [ -z "$dry" ] && ! have compute-sanitizer; then
            skip "$tool" "compute-sanitizer is not installed"
            continue
        fi
        for cases in "whole tiles" "$class linear 64x132x257 kind 0" \
            "$class attention T65 N513 H2 D128 kind 0" "$class conv variant 9"; do
            run "$tool $cases" 20 compute-sanitizer --tool $tool \
                --error-exitcode 1 "$build/check_kernels" "$cases"
        done
    done
}

phase_decode() {
    need_model
    run latents 30 "$build/tether" generate -q -m "$demo" -p "a cat" \
        --size 832x480 --latents 21 --no-decode --backend cuda --overwrite \
        --latents-out "$out/latents.safetensors"
    b=1
    while [ "$b" -le "$builds" ]; do
        run "decode.$b" 30 "$out/build.$b/tether" decode -m "$model" --profile \
            --backend cuda --vae-class $class --overwrite \
            --latents "$out/latents.safetensors" --raw-out "$out/frames.raw"
        b=$((b + 1))
    done
}

for p in $phases; do
    case $p in
    device | probe | kernels | layer | operators | ncu | steps | chunk | torch | \
        bits | demo | sanitize | f32 | mma | variants | decode) "phase_$p" ;;
    *) echo "there is no phase $p" >&2; exit 2 ;;
    esac
done
rm -rf "$layer" "$model" "$out/frames.raw" "$out"/build.*
if [ -n "$dry" ]; then
    echo "$planned s at most, of ${given:-$most} s in all; ${none:-a GPU is here}"
    exit
fi
json=$out/measure-$call.json
printf '{"call": "%s", "build": "%s", "class": "%s", "phases": [%s\n]}\n' \
    "$call" "$("$1/tether" --version | head -n 1 | tr -d '"\\')" $class \
    "$entries" > "$json"
cat "$out/probe.log" "$out/torch.log" 2> /dev/null
for t in operators variants f32 mma chunk; do table $t; done
echo "$done_ done, $failed failed, $missing not run: $json"
[ "$failed" -eq 0 ]
