#!/bin/sh
# figures.sh: the numbers and pictures that the pages state of the demo model,
# computed again.
#
#   sh tools/figures.sh BUILD NAME...     or: make figures FIGURES="NAME ..."
#
# SPDX-License-Identifier: Apache-2.0
#
#   policies    ref_data/demo/policies_60.tsv: what attention
#               can read after 60 latents, and drift over the last quarter
#   retention   ref_data/pictures/retention.png, of those runs (needs chromium)
#   demo        ref_data/pictures/demo.png
#   moving      ref_data/pictures/moving.png, the animation of README.md (needs
#               ffmpeg)
#   card        the tables of ref_data/demo/README.md (needs numpy)
#   drift       ref_data/demo/policies.md (needs numpy; hours)
#   error       the table of errors of src/ops/README.md (OpenBLAS's columns
#               need OPENBLAS_CORETYPE=Haswell and SkylakeX)
#   math        the table of elementary functions there (minutes; double: MPFR)
# The first three are what `make figures` does. What a page says otherwise is
# printed, and the status is 1. Runs are kept in build/figures.
build=$1
shift
[ $# -gt 0 ] || set -- policies retention demo
program=$build/tether
work=build/figures
model=ref_data/demo
wrong=0
mkdir -p "$work"

run() {   # policy, further options of generate
    name=$1
    shift
    [ -f "$work/$name/done" ] && return
    rm -rf "${work:?}/$name" "$work/$name.safetensors"
    "$program" generate -q -m $model -W 64 -H 64 -s 0 --latents 60 \
        -p "a red circle moves left and bounces, on a blue background" \
        --cache "$name" --no-decode --latents-out "$work/$name.safetensors" \
        --analyze "$work/$name" "$@" && touch "$work/$name/done"
}

names='full fifo causvid causvid-rolling infinity memrope deep-sink
       deep-forcing rolling-sink tether'

runs() {
    for name in $names; do
        echo "$name" >&2
        if [ "$name" = causvid ]
        then run "$name" --latents 21 --rollouts 3
        else run "$name"
        fi || exit 1
    done
    rm -rf "$work/analysis"
    # shellcheck disable=SC2046
    (cd "$work" && "$OLDPWD/$program" analyze $names -o analysis --csv) \
        > /dev/null || exit 1
}

# What the table has in column $2 of the row of policy $1.
on_page() {   # policy column
    awk -F '\t' -v name="$1" -v at="$2" '$1 == name { print $at }' \
        ref_data/demo/policies_60.tsv
}

policies() {
    runs
    printf '%-16s %8s %8s %8s   %s\n' policy frames age drift "the page"
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { printf "%s %.6g %.1f %.2f %d %d\n", $at["policy"],
              $at["last_distinct"], $at["last_mean_age"],
              $at["quarter_drift_std"], $at["admissions"], $at["rejections"] }' \
        "$work/analysis/summary.csv" > "$work/policies.txt"
    while read -r name frames age drift admitted rejected; do
        said=$(on_page "$name" 3)
        printf '%-16s %8s %8s %8s   %s; %s\n' "$name" "$frames" "$age" \
            "$drift" "$(on_page "$name" 2)" "$said"
        if [ "$drift" != "$said" ]; then
            echo "  differs: drift $drift"
            wrong=1
        fi
        case $(on_page "$name" 2) in
        *averages* | *restarts* | *newest*) ;;
        *"$age old"*) ;;
        *) echo "  differs: age $age"; wrong=1 ;;
        esac
        [ "$name" = tether ] && echo "  admitted $admitted, rejected $rejected" \
            "(sums over the layers)"
    done < "$work/policies.txt"
}

# A section of a page as the viewer shows it. Browsers draw letters in their own
# ways: look at it, and copy it.
picture() {   # page section size made
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --window-size="$3" --screenshot="$PWD/$4" --virtual-time-budget=5000 \
        "file://$PWD/$1#show=$2" 2> /dev/null || exit 1
    echo "$4: as the page has it now"
}

retention() {
    runs
    (cd "$work" && "$OLDPWD/$program" analyze fifo tether -o pair --html) \
        > /dev/null || exit 1
    picture "$work/pair/index.html" retention 900,520 "$work/retention.png"
}

demo() {   # the page's file is packed tighter: its pixels are compared
    "$program" demo -m $model -o "$work/demo" > /dev/null || exit 1
    for picture in "$work/demo/sheet.png" ref_data/pictures/demo.png; do
        ffmpeg -v error -i "$picture" -pix_fmt rgb24 -f rawvideo \
            "$work/demo/$(basename "$picture").rgb" || exit 1
    done
    if cmp -s "$work/demo/sheet.png.rgb" "$work/demo/demo.png.rgb"; then
        echo "demo.png: the same pixels"
    else
        echo "demo.png: differs from $work/demo/sheet.png"
        wrong=1
    fi
}

# Three policies next to each other, each pixel three wide, in 64 colours.
moving() {
    between="pad=iw+2:ih:0:0:white"
    for name in fifo deep-sink tether; do
        "$program" generate -q -m $model -s 0 --latents 60 --cache "$name" \
            -p "a purple square moves down and bounces, on a gray background" \
            -o "$work/moving-$name.y4m" --overwrite || exit 1
    done
    ffmpeg -v error -y -i "$work/moving-fifo.y4m" \
        -i "$work/moving-deep-sink.y4m" -i "$work/moving-tether.y4m" \
        -filter_complex "[0]${between}[a];[1]${between}[b];[a][b][2]hstack=3,\
scale=iw*3:-1:flags=neighbor,split[x][y];[x]palettegen=max_colors=64:\
reserve_transparent=0[p];[y][p]paletteuse=dither=none" \
        -f apng -plays 0 -pred mixed "$work/moving.png" || exit 1
    for picture in "$work/moving.png" ref_data/pictures/moving.png; do
        ffmpeg -v error -i "$picture" -f framemd5 - | grep -v '^#' \
            > "$work/frames-$(dirname "$picture" | tr / -)" || exit 1
    done
    if cmp -s "$work/frames-ref_data-pictures" \
           "$work/frames-$(echo "$work" | tr / -)"
    then echo "moving.png: the same pictures"
    else echo "moving.png: differs from $work/moving.png"; wrong=1; fi
}

for what; do
    case $what in
    policies | retention | demo | moving) $what ;;
    card) python3 tools/demo_model/evaluate.py prompts &&
          python3 tools/demo_model/evaluate.py vae --count 32 || exit 1 ;;
    drift) python3 tools/demo_model/policies.py --out "$work/drift_240" &&
           python3 tools/demo_model/policies.py --out "$work/drift_960" \
               --latents 960 --prompts 16 || exit 1 ;;
    error) "$program" bench error || exit 1 ;;
    math) "$build/tools/math_scan" expf tanhf &&
          "$build/tools/math_scan" --double 5000000 || exit 1 ;;
    *) echo "figures.sh: no figure $what" >&2; exit 2 ;;
    esac
done
exit $wrong
