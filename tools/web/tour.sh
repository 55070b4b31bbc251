#!/bin/sh
# tour.sh: the lesson of src/golden as a page of nine steps: three runs of one prompt with the demo
# model, and the files that the steps name.
#
#   sh tools/web/tour.sh TETHER FOLDER     or: make tour
#
# SPDX-License-Identifier: Apache-2.0
program=$1
out=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/tour.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

run() {   # name, cache
    "$program" generate -q -m ref_data/demo -s 0 --latents 60 --cache "$2" --label "$1" \
        -p "a red circle moves left and bounces, on a blue background" -o "$work/$1.y4m" \
        --analyze "$work/$1"
}
run "fifo" fifo && run "fifo, no sink" fifo:sink=0 && run "tether" tether || exit 1
"$program" analyze "$work/fifo" "$work/fifo, no sink" "$work/tether" -o "$work/page" --html \
    > "$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
mkdir -p "$out/golden" && cp src/golden/*.c src/golden/*.h src/golden/README.md "$out/golden" || exit 1
sed 's/<main id="plain">/<main id="plain" data-tour>/' "$work/page/index.html" > "$out/index.html"
