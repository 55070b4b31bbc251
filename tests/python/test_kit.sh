#!/bin/sh
# test_kit.sh: the kit of `validate export --kit`, where python3 and numpy are.
#
#   [PYTHON=python3] sh tests/python/test_kit.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
build=$1
python=${PYTHON:-python3}
skip() {
    echo "SKIP python/kit: $*"
    echo "python/kit: 0 passed, 0 failed, 1 skipped"
    exit 0
}
"$python" -c 'import numpy' 2> /dev/null || skip "no $python with numpy"
case $("$build"/tether --version) in
*"compute type double"* | *"compute type f64"*) skip "limits of a double build" ;;
esac
TETHER=$build/tether PYTHONDONTWRITEBYTECODE=1 \
    exec "$python" tests/python/test_kit.py
