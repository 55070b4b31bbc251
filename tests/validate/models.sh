#!/bin/sh
# models.sh: mistakes of ports, planted one at a time in a copy of our program.
#
#   sh tests/validate/models.sh BUILD TABLE WAY [NAME...]
#
# SPDX-License-Identifier: Apache-2.0
#
# Every line of models.txt, or of the file MISTAKES (models_other.txt,
# models_third.txt), changes one file of src. It is compiled alone and linked
# before the library, so that its functions win. The program that comes out
# makes a run with a dump, and `tether validate` judges that dump:
#   WAY generate  beside runs of our own that read theirs
#   WAY against   beside a dump of ours, files only
# TABLE gets a row per fault: found in which tensor, and what was said of it.
# CC, CFLAGS and LIBS are those of the program (make mutation-models).
# shellcheck disable=SC2086
set -u
build=$1 table=$2 way=$3
shift 3
tab=$(printf '\t')
here=$(pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tether-models.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
model="-m ref_data/policy_models/a -W 48 -H 32 --latents 15 -q -t 1"
text="--embeds ref_data/policy_sf_full/inputs.safetensors"
scenes="--embeds ref_data/policy_inf_scenes_k6/inputs.safetensors"
demo="-W 32 -H 32 --latents 9 --cache fifo:budget=6:sink=0 -q -t 1"
ours=$here/$build/tether
"$build/tools/make_checkpoint" --preset demo "$tmp/random" > /dev/null

# The run of a row: $@ before it, what makes the output behind it.
in_run() {   # run command...
    run=$1
    shift
    case $run in
    tether) "$@" $model $text --cache tether:budget=9:sink=2:recent=4 ;;
    ties) "$@" $model $text \
        --cache tether:budget=9:sink=2:recent=4:score-temperature=1e-6:alpha=0 ;;
    fifo) "$@" $model $text --cache fifo:budget=6:sink=2 ;;
    scenes) "$@" $model $scenes --cache fifo:budget=6:sink=2 \
        --scene 'A[1.5s] | B' ;;
    vae) "$@" -m "$tmp/random" $demo -p 'a cat' -o "$tmp/video.y4m" \
        --overwrite ;;
    text | video) "$@" -m ref_data/demo $demo -p 'a cat' -o "$tmp/video.y4m" --overwrite ;;
    esac
}
filter() {
    case $1 in
    text) echo "--dump-filter text/*" ;;
    vae) echo "--dump-filter vae/*" ;;
    esac
}
dump() {   # program run file
    at=$(filter "$2")
    in_run "$2" run_it "$1" "$3" $at
}
run_it() {   # program file options...
    program=$1 file=$2
    shift 2
    extra="--latents-out $tmp/latents --overwrite"
    case " $* " in *" -o "*) ;; *) extra="$extra --no-decode" ;; esac
    set -f
    "$program" generate "$@" $extra --dump "$file" || return
    # a stranger's dump does not say whose bits it has
    LC_ALL=C sed -i 's/"class":"f32"/"klass":"f32"/' "$file"
}
validate() {   # run file
    at=$(filter "$1" | sed 's/dump-//')
    set -f
    case $way in
    generate) in_run "$1" "$ours" validate -t 1 --dump "$2" $at -- generate ;;
    against)
        [ -f "$tmp/$1.ours" ] || dump "$ours" "$1" "$tmp/$1.ours"
        [ -f "$tmp/$1.f32" ] ||
            in_run "$1" run_it "$ours" "$tmp/$1.f32" --backend arith-f32 \
                $(filter "$1")
        "$ours" validate --dump "$2" --against "$tmp/$1.ours" \
            --emulated "$tmp/$1.f32" ;;
    esac
    set +f
}

plant() {   # file script: the program with that fault as $tmp/tether
    mkdir -p "$tmp/src/$(dirname "$1")"
    case $2 in
    "-z "*) sed -z "${2#-z }" "src/$1" > "$tmp/src/$1" ;;
    *) sed "$2" "src/$1" > "$tmp/src/$1" ;;
    esac
    cmp -s "src/$1" "$tmp/src/$1" && { echo "nothing was changed"; return 1; }
    $CC $CFLAGS -I"src/$(dirname "$1")" -O0 -g0 -w -c "$tmp/src/$1" -o "$tmp/one.o" \
        2> "$tmp/log" || { head -3 "$tmp/log"; return 1; }
    $CC $CFLAGS -s -o "$tmp/tether" $(find "$build/src/cli" -name '*.o') \
        "$tmp/one.o" "$build/libtether.a" $LIBS
}

: > "$table"
grep -v '^#' "${MISTAKES:-tests/validate/models.txt}" | grep . > "$tmp/rows"
[ $# -gt 0 ] && {
    for n; do grep "^$n$tab" "$tmp/rows"; done > "$tmp/some"
    mv "$tmp/some" "$tmp/rows"
}
while IFS=$tab read -r name run file script first words; do
    first=$(echo "$first" | sed -E 's|^([0-9])/([0-9])/|chunk.\1/step.\2/|
        s|^(chunk.*/)([0-9])/|\1block.\2/|')
    plant "$file" "$script" > "$tmp/said" || {
        echo "FAIL $name: $(cat "$tmp/said")"
        continue
    }
    dump "$tmp/tether" "$run" "$tmp/theirs" > "$tmp/log" 2>&1 || {
        echo "FAIL $name: the run: $(head -2 "$tmp/log")"
        continue
    }
    validate "$run" "$tmp/theirs" > "$tmp/report" 2> "$tmp/errors" < /dev/null
    line=$(head -1 "$tmp/report")
    said=${line#FAIL: first wrong tensor: }
    tensor=$(echo "$said" | sed 's/ at \[.*//;s/: .*//')
    hint=$(echo "$said" |
        sed -nE 's/^[^ :]*( at \[[^]]*\]| is misshapen)*: //p')
    case $tensor in
    $first*) where=right ;;
    *) where="not $first" ;;
    esac
    case $hint in
    '' | "none of"* | "it arises"* | *"values differ"*) what=unnamed ;;
    *) what=other ;;
    esac
    [ "$what" = other ] && echo "$hint" | grep -Eq "$words" && what=named
    printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$tensor" "$where" "$what" "$hint" |
        tee -a "$table"
done < "$tmp/rows"
n=$(wc -l < "$tmp/rows")
count() { cut -f "$1" "$table" | grep -c "^$2\$"; }
echo "$way: of $((n)) mistakes $(count 3 right) in the right tensor," \
    "$(count 4 named) named, $(count 4 other) with other words"
[ "$(count 3 right)" -eq "$n" ] && [ "$(count 4 other)" -eq 0 ]
