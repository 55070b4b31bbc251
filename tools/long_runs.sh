#!/bin/sh
# long_runs.sh: do time per chunk, memory and open files stay what they are in
# long runs?
#
#   sh tools/long_runs.sh BUILD [LATENTS [POLICY...]]    (3000, all bounded)
#
# SPDX-License-Identifier: Apache-2.0
#
# The demo model at SIZE=16x16 on one thread, latents alone, with a saved state
# every 20 chunks, and no more than 24 open files: a run that leaves one behind
# in every chunk or state dies of it. MODEL chooses another model. Times are CPU
# milliseconds of the process, medians. When a run has three of its quarters, a
# second one begins. Both then share the machine until the first one ends, so
# other work on it changes both alike. With taskset they share one core, whose
# neighbours are not those of another one: CPU=0. One line a policy:
#
#   first, last    a chunk of the second run behind its window; one of the last
#                  quarter; by how much it takes more
#   state          what a saved state takes more, in the first and last quarter
#   early, end     largest resident size in MB after a twentieth of the chunks
#                  and at the end; by how much it grew beyond the latents
#
# Status 1 when a chunk takes LIMIT=1 % more, or memory grew by 1 MB. On a busy
# machine a median may be off by 3 %, more than that where many programs run.
build=$1
latents=${2:-3000}
[ $# -ge 2 ] && shift
[ $# -ge 1 ] && shift
policies=${*:-causvid-rolling deep-forcing deep-sink fifo infinity memrope rolling-sink tether}
model=${MODEL:-ref_data/demo} size=${SIZE:-16x16} limit=${LIMIT:-1}
work=$(mktemp -d "${TMPDIR:-/tmp}/long.XXXXXX") || exit 1
first= second= status=0
end_runs() {
    for pid in $first $second; do
        kill -KILL "$pid" && wait "$pid"
    done 2> /dev/null
}
trap 'end_runs; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
each=20                                 # chunks between two states
window=20                               # chunks until every window is full
all=$((latents / 3))
pin=
! taskset -c "${CPU:-0}" true 2> /dev/null || pin="taskset -c ${CPU:-0}"

run() {   # name policy
    rm -f "$work/$1"*
    (ulimit -n 24; exec $pin "$build/tether" generate -q -t 1 -m "$model" -p red \
        --size "$size" --latents "$latents" --cache "$2" --no-decode \
        --checkpoint-every $each --latents-out "$work/$1" \
        --log-json "$work/$1.log") 2> "$work/$1.err" &
}

chunks() {   # name
    cat "$work/$1.log" 2> /dev/null | grep -c '"event": "chunk"'
}

# Until the run has so many chunks, or has ended.
wait_for() {   # pid name chunks
    while kill -0 "$1" 2> /dev/null && [ "$(chunks "$2")" -lt "$3" ]; do
        sleep 0.2
    done
}

# A line a chunk: its number, its milliseconds, peak memory in MB.
lines_of() {   # name
    sed -n 's/.*"cpu_seconds": *\([0-9.e+-]*\),.*"chunk": *\([0-9]*\),.*"peak_memory_bytes": *\([0-9]*\).*/\2 \1 \3/p' \
        "$work/$1.log" \
        | awk '{ if (NR > 1) print $1, 1000 * ($2 - before), $3 / 1e6
                 before = $2 }'
}

# The median of the chunks from..to: with a state, or without.
median() {   # name from to states?
    lines_of "$1" | awk -v from="$2" -v to="$3" -v each=$each -v with="$4" \
        '$1 >= from && $1 < to && ($1 % each == each - 1) == with { print $2 }' \
        | sort -g | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

printf '%-16s %8s %8s %8s %15s %8s %8s %8s\n' policy first last more \
    'state' early end grew
for p in $policies; do
    run a "$p"
    first=$!
    wait_for "$first" a $((all * 3 / 4))
    kill -STOP "$first" 2> /dev/null
    run b "$p"
    second=$!
    wait_for "$second" b $window
    kill -CONT "$first" 2> /dev/null
    wait "$first" || { cat "$work/a.err"; exit 1; }
    kill -KILL "$second" 2> /dev/null
    wait "$second" 2> /dev/null
    first= second=
    [ "$(chunks a)" -eq "$all" ] || { echo "$p: chunks are missing"; exit 1; }
    bytes=$(wc -c < "$work/a")
    plain=$(median a $window $((all / 4)) 0) late=$(median a $((all * 3 / 4)) "$all" 0)
    lines_of a | awk -v p="$p" -v n="$all" -v bytes="$bytes" -v limit="$limit" \
        -v first="$(median b $window "$all" 0)" -v last="$late" \
        -v early="$(median a $window $((all / 4)) 1)" -v plain="$plain" \
        -v late="$(median a $((all * 3 / 4)) "$all" 1)" '
        $1 <= n / 20 { m = $3 }
        { end = $3 }
        END {
            more = 100 * (last / first - 1)
            grew = end - m - 0.95 * bytes / 1e6
            bad = more > limit || grew > 1
            printf "%-16s %8.3f %8.3f %+6.2f %% %7.2f %7.2f %8.2f %8.2f %8.2f%s\n",
                p, first, last, more, early - plain, late - last, m, end, grew,
                bad ? "  GROWS" : ""
            exit bad
        }' || status=1
done
exit $status
