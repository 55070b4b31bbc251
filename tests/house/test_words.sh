#!/bin/sh
# test_words.sh: pages are short, undated, and in the field's words.
#
# SPDX-License-Identifier: Apache-2.0
#
#   words      all pages together have at most 30,000 words, the lesson apart
#   dates      no day of a calendar, no month with a year
#   machines   no model of a CPU or GPU; instructions and architectures are fine
#   history    nothing about earlier versions but in the change log
#   dialect    none of the words that only this project understood
#   reader     every page says in its first lines for whom it is
# tools/bench/results has measurements, with days and machines, and is left out
# of all of them. Code and what stands in `...` is not looked at. Pages made here
# show that each is found.
this=house/words
. tests/script.sh

most=30000
work=$(mktemp -d "${TMPDIR:-/tmp}/words.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

months='January|February|March|April|June|July|August|September|October|'\
'November|December'
days='20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]|('"$months"') 20[0-9][0-9]|'\
'[0-9] ('"$months"')'
machines='EPYC|Ryzen|Threadripper|Xeon|Zen [0-9]|Core i[3579]|Nehalem|Haswell|'\
'Skylake|Sapphire Rapids|Granite Rapids|Graviton|Apple M[0-9]|'\
'[^a-z0-9][ABHVL][1-9]00( |,|\.|;|:|\)|$)|H200|GH200|L40S|RTX|GeForce|Tesla'
history='the program before|it was before|[Bb]efore that change|in the evening'
dialect='turned|laid|soften|judge[sd]?|judging|rooms?|behind|beside|nobody|'\
'somebody|anybody|in turns|by turns|neighbours in time|whom the|it stands|'\
'stands (in|at|with|beside)|mend(s|ed)?|at a glance'

prose() {   # page: its lines, without code, `...` and targets of links
    awk '/^```/ { code = !code; print ""; next }
        code || /^    / { print ""; next }
        { gsub(/`[^`]*`/, "`"); gsub(/\]\([^)]*\)/, "]"); print }' "$1"
}

complaints() {   # page
    prose "$1" > "$work/prose"
    for kind in days machines history dialect; do
        eval "pattern=\$$kind"
        flag=-E
        case $kind:$1 in
        history:*CHANGELOG.md) continue ;;
        history:*) flag=-iE ;;
        dialect:*) pattern="(^|[^A-Za-z_-])($pattern)([^A-Za-z_-]|\$)"
                   flag=-iE ;;
        esac
        grep -no $flag -- "$pattern" "$work/prose" \
            | sed "s|^|$1:|; s|\$| ($kind)|"
    done
    case $1 in README.md | src/golden/README.md) return ;; esac  # the door; a lesson
    head -n 12 "$1" | tr '\n' ' ' | grep -qE 'For (people|users|contributors)' \
        || echo "$1: does not say for whom it is (reader)"
}

# ---- wrong pages are found wrong ----------------------------------------------
shown() {   # what is complained about, a sentence
    printf '%s\n' '# A page' '' "$3For people who test. $2" > "$work/page"
    complaints "$work/page" > "$work/said"
    if [ -z "$1" ] && [ ! -s "$work/said" ]; then pass
    elif [ -n "$1" ] && grep -q "($1)" "$work/said"; then pass
    else fail "of \"$2\" it should say \"$1\", but says: $(cat "$work/said")"
    fi
}
shown '' 'It runs on compute capability 9.0 and with AVX-512. `judge.c` is a file.'
shown days 'Measured on 2026-11-21.'
shown days 'It took 3 s on 24 November.'
shown machines 'A Zen 5 takes 3 s.'
shown machines 'An H100 takes 3 s.'
shown history 'The program before took 3 s.'
shown dialect 'Weights are turned for that.'
shown dialect 'The answer lies behind it.'
shown dialect 'Nobody waits.'
printf '%s\n' '# A page' 'Nothing.' > "$work/page"
if complaints "$work/page" | grep -q '(reader)'
then pass; else fail 'a page without a reader is not found'; fi

# ---- the tree -------------------------------------------------------------------
pages=$(find -H README.md .github src include tests tools ref_data -name '*.md' \
    -type f ! -path 'tools/bench/results/*' 2>/dev/null)  # .github may be absent
n=$(printf '%s\n' "$pages" | grep -c .)
if [ "$n" -gt 20 ]; then pass; else fail "only $n pages found"; fi
for page in $pages; do
    complaints "$page" > "$work/said"
    if [ -s "$work/said" ]; then fail "$(cat "$work/said")"; else pass; fi
done
# shellcheck disable=SC2046,SC2086
words=$(cat $(printf '%s\n' $pages | grep -v '^src/golden/') | wc -w)
echo "$words words in $n pages"
if [ "$words" -le "$most" ]; then pass
else fail "$words words in pages, more than $most: $(wc -w $pages | sort -n \
    | tail -n 6 | tr '\n' ';')"
fi
finish
