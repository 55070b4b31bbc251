#!/bin/sh
# test_tether.sh: tools/python/tether.py, where python3 and numpy are.
#
#   [PYTHON=python3] sh tests/python/test_tether.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# The shared library is that of BUILD's program; `make staged` builds it.
build=$1
python=${PYTHON:-python3}
skip() {
    echo "SKIP python/tether: $*"
    echo "python/tether: 0 passed, 0 failed, 1 skipped"
    exit 0
}
command -v "$python" > /dev/null 2>&1 || skip "$python is not installed"
"$python" -c 'import numpy' 2> /dev/null || skip "$python has no numpy"
set -- "$build/libtether.so.$("$build"/tether --version \
    | sed -n '1s/^tether \([^ ]*\) .*/\1/p')"
[ -f "$1" ] || skip "no libtether.so in $build: make staged builds it"
case $(cat "$build"/staged/compiler 2> /dev/null) in
*-fsanitize=*) skip "a sanitizer must be loaded before python" ;;
esac
case $("$build"/tether --version) in
*"compute type double"* | *"compute type f64"*)
    skip "a double build has no class amx, and runs in float64" ;;
esac
TETHER=$build/tether TETHER_LIB=$1 PYTHONDONTWRITEBYTECODE=1 \
    exec "$python" tests/python/test_tether.py
