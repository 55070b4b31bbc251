# sass.awk: how much of the inner loop of each kernel is multiply-adds.
#
# SPDX-License-Identifier: Apache-2.0
#
#   cuobjdump -sass FILE | awk -f tests/cuda/sass.awk
#
# One line a kernel: name, instructions of its inner loop, those among them that
# are FFMA, HMMA or HGMMA, the share. The inner loop is the smallest one with so
# many of them (128 FFMA, 32 HMMA, 4 HGMMA), less the loops inside it; kernels
# without one are left out.

function hex(s,    i, n) {
    n = 0
    for (i = 1; i <= length(s); i++)
        n = 16 * n + index("0123456789abcdef", tolower(substr(s, i, 1))) - 1
    return n
}

# instructions and multiply-adds from i to j
function size(i, j) { return j - i + 1 }
function products(i, j,    k, n) {
    n = 0
    for (k = i; k <= j; k++) n += is_product[k]
    return n
}

# 128 where there are enough of them for an inner loop
function worth(i, j,    k, n) {
    n = 0
    for (k = i; k <= j; k++) n += weight[k]
    return n
}

function report(    l, m, best, all, fma, at) {
    for (l = 1; l <= loops; l++) {
        if (worth(from[l], to[l]) < 128) continue
        if (!best || size(from[l], to[l]) < size(from[best], to[best]))
            best = l
    }
    if (best) {
        all = size(from[best], to[best])
        fma = products(from[best], to[best])
        at = from[best]
        for (l = 1; l <= loops; l++)        # ends of loops ascend
            if (l != best && from[l] >= at && to[l] <= to[best] &&
                to[l] < to[best]) {
                all -= size(from[l], to[l])
                fma -= products(from[l], to[l])
                at = to[l] + 1
            }
        printf "%s %d %d %.3f\n", name, all, fma, fma / all
    }
    n = loops = 0
}

/Function : / {
    if (name) report()
    name = $NF
}

/^[ \t]*\/\*[0-9a-f]+\*\// {
    address = $1
    gsub(/[^0-9a-f]/, "", address)
    line = $0
    sub(/^[^*]*\*[0-9a-f]+\*\/[ \t]*/, "", line)
    sub(/^@!?U?P[0-9T]+[ \t]+/, "", line)
    if (line ~ /^\//) next                   # the second half of the encoding
    number[hex(address)] = ++n
    weight[n] = line ~ /^FFMA/ ? 1 : line ~ /^HMMA/ ? 4 : line ~ /^HGMMA/ ? 32 : 0
    is_product[n] = weight[n] > 0
    if (line ~ /^BRA/ && match(line, /0x[0-9a-f]+/)) {
        target = hex(substr(line, RSTART + 2, RLENGTH - 2))
        if (target <= hex(address) && target in number) {
            from[++loops] = number[target]
            to[loops] = n
        }
    }
}

END { if (name) report() }
