#!/bin/sh
# test_symbols.sh: no object that computes golden bits calls a transcendental
# function of the C library (they differ between systems and CPUs), or its fma
# (some round twice).
#
# SPDX-License-Identifier: Apache-2.0
#
# Looks at the undefined symbols of every object of the library but the BLAS
# backend, which is not golden, and src/validate, which judges and computes
# nothing. A probe object that does call expf and sincos shows that the look
# works.
build=$1
this=core/symbols
. tests/script.sh

names='exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sin|cos|tan|sincos|asin'
names="$names|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|erf|erfc|gamma"
names="$names|lgamma|tgamma|cbrt|hypot|fma|j0|j1|jn|y0|y1|yn"
# also: float and long double, complex, the _finite names of -ffast-math, and
# the vector library (_ZGV...)
wanted="^(__)?c?($names)[fl]?(_finite)?(_r)?$|^_ZGV|^_?_?sincos|^__pow[sdf]i"

undefined() {   # object: its undefined symbols, one per line
    ${NM:-nm} -u "$1" | sed 's/^.* //; s/@.*//; s/^ *//'
}

probe=${TMPDIR:-/tmp}/symbols_probe.$$
printf '%s\n' '#define _GNU_SOURCE' '#include <math.h>' \
    'float f(float x) { return expf(x); }' \
    'void g(double x, double *s, double *c) { sincos(x, s, c); }' \
    'float (*h)(float, float, float) = fmaf;' > "$probe.c"
if ! ${CC:-cc} -c -o "$probe.o" "$probe.c"; then
    fail "the probe does not compile"
elif [ "$(undefined "$probe.o" | grep -cE "$wanted")" -eq 3 ]; then
    pass
else
    fail "expf, sincos and fmaf of the probe are not seen by: ${NM:-nm} -u"
fi
rm -f "$probe.c" "$probe.o"

for object in $(find "$build/src" -name '*.o' | sort); do
    case $object in
    */src/cli/* | */src/ops/blas/*) continue ;;
    */src/validate/*) continue ;;   # imitates others' mistakes, erf included
    */src/golden/*) continue ;;     # needs C11 alone, so its fma is libm's
    esac
    bad=$(undefined "$object" | grep -E "$wanted" | tr '\n' ' ')
    if [ -z "$bad" ]; then
        pass
    else
        fail "${object#"$build"/} calls $bad; use tether/mathfn.h or core/fma.h"
    fi
done
[ "$passed" -gt 50 ] || fail "only $passed objects found in $build/src"
finish
