#!/bin/sh
# test_sums.sh: ranks hand values to each other and never add any up.
#
# SPDX-License-Identifier: Apache-2.0
#
#   words         no reduction of MPI or OpenMP stands in src/team, nor an MPI
#                 type of numbers: bytes are moved
#   instructions  the objects of exchanges and cuts hold no addition or product
#                 of floating point (x86-64; elsewhere this look is left out)
# Probes show that both looks find what they look for.
build=$1
this=team/sums
. tests/script.sh

words='MPI_I?(All)?[Rr]educe|MPI_I?(Ex)?[Ss]can|MPI_Accumulate|MPI_Op_|MPI_SUM'
words="$words|MPI_PROD|MPI_(FLOAT|DOUBLE|LONG_DOUBLE)|omp.*reduction"
found() { grep -nE "$words" "$@"; }

probe=${TMPDIR:-/tmp}/sums_probe.$$
trap 'rm -f "$probe.c" "$probe.o"' EXIT
cat > "$probe.c" << 'C'
/* MPI_Allreduce(x, y, 1, MPI_DOUBLE, MPI_SUM, c); MPI_Iscan(x);
 * #pragma omp parallel for reduction(+:sum) */
double add(double a, double b);
double add(double a, double b) { return a + b; }
float scale(float a, float b);
float scale(float a, float b) { return a * b; }
C
if [ "$(found "$probe.c" | grep -c .)" -eq 2 ]; then pass
else fail "reductions of a probe are not seen"; fi
if said=$(found src/team/*.c src/team/*.h); then fail "$said"; else pass; fi
[ "$(cat src/team/*.c | grep -c .)" -gt 500 ] || fail "src/team is not there"

sums() {   # object: instructions that add or multiply
    objdump -d --no-show-raw-insn "$1" |
        grep -E '[[:space:]]v?(add|sub|mul|fn?m(add|sub)[0-9]*)[sp][sd]([[:space:]]|$)'
}
if [ "$(uname -m)" = x86_64 ] && command -v objdump > /dev/null 2>&1 &&
    ${CC:-cc} -O1 -c -o "$probe.o" "$probe.c" 2> /dev/null; then
    if [ "$(sums "$probe.o" | grep -c .)" -eq 2 ]; then pass
    else fail "sums of a probe are not seen: $(sums "$probe.o")"; fi
    for object in exchange cuts; do
        if said=$(sums "$build/src/team/$object.o"); then
            fail "$object.c computes: $said"
        elif [ -f "$build/src/team/$object.o" ]; then pass
        else fail "$build/src/team/$object.o is not there"; fi
    done
else
    skip "instructions are looked at on x86-64 with objdump"
fi
finish
