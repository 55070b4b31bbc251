#!/bin/sh
# bench_busy.sh: the default number of threads against one, on a busy machine.
#
#   sh tools/bench_busy.sh BUILD [OPTION=VALUE...]
#     LOADS="0 4 8"   programs that do nothing but run, beside ours
#     QUOTAS="0.5 1 1.5"   CPUs granted by a control group (root only)
#     ROUNDS=5        runs of each kind, one after the other in turn
#     CASES="demo 416x240"
#
# SPDX-License-Identifier: Apache-2.0
#
# Prints for every case and load the median wall seconds of `-t 1` and of the
# default, the median of their ratios, one for each round, and the CPU seconds
# of both: threads that wait in circles show there first. Ends with status 1
# when a ratio is over 1.2.
#
# demo is the built-in model, 64x64. 416x240 is one transformer layer of the
# published width and a sixth of the published VAE, random weights, so that a run
# takes seconds.

case ${1:---help} in
--help) sed -n '3,/^$/s/^# \{0,1\}//p' "$0" | sed '/SPDX/,$d'; exit 0 ;;
esac
build=$1
shift
LOADS="0 4 8" QUOTAS="0.5 1 1.5" ROUNDS=5 CASES="demo 416x240"
for word; do
    case $word in
    LOADS=* | QUOTAS=* | ROUNDS=* | CASES=*)
        eval "${word%%=*}=\${word#*=}" ;;
    *)  echo "bench_busy.sh: unknown word $word" >&2
        exit 2 ;;
    esac
done
tether=$build/tether
[ -x "$tether" ] || { echo "bench_busy.sh: no program $tether" >&2; exit 2; }
case $tether in /*) ;; *) tether=$PWD/$tether ;; esac

work=$(mktemp -d) || exit 1
group=
loops=
stop() {
    # shellcheck disable=SC2086
    [ -z "$loops" ] || kill $loops 2>/dev/null
    loops=
}
finish() {
    stop
    [ -z "$group" ] || rmdir "$group"
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

start() {   # count
    i=0
    while [ "$i" -lt "$1" ]; do
        sh -c 'while :; do :; done' &
        loops="$loops $!"
        i=$((i + 1))
    done
}

# ---- what runs -------------------------------------------------------------

demo=$PWD/ref_data/demo
small=$work/416x240

prepare() {
    mkdir "$small" &&
    ln -s "$demo/google" "$demo/models_t5_umt5-xxl-enc-bf16.safetensors" \
        "$small/" &&
    "$build/tools/make_checkpoint" --layers 1 --ffn 1536 --text-dim 64 \
        --text-len 32 --dtype bf16 --config "$small/config.json" \
        --dit "$small/diffusion_pytorch_model.safetensors" >/dev/null 2>&1 &&
    "$build/tools/make_checkpoint" --vae-dim 16 --vae "$small/Wan2.1_VAE.pth" \
        >/dev/null 2>&1
}

run() {   # case [options]: one video
    video=$work/out.y4m
    kind=$1
    shift
    case $kind in
    demo) set -- -m "$demo" -W 64 -H 64 --latents 21 "$@" ;;
    416x240) set -- -m "$small" -W 416 -H 240 --latents 3 "$@" ;;
    *)  echo "bench_busy.sh: no case $kind" >&2
        exit 2 ;;
    esac
    rm -f "$work"/out.*
    "$tether" generate -q -p "a red circle" -s 1 -o "$video" "$@" || {
        echo "bench_busy.sh: generate $* failed" >&2
        exit 1
    }
}

# ---- measuring -------------------------------------------------------------

# Wall and CPU seconds of one run, in a group with a quota when there is one.
# /proc/uptime counts hundredths; `times` what children took.
timed() {   # case [options]
    (
        [ -z "$group" ] || sh -c 'echo $PPID' > "$group/cgroup.procs"
        read -r before _ < /proc/uptime
        run "$@" || exit 1
        read -r after _ < /proc/uptime
        times > "$work/times"
        tail -n 1 "$work/times" | tr 'ms' '  ' | awk -v wall="$before $after" '{
            split(wall, w, " ")
            print w[2] - w[1], 60 * $1 + $2 + 60 * $3 + $4
        }'
    )
}

median() {   # column file
    cut -d ' ' -f "$1" "$2" | sort -n |
        awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

measure() {   # case what
    : > "$work/rows"
    round=0
    while [ "$round" -lt "$ROUNDS" ]; do
        one=$(timed "$1" -t 1) && all=$(timed "$1") || exit 1
        echo "$one $all" |
            awk '{ print $0, $3 / ($1 > 0 ? $1 : 0.01) }' >> "$work/rows"
        round=$((round + 1))
    done
    ratio=$(median 5 "$work/rows")
    printf '%-9s %-12s %8.2f %8.2f %7.2f   %8.2f %8.2f\n' "$1" "$2" \
        "$(median 1 "$work/rows")" "$(median 3 "$work/rows")" "$ratio" \
        "$(median 2 "$work/rows")" "$(median 4 "$work/rows")"
    awk -v r="$ratio" 'BEGIN { exit r > 1.2 }' || slow="$slow $1 ($2)"
}

# A control group of version 2 or 1 that grants $1 CPUs.
make_group() {   # CPUs
    micro=$(awk -v c="$1" 'BEGIN { printf "%d", c * 100000 }')
    for top in /sys/fs/cgroup /sys/fs/cgroup/cpu; do
        name=$top/tether-bench-$$
        mkdir "$name" 2>/dev/null || continue
        group=$name
        if [ -f "$name/cpu.max" ]; then
            echo "$micro 100000" > "$name/cpu.max" && return
        elif [ -f "$name/cpu.cfs_quota_us" ]; then
            echo 100000 > "$name/cpu.cfs_period_us" &&
                echo "$micro" > "$name/cpu.cfs_quota_us" && return
        fi
        rmdir "$name"
        group=
    done 2>/dev/null
    return 1
}

prepare || { echo "bench_busy.sh: cannot write weights to $small" >&2; exit 1; }
slow=
echo "$(getconf _NPROCESSORS_ONLN) CPUs, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
printf '%-9s %-12s %8s %8s %7s   %8s %8s\n' case "" "-t 1" default ratio \
    "CPU -t 1" default
for load in $LOADS; do
    start "$load"
    for kind in $CASES; do measure "$kind" "load $load"; done
    stop
done
for quota in $QUOTAS; do
    if make_group "$quota"; then
        for kind in $CASES; do measure "$kind" "quota $quota"; done
        rmdir "$group"
        group=
    else
        echo "quota $quota: not run, no control group can be made here"
    fi
done
[ -z "$slow" ] || { echo "over 1.2:$slow"; exit 1; }
echo "the default is never slower than 1.2 times one thread"
