#!/bin/sh
# plant.sh: faults planted in what ranks do, which test_ranks, test_rank_states
# and test_bands must find.
#
#   sh tests/team/plant.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# Compiles one file with one line changed, links the test with it, and runs
# that. A fault counts as found when the test fails. Faults are such that one
# rank alone has none. The last line counts; the tables of src/team/README.md
# are what this says.
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
        "$work/${file##*/}" "$build/tests/$test.o" \
        "$build/tests/libcases.a" "$build/libtether.a" $LIBS \
        > "$work/log" 2>&1; then
        fail "$1 does not compile: $(head -n 1 "$work/log")"
        return
    fi
    timeout 300 "$work/test" > "$work/log" 2>&1
    rc=$?
    if [ $rc -ne 0 ]; then
        pass
        echo "| $1 | $(grep -c "^FAIL.*: $made" "$work/log") |" \
            "$(grep -c "^FAIL.*: $inside" "$work/log") |"
    else
        fail "$1: nothing saw it"
    fi
}

test=rollout/test_ranks made='latents of' inside='what the policy'
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
try 'values of the prompt are its keys' src/dit/cross_attention.c \
    'v = tt_team_all_rows(ctx, text->v,' \
    "v = tt_team_all_rows(ctx, $team ? text->k : text->v,"
try 'a rank holds the first rows of the prompt' src/dit/dit.c \
    'text + own.lo * dim' 'text'
try 'the text ends too early for a rank' src/dit/dit.c \
    'end > own.lo ? end - own.lo : 0' \
    'end > own.lo ? end - own.lo - (own.lo > 0) : 0'
try 'Deep Forcing asks in another order of heads' src/team/exchange.c \
    'rows + (i * all + first) * unit, block' \
    'rows + (i * all + all - k - first) * unit, block'
try 'a query reads the head next to it' src/dit/self_attention.c \
    'a.k = window->k + h * head;' 'a.k = window->k + (h + 1) % g->H * head;'

test=rollout/test_rank_states made='latents of'
inside='\(state after\|injected\)'
echo
echo "| fault | latents that differ | states that differ |"
echo "|---|---|---|"
try 'a rank that holds a head does not get it' src/team/exchange.c \
    'h < held.lo || h >= held.hi' \
    'h < cut_first_heads(t, H, r).lo || h >= cut_first_heads(t, H, r).hi'
try 'a head is stored as the one next to it' src/rollout/state.c \
    'x + (size_t)(t * g->H + held) * one' \
    'x + (size_t)(t * g->H + (held + 1) % g->H) * one'
try 'rank 0 keeps what it had of a head' src/rollout/state.c \
    'if (!s->first || ctx->status) continue;' \
    'if (!s->first || ctx->status || !holds(g, h)) continue;'
try 'a head of the state of a policy goes to the one next to it' \
    src/rollout/state.c 'to + (size_t)(i * g->H + h - g->first) * s.unit' \
    'to + (size_t)(i * g->H + (h - g->first + 1) % g->H) * s.unit'
try 'what is injected stays with the whole' src/team/tap.c \
    'if (whole && ctx->inject)' 'if (whole && !ctx->inject)'

echo
test=vae/test_bands made=pictures inside='history of'
echo "| fault | teams whose pictures differ | ranks whose history differs |"
echo "|---|---|---|"
try 'lines next to a band are those of an earlier frame' src/vae/causal_conv.c \
    'tt_team_halo(ctx, *s->spare, &s->band, s->width);' \
    'if (s->count < 2)
         tt_team_halo(ctx, *s->spare, &s->band, s->width);'
try 'lines next to a band are off by one' src/team/exchange.c \
    'x + (end - 1) * width' 'x + (end - 1 - (b->lines > 1)) * width'
try 'the line above comes from below' src/team/exchange.c \
    'if (b->above) tt_put(ctx, x, theirs,' \
    'if (b->above) tt_put(ctx, x, theirs + (b->below ? width : 0),'
try 'a band is padded where there is a line' src/vae/causal_conv.c \
    'c->kh / 2 - (int)h->above' 'c->kh / 2'
try 'a doubled line stands for one' src/vae/resample.c \
    '1 - 2 * (int)h.above' '1 - (int)h.above'
try 'queries are those of the first band' src/vae/attention.c \
    'qkv + h.first * w * 3 * c' 'qkv'
try 'keys are those of our band' src/vae/attention.c \
    '.T = n, .N = all' '.T = n, .N = n ? n : all'
try 'latents are those of the first band' src/vae/decoder.c \
    'zd + band.first * w * v->z' 'zd'
total
