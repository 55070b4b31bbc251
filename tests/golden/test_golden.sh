#!/bin/sh
# test_golden.sh: src/golden gives the bits of the engine, whoever compiles it.
#
# SPDX-License-Identifier: Apache-2.0
#
#   sh tests/golden/test_golden.sh BUILD [all|compilers]
#
# Some runs of the demo model by golden and by the engine: latents and pictures
# must be the same bytes. With `all`: every policy and preset, scenes, restarts
# and an image, and every compiler and machine that can be had here, which
# `compilers` chooses alone.
build=$1
rows=${2:-some}
this=golden/bits
. tests/script.sh

tmp=$(mktemp -d "${TMPDIR:-/tmp}/golden.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
tether=${TETHER:-$build/tether}
cc=${CC:-cc}
model=ref_data/demo
one='a red circle moves left and bounces, on a blue background'
two='a green square moves up and bounces, on a black background'

# ---- the compile of the lesson ----------------------------------------------
build_golden() {   # program, compiler and options...: without a word
    out=$1
    shift
    "$@" -std=c11 -Wall -Wextra -Wpedantic src/golden/*.c -lm -o "$out" \
        > "$tmp/words" 2>&1 && [ ! -s "$tmp/words" ]
}
golden=$tmp/golden
if build_golden "$golden" "$cc" -O2; then
    pass
else
    fail "$cc -std=c11 -O2 src/golden/*.c -lm: $(head -n 5 "$tmp/words")"
    finish
    exit
fi

# ---- golden and the engine ----------------------------------------------------
data() {   # a safetensors file without its header
    n=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    tail -c +"$((n + 9))" "$1"
}

same() {   # name, latents, options of golden; of the engine, from `--` on
    name=$1
    latents=$2
    shift 2
    ours=
    while [ "$1" != -- ]; do
        printf '%s\n' "$1"
        shift
    done > "$tmp/ours"
    shift
    set -f
    old=$IFS
    IFS='
'
    # shellcheck disable=SC2046
    "$golden" -m $model $(cat "$tmp/ours") -n "$latents" -o "$tmp/g.y4m" \
        --latents-out "$tmp/g.st" > "$tmp/said" 2>&1
    ours=$?
    IFS=$old
    set +f
    "$tether" generate -q -m $model "$@" --latents "$latents" --overwrite \
        -o "$tmp/e.y4m" --latents-out "$tmp/e.st" > "$tmp/log" 2>&1
    theirs=$?
    if [ $ours -ne 0 ] || [ $theirs -ne 0 ]; then
        fail "$name: golden ends with $ours, tether with $theirs:" \
            "$(tail -n 2 "$tmp/said" "$tmp/log")"
        return
    fi
    data "$tmp/g.st" > "$tmp/g.data"
    data "$tmp/e.st" > "$tmp/e.data"
    check "$name: other latents" cmp "$tmp/g.data" "$tmp/e.data"
    check "$name: other pictures" cmp "$tmp/g.y4m" "$tmp/e.y4m"
}

plain() {   # name, latents, options that both have
    name=$1
    latents=$2
    shift 2
    # shellcheck disable=SC2068
    same "$name" "$latents" -p "$one" --size 32x32 $@ -- -p "$one" -W 32 -H 32 $@
}

case $("$tether" --version) in
*"compute type double"* | *"compute type f64"*)
    skip 'golden computes in float; this engine is in double'
    same() { :; } ;;
esac
if [ "$rows" != compilers ]; then
    plain tether 12 --budget 9 --sink 2
    plain infinity 9 --cache infinity
fi
if [ "$rows" = all ]; then
    plain 'tether, K 21' 30
    plain paper 30 --preset paper
    plain grab-only 30 --preset grab-only
    plain attention-only 30 --preset attention-only
    plain recency-only 24 --preset recency-only
    plain sink-recent 24 --preset sink-recent
    plain no-memory 18 --preset no-memory
    plain longlive-3 12 --preset longlive --budget 6 --sink 1
    plain reward-forcing 18 --preset reward-forcing
    plain 'reward, other sink' 15 --cache reward --budget 9 --sink 2
    plain 'reward, fast' 15 --cache reward --sink-keep 0.7
    plain causal-forcing 9 --preset causal-forcing
    plain frame-wise 5 --preset causal-forcing-frame
    plain '2 steps' 5 --preset causal-forcing-2step
    plain '1 step' 5 --preset causal-forcing-1step
    plain 'K 7, zeros' 18 --budget 7 --sink 1 --tau 0.7 --alpha 1
    plain 'temperature' 21 --budget 12 --sink 0 --score-temperature 0.5 \
        --seed 12345678901234567890
    plain full 12 --cache full
    plain fifo 12 --cache fifo --budget 7 --sink 1
    plain causvid-rolling 12 --cache causvid-rolling --budget 9
    plain memrope 18 --cache memrope
    plain eviction 12 --cache memrope --memrope-method eviction --budget 9
    plain deep-sink 15 --cache deep-sink --budget 9 --sink 4
    plain deep-forcing 18 --cache deep-forcing --budget 9 --sink 2 \
        --compress-to 7 --max-reuse 2
    plain 'deep-forcing, max' 15 --cache deep-forcing --budget 9 --sink 2 \
        --compress-to 7 --fusion max
    plain rolling-sink 24 --cache rolling-sink --budget 9
    plain restarts 6 --cache causvid --rollouts 3
    plain 'latent restarts' 9 --cache causvid --rollouts 2 --overlap 6 \
        --restart latent
    same adaptive 18 -p "$one" --size 32x32 --cache memrope --adaptive 1 -- \
        -p "$one" -W 32 -H 32 --cache memrope --adaptive
    same unify 15 -p "$one" --size 32x32 --cache deep-forcing --budget 10 \
        --sink 2 --compress-to 9 --unify 1 -- -p "$one" -W 32 -H 32 \
        --cache deep-forcing --budget 10 --sink 2 --compress-to 9 --unify
    same 'no sink' 12 -p "$one" --size 32x32 --cache infinity --sink 0 \
        --raw-slot0 1 -- -p "$one" -W 32 -H 32 --cache infinity --sink 0 \
        --raw-slot0
    printf '0 %s\n2 %s\n' "$one" "$two" > "$tmp/scenes"
    same scenes 12 -p "$one" --scene "2=$two" --size 32x32 -- \
        --scene-file "$tmp/scenes" -W 32 -H 32
    printf '0 %s\n4 %s\n' "$one" "$two" > "$tmp/late"
    for sink in 0 1; do
        same "re-cache, global sink $sink" 18 -p "$one" --scene "4=$two" \
            --size 32x32 --preset longlive --budget 9 --global-sink $sink -- \
            --scene-file "$tmp/late" -W 32 -H 32 --preset longlive --budget 9 \
            --global-sink $sink
    done
    same 're-cache, no window' 12 -p "$one" --scene "2=$two" --size 32x32 \
        --cache longlive --budget -1 -- --scene-file "$tmp/scenes" -W 32 \
        -H 32 --cache longlive --budget -1
    printf '0 %s\n2# %s\n4 %s\n' "$one" "$two" "$one" > "$tmp/cuts"
    same cuts 18 -p "$one" --scene "2#=$two" --scene "4=$one" --size 32x32 \
        --cache infinity -- --scene-file "$tmp/cuts" -W 32 -H 32 \
        --cache infinity
    same 'demo' 9 -p "$one" -- -p "$one"
    if python3 tests/golden/picture.py "$tmp" 2> /dev/null; then
        same image 24 -p "$one" --size 32x32 --image "$tmp/i.ppm" -- \
            -p "$one" -W 32 -H 32 --image "$tmp/i.png"
        same 'image, fifo' 12 -p "$one" --size 32x32 --image "$tmp/i.ppm" \
            --cache fifo -- -p "$one" -W 32 -H 32 --image "$tmp/i.png" \
            --cache fifo
    else
        skip 'no python3, which makes a picture of one kind and another'
    fi
fi

# ---- what is no setting -------------------------------------------------------
refused() {   # options of golden
    "$golden" -m $model -p "$one" -n 9 --size 16x16 "$@" > "$tmp/said" 2>&1
    is "golden refuses $*" $? 2
}
refused --cache longlive --budget 0
refused --cache reward --sink-keep 1.5
refused --preset longlive --cache fifo

# ---- compilers and machines ----------------------------------------------------
small() {   # program, and what runs it: the digests of a small video
    "$@" -m $model -p "$one" -n 9 --size 16x16 --budget 6 --sink 0 --recent 3
}
small "$golden" > "$tmp/digests"
also() {   # name, what runs it or '', compiler and options...
    name=$1
    run=$2
    shift 2
    if ! command -v "$1" > /dev/null 2>&1; then
        skip "$1 is not installed"
    elif [ -n "$run" ] && ! command -v "$run" > /dev/null 2>&1; then
        skip "$run is not installed"
    elif ! build_golden "$tmp/other" "$@"; then
        fail "$name: $(head -n 3 "$tmp/words")"
    else
        is "$name" "$(small $run "$tmp/other" 2>&1)" "$(cat "$tmp/digests")"
    fi
}
also 'at -O0' '' "$cc" -O0
if [ "$rows" != some ]; then
    for one_cc in gcc clang; do
        for opt in -O0 -O1 -O2 -O3; do also "$one_cc $opt" '' $one_cc $opt; done
        also "$one_cc -march=native" '' $one_cc -O3 -march=native
    done
    also tcc '' tcc
    also zig '' zig cc -O2
    also musl '' musl-gcc -O2 -static
    also AArch64 qemu-aarch64-static aarch64-linux-gnu-gcc -O2 -static
    also riscv64 qemu-riscv64-static riscv64-linux-gnu-gcc -O2 -static
    also s390x qemu-s390x-static s390x-linux-gnu-gcc -O2 -static \
        -fexcess-precision=fast
    also i686 '' i686-linux-gnu-gcc -O2 -static -msse2 -mfpmath=sse
fi

# ---- the lesson ---------------------------------------------------------------
page=src/golden/README.md
mkdir "$tmp/src" "$tmp/src/golden"
cp src/golden/*.[ch] "$tmp/src/golden"
chmod u+w "$tmp/src/golden/"*
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' $page \
    >> "$tmp/src/golden/policies.c"
sed -i.old 's/{&full,/{\&thin, \&full,/' "$tmp/src/golden/cache.c"
sed -i.old 's/^extern const policy full,/extern const policy thin, full,/' \
    "$tmp/src/golden/golden.h"
if (cd "$tmp" && build_golden thin "$cc" -O2); then
    "$tmp/thin" -m $model -p "$one" -n 15 --size 16x16 --cache thin \
        > "$tmp/log" 2>&1
    is 'a video of the policy in the lesson' $? 0
else
    fail "the policy of the lesson: $(head -n 3 "$tmp/words")"
fi
if [ "$rows" = all ]; then
    "$golden" -m $model -p "$one" -n 24 --trace "$tmp/trace" > /dev/null
    awk '/^chunk 7 layer 0 score/ {
        printf "| %d | %.6f | %.6f | %.6f | %s |\n", $7, $9, $11, $13, $14
    }' "$tmp/trace" > "$tmp/decision"
    grep '^| [0-9]* | 0\.' $page > "$tmp/page"
    check 'the decision of the lesson' cmp "$tmp/decision" "$tmp/page"
fi

# ---- what is refused --------------------------------------------------------------
refused() {   # status, words, options...
    want=$1
    words=$2
    shift 2
    "$golden" "$@" > "$tmp/log" 2>&1
    is "golden $*: exit code" $? "$want"
    if grep -q "$words" "$tmp/log"; then pass; else fail "$(cat "$tmp/log")"; fi
}
refused 2 'give a model' -p a
refused 2 'no policy' -m $model -p a --cache none
refused 2 'no option' -m $model -p a --sinks 3
refused 2 'a number' -m $model -p a --sink x
refused 2 'multiples of 16' -m $model -p a --size 30x32
refused 2 'whole chunks' -m $model -p a -n 4
refused 1 'tether convert' -m ref_data -p a
refused 1 'more cleaning' -m $model -p 'a &amp; b'
if [ -c /dev/full ]; then
    refused 1 'is the disk full' -m $model -p "$one" -n 3 --size 16x16 \
        -o /dev/full
    check 'a device is still one' test -c /dev/full
fi
if [ "$rows" = some ]; then finish; else total; fi
