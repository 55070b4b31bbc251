#!/bin/sh
# guard.sh: all tests on a device that only operators and verbs can reach.
#
#   sh tests/guard.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# Every program of `make test` in C runs on the guard (tests/guard.h), and all
# digests of ref_data/bits.txt: what a program computes itself, and what it lets
# the command line compute (build/FLAVOUR/tether-guard). A touch of a value by
# anything but an operator kills the program. Left out are those named below; a
# program that puts no value on the guard and is not named fails. The last line
# counts.
build=$1
list=$(mktemp "${TMPDIR:-/tmp}/tether.XXXXXX") || exit 1
trap 'rm -f "$list"' EXIT
trap 'exit 130' HUP INT TERM
cat > "$list" << 'END'
analyze/hostile       readers of dumps and recordings
analyze/measure       numbers of the host
analyze/table         strings of tables
analyze/vbench        tables
api/failed            every function returns before it computes
cache/cases           which frames a plan keeps, and no keys
cache/grab            attention of the host, given as numbers
cache/options         options
core/core             arenas, tensors and text
core/folder           files in place of memory
core/fma              functions of one number
core/fpenv            modes of the processor
core/mathfn           functions of one number
core/nearest          words
core/threads          how many threads there are
cli/plan              values in memory of a device are not planned for
cli/threads           threads of programs
cli/validate          gives operators values of the host
cli/way_in            values in memory of a device are not planned for
dit/prompt            gives operators values of the host
faults/disk           programs of their own
faults/faults         a program of its own, tether-faults
fuzz/regressions      readers
golden/cases          src/golden, which knows no device
golden/transformer    src/golden, which knows no device
golden/vae            src/golden, which knows no device
io/convert            files
io/damage             files
io/detect             files
io/formats            files
io/inputs             files
io/json               files
io/lora               files
io/manifest           files
io/memory             files
io/safetensors        files
io/scales             files
io/sha256             files
io/st_write           files
io/torchfile          files
io/verify             files
io/video              pictures
io/video_in           pictures
ops/backends          gives operators values of the host
ops/bf16              gives operators values of the host
ops/bf16_exact        gives operators values of the host
ops/classes           gives operators values of the host
ops/fused             gives operators values of the host
ops/packed              gives operators values of the host
ops/tensor_core       gives operators values of the host
ops/tensor_core_exact gives operators values of the host
ops/tuning            gives operators values of the host
ops/transposed            gives operators values of the host
ops/units             numbers of the host
ops/vdp_unit          gives operators values of the host
ops/worked_example    gives operators values of the host
rollout/noise         random numbers
rollout/page          numbers of the host
rollout/scenes        texts of scenes
rollout/schedule      numbers of the host
run/plan              values in memory of a device are not planned for
run/rules             settings, none of which gets as far as a run
run/settings          names and their values
text/clean            text
text/inside           tokens
text/tokenizer        text
validate/backend      gives operators values of the host
validate/case_hints   gives operators values of the host
validate/classes      gives operators values of the host
validate/cut          gives operators values of the host
validate/dump         files
validate/explain      gives operators values of the host
validate/flips        files
validate/gaps         gives operators values of the host
validate/hints        gives operators values of the host
validate/honest       gives operators values of the host
validate/mutation     gives operators values of the host
validate/plugin       gives operators values of the host
validate/thresholds   gives operators values of the host
validate/watch        gives operators values of the host
END
while read -r name why; do
    [ -f "tests/${name%%/*}/test_${name#*/}.c" ] && [ -n "$why" ] && continue
    echo "FAIL guard.sh: $name is no test program, or has no reason"
    echo "0 passed, 1 failed"
    exit 1
done < "$list"
TT_TEST_BACKEND=guard GUARDED=$list sh tests/run.sh "$build"
