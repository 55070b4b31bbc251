#!/bin/sh
# kill.sh: ranks that meet a fault at a random moment, and their runs go on.
#
#   sh tests/team/kill.sh BUILD FAULTS [SEED [KINDS]]
#
# SPDX-License-Identifier: Apache-2.0
#
# BUILD is a build without MPI: its program makes what must come out, and is the
# one process among the numbers of ranks. A video is begun on 1 to 5 ranks of an
# MPI that is installed. Up to three times one of them, any of them, meets a
# fault at a moment of its run; each time another number of ranks goes on with
# --resume, from a saved state where there is one. The last ends: are its files
# those of one process, byte for byte, and is nothing else left? Until FAULTS
# faults came before the end of their runs. A run of deep-forcing that has a
# chunk but no state yet starts over. One whose states could not be written
# refuses to go on, and is begun again. The last line counts.
#
# KINDS of faults, between blanks; one word alone is drawn always:
#   kill   the rank gets kill -9
#   stop   it gets kill -STOP
#   nan    its weights in memory become NaN, all of them
#   full   the disk of rank 0 is full: a small one in memory; needs root
#   cut    the cable of its host is cut: ranks then run on three hosts (net.sh)
# After each of them all processes must have ended within a minute; of a rank
# that hangs, computes NaN or is cut off one sentence must name it.
build=$1
faults=${2:-100}
seed=${3:-1}
harms=${4:-kill}
this=ranks-kill
. tests/script.sh
. tests/team/mpi.sh
. tests/team/net.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/kills.XXXXXX") || exit 1
tmp=$work/check
mkdir "$tmp"
leave() {
    [ -z "$hosts" ] || net_close
    umount "$work/disk" || umount -l "$work/disk"
    rm -rf "$work"
} 2> /dev/null
hosts=
job=
trap leave EXIT
# A job in the background hears no Ctrl-C; its files keep the disk busy.
trap '[ -z "$job" ] || { kill "$job" && wait "$job"; } 2> /dev/null
    exit 130' HUP INT TERM
x=$work/disk/x
mkdir "$work/disk"

without() {   # kind, what is missing: it is not drawn
    skip "no fault of the kind $1: $2"
    harms=$(echo " $harms " | sed "s/ $1 / /")
}
case $harms in *full*)
    mount -t tmpfs -o size=32m tether "$work/disk" 2> /dev/null ||
        without full "no disk in memory can be mounted here" ;;
esac
case $harms in *cut*)
    if missing=$(net_missing); then without cut "hosts need $missing"
    else
        hosts=1
        net_open "$work" || {
            fail "no hosts"
            total
            exit
        }
    fi ;;
esac
nharms=$(echo "$harms" | wc -w)

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
installed='openmpi mpich'
[ -z "$hosts" ] || installed=openmpi   # see hosts.sh
for mpi in $installed; do
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

next_run() {
    rm -f "$work"/pid.* "$work/log"
    draw 2
    for mpi in $mpis; do [ $drawn -eq 0 ] || break; done
}

run() {   # options; on $ranks ranks, to the end or until a signal
    more=$1
    launch=mpirun.$mpi
    [ -z "$hosts" ] || launch=$(net_launch "$mpi" "$work/agent")
    # shellcheck disable=SC2086
    if [ "$ranks" -eq 1 ]; then set -- "$work/alone"
    else set -- $launch -n "$ranks" "$work/$mpi"; fi
    [ -z "$hosts" ] || set -- ip netns exec "$net_name-1" "$@"
    # shellcheck disable=SC2086
    exec timeout -k 5 300 "$@" $words -p "$prompt" $more \
        --latents-out "$x/l.st" --resume < /dev/null > "$work/log" 2>&1
}

now() {   # milliseconds
    echo $(($(date +%s%N) / 1000000))
}

# ---- one video, killed and gone on with -------------------------------------

hit=0
states=0
late=0
slowest=0

# All of them are finite, and no byte of NaN is.
poison() {   # process
    range=$(awk '/diffusion_pytorch_model/ { print $1; exit }' "/proc/$1/maps")
    [ -n "$range" ] || return 1
    at=$((0x${range%-*} / 4096 + 2))
    n=$((0x${range#*-} / 4096 - at))
    head -c $((n * 4096)) /dev/zero | tr '\000' '\377' |
        dd of="/proc/$1/mem" bs=4096 seek=$at conv=notrunc iflag=fullblock
}

harm() {   # kind, rank, its process
    case $1 in
    kill) kill -9 "$3" ;;
    stop) kill -STOP "$3" ;;
    nan) kill -0 "$3" && { poison "$3" || :; } ;;  # it may end meanwhile
    full) kill -0 "$3" && ! cat /dev/zero > "$work/disk/fill" ;;
    cut) kill -0 "$3" && link $((1 + $2 % 3)) down ;;
    esac 2> /dev/null
}

# The words of the kind of a fault: who is named, and why. Policies that score
# keys see NaN before the network does, on all ranks.
keys='keys or queries hold NaN\|queries or keys hold NaN'
words_of() {   # kind, rank
    case $1$2 in
    stop*) echo "rank $2 has been silent for [0-9]* s" ;;
    nan0) echo "tensor .* holds NaN\\|$keys" ;;
    nan*) echo "rank $2: .*tensor .* holds NaN\\|$keys" ;;
    full*) echo 'No space left on device' ;;
    cut*) echo 'rank [0-9] has .* for [0-9]* s' ;;
    esac
}

# Ranks of the run that are there.
still_there() {
    for file in "$work"/pid.*; do
        kill -0 "$(cat "$file")" 2> /dev/null && echo "$file"
    done
}

look_at_end() {   # kind, rank
    while [ -n "$(still_there)" ] && [ $(($(now) - begin)) -lt 60000 ]; do
        sleep 0.2
    done
    took=$(($(now) - begin))
    is "$story: $1 of rank $2 of $ranks ($mpi): there after $took ms" \
        "$(still_there)" ''
    [ "$1" != kill ] || return
    [ "$1" = cut ] && grep -q "^wrote $x/l.st" "$work/log" && return   # done
    tr '\r' '\n' < "$work/log" | grep -v 'chunk [0-9]*/' > "$work/said"
    is "$story: $1 of rank $2 of $ranks ($mpi): sentences with its words \
($(tail -n 12 "$work/said"))" "$(grep 'tether: error: ' "$work/said" |
        grep -c "$(words_of "$1" "$2")")" 1
}

# One process that hangs is nobody's; others wait for the first chunk, since
# before it ranks compare their weights and MPI may still begin.
draw_harm() {
    draw "$nharms"
    # shellcheck disable=SC2086
    set -- $harms
    shift "$drawn"
    harm=$1
    case $ranks$harm in 1stop | 1cut) harm=kill ;; esac
    [ "$harm" != kill ] || return 0
    until grep -q 'chunk [0-9]*/' "$work/log" 2> /dev/null; do
        kill -0 "$job" 2> /dev/null || return 1
        sleep 0.05
    done
}

# A fault of one of `ranks` after $1 milliseconds: rc of its run. False: it had
# begun to end, or had not begun.
strike() {
    rc=
    draw_harm || return 1
    [ $harm = kill ] || set -- $(($1 / 4))   # one chunk is done
    sleep "$(awk "BEGIN { print $1 / 1000 }")"
    draw "$ranks"
    rank=$drawn
    victim=$(cat "$work/pid.$rank" 2> /dev/null) || return 1
    begin=$(now)
    harm $harm "$rank" "$victim" || return 1
    wait "$job" 2> /dev/null
    rc=$?
    took=$(($(now) - begin))
    [ $rc -eq 0 ] || look_at_end $harm "$rank"
    kill -CONT "$victim" 2> /dev/null   # it had ended before
    rm -f "$work/disk/fill"
    [ $harm != cut ] || link $((1 + rank % 3)) up
    [ $took -lt 60000 ] || fail "$story: it took $took ms to end"
    [ $rc -ne 0 ] || return 1
    [ $took -le $slowest ] || slowest=$took
    eval "met_$harm=\$((met_$harm + 1))"
}
met_kill=0 met_stop=0 met_nan=0 met_full=0 met_cut=0

look_at_log() {
    ! grep -q 'chunk at most and starts over' "$work/log" || over=$((over + 1))
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
    rm -rf "$x"
    mkdir "$x"
}
over=0

whole() {   # kind
    cmp "$work/want.$1/l.st" "$x/l.st" &&
        [ "$(ls "$x")" = l.st ]
}

video() {   # kind
    kind=$1
    draw 3
    again="$(options "$kind") --checkpoint-every $((1 + drawn))"
    draw 3
    kills=$((1 + drawn))
    story="kind $kind, draws from $seed"
    rm -rf "$x"
    mkdir "$x"
    chain=
    while :; do
        before=${ranks:-0}
        draw 5
        ranks=$((1 + drawn))
        [ $ranks -ne "$before" ] || ranks=$((1 + ranks % 5))
        chain="$chain $ranks"
        next_run
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
    mkdir "$x"
    ranks=1
    next_run
    (run "$(options $kind)")
    check "kind $kind alone: $(tail -n 1 "$work/log")" test -s "$x/l.st"
    mv "$x" "$work/want.$kind"
    kind=$((kind + 1))
done
for ranks in 1 3; do   # how long a run takes here
    mkdir "$x"
    begin=$(now)
    next_run
    (run "$(options 0) --checkpoint-every 1")
    eval "usual_$((ranks > 1))=$(($(now) - begin))"
    check "on $ranks ranks" whole 0
    rm -rf "$x"
done

videos=0
while [ $hit -lt "$faults" ] && [ $videos -lt $((4 * faults)) ]; do
    draw $nkinds
    video "$drawn"
    videos=$((videos + 1))
    [ $((videos % 10)) -ne 0 ] ||
        echo "$hit faults in $videos videos, $failed failed"
done
check "not one of $faults faults came before the end of its run" [ $hit -gt 0 ]
echo "$hit faults in $videos videos (kill $met_kill, stop $met_stop, nan $met_nan, full $met_full, cut $met_cut); $taken runs went on from chunks, $states of them from a state alone; the others ended after $slowest ms at most; $late came too late, $over runs had no state yet and started over"
total
