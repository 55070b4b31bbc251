#!/bin/sh
# test_refused.sh: mpirun of a build without MPI is refused in one sentence.
#
# SPDX-License-Identifier: Apache-2.0
#
# mpirun tells its programs by variables how many they are. Rank 0 says why;
# the others, which would say the same, say nothing.
build=$1
passed=0
failed=0
check() {   # what, condition...
    what=$1
    shift
    if "$@"; then passed=$((passed + 1))
    else failed=$((failed + 1)); echo "FAIL team/refused: $what: $said"; fi
}

try() {   # variables...
    said=$(env "$@" "$build/tether" inspect ref_data/demo 2>&1 > /dev/null)
    rc=$?
}

if "$build/tether" --version | grep -q MPI; then
    echo "SKIP team/refused: this build has MPI"
    echo "team/refused: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
sentence='tether: error: mpirun started 4 programs, but this build has no MPI'
for names in OMPI_COMM_WORLD PMI; do
    try ${names}_SIZE=4 ${names}_RANK=0
    check "$names: status $rc" [ $rc -eq 2 ]
    check "$names: a sentence" [ "${said#"$sentence"}" != "$said" ]
    check "$names: one" [ "$(echo "$said" | grep -c .)" -eq 1 ]
    try ${names}_SIZE=4 ${names}_RANK=3
    check "$names: rank 3: status $rc" [ $rc -eq 2 ]
    check "$names: rank 3 is silent" [ -z "$said" ]
    try ${names}_SIZE=1 ${names}_RANK=0
    check "$names: alone: status $rc" [ $rc -eq 0 ]
done
echo "team/refused: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
