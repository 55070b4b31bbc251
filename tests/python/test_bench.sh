#!/bin/sh
# test_bench.sh: tools/bench, where python3 is, next to a peer that is not there
# and a tether that says which seconds it took.
#
#   [PYTHON=python3] sh tests/python/test_bench.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
this=python/bench
. tests/script.sh
build=$1
python=${PYTHON:-python3}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/bench.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

# ---- bench_chunk answers ---------------------------------------------------
said=$(printf 'layer\nlinear 5 ffn2 2\nlayer\n' |
    "$build/tools/bench_chunk" -m "$build/demo-random" -W 32 -H 32 \
        --serve 1 --prime 0 -t 1 2>&1 |
    sed -n '/^ready/,/^memory/p' | sed '1s/ .*//; s/[0-9.]\{6,\}/N/g; $d')
is "answers" "$said" "ready
N N
N N
N N"

# ---- compare.py asks -------------------------------------------------------
if ! command -v "$python" > /dev/null 2>&1; then
    skip "$python is not installed"
    finish
    exit
fi
mkdir -p "$tmp/tools" "$tmp/f32" "$tmp/bf16"
touch "$tmp/f32/config.json" "$tmp/bf16/config.json"
cat > "$tmp/tools/bench_chunk" << 'END'
#!/bin/sh
log=${0%/*}/log n=0
while [ "$1" != --class ]; do shift; done
echo "ready stub"
while read -r work; do
    echo "$2 $work" >> "$log"
    n=$((n + 1))
    case $2,$work in
    *,peak) echo "100 60" ;;
    f32,*) echo "0.$n 0.5" ;;
    *) echo "0.0$((n * n)) 0.25" ;;
    esac
done
END
chmod +x "$tmp/tools/bench_chunk"
compare() {
    PYTHONDONTWRITEBYTECODE=1 "$python" tools/bench/compare.py --build "$tmp" \
        --models "$tmp" --threads 2 --rounds 3 -W 208 -H 112 --json "$tmp/json" \
        --sides tether-f32,tether-vdp,torch-f32 "$@" > "$tmp/out" 2>&1
    tr -s ' ' < "$tmp/out" | grep "^$side"
}
side=tether-vdp

# Of vdp the 2nd to 4th answer count: 40, 90, 16 ms. Of f32, whose first one is
# the peak: 300, 400, 500. 26.82 GFLOP in 40 ms.
cat > "$tmp/none" << 'END'
#!/bin/sh
echo skip this is not installed
END
chmod +x "$tmp/none"
is "the row of vdp" "$(compare --python "$tmp/none" | tail -n 1)" \
    "tether-vdp 40.00 16.00 .. 90.00 250.00 5.14 670.5 6.71 0.10 1.00"
is "who is left out" "$(grep 'left out' "$tmp/out")" \
    "left out: torch-f32: this is not installed"
is "turns" "$(tr '\n' ' ' < "$tmp/tools/log")" "f32 peak vdp layer f32 layer \
f32 layer vdp layer vdp layer f32 layer f32 layer vdp layer f32 peak "
check "the JSON" "$python" -c 'import json, sys
d = json.load(open(sys.argv[1]))
r = d["rows"][0]
assert d["peaks"] == [100, 100] and len(d["rows"]) == 2, d
assert r["side"] == "tether-f32" and r["wall_ms"] == [300, 400, 500], r
assert r["ratio"]["tether-vdp"] == 10, r' "$tmp/json"
side=tether-f32
is "CPU seconds of linear layers" \
    "$(compare --python "$tmp/none" --cpu --rows 91 | head -n 2 | tail -n 1)" \
    "tether-f32 250.00 250.00 .. 250.00 500.00 1.06 1.7 0.01 1.00 2.00"

# A side that ends in the middle takes nothing away from the others.
cat > "$tmp/short" << 'END'
#!/bin/sh
echo ready short
read -r work && echo "1 1"
END
chmod +x "$tmp/short"
side=tether-vdp
is "the row of vdp next to one that ends" \
    "$(compare --python "$tmp/short" | tail -n 1)" \
    "tether-vdp 40.00 16.00 .. 90.00 250.00 5.14 670.5 6.71 0.10 1.00"
is "who ended" "$(grep 'left out' "$tmp/out")" \
    "left out: torch-f32 ended in: layer"
is "who has a row" "$(grep -c '^torch' "$tmp/out")" 1

# ---- a peer says what it misses --------------------------------------------
is "without torch" "$(PYTHONDONTWRITEBYTECODE=1 "$python" -S \
    tools/bench/peers.py torch-f32 3 3 1)" "skip No module named 'torch'"
finish
