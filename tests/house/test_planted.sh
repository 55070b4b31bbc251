#!/bin/sh
# test_planted.sh: does every row of the tables of mistakes still change a file?
#
# SPDX-License-Identifier: Apache-2.0
#
# The tables are run by hand (make mutation-models), and the sources move on.
this=house/planted
. tests/script.sh
tab=$(printf '\t')
for table in tests/validate/models.txt tests/validate/models_other.txt \
    tests/validate/models_third.txt; do
    grep -v '^#' "$table" | grep . > "${TMPDIR:-/tmp}/planted.$$"
    while IFS=$tab read -r name run file script first words; do
        : "$run $first $words"
        case $script in
        "-z "*) sed -z "${script#-z }" "src/$file" ;;
        *) sed "$script" "src/$file" ;;
        esac 2>&1 | cmp -s - "src/$file" &&
            fail "$name of $table changes nothing in src/$file" || pass
    done < "${TMPDIR:-/tmp}/planted.$$"
    rm -f "${TMPDIR:-/tmp}/planted.$$"
done
finish
