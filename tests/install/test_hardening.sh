#!/bin/sh
# test_hardening.sh: what is released stops at an overflow.
#
# SPDX-License-Identifier: Apache-2.0
#
# The program and the shared library check the stack and copies, and their
# tables of addresses are bound at start and read-only; the kernels, which
# handle no files, pay for nothing. And no call that tests/faults lets fail is
# taken by its checked form, which they would not see.
build=$1
this=install/hardening
. tests/script.sh

if ! command -v readelf >/dev/null 2>&1 || ! readelf -h "$build/tether" \
    >/dev/null 2>&1; then
    skip "readelf cannot read $build/tether"
    finish
    exit
fi
case ${build##*/}$(cat "$build/staged/compiler" 2>/dev/null) in
*-O0* | *-address* | *-undefined* | *-thread* | *-memory* | *-fsanitize*)
    skip "a build without optimisation, or with sanitizers"
    finish
    exit ;;
esac

called() {   # file: the functions it calls of others
    ${NM:-nm} -D -u "$1" 2>/dev/null | sed 's/^.* //; s/@.*//'
}

for file in "$build/tether" "$build"/libtether.so.*; do
    [ -e "$file" ] || continue
    name=${file#"$build"/}
    if readelf -lW "$file" | grep -q GNU_RELRO; then pass
    else fail "$name has no GNU_RELRO"; fi
    if readelf -dW "$file" | grep -qE 'BIND_NOW|FLAGS.*NOW'; then pass
    else fail "$name is not bound at start"; fi
    if called "$file" | grep -q '^__stack_chk_fail'; then pass
    else fail "$name has no stack protector"; fi
    # FORTIFY is of glibc
    if ! called "$file" | grep -q '^__libc_start_main\|^__cxa_finalize' ||
        called "$file" | grep -q '_chk$'; then pass
    else fail "$name has no checked copies (FORTIFY)"; fi
done

for object in "$build"/src/ops/exact/kernels_*.o; do
    if ${NM:-nm} -u "$object" | grep -qE '__stack_chk_fail|_chk$'; then
        fail "${object#"$build"/} checks its stack or its copies"
    else
        pass
    fi
done

for call in $(cat tests/faults/calls.txt); do
    if called "$build/tether" | grep -qx "__${call}_chk"; then
        fail "$call has become __${call}_chk, which tests/faults does not see"
    else
        pass
    fi
done
[ "$passed" -gt 30 ] || fail "only $passed things looked at"
finish
