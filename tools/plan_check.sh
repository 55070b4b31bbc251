#!/bin/sh
# plan_check.sh: what `tether generate --plan` says against what the run takes.
#
#   sh tools/plan_check.sh BUILD [OPTIONS OF GENERATE...]
#
# SPDX-License-Identifier: Apache-2.0
#
# Without options: the demo model at 64x64, 128x128 and 192x192. With options
# one run of them; a large model says its time only on a machine without other
# work. Peaks are anonymous memory, which no file stands behind, in MB: the
# program is asked for it a few hundred times a second. Needs Linux.
build=$1
[ $# -ge 1 ] && shift
work=$(mktemp -d "${TMPDIR:-/tmp}/plan.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# The number of the row that begins so, in bytes or seconds.
row() {   # name column
    awk -v name="$1" -v column="$2" '{
        line = $0
        sub(/^ +/, "", line)
        if (index(line, name "  ") == 1) {
            sub(/^.*  +[0-9.]+ ?[kMGB]*[a-z0-9]* +/, "", line)
            split(line, part, " ")
            print part[1]
            exit
        }
    }' "$work/plan"
}

# The largest RssAnon of a process, in kB, until it ends.
watch() {   # pid
    most=0
    while kill -0 "$1" 2> /dev/null; do
        while read -r name kb rest; do
            [ "$name" = RssAnon: ] && [ "$kb" -gt "$most" ] && most=$kb
        done < "/proc/$1/status" 2> /dev/null
        sleep 0.003
    done
    echo "$most" > "$work/most"
}

compare() {   # words of generate
    "$build/tether" generate --plan "$@" > "$work/plan" || exit 1
    rm -f "$work"/x.*
    begin=$(date +%s.%N)
    "$build/tether" generate "$@" -q --overwrite --latents-out "$work/x.st" \
        -o "$work/x.y4m" &
    pid=$!
    watch "$pid"
    wait "$pid" || exit 1
    end=$(date +%s.%N)
    awk -v planned="$(row peak)" -v kb="$(cat "$work/most")" \
        -v seconds="$(row all)" -v begin="$begin" -v end="$end" 'BEGIN {
        held = kb * 1024
        took = end - begin
        printf "%10.1f %10.1f %+7.1f %% %10.1f %10.1f %+7.1f %%\n",
            planned / 1e6, held / 1e6, 100 * (planned / held - 1), seconds,
            took, 100 * (seconds / took - 1) }'
}

printf '%-10s %10s %10s %9s %10s %10s %9s\n' size planned peak off planned \
    took off
if [ $# -gt 0 ]; then
    printf '%-10s ' given
    compare "$@"
    exit
fi
for size in 64x64 128x128 192x192; do
    printf '%-10s ' "$size"
    compare -m ref_data/demo -p "a red circle moves left" --size "$size" \
        --latents 30
done
