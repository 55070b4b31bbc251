#!/bin/sh
# check.sh: the program as WebAssembly has the bits of the native one.
#
#   sh tests/web/check.sh BUILD     after `make web`
#
# SPDX-License-Identifier: Apache-2.0
#
#   wasmtime   every digest of class f32, with fused kernels; the small ones with
#              the generic kernels, which engines without a fused multiply-add take
#   node       a video of 9 latents, where the relaxed multiply-add is fused and
#              where the engine is told that the CPU has none
#   Chromium   the live page: digests, Stop, knobs, a hostile prompt; the nine
#              steps of the tour (page.py)
this=web
. tests/script.sh
build=$1
web=build/web
tmp=$(mktemp -d "${TMPDIR:-/tmp}/web.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

size=$(gzip -9 -c $web/tether.wasm | wc -c)
if [ "$size" -le 4194304 ]; then pass; else fail "tether.wasm: $size bytes compressed"; fi
echo "tether.wasm: $size bytes compressed"

bits() {   # environment, arguments
    env "$1" python3 tests/web/wasmtime_run.py $web/check_bits.wasm --demo "$build/demo-random" \
        $2 > "$tmp/bits" 2>&1
    line=$(tail -n 1 "$tmp/bits")
    echo "wasmtime, $1, $2: $line"
    case $line in
    *"passed, 0 failed"*) pass ;;
    *) fail "$1 $2: $(grep FAIL "$tmp/bits" | head -n 3)" ;;
    esac
}
if python3 -c 'import wasmtime' 2>/dev/null; then
    bits TT_CPU=neon "--class f32 --brief"
    bits TT_CPU=generic "--class f32 --small"
else skip "wasmtime is not installed (pip install wasmtime)"; fi

words="generate -p=word -q --latents 9"
"$build/tether" $words -m ref_data/demo -o "$tmp/x.apng" --latents-out "$tmp/native" \
    > "$tmp/log" 2>&1 || fail "native: $(cat "$tmp/log")"
in_node() {   # what, flags of node
    # shellcheck disable=SC2086
    if node $2 tests/web/node_run.mjs $web/tether.wasm ref_data/demo "$tmp/node" $words \
            -m /demo -o /x.apng --latents-out /latents.safetensors > "$tmp/log" 2>&1 &&
            cmp -s "$tmp/node" "$tmp/native"; then pass
    else fail "node, $1: $(tail -n 3 "$tmp/log")"; fi
}
if command -v node >/dev/null; then
    relaxed=$(node --v8-options | grep -o -- --experimental-wasm-relaxed-simd | head -n 1)
    in_node "fused" "$relaxed"
    in_node "not fused" "$relaxed --no-enable-fma3"
else skip "node is not installed"; fi

# The live page and the tour; digests as the native program has them.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$browser" ]; then
    python3 tests/web/page.py $web "$build/tether" "$browser" > "$tmp/page" 2>&1
    ended=$?
    grep -v '^ok' "$tmp/page"
    good=$(grep -c '^ok' "$tmp/page")
    if [ "$ended" = 0 ] && [ "$good" = 265 ]; then pass
    else fail "the page: $good good, not 265; status $ended"; fi
else skip "Chromium is not installed"; fi
total
