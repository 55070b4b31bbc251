#!/bin/sh
# plant.sh: faults planted in the CUDA kernels, which check_kernels must find.
#
#   sh tests/cuda/plant.sh BUILD TABLE [part of a line of faults.txt]
#
# SPDX-License-Identifier: Apache-2.0
#
# Compiles each kernel file with one line changed (faults.txt), runs the cases
# of its operator on the shim, and writes TABLE: what was planted and what saw
# it. A fault counts as found when a result differs from golden, in whatever
# order of threads, or when the shim or the fence after an array stops the
# program. CXX and CXXFLAGS are the compiler's. The last line counts.
build=$1
table=$2
only=${3:-}
passed=0
failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/plant.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
mkdir -p "$work/src/ops/cuda" "$work/shim"
flags="-std=c++17 -O1 -march=native -ffp-contract=off -fno-math-errno -w -fPIC
    -fvisibility=hidden -ftls-model=initial-exec -pthread -I$work/src -Iinclude -Isrc -Itests/cuda"

# plant FILE N OLD NEW: FILE with its N-th OLD as NEW, or status 1
plant() {
    old=$3 new=$4 awk -v n="$2" '
        BEGIN { old = ENVIRON["old"]; new = ENVIRON["new"] }
        {
            out = ""
            rest = $0
            while (at = index(rest, old)) {
                out = out substr(rest, 1, at - 1) (++k == n ? new : old)
                rest = substr(rest, at + length(old))
            }
            print out rest
        }
        END { exit k < n }' "$1"
}

# Is what stands in $work found? Leaves one line in $work/seen.
found() {   # kernel file, cases
    objects=
    for o in "$build"/shim/src/ops/cuda/*.cu.o "$build"/shim/tests/cuda/*.o; do
        case $o in
        */"$1.o" | */check_kernels.o) ;;
        *) objects="$objects $o" ;;
        esac
    done
    # shellcheck disable=SC2086
    if ! $CXX $flags -c -o "$work/planted.o" -x c++ "$work/planted/$1" \
        2> "$work/seen" || ! $CXX $flags -shared -o "$work/shim/libcuda.so.1" \
        "$work/planted.o" $objects -ldl 2> "$work/seen"; then
        echo "does not compile: $(head -n 1 "$work/seen")" > "$work/seen"
        return 1
    fi
    way=mma
    case $1 in wgmma_* | blocks.cu | norm.cu) way=wgmma ;; esac
    gpu=90
    case $2 in sm80*) gpu=80 ;; esac
    for brief in --brief ''; do      # few cases find most faults
        # shellcheck disable=SC2086
        TT_SHIM_GPU=$gpu TT_CUDA_PRODUCTS=$way LD_LIBRARY_PATH=$work/shim \
            timeout 600 "$build/shim/check_kernels" $brief "$2" first \
            > "$work/log" 2>&1
        rc=$?
        grep -m 1 '^FAIL' "$work/log" | sed 's/^FAIL [a-z/]*: //' \
            > "$work/seen"
        [ -s "$work/seen" ] && return 0
        [ $rc -eq 0 ] || break
    done
    case $rc in
    0) echo "nothing" > "$work/seen"; return 1 ;;
    124) echo "no end" > "$work/seen"; return 1 ;;
    126 | 127) echo "no start" > "$work/seen"; return 1 ;;
    139 | 135) echo "a page that no one may touch" > "$work/seen" ;;
    *) echo "status $rc" > "$work/seen" ;;
    esac
}

{
    echo "# Faults planted in the CUDA kernels"
    echo
    echo "Written by \`make check-cuda-faults\` from \`faults.txt\`. Every fault"
    echo "stands alone in the kernels, which run on the shim; the last column"
    echo "is the first thing that was not as golden has it."
    echo
    echo "| file | fault | seen by |"
    echo "|---|---|---|"
} > "$work/table"

grep -v '^#' tests/cuda/faults.txt | sed 's/\\|/\a/g' | grep -F -- "$only" \
    > "$work/faults"
while IFS='|' read -r file cases n old new what; do
    trim() { printf '%s' "$1" | tr '\a' '|' | sed 's/^ *//; s/ *$//'; }
    file=$(trim "$file") cases=$(trim "$cases") n=$(trim "$n")
    old=$(trim "$old") new=$(trim "$new") what=$(trim "$what")
    kernel=$file
    case $file in                    # whose kernels show a header's faults
    exp.h) kernel=pointwise.cu ;;
    epilogue.h) kernel=linear.cu ;;
    tile.h)
        kernel=linear.cu
        case $cases in attention*) kernel=attention.cu ;; esac ;;
    mma.h | mma_tile.h | rows.h) kernel=mma_linear.cu ;;
    softmax.h) kernel=mma_attention.cu ;;
    window.h) kernel=mma_conv.cu ;;
    wgmma.h)
        kernel=wgmma_linear.cu
        case $cases in
        *attention*) kernel=wgmma_attention.cu ;;
        *stored*) kernel=blocks.cu ;;
        esac ;;
    esac
    rm -rf "$work/planted" "$work/src/ops/cuda/"*
    mkdir -p "$work/planted"
    cp "src/ops/cuda/$kernel" "$work/planted/$kernel"
    target=$work/planted/$kernel
    [ "$file" = "$kernel" ] || target=$work/src/ops/cuda/$file
    if ! plant "src/ops/cuda/$file" "$n" "$old" "$new" > "$target"; then
        echo "FAIL cuda/faults: $file has not $n times: $old"
        failed=$((failed + 1))
    elif found "$kernel" "$cases"; then
        passed=$((passed + 1))
        echo "| $file | $what | $(tr '|' ' ' < "$work/seen") |" \
            >> "$work/table"
    else
        echo "FAIL cuda/faults: $file, $what: $(cat "$work/seen")"
        failed=$((failed + 1))
    fi
done < "$work/faults"
[ -n "$only" ] || cp "$work/table" "$table"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
