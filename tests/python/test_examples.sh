#!/bin/sh
# test_examples.sh: tools/python/examples find their mistake and nothing else,
# where what they need is installed; PYTHON names another python.
#
#   [PYTHON=python3] sh tests/python/test_examples.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
build=$1
this=python/examples
. tests/script.sh
python=${PYTHON:-python3}
tether=$build/tether
examples=tools/python/examples
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tether-examples-XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

# The numbers in plugin.rs are those of this program.
numbers=$("$tether" validate --abi | sed -n '1s/[^0-9]*\([0-9][0-9]*\)[^0-9]*/\1, /gp')
case $("$tether" --version) in
*"compute type double"* | *"compute type f64"*)
    skip "the examples are of the float program"
    finish
    exit ;;
esac
is "ABI of plugin.rs" "$(sed -n 's/^const ABI.*= \[\(.*\)\];/\1, /p' $examples/plugin.rs)" \
    "$numbers"

says() {   # what, status, how its first line begins, command...
    what=$1 status=$2 line=$3
    shift 3
    "$@" > "$tmp/out" 2> "$tmp/log"
    rc=$?
    if [ $rc -ne "$status" ]; then
        fail "$what: status $rc, not $status: $(tail -n 3 "$tmp/log")"
    elif ! head -n 1 "$tmp/out" | grep -q "^$line"; then
        fail "$what: $(head -n 1 "$tmp/out")"
    else
        pass
    fi
}

needs() {   # example, module of Python...
    name=$1
    shift
    for module; do
        "$python" -c "import $module" 2> /dev/null && continue
        skip "$name was not run: $module is not installed"
        return 1
    done
}

if command -v rustc > /dev/null 2>&1; then
    for bug in "" bug; do
        # shellcheck disable=SC2086
        check "rustc $bug" rustc --edition 2021 -O ${bug:+--cfg bug} --crate-type cdylib \
            $examples/plugin.rs -o "$tmp/plugin$bug.so"
    done
    says "plugin.rs" 0 "PASS: .* 1 are unsupported" "$tether" validate --backend \
        "$tmp/plugin.so" --no-calls --no-rollout
    says "plugin.rs with its bug" 1 "FAIL.* op.rms_norm.*eps is not added" "$tether" \
        validate --backend "$tmp/pluginbug.so" --op rms_norm --no-calls --no-rollout
else
    skip "plugin.rs was not run: rustc is not installed"
fi

if needs jax_block.py numpy jax; then
    check "a kit" "$tether" validate export --kit "$tmp/kit"
    says "jax_block.py" 0 PASS "$python" $examples/jax_block.py "$tmp/kit"
    says "jax_block.py with its bug" 1 "FAIL: first wrong tensor: .*/ffn" "$python" \
        $examples/jax_block.py "$tmp/kit" --bug
fi

library=$(echo "$build"/libtether.so.*.*.*)
[ -f "$library" ] || skip "diffusers_wan.py was not run: make staged builds libtether.so"
if [ -f "$library" ] && needs diffusers_wan.py numpy torch diffusers; then
    export TETHER="$tether" TETHER_LIB="$library"
    says "diffusers_wan.py" 0 PASS "$python" $examples/diffusers_wan.py
    says "diffusers_wan.py with its bug" 1 "FAIL: first wrong tensor: .*/ffn" "$python" \
        $examples/diffusers_wan.py --bug
fi
finish
