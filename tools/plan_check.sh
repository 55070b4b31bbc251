#!/bin/sh
# plan_check.sh: what `tether generate --plan` says against what the run takes.
#
#   sh tools/plan_check.sh BUILD [OPTIONS OF GENERATE...]
#
# SPDX-License-Identifier: Apache-2.0
#
# Without options: the demo model at 64x64, 128x128 and 192x192. With options
# one run of them; --latents 3 and --steps 1000 shorten it. Peaks are anonymous
# memory, which no file stands behind, in MB. One thread, unless -t says
# otherwise: then seconds are those that the process computes, which other work
# on the machine changes by some percent only. With -t 2 they are those of the
# clock on the wall, which needs a machine without other work. The plan is made
# before the run and after it, and its mean time is compared; the second one
# waits, because pages that a run has just given back come faster. The system is
# asked for the memory every STEP=0.02 seconds. Status 1 when a peak is off by
# more than 5 %, or the time by more than LIMIT=15 %. Needs Linux.
build=$1
[ $# -ge 1 ] && shift
limit=${LIMIT:-15} step=${STEP:-0.02} pid= status=0
work=$(mktemp -d "${TMPDIR:-/tmp}/plan.XXXXXX") || exit 1
trap '[ -z "$pid" ] || kill -KILL "$pid"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The number of the row that begins so, in bytes or seconds.
row() {   # plan name
    awk -v name="$2" '{
        line = $0
        sub(/^ +/, "", line)
        if (index(line, name "  ") == 1) {
            sub(/^.*  +[0-9.]+ ?[kMGB]*[a-z0-9]* +/, "", line)
            split(line, part, " ")
            print part[1]
            exit
        }
    }' "$work/$1"
}

# The largest RssAnon of a process, in kB, until it ends.
watch() {   # pid
    most=0
    while kill -0 "$1" 2> /dev/null; do
        while read -r name kb rest; do
            [ "$name" = RssAnon: ] && [ "$kb" -gt "$most" ] && most=$kb
        done < "/proc/$1/status" 2> /dev/null
        sleep "$step"
    done
    echo "$most" > "$work/most"
}

# Seconds of the whole run.
took() {   # seconds or cpu_seconds
    sed -n 's/.*"event": *"end".*"'"$1"'": *\([0-9.e+-]*\),.*/\1/p' "$work/log"
}

compare() {   # words of generate
    clock=seconds
    case " $* " in
    *' -t 1 '*) clock=cpu_seconds ;;
    esac
    video="-o $work/x.y4m"
    case " $* " in
    *' --no-decode '*) video= ;;
    esac
    "$build/tether" generate --plan "$@" > "$work/before" || exit 1
    # shellcheck disable=SC2086
    "$build/tether" generate "$@" -q --overwrite $video \
        --latents-out "$work/x.st" --log-json "$work/log" &
    pid=$!
    watch "$pid"
    wait "$pid" || exit 1
    pid=
    sleep 5
    "$build/tether" generate --plan "$@" > "$work/after" || exit 1
    awk -v planned="$(row before peak)" -v kb="$(cat "$work/most")" \
        -v before="$(row before all)" -v after="$(row after all)" \
        -v took="$(took $clock)" -v limit="$limit" 'BEGIN {
        held = kb * 1024
        seconds = (before + after) / 2
        more = planned - held
        off = 100 * (seconds / took - 1)
        bad = (more < 0 ? -more : more) > 0.05 * held \
              || (off < 0 ? -off : off) > limit
        printf "%10.1f %10.1f %+7.1f %% %10.2f %10.2f %+7.1f %%%s\n",
            planned / 1e6, held / 1e6, 100 * more / held, seconds, took, off,
            bad ? "  OFF" : ""
        exit bad }' || status=1
}

printf '%-10s %10s %10s %9s %10s %10s %9s\n' size planned peak off planned \
    took off
if [ $# -gt 0 ]; then
    printf '%-10s ' given
    case " $* " in
    *' -t '*) compare "$@" ;;
    *) compare -t 1 "$@" ;;
    esac
    exit $status
fi
for size in 64x64 128x128 192x192; do
    printf '%-10s ' "$size"
    compare -t 1 -m ref_data/demo -p "a red circle moves left" --size "$size" \
        --latents 30
done
exit $status
