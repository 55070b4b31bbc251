/* other.c: what belongs to another call is taken: the weights of another layer
 * or of a whole block, keys and values of another block, channels of products
 * that are fused.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   weights are kept in the order in which calls first have them
 *         (chain.like). All blocks are made alike, so that a whole block of
 *         another place is the same number of entries away from every link. */
#include "validate/hint/chain.h"

#include <stdio.h>
#include <string.h>

static bool other_same_shape(const tt_tensor *a, const tt_tensor *b)
{
    return a->rank == b->rank
           && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

/* The link's call with the weights of l; false: they do not fit it. */
static bool with_weights(op_call *own, const chain_link *k, const chain_like *l)
{
    const op_call *q = &l->q;
    *own = k->q;
    if (q->kind != own->kind) return false;
    switch (q->kind) {
    case OP_LINEAR:
        if (!other_same_shape(own->w, &l->w) || !own->b != !q->b) return false;
        own->w = &l->w;
        own->b = q->b;
        return true;
    case OP_CONV:
        if (!other_same_shape(own->conv.w, &l->w) || !own->conv.b != !q->conv.b)
            return false;
        own->conv.w = &l->w;
        own->conv.b = q->conv.b;
        return true;
    case OP_ADD:
        own->y = q->y;
        return q->n * q->c == own->n * own->c;
    case OP_ATTENTION:
        own->attn.rel_bias = q->attn.rel_bias;
        return q->attn.N == own->attn.N && q->attn.H == own->attn.H;
    default:
        own->a = q->a;
        own->b = q->b;
        return own->c == q->c && !k->q.b == !q->b && k->q.a;
    }
}

/* "block.3"; else the number of its kind in all of the module. */
static const char *other_place(const chain *c, int i, char *out, size_t size)
{
    int nth = 0;
    for (int k = 0; k <= i; k++) nth += c->like[k].q.kind == c->like[i].q.kind;
    if (c->like[i].path[0]) snprintf(out, size, "%s", c->like[i].path);
    else snprintf(out, size, "%s %d", op_name(c->like[i].q.kind), nth);
    return out;
}

/* What the sentence calls weights of link `at`: of the chain itself by number.
 */
static void say_weights(hint *h, const op_call *own, int i)
{
    const chain *c = h->chain;
    char what[80];
    int nth = 0;
    for (int k = 0; k < c->n; k++) {
        nth += c->link[k].q.kind == own->kind;
        if (c->link[k].like != i) continue;
        hint_try_call(h, own, "takes the weights of %s %d", op_name(own->kind),
                      nth);
        return;
    }
    other_place(c, i, what, sizeof what);
    hint_try_call(h, own, own->kind == OP_ADD ? "that of %s is taken"
                  : own->kind == OP_ATTENTION ? "the relative bias is that of "
                  "%s" : "takes the weights of %s, which have the same shape",
                  what);
}

/* The row of fused products that stands at row i of product `at`, when what
 * follows each other as [parts, H, D] is read as [H, parts, D], or the other
 * way round. */
static int64_t fused_row(int64_t i, int at, int parts, int64_t o, int64_t D,
                         bool back)
{
    if (!back) return (i / D * parts + at) * D + i % D;
    const int64_t all = at * o + i;
    return all / D % parts * o + all / D / parts * D + all % D;
}

/* Outputs of a product are parts of one that is fused. Parts follow each other
 * in what is kept. */
static void fused(hint *h, const op_call *q, int first, int parts, int at)
{
    const chain *c = h->chain;
    const bool conv = q->kind == OP_CONV;
    const tt_tensor *of = conv ? q->conv.w : q->w;
    const int64_t o = of->dim[0], row = tt_tensor_count(of) / o;
    op_call own;
    tt_real *w = tt_scratch(h->ctx, o * row), *b = tt_scratch(h->ctx, o);
    const tt_real *from[3], *bias[3];
    tt_tensor mine = {.dtype = sizeof *w == 8 ? TT_F64 : TT_F32, .data = w,
                      .rank = of->rank};
    if (o * row * parts > 1 << 22) return;
    for (int p = 0; p < parts; p++) {
        const chain_like *l = &c->like[first + p];
        if (!with_weights(&own, &c->link[c->at], l)) return;
        from[p] = plain_weight(h->ctx, &l->w);
        bias[p] = conv ? l->q.conv.b : l->q.b;
    }
    own = *q;
    memcpy(mine.dim, of->dim, sizeof mine.dim);
    if (conv) own.conv.w = &mine, own.conv.b = bias[0] ? b : NULL;
    else own.w = &mine, own.b = bias[0] ? b : NULL;
    for (int64_t k = 0; k < 2 * o && !hint_settled(h); k++) {
        const int64_t H = k / 2 + 1, D = o / H;
        if (o % H) continue;
        for (int64_t i = 0; i < o; i++) {
            const int64_t r = fused_row(i, at, parts, o, D, k % 2 != 0);
            memcpy(w + i * row, from[r / o] + r % o * row,
                   (size_t)row * sizeof *w);
            if (bias[0]) b[i] = bias[r / o][r % o];
        }
        if (k % 2)
            hint_try_call(h, &own, "channels of %d products are [%lld, %d, "
                          "%lld] where [%d, %lld, %lld] belongs", parts,
                          (long long)H, parts, (long long)D, parts,
                          (long long)H, (long long)D);
        else
            hint_try_call(h, &own, "channels of %d products, [%d, %lld, %lld], "
                          "are read as [%lld, %d, %lld]", parts, parts,
                          (long long)H, (long long)D, (long long)H, parts,
                          (long long)D);
    }
}

/* An operand is what another operator gave, or a row of that. */
static void other_near(hint *h, const char *what, const tt_real *at, int64_t n)
{
    const chain *c = h->chain;
    for (int i = 0; at && i <= NEAR_MOST; i++) {
        const chain_near *r = &c->near[i];
        char of[48];
        snprintf(of, sizeof of, "%s", i < NEAR_MOST ? op_name(r->kind)
                                                   : "the projected time (e0)");
        for (int k = 0; k < c->n; k++)
            if (r->count == n && c->link[k].bytes == (size_t)n * sizeof *at
                && !memcmp(c->link[k].out, r->copy, c->link[k].bytes))
                chain_link_name(c, k, false, of, sizeof of);
        const int64_t half = n > 1 ? n / 2 : 1;
        for (int64_t u = 0; u < 2 * r->count / half && r->count <= 6 * n; u++) {
            op_call own = *h->q;
            const int64_t k = u / 2 * half;          /* a row, or two of it */
            void *const from[] = {(void *)(uintptr_t)at};
            tt_real *x = tt_scratch(h->ctx, n);
            void *const to[] = {x};
            if (!x || k + (u % 2 ? half : n) > r->count
                || (u % 2 && r->count == n)) continue;
            for (int64_t j = 0; j < n; j++)
                x[j] = r->copy[k + (u % 2 ? j % half : j)];
            if (!memcmp(x, at, (size_t)n * sizeof *at)) continue;
            chain_move(h->ctx, &h->ctx->scratch, &own, from, to, 1);
            hint_try_call(h, &own, "%s is %s%s", what, r->count > n
                          ? "a row of " : "the result of ", of);
        }
    }
}

/* The bias of a product is added after the gate. */
static void bias_apart(hint *h)
{
    const chain *c = h->chain;
    const op_call *q = h->q;
    for (int i = 0; q->kind == OP_GATE_ADD && i < c->likes; i++) {
        const op_call *l = &c->like[i].q;
        const tt_tensor *w = &c->like[i].w;
        if (l->kind != OP_LINEAR || !l->b || w->dim[0] != q->c) continue;
        plain_call(h->ctx, q, NULL, h->trial);
        for (int64_t k = 0; k < h->n; k++) {
            const int64_t g = k / q->c / q->rows * q->stride + k % q->c;
            h->trial[k] += (double)l->b[k % q->c] * (1 - (double)q->a[g]);
        }
        hint_try(h, h->trial, "the gate is applied before the bias is added");
    }
}

/* ---- arrays in another order, or changed once more ----------------------- */

/* An array of the link under trial, its result (at NULL) or an operand, and
 * what it is instead. */
typedef struct other_array {
    hint *h;
    const tt_real *at;
    const char *name;
    int64_t n, c;            /* elements; of a row                            */
    tt_real *mine;
} other_array;

static void try_array(const other_array *a, const char *say, const char *what)
{
    hint *h = a->h;
    op_call own = *h->q;
    void *const from[] = {(void *)(uintptr_t)a->at}, *const to[] = {a->mine};
    if (!a->at) {
        for (int64_t i = 0; i < a->n; i++) h->trial[i] = (double)a->mine[i];
        hint_try(h, h->trial, "%s%s%s", a->name, say, what);
        return;
    }
    chain_move(h->ctx, &h->ctx->scratch, &own, from, to, 1);
    hint_try_call(h, &own, "%s%s%s", a->name, say, what);
}

/* Element i of what it is. */
static tt_real array_value(const other_array *a, int64_t i)
{
    return a->at ? a->at[i] : (tt_real)a->h->want[i];
}

static void other_order(void *user, const hint_axes *o)
{
    const other_array *a = user;
    if (hint_settled(a->h)) return;
    for (int64_t i = 0; i < a->n; i++)
        a->mine[i] = array_value(a, hint_axes_from(o, i));
    try_array(a, ": ", o->what);
}

/* It goes through one operator more. */
static void through(const other_array *a, const op_call *extra,
                    element_form form, const char *what)
{
    hint *h = a->h;
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    op_call own = *extra;
    double *y = hint_doubles(h, a->n);
    tt_real *x = tt_scratch(h->ctx, a->n);
    for (int64_t i = 0; x && i < a->n; i++) x[i] = array_value(a, i);
    own.x = x;
    own.n = a->n / own.c;
    if (x && y && !hint_settled(a->h)) {
        const element_fault f = {.form = form};
        plain_call(h->ctx, &own, form ? &f : NULL, y);
        for (int64_t i = 0; i < a->n; i++) a->mine[i] = (tt_real)y[i];
        try_array(a, " ", what);
    }
    tt_arena_reset(&h->ctx->scratch, mark);
}

static void through_functions(const other_array *a)
{
    char what[96];
    for (element_form i = FORM_RIGHT; i < FORMS; i++) {
        if (plain_forms[i].kind != OP_KINDS || !plain_forms[i].what) continue;
        snprintf(what, sizeof what, "goes through %s as well",
                 plain_forms[i].what);
        through(a, &(op_call){.kind = OP_SILU, .c = a->n}, i, what);
    }
}

/* A norm of the module, or its weight and bias alone. */
static void through_norms(const other_array *a)
{
    const chain *c = a->h->chain;
    char what[96], place[48];
    for (int i = 0; i < c->likes; i++) {
        const op_call *l = &c->like[i].q;
        if ((l->kind != OP_LAYER_NORM && l->kind != OP_RMS_NORM) || !l->a
            || l->c != a->c) continue;
        other_place(c, i, place, sizeof place);
        if (hint_settled(a->h)) return;
        for (int64_t k = 0; k < a->n; k++)
            a->mine[k] = array_value(a, k) * l->a[k % a->c]
                         + (l->b ? l->b[k % a->c] : 0);
        snprintf(what, sizeof what, "gets the weights of a %s of %s as well",
                 op_name(l->kind), place);
        try_array(a, " ", what);
        snprintf(what, sizeof what, "goes through a %s of %s as well",
                 op_name(l->kind), place);
        through(a, l, FORM_RIGHT, what);
    }
    for (int layer = 0; layer < 2; layer++)
        through(a, &(op_call){.kind = layer ? OP_LAYER_NORM : OP_RMS_NORM,
                              .c = a->c, .eps = 1e-6}, FORM_RIGHT, layer
                ? "is normalised (layer norm) as well"
                : "is normalised (RMS norm) as well");
}

/* Rows of a modulation, or a rotation. */
static void through_model(const other_array *a)
{
    const chain *c = a->h->chain;
    char what[96];
    for (int k = 0; k < NEAR_MOST; k++) {
        const chain_near *s = &c->near[k];
        const int64_t rows = s->count / a->c;
        if (s->kind != OP_ADD || (rows != 6 && rows != 2) || s->count % a->c)
            continue;
        for (int64_t i = 0; i < rows * rows; i++) {
            const tt_real *up = s->copy + i % rows * a->c;
            if (i / rows == i % rows) continue;
            snprintf(what, sizeof what, "is modulated by %s and %s as well",
                     chain_row_name(i % rows, rows),
                     chain_row_name(i / rows, rows));
            through(a, &(op_call){.kind = OP_MODULATE, .c = a->c, .a = up,
                                  .b = s->copy + i / rows * a->c,
                                  .rows = a->n / a->c, .stride = a->c},
                    FORM_RIGHT, what);
        }
        for (int64_t i = 0; i < rows && !hint_settled(a->h); i++) {
            for (int64_t k2 = 0; k2 < a->n; k2++)
                a->mine[k2] = array_value(a, k2)
                              * s->copy[i * a->c + k2 % a->c];
            snprintf(what, sizeof what, "is multiplied by %s as well",
                     chain_row_name(i, rows));
            try_array(a, " ", what);
        }
    }
    if (c->turn.q.pos && c->turn.q.n * c->turn.q.c == a->n)
        through(a, &c->turn.q, FORM_RIGHT, "is rotated (RoPE) as well");
}

static void other_operand(hint *h, const char *name, const tt_real *at,
                          int rank, const int64_t *dim, bool order)
{
    other_array a = {.h = h, .at = at, .name = name, .n = 1, .c = 1};
    for (int i = 0; i < rank; i++) {
        a.n *= dim[i];
        if (i || rank < 2) a.c *= dim[i];
    }
    if (at && (!chain_was(h->chain, at) || chain_result(h->chain, at))) return;
    if (!(a.mine = tt_scratch(h->ctx, a.n))) return;
    if (order) {
        hint_all_axes(rank, dim, other_order, &a);
        if (strstr(name, "patch"))
            hint_patch_axes(dim[0], dim[1], other_order, &a);
        return;
    }
    through_functions(&a);
    through_model(&a);
    through_norms(&a);
}

/* Results and operands, axes of which may lie in another order. */
static void other_arrays(hint *h, const char *name, bool order)
{
    const op_call *q = h->q;
    const tt_attention_args *a = &q->attn;
    const tt_conv_args *v = &q->conv;
    const int64_t row = a->H * a->D, K = a->N;
    other_operand(h, "its result", NULL, h->rank, h->dim, order);
    if (q->kind == OP_ATTENTION && a->q_stride == row)
        other_operand(h, "Q", a->q, 3, (int64_t[]){a->T, a->H, a->D}, order);
    if (q->kind == OP_ATTENTION && a->kv_stride == row) {
        other_operand(h, "K", a->k, 3, (int64_t[]){K, a->H, a->D}, order);
        other_operand(h, "V", a->v, 3, (int64_t[]){K, a->H, a->D}, order);
    }
    int64_t dim[] = {q->n, q->c};
    for (int i = 0; q->n == 1 && i < h->chain->n; i++) {
        const op_call *o = &h->chain->link[i].q;     /* a sum knows no rows */
        if (o->kind == OP_LAYER_NORM && q->c % o->c == 0)
            dim[0] = q->c / o->c, dim[1] = o->c;
    }
    if (q->kind == OP_CONV && v->frame[v->kt - 1])
        other_operand(h, "its input", v->frame[v->kt - 1], 3,
                      (int64_t[]){v->Hi, v->Wi, v->Cin}, order);
    if (q->x)
        other_operand(h, strstr(name, "tokens") ? "order of a patch (channel, "
                      "row, column)" : "its input", q->x, 2, dim, order);
    if (q->y) other_operand(h, "what is added", q->y, 2, dim, order);
    if (q->kind == OP_LINEAR && q->b)
        other_operand(h, "its bias", q->b, 1, &q->w->dim[0], order);
}

/* Heads are split, and joined again, with their channels first, or another
 * number of them. */
static void other_split(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    const int64_t row = a->H * a->D, rows[] = {a->T, a->N, a->N};
    const tt_real *const from[] = {a->q, a->k, a->v};
    op_call own = *h->q;
    const tt_real **const to[] = {&own.attn.q, &own.attn.k, &own.attn.v};
    double *y = hint_doubles(h, h->n);
    if (a->q_stride != row || a->kv_stride != row) return;
    for (int64_t f = 2; y && f < row && !hint_settled(h); f++) {
        if (row % f) continue;
        const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
        for (int k = 0; k < 3; k++) {
            tt_real *x = tt_scratch(h->ctx, rows[k] * row);
            for (int64_t i = 0; x && i < rows[k] * row; i++)
                x[i] = from[k][i / row * row + i % row % (row / f) * f
                               + i % row / (row / f)];
            *to[k] = x;
        }
        if (!h->ctx->status) plain_call(h->ctx, &own, NULL, y);
        for (int64_t i = 0; i < h->n; i++)
            h->trial[i / row * row + i % row % (row / f) * f
                     + i % row / (row / f)] = y[i];
        hint_try(h, h->trial, "channels are read as [%lld, %lld], and written "
                 "so, where [%lld, %lld] belongs", (long long)(row / f),
                 (long long)f, (long long)a->H, (long long)a->D);
        tt_arena_reset(&h->ctx->scratch, mark);
    }
}

/* Keys and values of attention in another block, or of another prompt. */
static void other_keys(hint *h, const chain_other *o, const char *whose,
                       const char *path)
{
    const tt_attention_args *a = &o->q.attn, *mine = &h->q->attn;
    op_call own = *h->q;
    if (!path || a->N != mine->N || a->kv_stride != mine->kv_stride) return;
    for (int which = 3; which > 0; which--) {
        own.attn.k = which & 1 ? a->k : mine->k;
        own.attn.v = which & 2 ? a->v : mine->v;
        hint_try_call(h, &own, "%s those of %s%s", (const char *[]){
            "", "K are", "V are", "K and V are"}[which], whose, path);
    }
}

static void keys_elsewhere(hint *h)
{
    const chain *c = h->chain;
    for (int i = 0; i < c->blocks; i++)
        other_keys(h, &c->block[i], "", strstr(c->block[i].path, "block."));
    for (int i = 0; i < c->n; i++)
        if (c->link[i].q.kind == OP_ROPE) return;  /* those are window.c's */
    for (int i = c->others - 1; i >= 0; i--)
        other_keys(h, &c->other[i], "another prompt, that of ",
                   c->other[i].path);
}

static void other_weights(hint *h)
{
    const chain *c = h->chain;
    const chain_link *k = &c->link[c->at];
    const bool product = k->q.kind == OP_LINEAR || k->q.kind == OP_CONV;
    op_call own;
    for (int i = 0; k->like >= 0 && i < c->likes; i++)
        if (i != k->like && with_weights(&own, k, &c->like[i]))
            say_weights(h, &own, i);
    for (int parts = 2; k->like >= 0 && product && parts <= 3; parts++)
        for (int at = 0; at < parts && !hint_settled(h); at++)
            if (k->like >= at && k->like - at + parts <= c->likes)
                fused(h, &k->q, k->like - at, parts, at);
    if (k->q.kind == OP_ATTENTION) keys_elsewhere(h);
}

static void other_results(hint *h)
{
    const op_call *q = h->q;
    const bool sum = q->kind == OP_ADD || q->kind == OP_GATE_ADD;
    bias_apart(h);
    other_near(h, sum ? "what it is added to (the residual)" : "its input",
               q->x, q->n * q->c);
    other_near(h, "what is added", q->y, q->n * q->c);
}

void hint_other(hint *h, const char *name, int stage)
{
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    if (stage == 1) other_weights(h);
    else if (stage == 2) other_results(h);
    else other_arrays(h, name, stage == OTHER_STAGES);
    if (stage == OTHER_STAGES && h->q->kind == OP_ATTENTION) other_split(h);
    tt_arena_reset(&h->ctx->scratch, mark);
}

/* Weighted links from number lo to hi - 1 have what is `by` entries away; how
 * many there are, 0: it does not fit. */
static int moved_by(const chain *c, int by, int lo, int hi, op_call *own,
                    const op_call **links, int *at)
{
    int n = 0;
    for (int j = 0; j < c->n; j++) {
        const int i = c->link[j].like;
        links[j] = NULL;
        if (i < 0) continue;
        if (n++ < lo || n > hi) continue;
        if (i + by < 0 || i + by >= c->likes
            || (c->like[i].path[0]
                && !strcmp(c->like[i].path, c->like[i + by].path))
            || !with_weights(&own[j], &c->link[j], &c->like[i + by]))
            return 0;
        links[j] = &own[j];
        *at = i + by;
    }
    return n;
}

/* Does the end change with these links? */
static bool changes_end(hint *end, chain *c, const op_call *const *links)
{
    if (!chain_end_of(c, links, end->trial)) return false;
    return memcmp(end->trial, end->want, (size_t)end->n * sizeof *end->want);
}

/* Two links, both of which lead to the end. */
static void exchanged(hint *end, chain *c)
{
    char a[48], b[48];
    for (int j = 0; j < c->n; j++)
        for (int i = 0; i < j && !hint_settled(end); i++) {
            op_call x, y;
            const op_call *links[LINKS_MOST] = {NULL};
            const chain_link *p = &c->link[i], *q = &c->link[j];
            if (p->like < 0 || q->like < 0
                || !with_weights(&x, p, &c->like[q->like])
                || !with_weights(&y, q, &c->like[p->like])) continue;
            chain_link_name(c, i, false, a, sizeof a);
            chain_link_name(c, j, false, b, sizeof b);
            links[i] = &x;
            bool both = changes_end(end, c, links);
            links[i] = NULL, links[j] = &y;
            both &= changes_end(end, c, links);
            links[i] = &x;
            if (both && chain_end_of(c, links, end->trial))
                hint_try(end, end->trial, "%s and %s have each other's weights",
                         a, b);
        }
}

void hint_other_block(hint *end, chain *c)
{
    op_call own[LINKS_MOST];
    const op_call *links[LINKS_MOST];
    char what[80];
    int at = 0, n = 0;
    for (int j = 0; j < c->n; j++) n += c->link[j].like >= 0;
    for (int by = -c->likes; by < c->likes; by++)
        for (int lo = 0; by && lo + 1 < n; lo++)
            for (int hi = n; hi > lo + 1 && !hint_settled(end); hi--)
                if (moved_by(c, by, lo, hi, own, links, &at)
                    && chain_end_of(c, links, end->trial))
                    hint_try(end, end->trial, "%s has the weights of %s",
                             hi - lo == n ? "all of the block"
                                          : "a part of the block",
                             other_place(c, at, what, sizeof what));
    exchanged(end, c);
}
