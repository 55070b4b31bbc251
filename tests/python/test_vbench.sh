#!/bin/sh
# test_vbench.sh: tools/vbench_scores.py, where python3 is.
#
#   [PYTHON=python3] sh tests/python/test_vbench.sh
#
# SPDX-License-Identifier: Apache-2.0
python=${PYTHON:-python3}
command -v "$python" > /dev/null 2>&1 || {
    echo "SKIP python/vbench: $python is not installed"
    echo "python/vbench: 0 passed, 0 failed, 1 skipped"
    exit 0
}
PYTHONDONTWRITEBYTECODE=1 exec "$python" tests/python/test_vbench.py
