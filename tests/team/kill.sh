#!/bin/sh
# kill.sh: ranks that are killed at random moments, and their runs go on.
#
#   sh tests/team/kill.sh BUILD FAULTS [SEED]
#
# SPDX-License-Identifier: Apache-2.0
#
# BUILD is a build without MPI: its program makes what must come out, and is the
# one process among the numbers of ranks. A video is begun on 1 to 5 ranks of an
# MPI that is installed. Up to three times one of them, any of them, gets
# `kill -9` at a moment of its run; each time another number of ranks goes on
# with --resume, from a saved state where there is one. The last ends: are its
# files those of one process, byte for byte, and is nothing else left? Until
# FAULTS kills came before the end of their runs. A run of deep-forcing that has
# chunks but no state yet refuses to go on, and starts over. The last line
# counts.
build=$1
faults=${2:-100}
seed=${3:-1}
this=ranks-kill
. tests/script.sh
. tests/team/mpi.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/kills.XXXXXX") || exit 1
tmp=$work/check
mkdir "$tmp"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM

draw() {   # a number below $1 into $drawn
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 65536 % $1))
}

# ---- videos -----------------------------------------------------------------

nkinds=7
options() {   # kind
    case $1 in
    0) echo '--cache tether --latents 60' ;;
    1) echo '--cache deep-forcing --latents 60' ;;
    2) echo '--cache memrope --adaptive --latents 48' ;;
    3) echo '--cache deep-forcing --fusion max --latents 36' ;;
    4) echo '--cache infinity --latents 48' ;;
    5) echo '--cache causvid --latents 15 --rollouts 3 --restart latent' ;;
    6) echo '--cache tether --latents 36 --class amx' ;;
    esac
}

words='generate -m ref_data/demo -W 64 -H 64 --seed 1 --no-decode'
prompt='a red circle moves left and bounces, on a blue background'

# MPIs that are here, with a program each.
mpis=
for mpi in openmpi mpich; do
    if ! command -v mpicc.$mpi > /dev/null || ! command -v mpirun.$mpi \
        > /dev/null; then
        skip "$mpi is not installed: nothing of it was run"
    elif ! mpi_build $mpi > "$work/make" 2>&1; then
        fail "$mpi: no build: $(tail -n 1 "$work/make")"
    else
        mpis="$mpis $mpi"
        cat > "$work/$mpi" << SCRIPT
#!/bin/sh
echo \$\$ > "$work/pid.\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-0}}"
exec "$PWD/$tether" "\$@"
SCRIPT
        chmod +x "$work/$mpi"
    fi
done
if [ -z "$mpis" ]; then
    total
    exit
fi
cat > "$work/alone" << SCRIPT
#!/bin/sh
echo \$\$ > "$work/pid.0"
exec "$PWD/$build/tether" "\$@"
SCRIPT
chmod +x "$work/alone"

run() {   # options; on $ranks ranks, to the end or until a signal
    more=$1
    rm -f "$work"/pid.*
    draw 2
    for mpi in $mpis; do [ $drawn -eq 0 ] || break; done
    if [ "$ranks" -eq 1 ]; then set -- "$work/alone"
    else set -- "mpirun.$mpi" -n "$ranks" "$work/$mpi"; fi
    # shellcheck disable=SC2086
    exec timeout 300 "$@" $words -p "$prompt" $more \
        --latents-out "$work/x/l.st" --resume < /dev/null > "$work/log" 2>&1
}

now() {   # milliseconds
    echo $(($(date +%s%N) / 1000000))
}

# ---- one video, killed and gone on with -------------------------------------

hit=0
states=0
late=0
slowest=0

# Kill one of `ranks` after $1 milliseconds: rc of its run. False: it had begun
# to end, or had not begun.
strike() {
    rc=
    sleep "$(awk "BEGIN { print $1 / 1000 }")"
    draw "$ranks"
    victim=$(cat "$work/pid.$drawn" 2> /dev/null) || return 1
    kill -9 "$victim" 2> /dev/null || return 1
    begin=$(now)
    wait "$job" 2> /dev/null
    rc=$?
    took=$(($(now) - begin))
    [ $took -lt 60000 ] || fail "$story: it took $took ms to end"
    [ $rc -ne 0 ] || return 1
    [ $took -le $slowest ] || slowest=$took
}

look_at_log() {
    if grep -q 'from their saved state\|rebuilding the cache' "$work/log"; then
        taken=$((taken + 1))
        grep -q 'from their saved state' "$work/log" && states=$((states + 1))
    fi
}
taken=0

# Was the run refused because only a state goes on with its policy?
must_start_over() {
    case $kind in 1|3) ;; *) return 1 ;; esac
    grep -q 'no saved cache.*start over: --overwrite' "$work/log" || return 1
    over=$((over + 1))
    rm -rf "$work/x"
    mkdir "$work/x"
}
over=0

whole() {   # kind
    cmp "$work/want.$1/l.st" "$work/x/l.st" &&
        [ "$(ls "$work/x")" = l.st ]
}

video() {   # kind
    kind=$1
    draw 3
    again="$(options "$kind") --checkpoint-every $((1 + drawn))"
    draw 3
    kills=$((1 + drawn))
    story="kind $kind, draws from $seed"
    rm -rf "$work/x"
    mkdir "$work/x"
    chain=
    while :; do
        before=${ranks:-0}
        draw 5
        ranks=$((1 + drawn))
        [ $ranks -ne "$before" ] || ranks=$((1 + ranks % 5))
        chain="$chain $ranks"
        (run "$again") &
        job=$!
        if [ $kills -gt 0 ]; then
            kills=$((kills - 1))
            eval "usual=\$usual_$((ranks > 1))"
            draw "$usual"
            if strike "$drawn"; then
                hit=$((hit + 1))
                look_at_log
                continue
            fi
            late=$((late + 1))
        else rc=; fi
        if [ -z "$rc" ]; then
            wait "$job" 2> /dev/null
            rc=$?
        fi
        look_at_log
        [ $rc -ne 0 ] && must_start_over || break
    done
    check "$story: ranks$chain: ends ($rc): $(tail -n 1 "$work/log")" \
        [ $rc -eq 0 ]
    check "$story: ranks$chain: bits" whole "$kind"
}

kind=0
while [ $kind -lt $nkinds ]; do
    mkdir "$work/x"
    ranks=1
    (run "$(options $kind)")
    check "kind $kind alone: $(tail -n 1 "$work/log")" test -s "$work/x/l.st"
    mv "$work/x" "$work/want.$kind"
    kind=$((kind + 1))
done
for ranks in 1 3; do   # how long a run takes here
    mkdir "$work/x"
    begin=$(now)
    (run "$(options 0) --checkpoint-every 1")
    eval "usual_$((ranks > 1))=$(($(now) - begin))"
    check "on $ranks ranks" whole 0
    rm -rf "$work/x"
done

videos=0
while [ $hit -lt "$faults" ] && [ $videos -lt $((4 * faults)) ]; do
    draw $nkinds
    video "$drawn"
    videos=$((videos + 1))
    [ $((videos % 10)) -ne 0 ] ||
        echo "$hit kills in $videos videos, $failed failed"
done
check "not one of $faults kills came before the end of its run" [ $hit -gt 0 ]
echo "$hit ranks killed in $videos videos; $taken runs went on from chunks, $states of them from a state alone; the others ended after $slowest ms at most; $late kills came too late, $over runs had no state yet and started over"
total
