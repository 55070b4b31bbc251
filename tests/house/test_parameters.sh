#!/bin/sh
# test_parameters.sh: functions take few parameters.
#
# SPDX-License-Identifier: Apache-2.0
#
# No function of src, include, tests and tools takes more than 8 parameters;
# what needs more gets a struct. The rooms in `older` have some that do, and
# may not get more. Functions made here show that parameters.awk counts right.
build=$1
most=8
older='src/validate 0'
this=house/parameters
. tests/script.sh

# ---- functions with known parameters ----------------------------------------
probe=${TMPDIR:-/tmp}/parameters.$$.c
trap 'rm -f "$probe"' EXIT
cat > "$probe" << 'CODE'
int none(void);
static int one(int a) { return two(a, a); }
static const int list[] = {f(1, 2)};

/* four(int a, b) */
char *three(int a, /* of, course */
            void (*fn)(int, int),
            const char *const b[static 2]);
void four(char a, int b,
          char c, ...)
{
    call(1, 2, 3, 4, 5);
}
CODE
said=$(awk -f tests/house/parameters.awk "$probe" | sed 's/ .*:/ /' \
    | tr '\n' ';')
want='0 1 none;1 2 one;3 6 three;4 9 four;'
if [ "$said" = "$want" ]; then pass; else fail "said $said, not $want"; fi

# ---- the tree ----------------------------------------------------------------
list=$build/parameters
find -H src include tests tools -name third_party -prune -o -name '*.[ch]' \
    -print | sort | xargs awk -f tests/house/parameters.awk | sort -rn > "$list"
all=$(grep -c . "$list")
if [ "$all" -gt 4000 ]; then pass; else fail "only $all functions found"; fi
awk -v most=$most '$1 > most' "$list" > "$list.over"
echo "$all functions and declarations; over $most parameters:"
cat "$list.over"
room=${older% *}
grep -v " $room/" "$list.over" > "$list.wrong"
if [ -s "$list.wrong" ]; then
    fail "more than $most parameters; pass a struct: $(cat "$list.wrong")"
else
    pass
fi
old=$(grep -c " $room/" "$list.over")
if [ "$old" -le "${older#* }" ]; then
    pass
else
    fail "$old functions of $room take more than $most parameters"
fi
finish
