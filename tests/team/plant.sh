#!/bin/sh
# plant.sh: faults planted in what ranks do, which test_ranks and
# test_rank_states must find.
#
#   sh tests/team/plant.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# Compiles one file with one line changed, links a test of tests/rollout with
# it, and runs that. A fault counts as found when the test fails. Faults are
# such that one rank alone has none. The last line counts; the table of
# src/team/README.md is what this says.
build=$1
this=team/plant
. tests/script.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/plant.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
flags="-std=c11 -D_GNU_SOURCE -O2 -ffp-contract=off -w -Iinclude -Isrc -pthread"

try() {   # title, file, text of it that stands there once, what stands instead
    file=$2 old=$3 new=$4
    export old new
    awk '
        BEGIN { old = ENVIRON["old"]; new = ENVIRON["new"] }
        {
            at = index($0, old)
            if (at) {
                $0 = substr($0, 1, at - 1) new substr($0, at + length(old))
                n++
            }
            print
        }
        END { exit n != 1 }' "$file" > "$work/${file##*/}" || {
        fail "$1: its line is not in $file"
        return
    }
    # shellcheck disable=SC2086
    if ! ${CC:-cc} $flags $FLAGS -I"$(dirname "$file")" -o "$work/test" \
        "$work/${file##*/}" "$build/tests/rollout/$test.o" \
        "$build/tests/libcases.a" "$build/libtether.a" $LIBS \
        > "$work/log" 2>&1; then
        fail "$1 does not compile: $(head -n 1 "$work/log")"
        return
    fi
    timeout 300 "$work/test" > "$work/log" 2>&1
    rc=$?
    latents=$(grep -c '^FAIL.*: latents of' "$work/log")
    reports=$(grep -c '^FAIL.*: what the policy' "$work/log")
    states=$(grep -c '^FAIL.*\(: state after\|: injected\)' "$work/log")
    if [ $rc -ne 0 ]; then
        pass
        if [ $test = test_ranks ]; then echo "| $1 | $latents | $reports |"
        else echo "| $1 | $latents | $states |"; fi
    else
        fail "$1: nothing saw it"
    fi
}

test=test_ranks
echo "| fault | latents that differ | reports that differ |"
echo "|---|---|---|"
team='tt_team_size(ctx) > 1'
try 'GRAB adds up a sum per head' src/cache/grab.c \
    'for (int64_t i = 0; i < width; i++) dot += q[i] * k[i];' \
    "for (int64_t h = 0, n = $team ? r->D : width; h * n < width; h++) {
         double part = 0;
         for (int64_t i = h * n; i < (h + 1) * n; i++) part += q[i] * k[i];
         dot += part;
     }"
try 'GRAB divides by the heads held' src/cache/grab.c \
    '(double)r->heads * sqrt' '(double)r->H * sqrt'
try 'rows of a parcel are off by one' src/team/exchange.c \
    'x + (i * H + heads.lo) * D' 'x + ((i + 1) % rows * H + heads.lo) * D'
try 'heads come back in another order' src/team/exchange.c \
    '((i - own.lo) * H + h) * D' '((i - own.lo) * H + H - 1 - h) * D'
try 'values are those of the keys' src/dit/self_attention.c \
    'v = tt_team_to_heads(ctx, v,' "v = tt_team_to_heads(ctx, $team ? k : v,"
try 'Deep Forcing divides by the heads held' \
    src/cache/policies/deep_forcing.c '(double)geo->heads' '(double)geo->H'
try 'Deep Forcing asks in another order of heads' src/team/exchange.c \
    'rows + (i * all + first) * unit, block' \
    'rows + (i * all + all - k - first) * unit, block'
try 'a query reads the head beside it' src/dit/self_attention.c \
    'a.k = window->k + h * D;' 'a.k = window->k + (h + 1) % g->H * D;'

test=test_rank_states
echo
echo "| fault | latents that differ | states that differ |"
echo "|---|---|---|"
try 'a rank that holds a head does not get it' src/team/exchange.c \
    'h < held.lo || h >= held.hi' \
    'h < cut_first_heads(t, H, r).lo || h >= cut_first_heads(t, H, r).hi'
try 'a head is stored as the one beside it' src/rollout/state.c \
    'x + t * width + held * D' 'x + t * width + (held + 1) % g->H * D'
try 'rank 0 keeps what it had of a head' src/rollout/state.c \
    'if (!s->first || ctx->status) continue;' \
    'if (!s->first || ctx->status || !holds(g, h)) continue;'
try 'a head of the state of a policy goes to the one beside it' \
    src/rollout/state.c 'to + (size_t)(i * g->H + h - g->first) * s.unit' \
    'to + (size_t)(i * g->H + (h - g->first + 1) % g->H) * s.unit'
try 'the state of TetherCache is that of all heads' src/cache/tether_state.c \
    '(o->S + o->M) * 4,' '(o->S + o->M) * 0,'
try 'what is injected stays with the whole' src/team/tap.c \
    'if (whole && ctx->inject)' 'if (whole && !ctx->inject)'
total
