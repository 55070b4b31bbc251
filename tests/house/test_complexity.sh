#!/bin/sh
# test_complexity.sh: functions stay simple.
#
# SPDX-License-Identifier: Apache-2.0
#
# Fewer than 1 % of the functions of src and include, without third_party and
# the tables that tools wrote, have a cyclomatic complexity over 15. The ten
# worst are printed; complexity.awk says what is counted, and functions made
# here show that it counts right.
build=$1
this=house/complexity
. tests/script.sh

# ---- functions of known complexity -----------------------------------------
probe=${TMPDIR:-/tmp}/complexity.$$.c
trap 'rm -f "$probe"' EXIT
cat > "$probe" << 'CODE'
int one(void) { return 1; }
static int two(int a)
{ return a ? 1 : 2; }
static const char *const names[] = {"if (a && b)", "b"};

/* if (this) counts && that || those */
static const char *three(int a,
                         int b)
{
    if (a && b) return "if (x || y) for while case ? ' /* ";
    return names[0];   // if (a)
}

int seven(int a)
{
    for (int i = 0; i < a; i++) /* if */
        while (a || i)
            switch (a) {
            case '?': return a ? 1 : 2;
            case 2: return 3;
            }
    return 0;
}
CODE
said=$(awk -f tests/house/complexity.awk "$probe" | sed 's/ .*:/ /' \
    | tr '\n' ';')
want='1 1 one;2 2 two;3 7 three;7 14 seven;'
if [ "$said" = "$want" ]; then pass; else fail "said $said, not $want"; fi

# ---- the tree ---------------------------------------------------------------
list=$build/complexity
find -H src include -name third_party -prune -o -name '*.[ch]' \
    ! -path src/text/tables.c -print \
    | sort | xargs awk -f tests/house/complexity.awk | sort -rn > "$list"
all=$(grep -c . "$list")
over=$(awk '$1 > 15' "$list" | grep -c .)
if [ "$all" -gt 2000 ]; then pass; else fail "only $all functions found"; fi
echo "$over of $all functions are over 15; the worst:"
head -n 10 "$list"
if [ $((over * 100)) -lt "$all" ]; then
    pass
else
    fail "$over of $all functions have a complexity over 15, which is 1 % or" \
        "more: split some of $list"
fi
finish
