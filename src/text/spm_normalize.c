/* spm_normalize.c: SentencePiece's text normaliser.
 *
 * Source  google/sentencepiece, normalizer.cc (0.1.97)
 * SPDX-License-Identifier: Apache-2.0
 *
 * The text is taken apart from the left into prefixes (user-defined piece,
 * longest entry of the character map, one character); spaces are merged,
 * marked with U+2581 and led by one. Any input has a result.
 * Next    spm_encode.c */
#include <string.h>

#include "text/clean.h"
#include "text/spm.h"

#define RESULT_LIMIT (64 << 20) /* bytes; only a hostile map gets there      */

static const uint8_t MARK[3] = {0xe2, 0x96, 0x81};        /* U+2581          */
static const uint8_t REPLACEMENT[3] = {0xef, 0xbf, 0xbd}; /* U+FFFD          */

/* What the next `taken` bytes of the text become. */
typedef struct prefix {
    size_t taken;
    const uint8_t *r;
    size_t n;
} prefix;

/* Longest match of the character map at s[0..n); false when there is none. */
static bool map_prefix(const spm_charsmap *map, const uint8_t *s, size_t n,
                       prefix *out)
{
    bool found = false;
    if (map->nunits == 0) return false;
    uint32_t pos = spm_unit_offset(spm_u32(map->units));
    for (size_t i = 0; i < n; i++) {
        pos ^= s[i];
        if (pos >= (uint64_t)map->nunits) break;
        uint32_t unit = spm_u32(map->units + 4 * (size_t)pos);
        if (spm_unit_label(unit) != s[i]) break;
        pos ^= spm_unit_offset(unit);
        if (!(unit & 0x100) || pos >= (uint64_t)map->nunits) continue;
        uint32_t value =
            spm_u32(map->units + 4 * (size_t)pos) & 0x7fffffffu;
        if ((int64_t)value >= map->nblob) continue;
        out->taken = i + 1;
        out->r = map->blob + value;
        found = true;
    }
    if (found) out->n = strlen((const char *)out->r);
    return found;
}

static prefix next_prefix(const tt_tokenizer *tok, const uint8_t *s, size_t n)
{
    prefix p = {0, s, 0};
    spm_walk w = spm_walk_begin(&tok->user);
    for (const spm_entry *e; (e = spm_walk_next(&w, s, n));)
        p.taken = p.n = (size_t)e->len;
    if (p.taken || map_prefix(&tok->map, s, n, &p)) return p;
    uint32_t cp;
    p.taken = p.n = (size_t)utf8_decode(&cp, s, n);
    if (p.taken == 0) {
        p.taken = 1;
        p.r = REPLACEMENT;
        p.n = 3;
    }
    return p;
}

/* Counts when v is NULL. */
typedef struct output {
    uint8_t *v;
    size_t n;
} output;

static void spm_normalize_put(output *o, const uint8_t *s, size_t n)
{
    if (o->v && n) memcpy(o->v + o->n, s, n);
    o->n += n;
}

/* p without its leading spaces. */
static prefix without_spaces(prefix p)
{
    while (p.n && p.r[0] == ' ') {
        p.r++;
        p.n--;
    }
    return p;
}

/* Where text begins after the spaces of its beginning. */
static size_t skip_spaces(const tt_tokenizer *tok, const uint8_t *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        const prefix p = next_prefix(tok, s + i, n - i);
        if (p.n != 1 || p.r[0] != ' ') break;
        i += p.taken;
    }
    return i;
}

/* Steps 2-4 of the normaliser: everything but the stripping at the end. */
static void spm_normalize_run(output *o, const tt_tokenizer *tok,
                              const uint8_t *s, size_t n)
{
    const uint8_t space = ' ';
    const uint8_t *mark = tok->escape_spaces ? MARK : &space;
    size_t nmark = tok->escape_spaces ? 3 : 1;
    size_t i = tok->remove_extra_spaces ? skip_spaces(tok, s, n) : 0;
    if (i == n) return;
    if (tok->add_dummy_prefix) spm_normalize_put(o, mark, nmark);

    bool after_space = tok->remove_extra_spaces;
    while (i < n && o->n <= RESULT_LIMIT) {
        prefix p = next_prefix(tok, s + i, n - i);
        i += p.taken;
        if (after_space) p = without_spaces(p);
        if (p.n == 0) continue;
        for (size_t k = 0; k < p.n; k++) {
            if (p.r[k] == ' ') spm_normalize_put(o, mark, nmark);
            else spm_normalize_put(o, p.r + k, 1);
        }
        after_space = tok->remove_extra_spaces && p.r[p.n - 1] == ' ';
    }
}

tt_status spm_normalize(tt_ctx *ctx, tt_arena *a, uint8_t **out, size_t *nout,
                        const tt_tokenizer *tok, const uint8_t *s, size_t n)
{
    *out = NULL;
    *nout = 0;
    output o = {NULL, 0};
    spm_normalize_run(&o, tok, s, n);
    if (o.n > RESULT_LIMIT)
        return tt_fail(ctx, TT_EFORMAT,
                       "the tokenizer's character map turns %zu bytes of text "
                       "into more than %d", n, RESULT_LIMIT);
    o.v = tt_alloc(ctx, a, (int64_t)o.n, 1, "normalised text");
    if (!o.v) return ctx->status;
    o.n = 0;
    spm_normalize_run(&o, tok, s, n);
    const uint8_t *mark = tok->escape_spaces ? MARK : (const uint8_t *)" ";
    size_t nmark = tok->escape_spaces ? 3 : 1;
    while (tok->remove_extra_spaces && o.n >= nmark
           && memcmp(o.v + o.n - nmark, mark, nmark) == 0)
        o.n -= nmark;
    *out = o.v;
    *nout = o.n;
    return TT_OK;
}
