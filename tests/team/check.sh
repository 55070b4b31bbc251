#!/bin/sh
# check.sh: `mpirun tether generate` against one process.
#
#   sh tests/team/check.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# BUILD is a build without MPI: its program makes what must come out. For every
# MPI that is installed a program is built, and runs on 1 to 4 ranks of this
# machine: latents, decoded video and trace of the policies that sum over heads
# and of some that do not; another class; dumps, with tensors injected, and with
# the VAE's values; run folders; more ranks than a latent frame has rows; ranks
# on different instruction sets.
# Then what must end in one sentence: different options, options that one rank
# refuses; and a build without MPI. Ranks that are killed go on from their saved
# states on other numbers of ranks. Says what was not run.
# The last line counts.
build=$1
this=ranks
. tests/script.sh
. tests/team/mpi.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/ranks.XXXXXX") || exit 1
tmp=$work
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
model=ref_data/demo
prompt='a red circle moves left and bounces, on a blue background'
words="generate -q -m $model -W 64 -H 64 --seed 1"

generate() {   # folder, options, then the command before `generate`
    mkdir -p "$1"
    to=$1
    options=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 300 "$@" $words -p "$prompt" $options -o "$to/v.y4m" \
        --latents-out "$to/l.safetensors" --trace-cache "$to/t.safetensors" \
        --overwrite > "$to/log" 2>&1 < /dev/null
}

same() {   # folder of one process, folder of ranks
    for file in l.safetensors v.y4m t.safetensors; do
        cmp "$1/$file" "$2/$file" || return 1
    done
}

# One run of every kind, alone.
kinds='tether memrope deep infinity bf16'
options() {   # kind
    case $1 in
    tether) echo '--cache tether --latents 30' ;;
    memrope) echo '--cache memrope --adaptive --latents 18' ;;
    deep) echo '--cache deep-forcing --latents 24' ;;
    infinity) echo '--cache infinity --latents 12' ;;
    bf16) echo '--cache tether --latents 24 --class amx' ;;
    esac
}
for kind in $kinds; do
    check "$kind on one rank" generate "$work/$kind" "$(options $kind)" "$build/tether"
done

one_sentence() {   # words that must stand in the only line of tether's
    [ "$(grep -c '^tether: ' "$work/x/log")" -eq 1 ] &&
        grep '^tether: ' "$work/x/log" | grep "$1"
}

for mpi in openmpi mpich; do
    if ! command -v mpicc.$mpi > /dev/null || ! command -v mpirun.$mpi \
        > /dev/null; then
        skip "$mpi is not installed: nothing of it was run"
        continue
    fi
    if ! mpi_build $mpi > "$work/make" 2>&1; then
        fail "$mpi: no build: $(tail -n 1 "$work/make")"
        continue
    fi
    grep 'warning:' "$work/make"
    for kind in $kinds; do
        case $kind in tether) sizes='1 2 3 4' ;; *) sizes='2 3' ;; esac
        for n in $sizes; do
            check "$mpi: $kind on $n ranks" generate "$work/x" "$(options $kind)" \
                mpirun.$mpi -n "$n" "$tether"
            check "$mpi: $kind on $n ranks: bits" same "$work/$kind" "$work/x"
            rm -rf "$work/x"
        done
    done

    # a dump of everything but the cache, and one of the cache
    for filter in '*' 'chunk.2/cache*'; do
        for n in 1 3; do
            # shellcheck disable=SC2086
            check "$mpi: a dump on $n ranks" timeout 300 mpirun.$mpi -n $n \
                "$tether" $words -p "$prompt" --latents 9 --no-decode \
                --latents-out "$work/l" --dump "$work/dump$n" \
                --dump-filter "$filter" --overwrite
        done
        check "$mpi: dumps of $filter" cmp "$work/dump1" "$work/dump3"
        [ "$filter" != '*' ] || mv "$work/dump1" "$work/dumps"
    done
    for n in 1 5; do
        # shellcheck disable=SC2086
        check "$mpi: four rows on $n ranks" timeout 300 mpirun.$mpi -n $n \
            "$tether" $words -H 32 -p "$prompt" --latents 9 -o "$work/v$n.y4m" \
            --dump "$work/dump$n" --dump-filter 'vae*' --overwrite
    done
    check "$mpi: four rows: video" cmp "$work/v1.y4m" "$work/v5.y4m"
    check "$mpi: four rows: dump" cmp "$work/dump1" "$work/dump5"

    # frames in turns with the latents
    for n in 1 3; do
        # shellcheck disable=SC2086
        check "$mpi: frames during the work of $n ranks" timeout 300 \
            mpirun.$mpi -n $n "$tether" $words -H 32 -p "$prompt" --latents 9 \
            -o "$work/during$n.y4m" --decode during --overwrite
        check "$mpi: frames during the work of $n ranks: video" cmp \
            "$work/v1.y4m" "$work/during$n.y4m"
    done

    # values from another dump
    # shellcheck disable=SC2086
    for n in 1 3; do
        check "$mpi: injected on $n ranks" timeout 300 mpirun.$mpi -n $n \
            "$tether" $words -p 'a green square' --latents 9 --no-decode \
            --latents-out "$work/l" --dump "$work/into$n" --overwrite \
            --dump-filter 'chunk.2*' --inject "$work/dumps" \
            --inject-filter '*/block.[12]/[sf]*'
    done
    check "$mpi: dumps of injected runs" cmp "$work/into1" "$work/into3"

    # what ranks did with their time
    # shellcheck disable=SC2086
    timeout 300 mpirun.$mpi -n 3 "$tether" generate -v -m $model -W 64 \
        -H 64 -p "$prompt" --latents 9 --no-decode --latents-out "$work/l" \
        --overwrite --profile > "$work/said" 2>&1
    is "$mpi: a row per rank" "$(grep -c \
        '^[012]  *[0-9.]*  *[0-9.]*  *[0-9.]*$' "$work/said")" 3
    is "$mpi: a line per rank and chunk" "$(grep -c \
        '^rank [012]: .* compute, .* exchange, .* waiting$' "$work/said")" 9
    check "$mpi: in the progress" grep -q 'ranks: .*% compute, .*% waiting' \
        "$work/said"

    # the log has it too; a plan of every rank; the link between them
    # shellcheck disable=SC2086
    timeout 300 mpirun.$mpi -n 3 "$tether" $words -p "$prompt" --latents 9 \
        --no-decode --latents-out "$work/l" --overwrite \
        --log-json "$work/log.json" > "$work/said" 2>&1
    is "$mpi: ranks in the log" "$(grep -c \
        '"rank": 2, .*"waiting_seconds": .*"exchange_cpu_seconds": ' \
        "$work/log.json")" 3
    # a run folder; run.json tells the time
    for n in 1 3; do
        # shellcheck disable=SC2086
        check "$mpi: a run folder of $n ranks" timeout 300 mpirun.$mpi -n $n \
            "$tether" $words -p "$prompt" --latents 18 --no-decode \
            --latents-out "$work/l" --analyze "$work/run$n" --overwrite
    done
    for file in latents trace features; do
        check "$mpi: $file of run folders" cmp "$work/run1/$file.safetensors" \
            "$work/run3/$file.safetensors"
    done
    rm -rf "$work/run1" "$work/run3"

    # ranks on different instruction sets
    cat > "$work/mixed" << SCRIPT
#!/bin/sh
case \${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} in
1) TT_CPU=generic; export TT_CPU ;;
esac
exec "$PWD/$tether" "\$@"
SCRIPT
    chmod +x "$work/mixed"
    check "$mpi: two instruction sets" generate "$work/x" "$(options tether)" \
        mpirun.$mpi -n 2 "$work/mixed"
    check "$mpi: two instruction sets: bits" same "$work/tether" "$work/x"
    rm -rf "$work/x"

    # another seed on rank 1
    cat > "$work/other" << SCRIPT
#!/bin/sh
case \${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} in
1) exec "$PWD/$tether" "\$@" --seed 2 ;;
esac
exec "$PWD/$tether" "\$@"
SCRIPT
    chmod +x "$work/other"
    if generate "$work/x" "$(options tether)" mpirun.$mpi -n 3 "$work/other"
    then fail "$mpi: another seed on rank 1 is not refused"
    else check "$mpi: another seed" one_sentence 'rank 1.*seed is 2 here and 1 there'
    fi
    rm -rf "$work/x"

    # another dump on rank 1: only a dump of the cache gathers it
    cat > "$work/other" << SCRIPT
#!/bin/sh
case \${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} in
1) exec "$PWD/$tether" "\$@" --dump-filter '*cache*' ;;
esac
exec "$PWD/$tether" "\$@"
SCRIPT
    if generate "$work/x" "$(options tether) --dump $work/dump1" \
        mpirun.$mpi -n 3 "$work/other"
    then fail "$mpi: another dump on rank 1 is not refused"
    else check "$mpi: another dump" one_sentence \
        'rank 1.*filter is .*cache.* here and .* there'
    fi
    rm -rf "$work/x"

    # options that rank 0 alone refuses, and rank 1 alone
    for rank in 0 1; do
        cat > "$work/other" << SCRIPT
#!/bin/sh
case \${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} in
$rank) exec "$PWD/$tether" "\$@" --no-such-option ;;
esac
exec "$PWD/$tether" "\$@"
SCRIPT
        generate "$work/x" "$(options tether)" mpirun.$mpi -n 3 "$work/other"
        is "$mpi: rank $rank refuses its options" $? 2
        rm -rf "$work/x"
    done

    # a broken weight on rank 1, of the transformer and of the VAE
    cat > "$work/other" << SCRIPT
#!/bin/sh
case \${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} in
1) exec "$PWD/$tether" "\$@" -m "$work/model" ;;
esac
exec "$PWD/$tether" "\$@"
SCRIPT
    for file in diffusion_pytorch_model Wan2.1_VAE; do
        mkdir -p "$work/model"
        cp -R "$model/." "$work/model"
        printf '\377' | dd of="$work/model/$file.safetensors" \
            bs=1 seek=200001 conv=notrunc 2> /dev/null
        if generate "$work/x" "$(options tether)" mpirun.$mpi -n 3 "$work/other"
        then fail "$mpi: another weight of $file on rank 1 is not refused"
        else check "$mpi: another weight of $file" one_sentence \
            'rank 1.*\(weights\|vae\) is'
        fi
        rm -rf "$work/x" "$work/model"
    done

    # a rank is killed in the middle, and its run goes on with a saved state on
    # another number of ranks: one that can also replay, and one that cannot
    cat > "$work/known" << SCRIPT
#!/bin/sh
case \${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} in
\$VICTIM) echo \$\$ > "$work/pid" ;;
esac
exec "$PWD/$tether" "\$@"
SCRIPT
    chmod +x "$work/known"
    for kind in tether deep; do
        latents=$work/$kind-killed/l.safetensors
        again="$(options $kind) --checkpoint-every 1 --resume --latents-out $latents"
        mkdir "$work/$kind-killed"
        for victim in 2 0; do
            rm -f "$work/pid"
            before=$(ls -l --full-time "$latents".state? 2> /dev/null)
            # shellcheck disable=SC2086
            VICTIM=$victim timeout 300 mpirun.$mpi -n $((victim ? 3 : 2)) \
                "$work/known" $words -p "$prompt" $again --no-decode \
                > "$work/log" 2>&1 < /dev/null &
            job=$!
            for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
                sleep 0.2
                kill -0 $job 2> /dev/null || break
                after=$(ls -l --full-time "$latents".state? 2> /dev/null)
                [ "$before" != "$after" ] && break
            done
            kill -9 "$(cat "$work/pid")"
            wait $job && skip "$mpi: the run was over before a rank was killed"
        done
        # shellcheck disable=SC2086
        check "$mpi: $kind resumed on one rank" timeout 300 "$build/tether" \
            $words -p "$prompt" $again --no-decode
        check "$mpi: $kind resumed: bits" cmp "$work/$kind/l.safetensors" \
            "$latents"
        rm -rf "$work/$kind-killed"
    done

    # no MPI in the program
    generate "$work/x" "$(options tether)" mpirun.$mpi -n 4 "$build/tether"
    check "$mpi: a build without MPI" one_sentence 'this build has no MPI'
    rm -rf "$work/x"
done
total
