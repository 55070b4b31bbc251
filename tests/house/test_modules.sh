#!/bin/sh
# test_modules.sh: modules of the source call lower modules alone, at link level.
#
# SPDX-License-Identifier: Apache-2.0
#
# The levels are those of the first block of src/README.md. nm lists the names
# that every object of the build defines and needs; a call is a name that an
# object of one module needs and an object of another module defines. No module calls
# a higher one, and calls between modules close no circle, which on one level
# the first rule does not see. In cli nobody but main.c calls a command: two
# commands that make a video share a run (run.h), not a list of words. main.c
# stands above all: it defines nothing that another file needs. Listings made
# here show that all of them are found.
build=$1
this=house/modules
. tests/script.sh

if ! command -v "${NM:-nm}" > /dev/null 2>&1; then
    skip "${NM:-nm} is not installed (binutils)"
    finish
    exit
fi

# ---- complaints about a listing: "file.o: name type ..." -------------------
# Reads the levels, then `nm -A -P`. Says every call that is wrong, and at
# last "N calls", how many pairs of modules call each other in one direction.
judge='
    NR == FNR { level[$2] = $1; next }
    {
        file = $1
        sub(/:$/, "", file)
        module = file
        if (!sub(/.*src\//, "", module)) next
        sub(/\/.*/, "", module)
        modules[module] = 1
        if (module == "cli" && $3 == "U" && $2 ~ /^cmd_/ && file !~ /main\.o$/)
            print file " calls the command " $2
        if (file ~ /src\/cli\/main\.o$/ && $3 ~ /^[A-TV-Z]$/) top[$2] = 1
        else if ($3 == "U") needed[$2] = file
        if ($3 == "U" || $3 == "w" || $3 == "v") need[module, $2] = file
        else if ($3 ~ /^[A-Z]$/) home[$2] = module
    }
    END {
        for (module in modules)
            if (!(module in level)) print module " has no level in src/README.md"
        for (name in top)
            if (name in needed) print needed[name] " needs " name " of main.c"
        for (key in need) {
            split(key, part, SUBSEP)
            from = part[1]
            if (!(part[2] in home) || (to = home[part[2]]) == from) continue
            if (!((from, to) in calls)) n++
            calls[from, to] = need[key] " needs " part[2] " of " to
            if (level[to] > level[from])
                print need[key] " of level " level[from] " needs " part[2] \
                    " of " to ", level " level[to]
        }
        # take away modules that call none of those left or are called by none,
        # until none goes
        do {
            gone = 0
            for (module in modules) {
                calling = called = 0
                for (other in modules) {
                    if ((module, other) in calls) calling = 1
                    if ((other, module) in calls) called = 1
                }
                if (!calling || !called) { delete modules[module]; gone = 1 }
            }
        } while (gone)
        for (module in modules)
            for (other in modules) if ((module, other) in calls)
                print "in a circle: " calls[module, other]
        print n + 0 " calls"
    }'
complaints() {   # listing
    awk -f tests/house/levels.awk src/README.md > "$1.levels"
    awk "$judge" "$1.levels" "$1"
    rm -f "$1.levels"
}

# ---- wrong listings are found wrong ----------------------------------------
list=${TMPDIR:-/tmp}/modules.$$
trap 'rm -f "$list"' EXIT
shown() {   # word that must be said, lines of a listing on standard input
    cat > "$list"
    if complaints "$list" | grep -q "$1"; then
        pass
    else
        fail "a listing that is wrong is not: $1"
    fi
}
shown 'core/a.o of level 1 needs tt_g of ops, level 2' << LIST
b/src/core/a.o: tt_f T 0 1
b/src/core/a.o: tt_g U
b/src/ops/exact/b.o: tt_g T 0 1
LIST
shown 'in a circle: b/src/vae/b.o needs tt_f of dit' << LIST
b/src/dit/a.o: tt_f T 0 1
b/src/dit/a.o: tt_g U
b/src/vae/b.o: tt_g T 0 1
b/src/vae/b.o: tt_f U
LIST
shown 'b/src/cli/demo.o calls the command cmd_generate' << LIST
b/src/cli/demo.o: cmd_generate U
b/src/cli/main.o: cmd_generate U
b/src/cli/generate.o: cmd_generate T 0 1
LIST
shown 'b/src/cli/demo.o needs cli_f of main.c' << LIST
b/src/cli/demo.o: cli_f U
b/src/cli/main.o: cli_f T 0 1
LIST
shown 'attic has no level' << LIST
b/src/attic/a.o: tt_f T 0 1
LIST

# ---- the listing of this build, without objects whose source is gone --------
objects() {
    for source in $(find -H src -name '*.c'); do
        [ ! -f "$build/${source%.c}.o" ] || echo "$build/${source%.c}.o"
    done
}
# shellcheck disable=SC2046
"${NM:-nm}" -A -P $(objects) > "$list" 2> /dev/null
complaints "$list" > "$list.said"
calls=$(sed -n 's/ calls$//p' "$list.said")
if [ "${calls:-0}" -ge 20 ]; then
    pass
else
    fail "${calls:-0} pairs of modules call each other in $build/src, not 20"
fi
if [ "$(grep -c . "$list.said")" -eq 1 ]; then
    pass
else
    fail "$(grep -v ' calls$' "$list.said")"
fi
rm -f "$list.said"
finish
