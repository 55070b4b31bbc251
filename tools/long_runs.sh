#!/bin/sh
# long_runs.sh: do time per chunk and memory stay what they are in long runs?
#
#   sh tools/long_runs.sh BUILD [LATENTS [POLICY...]]      (960, all bounded)
#
# SPDX-License-Identifier: Apache-2.0
#
# One line a policy: the time of a chunk in each quarter of the run, in ms (a
# tenth of the chunks take less, which other work on the machine changes least),
# and the largest resident size after a twentieth of the run and at its end, in
# MB. The demo model at 64x64 on one thread, latents alone: those take 4.1 kB
# each. While the cache fills, chunks are faster: a tenth of the first quarter.
build=$1
latents=${2:-960}
[ $# -ge 2 ] && shift
[ $# -ge 1 ] && shift
policies=${*:-causvid-rolling deep-forcing deep-sink fifo infinity memrope rolling-sink tether}
work=$(mktemp -d "${TMPDIR:-/tmp}/long.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

printf '%-16s %8s %8s %8s %8s %10s %8s\n' policy q1 q2 q3 q4 early end
for p in $policies; do
    "$build/tether" generate -q -t 1 -m ref_data/demo -p red -W 64 -H 64 \
        --latents "$latents" --cache "$p" --no-decode --overwrite \
        --latents-out "$work/x" --log-json "$work/log" || exit 1
    sed -n 's/.*"chunk_seconds": *\([0-9.e+-]*\).*"peak_memory_bytes": *\([0-9]*\).*/\1 \2/p' \
        "$work/log" > "$work/chunks"
    n=$(grep -c . "$work/chunks")
    printf '%-16s' "$p"
    for q in 0 1 2 3; do
        sed -n "$((q * n / 4 + 1)),$(((q + 1) * n / 4))p" "$work/chunks" \
            | sort -g | awk '{ t[NR] = $1 }
                END { printf " %8.2f", 1000 * t[int((NR + 9) / 10)] }'
    done
    awk -v n="$n" '{ m[NR] = $2 / 1e6 }
        END { printf " %10.1f %8.1f\n", m[int((n + 19) / 20)], m[n] }' "$work/chunks"
done
