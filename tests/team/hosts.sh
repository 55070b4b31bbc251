#!/bin/sh
# hosts.sh: three hosts on this machine make one video.
#
#   sh tests/team/hosts.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# Hosts are network namespaces with names of their own (net.sh), which needs
# root and `ip`; without them one line says so. With Open MPI three ranks on
# three hosts make the bytes of one process, latents, video and trace, also over
# links of 100 Mbit/s. (MPICH 4.0 over TCP may hang in MPI_Finalize, and is
# left out.) Then the cable of a host is cut in the
# middle: every process ends within a minute, one sentence names a rank, and one
# process goes on to the same bytes. The last line counts.
build=$1
this=ranks-hosts
. tests/script.sh
. tests/team/mpi.sh
. tests/team/net.sh
if missing=$(net_missing); then
    skip "hosts need $missing: nothing of it was run"
    total
    exit
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/hosts.XXXXXX") || exit 1
tmp=$work/check
mkdir "$tmp"
trap 'net_close; rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
words='generate -q -m ref_data/demo -W 64 -H 64 --seed 1 --cache tether'
prompt='a red circle moves left and bounces, on a blue background'
net_open "$work" || {
    fail "no hosts"
    total
    exit
}

# shellcheck disable=SC2086
alone() {   # folder, options
    to=$1
    shift
    mkdir -p "$to"
    timeout 300 "$build/tether" $words -p "$prompt" "$@" -o "$to/v.y4m" \
        --latents-out "$to/l.st" --trace-cache "$to/t.st"
}

# shellcheck disable=SC2086
generate() {   # folder, options: three ranks, one per host
    to=$1
    shift
    mkdir -p "$to"
    on 1 timeout -k 5 120 $launch -n 3 "$PWD/$tether" $words -p "$prompt" \
        "$@" -o "$to/v.y4m" --latents-out "$to/l.st" --trace-cache "$to/t.st" \
        < /dev/null
}

same() {   # folder
    for file in v.y4m l.st t.st; do cmp "$work/one/$file" "$1/$file" || return 1
    done
}

all_end() {   # within a minute of the cut
    while [ $(($(date +%s) - cut)) -lt 60 ]; do
        [ "$(net_processes | grep -c .)" -gt 0 ] || return 0
        sleep 0.5
    done
    net_processes
    return 1
}

long='--latents 240 --no-decode --checkpoint-every 2'
cut_in_the_middle() {   # host
    mkdir "$work/x"
    log=$work/log
    # shellcheck disable=SC2086
    on 1 timeout -k 5 120 $launch -n 3 "$PWD/$tether" $words -p "$prompt" \
        $long --latents-out "$work/x/l.st" > "$log" 2>&1 < /dev/null &
    job=$!
    begin=$(date +%s)
    until [ -e "$work/x/l.st.state2" ] || ! kill -0 $job 2> /dev/null ||
        [ $(($(date +%s) - begin)) -gt 60 ]; do sleep 0.1; done
    link "$1" down
    cut=$(date +%s)
    check "$mpi: host $1 is cut off: all end" all_end
    wait $job && fail "$mpi: host $1 is cut off, and mpirun says 0"
    link "$1" up
    is "$mpi: host $1 is cut off: sentences" \
        "$(grep -c '^tether: error: ' "$log")" 1
    check "$mpi: it names the rank: $(grep '^tether: ' "$log")" \
        grep '^tether: error: rank [0-2] has .* for [0-9]* s;' "$log"
    # shellcheck disable=SC2086
    check "$mpi: one process goes on" timeout 300 "$build/tether" $words \
        -p "$prompt" $long --latents-out "$work/x/l.st" --resume
    check "$mpi: after the cut: bits" cmp "$work/long.st" "$work/x/l.st"
    rm -rf "$work/x"
}

check "alone" alone "$work/one" --latents 24
# shellcheck disable=SC2086
check "long, alone" "$build/tether" $words -p "$prompt" $long \
    --latents-out "$work/long.st"
for mpi in openmpi; do
    if ! command -v mpicc.$mpi > /dev/null || ! command -v mpirun.$mpi \
        > /dev/null; then
        skip "$mpi is not installed: nothing of it was run"
        continue
    fi
    if ! mpi_build $mpi > "$work/make" 2>&1; then
        fail "$mpi: no build: $(tail -n 1 "$work/make")"
        continue
    fi
    launch=$(net_launch $mpi "$work/agent")
    check "$mpi: three hosts" generate "$work/x" --latents 24
    check "$mpi: three hosts: bits" same "$work/x"
    rm -rf "$work/x"
    if net_rate 100 2> /dev/null; then
        check "$mpi: slow links" generate "$work/x" --latents 24
        check "$mpi: slow links: bits" same "$work/x"
        rm -rf "$work/x"
        net_full_rate
    else
        skip "tc cannot limit a link here: only fast links were tried"
    fi
    cut_in_the_middle 3
done
total
