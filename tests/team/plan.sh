#!/bin/sh
# plan.sh: what `generate --plan` says of every rank against what it holds.
#
#   sh tests/team/plan.sh PROGRAM RANKS OPTIONS OF GENERATE...
#
# SPDX-License-Identifier: Apache-2.0
#
# PROGRAM is a build with MPI, MPIRUN its launcher (default: mpirun). A peak is
# the largest RssAnon of the process, asked for many times a second: bytes that
# no file stands behind. A rank fails that is 5 % off, and 1 MB for MPI and what
# a heap and its pages may differ by from run to run. Needs Linux.
program=$1
ranks=$2
shift 2
# shellcheck source=tests/team/mpi.sh
. tests/team/mpi.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/plan.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
start="${MPIRUN:-mpirun} -n $ranks"

# The largest RssAnon of a process, in kB, until it ends.
watch() {   # pid rank
    most=0
    while kill -0 "$1" 2> /dev/null; do
        while read -r name kb rest; do
            [ "$name" = RssAnon: ] && [ "$kb" -gt "$most" ] && most=$kb
        done < "/proc/$1/status" 2> /dev/null
        sleep "${PLAN_PAUSE:-0.003}"
    done
    echo "$2 $most" >> "$work/most"
}

# shellcheck disable=SC2086
$start "$program" generate --plan "$@" > "$work/plan" 2> "$work/said" || {
    cat "$work/said"
    exit 1
}
# shellcheck disable=SC2016,SC2086
$start sh -c 'echo $$ > "$0/pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    exec "$@"' "$work" "$program" generate "$@" -q --overwrite \
    --latents-out "$work/x.st" -o "$work/x.y4m" > "$work/said" 2>&1 &
job=$!
rank=0
watches=
while [ "$rank" -lt "$ranks" ]; do
    until [ -s "$work/pid.$rank" ]; do
        kill -0 "$job" 2> /dev/null || break
        sleep 0.01
    done
    watch "$(cat "$work/pid.$rank")" "$rank" &
    watches="$watches $!"
    rank=$((rank + 1))
done
if ! wait "$job"; then
    cat "$work/said"
    exit 1
fi
# shellcheck disable=SC2086
wait $watches
awk 'NR == FNR { held[$1] = $2 * 1024; next }
    table { far = $6 - held[$1]
        printf "rank %d: planned %.1f MB, held %.1f MB, %+.1f %%\n", $1,
            $6 / 1e6, held[$1] / 1e6, 100 * far / held[$1]
        if (far < 0) far = -far
        if (!held[$1] || far > 0.05 * held[$1] + 1e6) bad = 1
        n++ }
    /^rank, bytes/ { table = 1 }
    END { exit bad || n < 2 }' "$work/most" "$work/plan"
