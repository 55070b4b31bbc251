#!/bin/sh
# test_refused.sh: mpirun of a build without MPI is refused in one sentence.
#
# SPDX-License-Identifier: Apache-2.0
#
# mpirun tells its programs by variables how many they are. Rank 0 says why;
# the others, which would say the same, say nothing.
build=$1
this=team/refused
. tests/script.sh

try() {   # variables...
    said=$(env "$@" "$build/tether" inspect ref_data/demo 2>&1 > /dev/null)
    rc=$?
}

if "$build/tether" --version | grep -q MPI; then
    skip "this build has MPI"
    finish
    exit
fi
sentence='tether: error: mpirun started 4 programs, but this build has no MPI'
for names in OMPI_COMM_WORLD PMI; do
    try ${names}_SIZE=4 ${names}_RANK=0
    is "$names: status" $rc 2
    is "$names: a sentence" "$(echo "$said" | grep -c "^$sentence")" 1
    is "$names: no other" "$(echo "$said" | grep -c .)" 1
    try ${names}_SIZE=4 ${names}_RANK=3
    is "$names: status of rank 3" $rc 2
    is "$names: words of rank 3" "$said" ''
    try ${names}_SIZE=1 ${names}_RANK=0
    is "$names: status of one program" $rc 0
done
finish
