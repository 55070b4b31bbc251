/* lora.c: the keys of a LoRA, and the weights they are for.
 *
 * Source  the names of kohya (lora_unet_blocks_0_self_attn_q.lora_down.weight),
 *         PEFT (base_model.model.blocks.0.self_attn.q.lora_A.weight), Diffusers
 *         (transformer.blocks.0.attn1.to_q.lora_A.weight) and ComfyUI
 *         (diffusion_model.blocks.0.self_attn.q.lora_A.weight, .diff, .diff_b,
 *         .diff_m)
 * SPDX-License-Identifier: Apache-2.0
 *
 * Steps   key -> role (its end) and module (what is before, without wrappers,
 *         with _ for every dot, as kohya writes it) -> the weight of that name,
 *         Wan's or Diffusers'. A key that is for the other part of the model,
 *         transformer or text encoder, is counted and left to it; any other one
 *         that fits no weight refuses the file.
 * Next    lora_merge.c */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/bytes.h"
#include "io/file.h"
#include "io/json.h"
#include "io/lora.h"
#include "io/names.h"

/* The dictionary of a training state that counts, where there is one. */
#define PART "generator_lora"

enum { LONGEST = 512 }; /* module: to take wrappers off takes n^2 steps      */

typedef enum role { UP, DOWN, ALPHA, DIFF, DIFF_B, DIFF_M, ROLES } role;

typedef struct key {
    const tt_entry *e;
    const char *module;
    role role;             /* ROLES: of no kind that is known                 */
    tt_model_kind kind;    /* whose it is; TT_MODEL_KINDS: of none            */
} key;

/* A name of a weight, with _ for every dot. */
typedef struct target {
    const char *name;
    weight *x;
} target;

/* One file being merged. */
typedef struct adding {
    tt_weights *w;
    tt_ctx *ctx;
    lora_file *from;
    const target *table;   /* [ntable] by name                                */
    int64_t ntable, unused;
    char *buf;             /* room for the longest name                       */
    char list[280];        /* the first keys that are not used                */
} adding;

/* ---- keys ---------------------------------------------------------------- */

/* PEFT's ".lora_A", ".lora_A.weight", ".lora_A.ADAPTER.weight". */
static role peft_role(const char *name, size_t *n)
{
    const char *a = strstr(name, ".lora_A"), *b = strstr(name, ".lora_B");
    const char *p = a ? a : b, *tail = p ? p + strlen(".lora_A") : NULL;
    if (!p || (a && b) || ends(name, ".bias")) return ROLES;
    size_t m = strlen(tail);
    if (ends(tail, ".weight")) m -= strlen(".weight");
    if (m && (*tail != '.' || m == 1 || memchr(tail + 1, '.', m - 1)))
        return ROLES;
    *n = (size_t)(p - name);
    return a ? DOWN : UP;
}

/* The role of a key, and the length of its module. */
static role role_of(const char *name, size_t *n)
{
    static const struct { const char *end; role role; } known[] = {
        {".lora_up.weight", UP}, {".lora_down.weight", DOWN},
        {".lora.up.weight", UP}, {".lora.down.weight", DOWN},
        {".lora_linear_layer.up.weight", UP},
        {".lora_linear_layer.down.weight", DOWN},
        {".alpha", ALPHA}, {".diff", DIFF}, {".diff_b", DIFF_B},
        {".diff_m", DIFF_M}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ends(name, known[i].end)) {
            *n = strlen(name) - strlen(known[i].end);
            return known[i].role;
        }
    return peft_role(name, n);
}

/* What is not W + up down, though it is called a LoRA. */
static const char *other_method(const char *name)
{
    static const struct { const char *part, *method; } other[] = {
        {"dora_scale", "DoRA"}, {"lora_magnitude_vector", "DoRA"},
        {"lokr_", "LoKr"}, {"hada_", "LoHa"}, {".oft_", "OFT"},
        {"lora_mid", "a LoRA with a Tucker core (lora_mid)"},
        {"vera_lambda", "VeRA"}, {"ia3_l", "IA3"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (strstr(name, other[i].part)) return other[i].method;
    return NULL;
}

static bool lora_cut(char *s, const char *const *prefix)
{
    for (; *prefix; prefix++)
        if (starts(s, *prefix)) {
            memmove(s, s + strlen(*prefix), strlen(s + strlen(*prefix)) + 1);
            return true;
        }
    return false;
}

/* Names that umT5 has and the transformer has not, with _ for every dot. */
static bool is_umt5(const char *m)
{
    static const char *const own[] = {"attn_", "ffn_gate", "ffn_fc",
                                      "pos_embedding"};
    if (strstr(m, "SelfAttention") || strstr(m, "DenseReluDense")
        || starts(m, "encoder_block_") || starts(m, "token_embedding")
        || starts(m, "shared")) return true;
    if (!starts(m, "blocks_")) return false;
    m += strlen("blocks_");
    m += strspn(m, "0123456789");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (*m == '_' && starts(m + 1, own[i])) return true;
    return false;
}

/* Take the wrappers off a module, in place; whose it is. */
static tt_model_kind bare(char *m)
{
    static const char *const any[] = {"base_model.", "state_dict.",
                                      "lora_unet__", "lora_unet_",
                                      "lora_transformer_",
                                      "lora_dit_", "lycoris_", NULL};
    static const char *const umt5[] = {"lora_te_", "lora_te1_", "lora_te2_",
                                       "lora_te3_", "lora_text_encoder_",
                                       NULL};
    tt_model_kind kind = TT_MODEL_DIT;
    for (size_t n = 0; n != strlen(m);) {
        n = strlen(m);
        if (!names_strip(m, kind)) {
            kind = TT_MODEL_T5;
            if (!names_strip(m, kind)) return TT_MODEL_KINDS;
        }
        if (lora_cut(m, umt5)) kind = TT_MODEL_T5;
        while (lora_cut(m, any)) continue;
    }
    for (char *c = m; *c; c++)
        if (*c == '.') *c = '_';
    return is_umt5(m) ? TT_MODEL_T5 : kind;
}

static tt_status lora_read_key(tt_ctx *ctx, key *k, const tt_entry *e,
                               const char *path)
{
    char show[IO_SHOW];
    const char *name = e->name, *method = other_method(name);
    if (method)
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s: this is %s (%s), which is "
                       "not read: only LoRA, and differences of weights, are; "
                       "merge it elsewhere", path, method,
                       io_show(show, name, strlen(name)));
    size_t n = strlen(name);
    *k = (key){.e = e, .role = role_of(name, &n)};
    char *m = tt_alloc(ctx, &ctx->scratch, (int64_t)n + 1, 1, "a name");
    if (!m) return ctx->status;
    memcpy(m, name, n);
    m[n] = 0;
    k->module = m;
    k->kind = n <= LONGEST ? bare(m) : TT_MODEL_KINDS;
    return TT_OK;
}

static int lora_key_order(const void *a, const void *b)
{
    const key *x = a, *y = b;
    const int c = strcmp(x->module, y->module);
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return c ? c : x->role < y->role ? -1 : x->role > y->role;
}

bool lora_adjacent(const tt_file *f)
{
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_entry *e = tt_file_entry(f, i);
        if (e->npath > 1 && !strcmp(e->path[0], PART)) return true;
    }
    return false;
}

/* All keys of a file sorted by part, module and role, in scratch. */
static tt_status read_keys(tt_ctx *ctx, key **out, int64_t *n,
                           const tt_file *f)
{
    const char *part = lora_adjacent(f) ? PART "." : "";
    key *k = tt_alloc(ctx, &ctx->scratch, tt_file_count(f), sizeof *k, "keys");
    *n = 0;
    *out = k;
    for (int64_t i = 0; k && i < tt_file_count(f); i++) {
        const tt_entry *e = tt_file_entry(f, i);
        if (!starts(e->name, part)) continue;
        tt_entry *own = tt_alloc(ctx, &ctx->scratch, 1, sizeof *own, "a key");
        if (!own) return ctx->status;
        *own = *e;
        own->name += strlen(part);
        TT_TRY(lora_read_key(ctx, &k[(*n)++], own, f->path));
    }
    if (k && *n > 1) qsort(k, (size_t)*n, sizeof *k, lora_key_order);
    return ctx->status;
}

/* ---- weights by name ----------------------------------------------------- */

static int target_order(const void *a, const void *b)
{
    return strcmp(((const target *)a)->name, ((const target *)b)->name);
}

static const char *flat(tt_ctx *ctx, const char *name)
{
    char *s = tt_strdup(ctx, &ctx->scratch, name);
    for (char *c = s; c && *c; c++)
        if (*c == '.') *c = '_';
    return s;
}

/* Every weight under its names of Wan and of Diffusers or Hugging Face. */
static tt_status lora_make_table(adding *a)
{
    tt_weights *w = a->w;
    target *t = tt_alloc(a->ctx, &a->ctx->scratch, 2 * w->count, sizeof *t,
                         "names");
    for (int64_t i = 0; t && i < w->count; i++) {
        weight *x = &w->item[i];
        char *other = tt_alloc(a->ctx, &a->ctx->scratch,
                               (int64_t)strlen(x->name) + NAMES_CAPACITY, 1,
                               "a name");
        if (!other) break;
        names_from_wan(other, x->name, w->kind);
        t[2 * i] = (target){flat(a->ctx, x->name), x};
        t[2 * i + 1] = (target){flat(a->ctx, other), x};
    }
    TT_TRY(a->ctx->status);
    a->table = t;
    a->ntable = 2 * w->count;
    if (a->ntable) qsort(t, (size_t)a->ntable, sizeof *t, target_order);
    return TT_OK;
}

/* The weight called module and tail; NULL: none is. */
static weight *lora_find(const adding *a, const key *k, const char *tail)
{
    strcpy(a->buf, k->module);
    strcat(a->buf, tail);
    const target want = {a->buf, NULL};
    const target *t = bsearch(&want, a->table, (size_t)a->ntable,
                              sizeof want, target_order);
    return t ? t->x : NULL;
}

static weight *target_of(const adding *a, const key *k)
{
    const char *first = k->role == DIFF_B ? "_bias"
                      : k->role == DIFF_M ? "_modulation" : "_weight";
    weight *x = lora_find(a, k, first);
    return x || k->role == DIFF_B ? x : lora_find(a, k, "");
}

/* ---- patches ------------------------------------------------------------- */

static tt_status lora_refuse(const adding *a, const key *k, const char *why)
{
    char show[IO_SHOW];
    return tt_fail(a->ctx, TT_EFORMAT, "%s: %s: %s", a->from->path,
                   io_show(show, k->e->name, strlen(k->e->name)), why);
}

static void leave(adding *a, const key *k)
{
    char show[IO_SHOW];
    const size_t at = strlen(a->list);
    if (a->unused++ < 3)
        snprintf(a->list + at, sizeof a->list - at, "%s%.80s", at ? ", " : "",
                 io_show(show, k->e->name, strlen(k->e->name)));
}

static tt_status refuse_shape(const adding *a, const key *k, const weight *x)
{
    char show[IO_SHOW], has[100], want[100];
    const tt_tensor *t = &k->e->t;
    return tt_fail(a->ctx, TT_ESHAPE, "%s: %s is %s, and the weight %s of %s "
                   "is %s: this LoRA is for another model", a->from->path,
                   io_show(show, k->e->name, strlen(k->e->name)),
                   tt_shape_string(has, sizeof has, t->rank, t->dim), x->name,
                   a->w->path,
                   tt_shape_string(want, sizeof want, x->t.rank, x->t.dim));
}

static tt_status refuse_ranks(const adding *a, const key *up, const key *down)
{
    char show[IO_SHOW], has[100], other[100], why[280];
    const tt_tensor *u = &up->e->t, *d = &down->e->t;
    snprintf(why, sizeof why, "it is %s, of rank %lld, and %.60s is %s, of "
             "rank %lld: the two do not belong together",
             tt_shape_string(has, sizeof has, u->rank, u->dim),
             (long long)u->dim[1],
             io_show(show, down->e->name, strlen(down->e->name)),
             tt_shape_string(other, sizeof other, d->rank, d->dim),
             (long long)d->dim[0]);
    return lora_refuse(a, up, why);
}

static tt_status check_type(const adding *a, const key *k)
{
    const tt_tensor *t = &k->e->t;
    if (!tt_dtype_is_real(t->dtype))
        return lora_refuse(a, k, "expected floating-point values");
    return tt_tensor_count(t) > 0 ? TT_OK : lora_refuse(a, k, "it is empty");
}

/* Axes of 1 apart: who flattened a convolution left them, or took them. */
static bool lora_same_shape(const tt_tensor *x, const tt_tensor *y)
{
    int i = 0, j = 0;
    while (1) {
        while (i < x->rank && x->dim[i] == 1) i++;
        while (j < y->rank && y->dim[j] == 1) j++;
        if (i == x->rank || j == y->rank) return i == x->rank && j == y->rank;
        if (x->dim[i++] != y->dim[j++]) return false;
    }
}

/* The same without the first axis. */
static bool same_columns(const tt_tensor *x, const tt_tensor *y)
{
    tt_tensor one = *x, two = *y;
    one.dim[0] = two.dim[0] = 1;
    return lora_same_shape(&one, &two);
}

/* PEFT's ".ADAPTER.weight" of a key; "" in other files. */
static const char *adapter(const char *name)
{
    const char *a = strstr(name, ".lora_A"), *b = strstr(name, ".lora_B");
    return a ? a + strlen(".lora_A") : b ? b + strlen(".lora_B") : "";
}

/* After the others of this weight, which must be of other files or another
 * kind: two keys for one thing would be merged twice. */
static tt_status lora_put(adding *a, weight *x, const key *k, lora_patch p)
{
    lora_patch **at = &x->patch;
    for (; *at; at = &(*at)->next)
        if ((*at)->from == a->from && !(*at)->diff == !p.diff)
            return lora_refuse(a, k, "another key of the file is for the same "
                                "weight");
    *at = tt_alloc(a->ctx, &a->w->arena, 1, sizeof **at, "a LoRA");
    if (!*at) return a->ctx->status;
    **at = p;
    return TT_OK;
}

/* An entry that outlives scratch. */
static const tt_entry *lora_kept(adding *a, const key *k)
{
    tt_entry *e = k ? tt_alloc(a->ctx, &a->w->arena, 1, sizeof *e, "a LoRA")
                    : NULL;
    if (e) *e = (tt_entry){.t = k->e->t};
    return e;
}

static tt_status read_alpha(const adding *a, const key *k, double *alpha)
{
    const tt_tensor *t = &k->e->t;
    double *v = tt_tensor_count(t) == 1 && tt_dtype_block(t->dtype) == 1
                && t->dtype != TT_BOOL
              ? tt_read_double(a->ctx, &a->ctx->scratch, t) : NULL;
    TT_TRY(a->ctx->status);
    if (!v || *v - *v != 0)
        return lora_refuse(a, k, "expected one finite number");
    *alpha = *v;
    return TT_OK;
}

static tt_status lora_add_product(adding *a, const key *up, const key *down,
                                  const key *alpha, weight *x)
{
    const tt_tensor *u = &up->e->t, *d = &down->e->t, *t = &x->t;
    TT_TRY(check_type(a, up));
    TT_TRY(check_type(a, down));
    const int64_t r = d->rank > 1 ? d->dim[0] : 0;
    const int64_t rows = t->rank > 1 ? t->dim[0] : 0;
    const bool fits = r && rows && u->rank > 1 && u->dim[0] == rows
                   && tt_tensor_count(u) == rows * u->dim[1];
    if (!fits) return refuse_shape(a, up, x);
    if (u->dim[1] != r) return refuse_ranks(a, up, down);
    if (tt_tensor_count(t) % rows
        || tt_tensor_count(d) / r != tt_tensor_count(t) / rows
        || tt_tensor_count(d) % r || (d->rank > 2 && !same_columns(d, t)))
        return refuse_shape(a, down, x);
    if (strcmp(adapter(up->e->name), adapter(down->e->name)))
        return lora_refuse(a, up, "its lora_A is of another adapter");
    double scale = a->from->has_alpha ? a->from->alpha : (double)r;
    if (alpha) TT_TRY(read_alpha(a, alpha, &scale));
    const float factor = (float)(a->from->strength * scale / (double)r);
    if (factor - factor != 0)
        return lora_refuse(a, alpha ? alpha : up,
                           "strength * alpha / rank is too large");
    return lora_put(a, x, up, (lora_patch){.up = lora_kept(a, up),
                                           .down = lora_kept(a, down),
                                           .rank = r, .rows = rows,
                                           .factor = factor, .from = a->from});
}

static tt_status add_difference(adding *a, const key *k, weight *x)
{
    TT_TRY(check_type(a, k));
    if (!lora_same_shape(&k->e->t, &x->t)) return refuse_shape(a, k, x);
    return lora_put(a, x, k, (lora_patch){.diff = lora_kept(a, k),
                                          .factor = (float)a->from->strength,
                                          .from = a->from});
}

/* The n keys of one module. */
static tt_status add_module(adding *a, const key *k, int64_t n)
{
    const key *by[ROLES] = {NULL};
    for (int64_t i = 0; i < n; i++) {
        if (k[i].role == ROLES || k[i].kind == TT_MODEL_KINDS) {
            leave(a, &k[i]);
            continue;
        }
        if (by[k[i].role])
            return lora_refuse(a, &k[i], "the file has it twice");
        by[k[i].role] = &k[i];
    }
    if (!by[UP] != !by[DOWN])
        return lora_refuse(a, by[UP] ? by[UP] : by[DOWN], by[UP]
                           ? "its lora_down (lora_A) is missing"
                           : "its lora_up (lora_B) is missing");
    weight *x = by[UP] ? target_of(a, by[UP]) : NULL;
    for (int i = UP; i <= ALPHA; i++)
        if (by[i] && !x) leave(a, by[i]);
        else a->from->used += by[i] != NULL;
    if (x) TT_TRY(lora_add_product(a, by[UP], by[DOWN], by[ALPHA], x));
    for (int i = DIFF; i < ROLES; i++) {
        x = by[i] ? target_of(a, by[i]) : NULL;
        if (by[i] && !x) leave(a, by[i]);
        if (!x) continue;
        a->from->used++;
        TT_TRY(add_difference(a, by[i], x));
    }
    return TT_OK;
}

static tt_status refuse_unused(const adding *a, const key *k, int64_t n)
{
    int64_t of_a_lora = 0;
    for (int64_t i = 0; i < n; i++) of_a_lora += k[i].role != ROLES;
    if (n && !of_a_lora)
        return tt_fail(a->ctx, TT_ESHAPE, "%s is no LoRA: none of its %lld "
                       "tensors is called lora_A, lora_up, diff or so: %s; a "
                       "whole model is given with --checkpoint FILE",
                       a->from->path, (long long)n, a->list);
    if (a->from->used + a->from->others == 0)
        return tt_fail(a->ctx, TT_ESHAPE, "%s is no LoRA for the %s: none of "
                       "its %lld keys fits a weight: %s%s", a->from->path,
                       names_kind_text(a->w->kind), (long long)n,
                       n ? a->list : "it holds no tensors",
                       a->unused > 3 ? ", ..." : "");
    return tt_fail(a->ctx, TT_ESHAPE, "%s: %lld of its %lld keys fit no weight "
                   "of the %s %s, and a LoRA is never merged in part: %s%s",
                   a->from->path, (long long)a->unused, (long long)n,
                   names_kind_text(a->w->kind), a->w->path, a->list,
                   a->unused > 3 ? ", ..." : "");
}

static tt_status add_file(adding *a)
{
    key *k;
    int64_t n, m;
    size_t longest = 0;
    TT_TRY(read_keys(a->ctx, &k, &n, a->from->file));
    TT_TRY(lora_make_table(a));
    for (int64_t i = 0; i < n; i++)
        if (strlen(k[i].module) > longest) longest = strlen(k[i].module);
    a->buf = tt_alloc(a->ctx, &a->ctx->scratch, (int64_t)longest + 16, 1,
                      "a name");
    TT_TRY(a->ctx->status);
    for (int64_t i = 0; i < n; i += m) {
        for (m = 1; i + m < n; m++)
            if (k[i].kind != k[i + m].kind
                || strcmp(k[i].module, k[i + m].module)) break;
        const bool other = k[i].kind != a->w->kind
                        && k[i].kind != TT_MODEL_KINDS;
        if (other) a->from->others += m;
        else TT_TRY(add_module(a, k + i, m));
    }
    return a->unused || !n ? refuse_unused(a, k, n) : TT_OK;
}

/* ---- in words ------------------------------------------------------------ */

typedef struct facts {
    int64_t pairs, differences, of[TT_MODEL_KINDS], rest, low, high, width;
    bool alpha;
} facts;

static void lora_look(facts *s, const key *k)
{
    const tt_tensor *t = &k->e->t;
    const int64_t r = t->rank > 1 ? t->dim[k->role == UP] : 0;
    s->rest += k->role == ROLES || k->kind == TT_MODEL_KINDS;
    s->alpha |= k->role == ALPHA;
    if (k->role == ROLES || k->kind == TT_MODEL_KINDS) return;
    s->of[k->kind]++;
    s->differences += k->role >= DIFF;
    if (k->role != UP) return;
    s->pairs++;
    s->low = s->pairs == 1 || r < s->low ? r : s->low;
    s->high = r > s->high ? r : s->high;
    if (k->kind == TT_MODEL_DIT && t->rank > 1
        && (ends(k->module, "_attn_q") || ends(k->module, "_to_q")))
        s->width = t->dim[0];
}

static void lora_say(char *buf, size_t n, const facts *s)
{
    const bool dit = s->of[TT_MODEL_DIT], t5 = s->of[TT_MODEL_T5];
    char rank[64] = "", width[64] = "";
    if (s->pairs)
        snprintf(rank, sizeof rank, s->low < s->high ? "rank %lld to %lld, "
                 : "rank %lld, ", (long long)s->low, (long long)s->high);
    if (s->width)
        snprintf(width, sizeof width, " of width %lld%s", (long long)s->width,
                 s->width == 1536 ? " (Wan 1.3B)"
                 : s->width == 5120 ? " (Wan 14B)" : "");
    snprintf(buf, n, "LoRA for the %s%s%s, %s%s alpha: %lld pairs, %lld "
             "differences; --lora FILE merges it", dit || !t5 ? "transformer"
             : "text encoder", width, dit && t5 ? " and the text encoder" : "",
             rank, s->alpha ? "with" : "without", (long long)s->pairs,
             (long long)s->differences);
}

bool tt_lora_describe(tt_ctx *ctx, char *buf, size_t n, const tt_file *f)
{
    key *k;
    int64_t keys;
    facts s = {0};
    if (ctx->status || !f) return false;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    if (read_keys(ctx, &k, &keys, f) == TT_OK)
        for (int64_t i = 0; i < keys; i++) lora_look(&s, &k[i]);
    const bool other = ctx->status == TT_EUNSUPPORTED;
    const bool lora = !ctx->status && s.pairs + s.differences > s.rest;
    if (other) snprintf(buf, n, "%s", tt_message(ctx));
    else if (lora) lora_say(buf, n, &s);
    tt_clear(ctx);
    tt_arena_reset(&ctx->scratch, m);
    return other || lora;
}

/* ---- files --------------------------------------------------------------- */

tt_status tt_lora_next(tt_ctx *ctx, const char **list, tt_lora *out)
{
    const char *line = *list, *colon;
    const size_t n = strcspn(line, "\n");
    if (ctx->status) return ctx->status;
    if (n >= sizeof out->path)
        return tt_fail(ctx, TT_EINVAL, "--lora %.80s...: the name is too long",
                       line);
    memcpy(out->path, line, n);
    out->path[n] = 0;
    out->strength = 1;
    *list = line + n + (line[n] == '\n');
    colon = strrchr(out->path, ':');
    if (!colon || access(out->path, F_OK) == 0) return TT_OK;
    char *end;
    out->path[colon - out->path] = 0;
    out->strength = strtod(colon + 1, &end);
    if (end != colon + 1 && !*end && isfinite(out->strength)
        && fabs(out->strength) <= 1e6) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "--lora %s:%s: there is no such file, and "
                   "after the colon is no strength, which is a number like "
                   "0.8", out->path, colon + 1);
}

/* What PEFT says of its keys: alpha, and what is more than W + up down. Names
 * may have a prefix: "transformer.lora_alpha" of Diffusers. */
static tt_status read_settings(tt_ctx *ctx, lora_file *f, const tt_json *root,
                               const char *where)
{
    static const char *const other[] = {"use_rslora", "use_dora",
                                        "alpha_pattern", "rank_pattern"};
    if (root->kind != TT_JSON_OBJECT)
        return tt_fail(ctx, TT_EFORMAT, "%.400s: expected a JSON object",
                       where);
    for (const tt_json *v = tt_json_first(root); v; v = tt_json_next(v)) {
        const char *dot = v->key ? strrchr(v->key, '.') : NULL;
        const char *name = dot ? dot + 1 : v->key ? v->key : "";
        const bool off = v->kind == TT_JSON_NULL
                      || (v->kind == TT_JSON_BOOL && !v->as.yes)
                      || (v->kind == TT_JSON_OBJECT && !tt_json_first(v));
        for (size_t i = 0; i < sizeof other / sizeof *other; i++)
            if (!strcmp(name, other[i]) && !off)
                return tt_fail(ctx, TT_EUNSUPPORTED, "%.400s: %s is not "
                               "supported: merge %.400s with PEFT, or save it "
                               "with alpha keys", where, name, f->path);
        if (!strcmp(name, "peft_type") && v->kind == TT_JSON_STRING
            && strcmp(v->as.str, "LORA"))
            return tt_fail(ctx, TT_EUNSUPPORTED, "%.400s: peft_type %.40s is "
                           "not read, only LORA is: merge %.400s with PEFT",
                           where, v->as.str, f->path);
        if (strcmp(name, "lora_alpha")) continue;
        f->alpha = v->kind == TT_JSON_NUMBER ? strtod(v->as.str, NULL) : NAN;
        f->has_alpha = true;
        if (!isfinite(f->alpha))
            return tt_fail(ctx, TT_EFORMAT, "%.400s: lora_alpha: expected a "
                           "number", where);
    }
    return TT_OK;
}

/* PEFT writes them into adapter_config.json, in the folder of the file,
 * Diffusers into the metadata. */
static tt_status read_adapter(tt_ctx *ctx, lora_file *f)
{
    static const char in_file[] = "lora_adapter_metadata";
    const tt_json *root;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const char *text = tt_file_meta(f->file, in_file);
    if (text && !tt_json_parse(ctx, &ctx->scratch, &root, text, strlen(text),
                               f->path))
        read_settings(ctx, f, root, f->path);
    char *dir = io_folder_of(ctx, &ctx->scratch, f->path);
    char *path = dir ? io_join(ctx, &ctx->scratch, dir, "adapter_config.json")
                     : NULL;
    if (path && access(path, F_OK) == 0
        && !tt_json_file(ctx, &ctx->scratch, &root, path, 1 << 20))
        read_settings(ctx, f, root, path);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* One file of the list, after the others. */
static tt_status open_file(tt_weights *w, lora_file **out, const tt_lora *l)
{
    lora_file **at = &w->lora;
    while (*at) at = &(*at)->next;
    lora_file *f = tt_alloc0(w->ctx, &w->arena, 1, sizeof *f, "a LoRA");
    if (!f) return w->ctx->status;
    *out = f;
    f->strength = l->strength;
    f->path = tt_strdup(w->ctx, &w->arena, l->path);
    TT_TRY(tt_file_open(w->ctx, &f->file, l->path));
    *at = f;
    return read_adapter(w->ctx, f);
}

/* "Wan names, torch zip, LoRA x.safetensors:0.5" */
static tt_status lora_describe(tt_weights *w, const lora_file *f)
{
    const char *slash = strrchr(f->path, '/');
    const char *name = slash ? slash + 1 : f->path;
    const size_t size = strlen(w->origin) + strlen(name) + 64;
    char *text = tt_alloc(w->ctx, &w->arena, (int64_t)size, 1, "a name");
    if (!text) return w->ctx->status;
    snprintf(text, size, "%s, LoRA %s:%g", w->origin, name, f->strength);
    if (f->used) w->origin = text;
    return TT_OK;
}

static void add_up(tt_weights *w)
{
    w->merged = 0;
    w->merging = 0;
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t n = tt_tensor_count(&w->item[i].t);
        const lora_patch *p = w->item[i].patch;
        if (p) w->merged += n * (int64_t)sizeof(float);
        for (; p; p = p->next)
            w->merging += 2.0 * (double)n * (double)(p->diff ? 1 : p->rank);
    }
}

tt_status lora_add(tt_weights *w, const char *list)
{
    tt_ctx *ctx = w->ctx;
    tt_lora l;
    if (ctx->status || !list || !*list) return ctx->status;
    if (w->kind != TT_MODEL_DIT && w->kind != TT_MODEL_T5)
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s is a %s, and a LoRA is merged "
                       "into a transformer or a text encoder", w->path,
                       names_kind_text(w->kind));
    while (*list) {
        adding a = {.w = w, .ctx = ctx};
        TT_TRY(tt_lora_next(ctx, &list, &l));
        TT_TRY(open_file(w, &a.from, &l));
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        add_file(&a);
        tt_arena_reset(&ctx->scratch, m);
        TT_TRY(ctx->status);
        TT_TRY(lora_describe(w, a.from));
    }
    add_up(w);
    return TT_OK;
}

tt_status tt_weights_lora_used(const tt_weights *w)
{
    for (const lora_file *f = w ? w->lora : NULL; f; f = f->next)
        if (!f->used)
            return tt_fail(w->ctx, TT_ESHAPE, "%s holds nothing for the %s %s, "
                           "only %lld keys for another part of the model",
                           f->path, names_kind_text(w->kind), w->path,
                           (long long)f->others);
    return TT_OK;
}

int64_t weights_lora_others(const tt_weights *w)
{
    int64_t n = 0;
    for (const lora_file *f = w ? w->lora : NULL; f; f = f->next)
        n += f->others;
    return n;
}

void lora_close(tt_weights *w)
{
    for (lora_file *f = w->lora; f; f = f->next) tt_file_close(f->file);
}
