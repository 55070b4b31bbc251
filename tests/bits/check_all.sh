#!/bin/sh
# check_all.sh: check-bits in every configuration that can be had here.
#
#   sh tests/bits/check_all.sh [--ci] [WORD...]
#
# SPDX-License-Identifier: Apache-2.0
#
# Builds check_bits for every row of the table below, runs it and prints one
# line: configuration, stored digests compared, equal or not, seconds of the
# run. A row that lacks a compiler, an emulator or an instruction set is "not
# run" with the reason, which is not a failure and never counts as equal.
#
# WORDs choose rows by parts of their titles; --ci takes those that have
# options for it. JOBS (default 1) rows run at a time, after all were built.
# BITS are further options of check_bits for every row: BITS=--small.
#
# Exit code: 0 when everything that ran is equal and something ran. The last
# line counts digests.
cd "$(dirname "$0")/../.." || exit 2
PATH=$PATH:/usr/lib/wine         # where Debian has wine64
WINEDEBUG=-all
export PATH WINEDEBUG

# title; options of check_bits; the same with --ci, "-" to leave the row out;
# what check_bits must say, or it did not run what the title says; package of
# the compiler; arguments of make; what stands before the program.
# Code without vector kernels and emulators get less than all. "without FMA":
# hidden from glibc, whose fmaf is then computed in software; musl for x86-64
# always does that; Nehalem has no such instruction at all.
rows() {
    cat <<'TABLE'
gcc -O0; --quick; -; gcc; gcc; CC=gcc OPT=-O0; env
gcc -O1; ; -; gcc; gcc; CC=gcc OPT=-O1; env
gcc -O2; ; -; gcc; gcc; CC=gcc OPT=-O2; env
gcc -O3; ; -; gcc; gcc; CC=gcc OPT=-O3; env
clang -O0; --quick; -; clang; clang; CC=clang OPT=-O0; env
clang -O1; ; -; clang; clang; CC=clang OPT=-O1; env
clang -O2; ; ; clang; clang; CC=clang OPT=-O2; env
clang -O3; ; -; clang; clang; CC=clang OPT=-O3; env
gcc -O3, 1 thread; ; ; threads 1$; gcc; CC=gcc OPT=-O3; env OMP_NUM_THREADS=1
gcc -O3, 2 threads; ; -; threads 2$; gcc; CC=gcc OPT=-O3; env OMP_NUM_THREADS=2
gcc -O3, 3 threads; ; ; threads 3$; gcc; CC=gcc OPT=-O3; env OMP_NUM_THREADS=3
gcc -O3, 7 threads; ; -; threads 7$; gcc; CC=gcc OPT=-O3; env OMP_NUM_THREADS=7
OMP=no; ; -; threads 1$; gcc; CC=gcc OMP=no; env
OPENBLAS_CORETYPE=Haswell; ; -; exact; gcc; CC=gcc; env OPENBLAS_CORETYPE=Haswell
OPENBLAS_CORETYPE=Prescott; ; -; exact; gcc; CC=gcc; env OPENBLAS_CORETYPE=Prescott
TT_CPU=generic; --quick; --small; (f32 generic; gcc; CC=gcc; env TT_CPU=generic
TT_CPU=avx2; ; ; (f32 avx2; gcc; CC=gcc; env TT_CPU=avx2
TT_CPU=avx512; ; -; (f32 avx512; gcc; CC=gcc; env TT_CPU=avx512
TT_CPU=avx512bf16; ; -; vdp avx512bf16; gcc; CC=gcc; env TT_CPU=avx512bf16
TT_CPU=amx; ; -; amx amx,; gcc; CC=gcc; env TT_CPU=amx
TT_CPU=amx-model; ; -; amx amx-model; gcc; CC=gcc; env TT_CPU=amx-model
--backend golden; --brief --backend golden; -; backend golden; gcc; CC=gcc; env
musl, static; ; -; exact; musl-tools; CC=musl-gcc OMP=no LDLIBS=-static; env
without FMA, glibc; --small; -; (f32 generic; gcc; CC=gcc; env TT_CPU=generic GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4
without FMA, musl; --brief; --small; (f32 generic; musl-tools; CC=musl-gcc OMP=no LDLIBS=-static; env TT_CPU=generic
without FMA, Nehalem emulated; --small; -; (f32 generic; musl-tools, qemu-user-static; CC=musl-gcc OMP=no LDLIBS=-static; qemu-x86_64-static -cpu Nehalem
i686 (32 bits, SSE2); --brief; -; x86 sse2; gcc-i686-linux-gnu; CC=i686-linux-gnu-gcc OMP=no LDLIBS=-static CFLAGS='-msse2 -mfpmath=sse'; env
aarch64 (NEON); --quick; --small; (f32 neon; gcc-aarch64-linux-gnu, qemu-user-static; CC=aarch64-linux-gnu-gcc OMP=no LDLIBS=-static; qemu-aarch64-static
s390x (big-endian); --brief; --small --filter dit/; s390x; gcc-s390x-linux-gnu, qemu-user-static; CC=s390x-linux-gnu-gcc OMP=no LDLIBS=-static; qemu-s390x-static
riscv64; --brief; -; riscv64; gcc-riscv64-linux-gnu, qemu-user-static; CC=riscv64-linux-gnu-gcc OMP=no LDLIBS=-static; qemu-riscv64-static
ppc64le; --brief; -; ppc64; gcc-powerpc64le-linux-gnu, qemu-user-static; CC=powerpc64le-linux-gnu-gcc OMP=no LDLIBS=-static; qemu-ppc64le-static
Windows x86-64, wine; --brief; -; x86-64 sse2; gcc-mingw-w64-x86-64-posix, wine64; CC=x86_64-w64-mingw32-gcc-posix; wine64
armhf (32 bits, VFPv4); --small; -; arm; gcc-arm-linux-gnueabihf, qemu-user-static; CC=arm-linux-gnueabihf-gcc OMP=no LDLIBS=-static CFLAGS='-mfpu=neon-vfpv4'; qemu-arm-static
TABLE
}

out=build/bits
self=tests/bits/check_all.sh
total=$(grep -c '^[^#]' ref_data/bits.txt)

line() {   # title compared equal seconds
    printf '| %-30s | %12s | %-5s | %7s |\n' "$1" "$2" "$3" "$4"
}

# Run row n, built in a folder: its line, and its counts in $out/n.count.
one() {   # n folder title options expected command...
    mine=$out/$1
    folder=$2
    title=$3
    options=$4
    expected=$5
    shift 5
    start=$(date +%s.%N)
    program=$folder/check_bits
    [ -f "$program" ] || program=$program.exe
    # shellcheck disable=SC2086
    "$@" "$program" --demo "$folder/demo-random" $options \
        ${BITS:-} > "$mine.log" 2>&1
    rc=$?
    seconds=$(date +%s.%N | awk -v s="$start" '{printf "%.1f", $1 - s}')
    # the first line says what runs; without one it broke before it could
    if head -n 1 "$mine.log" | grep -q ', backend .*, threads [0-9]*$' &&
            ! head -n 1 "$mine.log" | grep -qe "$expected"; then
        printf '| %-30s | not run: this CPU has no %s\n' "$title" \
            "$(echo "$expected" | tr -d '()$')"
        echo left > "$mine.count"
        return
    fi
    sum=$(grep -E '^bits: ' "$mine.log" | tail -n 1)
    p=$(echo "$sum" | sed 's/.* \([0-9]*\) passed.*/\1/')
    f=$(echo "$sum" | sed 's/.* \([0-9]*\) failed$/\1/')
    [ -n "$sum" ] || f=1
    [ "$rc" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    equal=yes
    [ "$f" -eq 0 ] || equal=no
    line "$title" "$((${p:-0} + f)) of $total" $equal "$seconds"
    [ $equal = yes ] || grep '^FAIL' "$mine.log" | head -n 3
    echo "ran ${p:-0} $f" > "$mine.count"
}

if [ "${1:-}" = --one ]; then
    shift
    one "$@"
    exit 0
fi

ci=
[ "${1:-}" = --ci ] && ci=yes && shift
words=$*

wanted() {   # title
    [ -z "$words" ] && return 0
    for w in $words; do
        case $1 in *"$w"*) return 0 ;; esac
    done
    return 1
}

rm -rf $out
mkdir -p $out
line configuration digests equal seconds
echo '|---|---:|---|---:|'
n=100
rows | sed 's/; */;/g' > $out/rows
while IFS=';' read -r title options in_ci expected package args command; do
    wanted "$title" || continue
    [ -z "$ci" ] || options=$in_ci
    [ "$options" != - ] || continue
    n=$((n + 1))
    cc=${args#CC=}
    missing=
    for program in "${cc%% *}" "${command%% *}"; do
        command -v "$program" > $out/where 2>&1 || missing=yes
    done
    if [ -n "$missing" ]; then
        printf '| %-30s | not run: needs %s\n' "$title" "$package"
        echo left > $out/$n.count
        continue
    fi
    # the emulator also runs make_checkpoint
    case $command in qemu* | wine*) args="$args RUN='$command'" ;; esac
    if eval "make -j2 $args bits-programs" > $out/$n.build 2>&1; then
        folder=$(sed -n 's/^check_bits is in //p' $out/$n.build)
        grep 'warning:' $out/$n.build | grep -v "Using 'dlopen'" | head -n 3
        echo "$n '$folder' '$title' '$options' '$expected' $command" \
            >> $out/todo
    else
        line "$title" - "no" -
        echo "FAIL $title: does not build"
        tail -n 5 $out/$n.build
        echo "ran 0 1" > $out/$n.count
    fi
done < $out/rows

[ -f $out/todo ] && xargs -P "${JOBS:-1}" -L 1 sh $self --one < $out/todo
cat $out/*.count 2>/dev/null | awk -v rows=$((n - 100)) '
    $1 == "left" { left++ }
    $1 == "ran"  { p += $2; f += $3; $3 ? bad++ : good++ }
    END {
        lost = rows - good - bad - left   # ended without a word
        bad += lost
        f += lost
        printf "%d configurations equal, %d not, %d not run\n", good, bad, left
        printf "%d passed, %d failed\n", p, f
        exit f > 0 || p == 0
    }'
