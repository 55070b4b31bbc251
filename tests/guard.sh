#!/bin/sh
# guard.sh: the model on a device that only operators and verbs can reach.
#
#   sh tests/guard.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# Runs the programs that open models, caches and rollouts on the guard
# (tests/guard.h): every policy, saving and resuming, taps and injection, text
# encoder, VAE both ways, and all digests of ref_data/bits.txt. A touch of a
# value by anything but an operator kills the program. Not here: programs of
# validate that give operators values of the host. The last line counts.
build=$1
passed=0
failed=0

add() {   # name log rc: what a program said
    line=$(grep -E ' [0-9]+ passed, [0-9]+ failed' "$2" | tail -n 1)
    p=$(expr "$line" : '.* \([0-9]*\) passed')
    f=$(expr "$line" : '.* \([0-9]*\) failed')
    if [ -z "$line" ]; then
        echo "FAIL guard/$1: ended with status $3 before its last line"
        p=0 f=1
    fi
    [ "$f" -eq 0 ] || grep '^FAIL' "$2"
    echo "guard/$1: $p passed, $f failed"
    passed=$((passed + p))
    failed=$((failed + f))
}

log=$(mktemp "${TMPDIR:-/tmp}/tether.XXXXXX") || exit 1
trap 'rm -f "$log"' EXIT
for t in core/test_core core/test_guard dit/test_cases dit/test_load \
    cache/test_cases cache/test_grab cache/test_policy cache/test_windows \
    cache/test_deep_forcing cache/test_options \
    text/test_umt5 vae/test_cases vae/test_stream vae/test_bands \
    rollout/test_cases rollout/test_policies rollout/test_policy_runs \
    rollout/test_rollout rollout/test_class rollout/test_scenes \
    rollout/test_memory analyze/test_recorder validate/test_dump \
    validate/test_flips; do
    TT_TEST_BACKEND=guard "$build/tests/$t" > "$log" 2>&1
    add "$t" "$log" $?
done
"$build/check_bits" --guard --demo "$build/demo-random" > "$log" 2>&1
add bits "$log" $?
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
