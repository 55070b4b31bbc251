#!/bin/sh
# run.sh: run every test program of a build folder; the last line counts.
#
# SPDX-License-Identifier: Apache-2.0
#
# Each program prints its failures and ends with "NAME: N passed, N failed". A
# program that dies without that line counts as one failure. tests/*/*.sh are
# run too, with the build folder as argument, under the same convention.

# Threads that wait for each other sleep: on a busy machine, or where several
# runs share one, spinning threads keep the ones they wait for from running.
OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
export OMP_WAIT_POLICY

build=$1
passed=0
failed=0
log=$build/test.log
: > "$log"

one() {   # name command...
    name=$1
    shift
    start=$(date +%s)
    "$@" > "$build/test.out" 2>&1
    rc=$?
    cat "$build/test.out" >> "$log"
    line=$(grep -E ' [0-9]+ passed, [0-9]+ failed$' "$build/test.out" | tail -n 1)
    if [ -z "$line" ]; then
        echo "FAIL $name: ended with status $rc before its last line"
        tail -n 20 "$build/test.out"
        failed=$((failed + 1))
        return
    fi
    p=$(echo "$line" | sed 's/.* \([0-9]*\) passed.*/\1/')
    f=$(echo "$line" | sed 's/.* \([0-9]*\) failed$/\1/')
    if [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "FAIL $name: ended with status $rc after its last line"
        f=1
    fi
    grep -v ' passed, ' "$build/test.out"
    echo "$line ($(($(date +%s) - start)) s)"
    passed=$((passed + p))
    failed=$((failed + f))
}

for src in tests/*/test_*.c; do
    t=$build/${src%.c}
    one "$t" "$t"
done
# the bits of this build; a double build has no stored ones
"$build/tether" --version | grep -q 'compute type f32' &&
    one bits "$build/check_bits" --demo "$build/demo-random"
# the reference cases on the other backends that run here
for backend in golden blas; do
    "$build/tether" --version | grep -qF "$backend (default)" && continue
    why=$("$build/tether" noise -W 8 -H 8 --latents 1 --chunk 1 \
        --backend $backend -o "$build/test.noise" 2>&1) || {
        echo "note: cases not run on $backend: $why"
        continue
    }
    for t in dit/test_cases rollout/test_cases; do
        one "$backend $t" env TT_TEST_BACKEND=$backend "$build/tests/$t"
    done
done
for t in tests/*/test_*.sh; do
    [ -f "$t" ] && one "$t" sh "$t" "$build"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
