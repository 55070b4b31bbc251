#!/bin/sh
# check_all.sh: check-bits in every configuration that can be had here.
#
#   sh tests/bits/check_all.sh [WORD...]
#
# SPDX-License-Identifier: Apache-2.0
#
# Builds check_bits per configuration under build/bits-*, runs it, and prints
# one line of a table each: configuration, checks, equal, seconds of the run. A
# configuration that lacks a compiler, an emulator or an instruction set is
# "not run" with the reason, which is not a failure and never counts as equal.
# WORDs choose the lines whose title contains one of them. JOBS (default 2) is
# for make, QUICK=1 leaves vae_fullwidth out everywhere; emulators and code
# without vector kernels always leave it out ("quick").
#
# Exit code: 0 when everything that ran is equal and something ran.
cd "$(dirname "$0")/../.." || exit 2
jobs=${JOBS:-2}
words=$*
log=build/bits.log
ran=0
bad=0
left=0
mkdir -p build
: > "$log"
# waiting threads sleep: no time is lost where the cores are shared
OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
export OMP_WAIT_POLICY

wanted() {   # title
    [ -z "$words" ] && return 0
    for w in $words; do
        case $1 in *"$w"*) return 0 ;; esac
    done
    return 1
}

line() {   # title checks equal seconds
    printf '| %-40s | %6s | %-6s | %7s |\n' "$1" "$2" "$3" "$4"
}

not_run() {   # title reason
    wanted "$1" || return
    left=$((left + 1))
    printf '| %-40s | not run: %s\n' "$1" "$2"
}

# have TITLE PACKAGE PROGRAM...: is everything there?
have() {
    title=$1
    package=$2
    shift 2
    for p in "$@"; do
        command -v "$p" >/dev/null 2>&1 && continue
        not_run "$title" "needs $package"
        return 1
    done
}

# build FOLDER MAKE_ARGUMENT...: into build/bits-FOLDER
build() {
    folder=bits-$1
    shift
    make -j"$jobs" FLAVOUR="$folder" "$@" bits-programs >> "$log" 2>&1
}

# check TITLE FOLDER EXPECTED COMMAND...: run it and print the line. EXPECTED
# is what the first line of check_bits must contain: a configuration that
# silently runs something else is not run.
check() {
    title=$1
    folder=build/bits-$2
    expected=$3
    shift 3
    if [ ! -x "$folder/check_bits" ]; then
        ran=$((ran + 1))
        bad=$((bad + 1))
        line "$title" - "no: does not build (build/bits.log)" -
        return
    fi
    start=$(date +%s.%N)
    echo "== $title" >> "$log"
    "$@" "$folder/check_bits" --demo "$folder/demo-random" \
        ${QUICK:+--quick} $options > build/bits.out 2>&1
    rc=$?
    end=$(date +%s.%N)
    cat build/bits.out >> "$log"
    if ! head -n 1 build/bits.out | grep -q "$expected"; then
        not_run "$title" "this CPU has no $expected"
        return
    fi
    result=$(grep -E '^bits: ' build/bits.out | tail -n 1)
    p=$(echo "$result" | sed 's/.* \([0-9]*\) passed.*/\1/')
    f=$(echo "$result" | sed 's/.* \([0-9]*\) failed$/\1/')
    equal=yes
    if [ "$rc" -ne 0 ] || [ -z "$result" ]; then
        equal=no
        bad=$((bad + 1))
    fi
    ran=$((ran + 1))
    line "$title" "$((${p:-0} + ${f:-0}))" "$equal" \
        "$(echo "$start $end" | awk '{printf "%.1f", $2 - $1}')"
    [ "$equal" = yes ] || grep '^FAIL' build/bits.out | head -n 3
}

# ---- the machine's own code ------------------------------------------------

printf '| %-40s | %6s | %-6s | %7s |\n' configuration checks equal seconds
printf '|%s|\n' '---|---:|---|---:'
options=

for cc in gcc clang; do
    for opt in -O0 -O1 -O2 -O3; do
        title="$cc $opt"
        wanted "$title" || continue
        have "$title" "$cc" $cc || continue
        options=
        [ $opt = -O0 ] && options=--quick && title="$title, quick"
        build $cc$opt CC=$cc OPT=$opt && check "$title" $cc$opt "$cc" env
    done
done

options=
if command -v gcc >/dev/null 2>&1; then
    build gcc-O2 CC=gcc OPT=-O2
    for n in 1 2 3 7; do
        wanted "$n threads" &&
            check "$n threads" gcc-O2 "threads $n\$" env OMP_NUM_THREADS=$n
    done
    wanted "OMP=no" && build noomp CC=gcc OMP=no
    wanted "OMP=no" && check "OMP=no" noomp "threads 1\$" env
    for core in Haswell Prescott; do
        wanted "OPENBLAS_CORETYPE=$core" &&
            check "OPENBLAS_CORETYPE=$core" gcc-O2 exact \
                env OPENBLAS_CORETYPE=$core
    done
    for cpu in avx2 avx512 amx amx-model; do
        wanted "TT_CPU=$cpu" &&
            check "TT_CPU=$cpu" gcc-O2 " $cpu[,)]" env TT_CPU=$cpu
    done
    options=--quick
    wanted "TT_CPU=generic" &&
        check "TT_CPU=generic, quick" gcc-O2 " generic[,)]" env TT_CPU=generic
    options="--quick --backend golden"
    wanted "--backend golden" &&
        check "--backend golden, quick" gcc-O2 "golden" env
fi

options=
title="musl, static"
have "$title" musl-tools musl-gcc && wanted "$title" &&
    build musl CC=musl-gcc OMP=no LDLIBS=-static &&
    check "$title" musl exact env

# ---- other machines, emulated ----------------------------------------------

options=--quick

# A CPU from before FMA and AVX: the library's fmaf in software.
title="x86-64 without FMA (Nehalem), quick"
wanted "$title" && have "$title" qemu-user-static qemu-x86_64-static &&
    build nofma CC=gcc OMP=no LDLIBS=-static &&
    check "$title" nofma " generic[,)]" qemu-x86_64-static -cpu Nehalem

cross() {   # name compiler emulator package flags
    title="$1, quick"
    wanted "$title" || return
    have "$title" "$4, qemu-user-static" "$2" "$3" || return
    build "$1" CC="$2" OMP=no LDLIBS=-static CFLAGS="$5" RUN="$3"
    check "$title" "$1" exact "$3"
}
cross aarch64 aarch64-linux-gnu-gcc qemu-aarch64-static gcc-aarch64-linux-gnu
cross riscv64 riscv64-linux-gnu-gcc qemu-riscv64-static gcc-riscv64-linux-gnu
cross ppc64le powerpc64le-linux-gnu-gcc qemu-ppc64le-static \
    gcc-powerpc64le-linux-gnu
cross s390x s390x-linux-gnu-gcc qemu-s390x-static gcc-s390x-linux-gnu
cross i686-sse2 i686-linux-gnu-gcc qemu-i386-static gcc-i686-linux-gnu \
    "-msse2 -mfpmath=sse"
cross armhf arm-linux-gnueabihf-gcc qemu-arm-static gcc-arm-linux-gnueabihf \
    "-mfpu=neon-vfpv4"

echo "$((ran - bad)) configurations equal, $bad not, $left not run"
[ "$bad" -eq 0 ] && [ "$ran" -gt 0 ]
