#!/bin/sh
# ranks_check.sh: what `tether bench --ranks` says of a chunk against what ranks
# of this machine take, and how well they share out the computing.
#
#   sh tools/ranks_check.sh PROGRAM "1 2 4" OPTIONS...
#
# SPDX-License-Identifier: Apache-2.0
#
# PROGRAM is a build with MPI. The options are those that bench and generate
# share: -m, -W, -H, --cache, --steps, --class. The last chunk of LATENTS=15
# latents is compared, which a cache with a small budget makes like all later
# ones: --cache fifo:budget=6:sink=3. Every rank has one thread. Numbers of ranks
# take turns, TURNS=2 times, and of each the turn counts in which it took least.
#
#   compute     CPU seconds of all ranks, without those in exchanges
#   efficiency  of computing: one process, divided by that
#   planned     the same by bench, ranks times that of the rank that has most
#   took        seconds of the chunk, on the wall: needs a quiet machine
#   planned     by bench, which measures the link too. CORES=2 (default: those
#               of this machine) are shared by more ranks
#
# EMBEDS=FILE stands for the prompt, MPIRUN="mpirun ..." for the launcher, FIRST
# for words before all: "chrt -f 1" keeps others of the machine away. Status 1
# when a plan of the computing is more than LIMIT=10 % off, or with RATE one of
# the wall.
#
# RATE=MBIT puts ranks on three hosts with cables of so many Mbit/s: network
# namespaces, which need root and Open MPI.
program=$1 ranks=$2
shift 2
# shellcheck source=tests/team/mpi.sh
. tests/team/mpi.sh
# shellcheck source=tests/team/net.sh
. tests/team/net.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/ranks.XXXXXX") || exit 1
trap 'net_close; rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
if [ -n "$RATE" ]; then
    if missing=$(net_missing); then
        echo "hosts need $missing"
        exit 1
    fi
    net_open "$work" && net_rate "$RATE" || exit 1
    MPIRUN=$(net_launch openmpi "$work/agent")
    case $program in
    /*) ;;
    *) program=$PWD/$program ;;
    esac
fi
cores=${CORES:-$(getconf _NPROCESSORS_ONLN)}
if [ -n "$EMBEDS" ]; then text="--embeds $EMBEDS"
else text='-p red'; fi

start() {   # ranks, words of tether
    n=$1
    shift
    # shellcheck disable=SC2086
    if [ "$n" -eq 1 ]; then $FIRST "$program" "$@"
    elif [ -n "$RATE" ]; then on 1 $FIRST $MPIRUN -n "$n" "$program" "$@"
    else $FIRST ${MPIRUN:-mpirun} -n "$n" "$program" "$@"; fi
}

number() {   # name: its last value in a line
    sed -n 's/.*"'"$1"'": *\([0-9.e+-]*\).*/\1/p'
}

# CPU seconds that the last chunk took to compute, and its seconds.
run() {   # ranks, options
    n=$1
    shift
    # shellcheck disable=SC2086
    start "$n" generate "$@" $text -q -t 1 --no-decode --overwrite \
        --latents "${LATENTS:-15}" --latents-out "$work/x.st" \
        --log-json "$work/log" < /dev/null || exit 1
    grep '"event": "chunk"' "$work/log" | tail -n 2 > "$work/last"
    took=$(tail -n 1 "$work/last" | number chunk_seconds)
    if [ "$n" -eq 1 ]; then
        number cpu_seconds < "$work/last" |
            awk -v took="$took" 'NR == 2 { print $1 - before, took }
                { before = $1 }'
    else
        tail -n 1 "$work/last" | sed 's/.*"ranks"//' | tr '{' '\n' |
            sed -n 's/.*"cpu_seconds": \([^,]*\),.*"exchange_cpu_seconds": \([^,]*\),.*/\1 \2/p' |
            awk -v took="$took" '{ sum += $1 - $2 } END { print sum, took }'
    fi >> "$work/took.$n"
}

# Seconds of computing by the rank that has most, and of moving.
plan() {   # ranks, options
    n=$1
    shift
    start "$n" bench --ranks --no-decode -q -t 1 --cpu "$@" --overwrite \
        --json "$work/plan" < /dev/null > /dev/null || exit 1
    tr '\n' ' ' < "$work/plan" | sed 's/"ranks": *\([0-9]\)/\n\1/g' |
        awk -v n="$n" '$1 + 0 == n' > "$work/row"
    compute=$(sed -n 's/.*"compute_seconds": *\([0-9.e+-]*\).*/\1/p' "$work/row")
    all=$(tr '{' '\n' < "$work/row" | grep '"link"' | tail -n 1 |
        sed 's/"efficiency".*//' | number chunk_seconds)
    echo "$compute $all" > "$work/plan.$n"
}

turn=0
while [ $turn -lt "${TURNS:-2}" ]; do
    for n in $ranks; do run "$n" "$@"; done
    turn=$((turn + 1))
done
for n in $ranks; do plan "$n" "$@"; done

status=0
printf '%5s %9s %10s %9s %8s %9s %9s %8s\n' ranks compute efficiency planned \
    off took planned off
for n in $ranks; do
    sort -n "$work/took.$n" | head -n 1 > "$work/best"
    awk '{ print $2 }' "$work/took.$n" | sort -n | head -n 1 >> "$work/best"
    [ -n "$alone" ] || alone=$(awk 'NR == 1 { print $1 }' "$work/best")
    awk -v n="$n" -v alone="$alone" -v cores="$cores" -v limit="${LIMIT:-10}" \
        -v rate="$RATE" '
        FILENAME ~ /best$/ { if (FNR == 1) sum = $1; else took = $1; next }
        { planned = n * $1
          share = n > cores ? n / cores : 1
          wall = $1 * share + ($2 - $1) }
        END {
            off = 100 * (planned / sum - 1)
            printf "%5d %9.2f %10.3f %9.2f %+6.1f %% %9.2f %9.2f %+6.1f %%\n",
                n, sum, alone / sum, planned, off, took, wall,
                100 * (wall / took - 1)
            if (rate) off = 100 * (wall / took - 1)
            exit (off < 0 ? -off : off) > limit }' "$work/best" \
        "$work/plan.$n" || status=1
done
exit $status
