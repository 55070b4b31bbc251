#!/bin/sh
# run.sh: fuzz every target for some seconds, JOBS at a time (as many as cores).
#
# SPDX-License-Identifier: Apache-2.0
#
#   run.sh FOLDER SECONDS [NAME...]
# FOLDER holds the programs fuzz_NAME linked with libFuzzer; the corpora grow
# in FOLDER/corpus/NAME and are kept, findings are written to
# FOLDER/findings/NAME-*. The first run seeds a corpus from ref_data. Seconds
# are per target. Ends with the counts; status 1 when there are findings.
here=$1
seconds=$2
shift 2
names=${*:-safetensors index zip pickle gguf spm json picture y4m shows dump trace state text lora weights}
mkdir -p "$here/findings"

seed() {   # name -> corpus folder with the files of ref_data
    to=$here/corpus/$1
    [ -d "$to" ] && return
    mkdir -p "$to"
    case $1 in
    safetensors)
        for f in ref_data/formats/*.safetensors; do   # 0xff: file as given
            { printf '\377'; cat "$f"; } > "$to/$(basename "$f")"
            tail -c +9 "$f" | head -c 4000 > "$to/h_$(basename "$f")"
        done ;;
    index) for d in ref_data/formats/index_*; do
               cp "$d/model.safetensors.index.json" "$to/$(basename "$d")"
           done ;;
    zip) cp ref_data/formats/*.pt "$to" ;;
    pickle) for f in ref_data/formats/*.pt; do
               unzip -p "$f" '*/data.pkl' > "$to/$(basename "$f").pkl" 2>/dev/null
           done
           find "$to" -size 0 -delete ;;
    gguf) cp ref_data/formats/*.gguf "$to" ;;
    spm) cp ref_data/t5_tokenizer/*.model "$to" ;;
    json) find ref_data/ -name '*.json' -size -8k -exec sh -c \
              'cp "$1" "$2/$(echo "$1" | tr / _)"' _ {} "$to" \; ;;
    picture) find ref_data/ -name '*.png' -size -60k -exec cp {} "$to" \; ;;
    y4m) printf 'YUV4MPEG2 W4 H2 F16:1 Ip A1:1 C420jpeg\nFRAME\n123456789012' \
             > "$to/a"
         printf 'YUV4MPEG2 W2 H2 F25:1 C444 XCOLORRANGE=FULL\nFRAME\n123456789012FRAME\n123456789012' \
             > "$to/b"
         printf 'YUV4MPEG2 W3 H3 Cmono\nFRAME Ip\n123456789' > "$to/c" ;;
    state) for p in 00 01 02 03 04 05 06 07 10 11 12 13; do
               printf "\\0$p\\000\\005\\000\\051" > "$to/$p"
           done ;;
    dump | trace | lora) printf '\007\001' > "$to/whole" ;;
    esac
    # small inputs that were worth keeping
    [ -d "ref_data/fuzz/$1" ] && cp "ref_data/fuzz/$1"/* "$to" 2>/dev/null
    return 0
}

# --one: fuzz a target, say what came of it.
one() {   # name
    seed "$1"
    log=$here/$1.log
    "$here/fuzz_$1" -max_total_time="$seconds" -max_len=65536 -timeout=5 \
        -rss_limit_mb=1024 -malloc_limit_mb=512 -print_final_stats=1 \
        -artifact_prefix="$here/findings/$1-" "$here/corpus/$1" \
        > "$log" 2>&1
    rc=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
    echo "fuzz $1: status $rc, ${runs:-0} runs, peak ${peak:-?} MB"
    [ "$rc" -eq 0 ] && return
    grep -E 'SUMMARY|ERROR|runtime error|fuzz target' "$log" | head -n 5
    return 1
}

if [ "${1:-}" = --one ]; then
    one "$2"
    exit
fi

# shellcheck disable=SC2086
printf '%s\n' $names | xargs -P "${JOBS:-$(getconf _NPROCESSORS_ONLN)}" -L 1 \
    sh "$0" "$here" "$seconds" --one || exit 1
