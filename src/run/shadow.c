/* shadow.c: see shadow.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "ops/room.h"

/* Large blocks come in huge pages where the system has them (arena.c). */
#define SMALL_PAGE ((size_t)1 << 12)
#define HUGE_PAGE ((size_t)1 << 21)
#define HUGE_FROM ((size_t)1 << 22)

static shadow *of(const tt_ctx *ctx)
{
    return ctx->device->self;
}

/* ---- memory -------------------------------------------------------------- */

static int64_t resident(const shadow_block *b)
{
    const size_t page = b->size >= HUGE_FROM ? HUGE_PAGE : SMALL_PAGE;
    const size_t n = (b->touched + page - 1) / page * page;
    return (int64_t)(n < b->size ? n : b->size);
}

/* The last block that begins at `p` or before; NULL: none holds it. */
static shadow_block *find(const shadow *s, uintptr_t p)
{
    int lo = 0, hi = s->blocks;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (s->block[mid].at <= p) lo = mid + 1;
        else hi = mid;
    }
    shadow_block *b = lo ? &s->block[lo - 1] : NULL;
    return b && p - b->at < b->size ? b : NULL;
}

static void touch(shadow *s, const void *p, int64_t bytes)
{
    shadow_block *b = find(s, (uintptr_t)p);
    if (!b || b->file) return;
    const size_t end = (uintptr_t)p - b->at + (size_t)bytes;
    if (end <= b->touched) return;
    const int64_t before = resident(b);
    b->touched = end;
    s->held += resident(b) - before;
    if (s->held > s->peak) s->peak = s->held;
}

/* A full array with room for twice as much; NULL: there is no memory for it. */
static void *grown(void *array, int *room, size_t each)
{
    const int more = *room ? 2 * *room : 64;
    void *all = realloc(array, (size_t)more * each);
    if (all) *room = more;
    return all;
}

static void *take(const tt_device *d, size_t bytes)
{
    shadow *s = d->self;
    if (s->blocks == s->room) {
        shadow_block *more = grown(s->block, &s->room, sizeof *more);
        if (!more) return NULL;
        s->block = more;
    }
    if (bytes > UINTPTR_MAX - HUGE_PAGE - s->next) return NULL;
    s->block[s->blocks++] = (shadow_block){.at = s->next, .size = bytes};
    void *p = (void *)s->next; /* an address that is never followed */
    s->next += (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    s->size += (int64_t)bytes;
    if (s->size > s->size_peak) s->size_peak = s->size;
    return p;
}

static void *take_file(const tt_device *d, size_t bytes)
{
    shadow *s = d->self;
    void *p = take(d, bytes);
    if (!p) return NULL;
    s->block[s->blocks - 1].file = true;
    s->disk += (int64_t)bytes;
    if (s->disk > s->disk_peak) s->disk_peak = s->disk;
    return p;
}

static void give(const tt_device *d, void *block, size_t bytes)
{
    shadow *s = d->self;
    shadow_block *b = find(s, (uintptr_t)block);
    if (!b) return;
    if (b->file) s->disk -= (int64_t)bytes;
    s->held -= resident(b);
    s->size -= (int64_t)bytes;
    const int behind = s->blocks - (int)(b - s->block) - 1;
    memmove(b, b + 1, (size_t)behind * sizeof *b);
    s->blocks--;
}

/* ---- notes --------------------------------------------------------------- */

static shadow_call *note(tt_ctx *ctx, shadow_op op, int64_t size, double flops,
                         const int64_t dim[SHADOW_DIMS])
{
    shadow *s = of(ctx);
    const size_t n = SHADOW_DIMS * sizeof *dim;
    int i = s->latest, asked = 0; /* layers repeat their calls in order */
    for (; asked < s->ncalls; asked++) {
        i = i + 1 < s->ncalls ? i + 1 : 0;
        if (s->call[i].op == op && !memcmp(s->call[i].dim, dim, n)) break;
    }
    if (asked == s->ncalls) i = s->ncalls;
    if (i == SHADOW_CALLS) {
        tt_fail(ctx, TT_EUNSUPPORTED, "more than %d kinds of calls",
                SHADOW_CALLS);
        return NULL;
    }
    shadow_call *c = &s->call[i];
    s->latest = i;
    if (i == s->ncalls) {
        s->ncalls++;
        *c = (shadow_call){.op = op, .least = size};
        memcpy(c->dim, dim, n);
    }
    c->calls++;
    c->size += (double)size;
    c->flops += flops;
    if (size < c->least) c->least = size;
    if (size > c->most) c->most = size;
    return c;
}

#define DIMS(...) ((const int64_t[SHADOW_DIMS]){__VA_ARGS__})

/* Take note of a matrix that is used for the first time. */
static void list_matrix(tt_ctx *ctx, const tt_tensor *w)
{
    shadow *s = of(ctx);
    int i = s->matrix_latest; /* layers repeat theirs in order */
    for (int asked = 0; asked < s->matrices; asked++) {
        i = i + 1 < s->matrices ? i + 1 : 0;
        if (s->matrix[i].data != w->data) continue;
        s->matrix_latest = i;
        return;
    }
    if (s->matrices == s->matrix_room) {
        tt_tensor *more = grown(s->matrix, &s->matrix_room, sizeof *more);
        if (more) s->matrix = more;
        else tt_fail(ctx, TT_ENOMEM, "out of memory for the plan of a run");
    }
    if (ctx->status) return;
    s->matrix_latest = s->matrices;
    s->matrix[s->matrices++] = *w;
    s->matrix_bytes += (double)tt_tensor_bytes(w);
}

/* Values of a shadow, which may be the matrix of a product, have no data. */
static void remember(tt_ctx *ctx, shadow_call *c, const tt_tensor *w)
{
    const bool shade = find(of(ctx), (uintptr_t)w->data);
    if (!shade) list_matrix(ctx, w);
    if (!c || c->nw == SHADOW_WEIGHTS) return;
    c->w[c->nw] = *w;
    if (shade) c->w[c->nw].data = NULL;
    c->nw++;
}

/* Scratch of the operator itself. */
static void use_scratch(tt_ctx *ctx, int64_t n)
{
    if (n <= 0) return;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real *x = tt_values(ctx, n);
    if (x) touch(of(ctx), x, n * (int64_t)sizeof *x);
    tt_arena_reset(&ctx->scratch, m);
}

static void write(tt_ctx *ctx, const tt_real *y, int64_t n)
{
    touch(of(ctx), y, n * (int64_t)sizeof *y);
}

/* ---- operators: which extents make calls alike --------------------------- */

/* outputs, products, type; size: rows */
static void shadow_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    const int64_t o = a->w->dim[0], K = a->w->dim[1];
    write(ctx, a->y, a->n * o);
    use_scratch(ctx, ops_linear_room(ctx, ctx->ops->self, a));
    remember(ctx, note(ctx, SHADOW_LINEAR, a->n, 2.0 * (double)(a->n * o)
                  * (double)K, DIMS(o, K, (int64_t)a->w->dtype)), a->w);
}

/* heads, width, queries, bias, from where on keys are the same; size: keys.
 * With a bias the queries are as many as the keys, and prompts of all lengths
 * one kind. */
static void shadow_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    const int64_t width = a->H * a->D;
    write(ctx, a->o, a->T * width);
    if (a->laid)
        write(ctx, a->laid, a->H * ctx->ops->laid(ctx, a->N, a->D));
    if (a->T == 0) return;
    use_scratch(ctx, ops_attention_room(ctx, ctx->ops->self, a));
    note(ctx, SHADOW_ATTENTION, a->N, 4.0 * (double)(a->T * width)
         * (double)a->N, DIMS(a->H, a->D, a->rel_bias ? 0 : a->T,
                              a->rel_bias != NULL, a->same));
}

/* kernel, channels, width, stride, upsampling, frames that are there, whose
 * sums, type of the frames; size: output rows */
static void shadow_conv(tt_ctx *ctx, const tt_conv_args *a)
{
    const int64_t taps = (int64_t)a->kt * a->kh * a->kw;
    int64_t there = 0;
    for (int i = 0; i < a->kt; i++) there += a->frame[i] != NULL;
    write(ctx, a->y, a->Ho * a->Wo * a->Cout);
    use_scratch(ctx, ops_conv_room(ctx, ctx->ops->self, a));
    remember(ctx, note(ctx, SHADOW_CONV, a->Ho, 2.0 * (double)(a->Ho * a->Wo)
                  * (double)(a->Cout * a->Cin * taps),
                  DIMS(a->kt, a->kh, a->kw, a->Cin, a->Cout, a->Wo, a->stride,
                       a->up, there, a->by_class, a->bf16)), a->w);
}

/* The others: columns; size: rows. */
static void shadow_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *a)
{
    write(ctx, a->y, a->n * a->c);
    note(ctx, SHADOW_LAYER_NORM, a->n, 0, DIMS(a->c, a->w != NULL));
}

static void shadow_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *a)
{
    write(ctx, a->y, a->n * a->c);
    note(ctx, SHADOW_RMS_NORM, a->n, 0, DIMS(a->c));
}

static void shadow_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *a)
{
    write(ctx, a->y, a->n * a->c);
    note(ctx, SHADOW_CHANNEL_NORM, a->n, 0, DIMS(a->c));
}

static void shadow_modulate(tt_ctx *ctx, const tt_modulate_args *a)
{
    note(ctx, SHADOW_MODULATE, a->n, 0, DIMS(a->c));
}

static void shadow_gate_add(tt_ctx *ctx, const tt_gate_add_args *a)
{
    note(ctx, SHADOW_GATE_ADD, a->n, 0, DIMS(a->c));
}

static void shadow_add(tt_ctx *ctx, const tt_add_args *a)
{
    note(ctx, SHADOW_ADD, a->n, 0, DIMS(1));
}

static void shadow_mul(tt_ctx *ctx, const tt_mul_args *a)
{
    note(ctx, SHADOW_MUL, a->n, 0, DIMS(1));
}

static void shadow_gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *a)
{
    note(ctx, SHADOW_GELU_TANH, a->n, 0, DIMS(1));
}

static void shadow_silu(tt_ctx *ctx, const tt_silu_args *a)
{
    note(ctx, SHADOW_SILU, a->n, 0, DIMS(1));
}

static void shadow_rope(tt_ctx *ctx, const tt_rope_args *a)
{
    write(ctx, a->y, a->T * a->H * a->D);
    note(ctx, SHADOW_ROPE, a->T, 0, DIMS(a->H, a->D));
}

/* Statistics; for the host numbers, none like its neighbours. */
static void some_numbers(tt_ctx *ctx, double *x, int64_t c)
{
    if (find(of(ctx), (uintptr_t)x)) {
        touch(of(ctx), x, c * (int64_t)sizeof *x);
        return;
    }
    for (int64_t i = 0; i < c; i++) x[i] = 0.25 + 0.0625 * (double)(i % 7);
}

static void shadow_col_mean(tt_ctx *ctx, const tt_col_mean_args *a)
{
    some_numbers(ctx, a->mean, a->c);
    note(ctx, SHADOW_COL_MEAN, a->n, 0, DIMS(a->c));
}

static void shadow_col_moment(tt_ctx *ctx, const tt_col_moment_args *a)
{
    some_numbers(ctx, a->m2, a->c);
    note(ctx, SHADOW_COL_MOMENT, a->n, 0, DIMS(a->c));
}

static void shadow_col_blend(tt_ctx *ctx, const tt_col_blend_args *a)
{
    note(ctx, SHADOW_COL_BLEND, a->n, 0, DIMS(a->c));
}

/* ---- the device ---------------------------------------------------------- */

static void put(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    (void)from;
    touch(of(ctx), to, (int64_t)bytes);
}

/* The largest array says what the host holds more than without a device. */
static void get(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    shadow *s = of(ctx);
    (void)from;
    memset(to, 0x3c, bytes); /* small and finite, float or double */
    if ((int64_t)bytes > s->fetched) s->fetched = (int64_t)bytes;
}

static void copy(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    (void)from;
    touch(of(ctx), to, (int64_t)bytes);
    note(ctx, SHADOW_COPY, (int64_t)bytes, 0, DIMS(1));
}

static void narrow(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n)
{
    copy(ctx, to, from, 2 * (size_t)n);
}

static void zero(tt_ctx *ctx, void *to, size_t bytes)
{
    touch(of(ctx), to, (int64_t)bytes);
}

/* What is chosen is known to nobody. */
static void total(tt_ctx *ctx, const tt_total_args *a)
{
    touch(of(ctx), a->y, a->c * (int64_t)sizeof *a->y);
}

static void most(tt_ctx *ctx, const tt_most_args *a)
{
    touch(of(ctx), a->y, a->n * (int64_t)sizeof *a->y);
}

static void choose(tt_ctx *ctx, const tt_choose_args *a)
{
    touch(of(ctx), a->list, (a->count + 1) * (int64_t)sizeof *a->list);
    touch(of(ctx), a->then, a->count * (int64_t)sizeof *a->then);
}

static void locate(tt_ctx *ctx, const tt_locate_args *a)
{
    touch(of(ctx), a->to, 3 * a->n * (int64_t)sizeof *a->to);
}

static void pick(tt_ctx *ctx, const tt_pick_args *a)
{
    copy(ctx, a->to, a->from, (size_t)(4 * a->n * a->to_step));
}

static void apart(tt_ctx *ctx, const tt_apart_args *a)
{
    touch(of(ctx), a->far, a->n * (int64_t)sizeof *a->far);
}

static void rates(tt_ctx *ctx, const tt_rates_args *a)
{
    touch(of(ctx), a->rate, a->n * (int64_t)sizeof *a->rate);
}

static void follow(tt_ctx *ctx, const tt_follow_args *a)
{
    note(ctx, SHADOW_COL_BLEND, a->n, 0, DIMS(a->c));
}

/* ---- ranks --------------------------------------------------------------- */

/* Parcels are packed and unpacked, which copies them, and go to all at once;
 * calls with as many messages are alike. */
static tt_status exchange(tt_ctx *ctx, tt_team *t, const tt_parcels *out,
                          const tt_parcels *in, bool patient)
{
    const team_load x = team_load_of(t, out, in);
    const int64_t own = in->n[t->rank];
    const int64_t size = x.sent > x.received ? x.sent : x.received;
    (void)patient;
    note(ctx, SHADOW_COPY, x.sent + own + x.received, 0, DIMS(1));
    shadow_call *c = note(ctx, SHADOW_EXCHANGE, size, 0, DIMS(x.messages));
    if (c) c->sent += (double)x.sent;
    return ctx->status;
}

static void give_up(tt_team *t, tt_status status, const char *sentence)
{
    (void)t, (void)status, (void)sentence;
}

static void join(shadow *s, const tt_team *real)
{
    if (!real) return;
    team_init(&s->team, real->rank, real->size);
    memcpy(s->team.share, real->share, sizeof s->team.share);
    s->team.imagined = true;
    s->team.exchange = exchange;
    s->team.give_up = give_up;
    s->ctx.team = &s->team;
}

/* ---- opening and closing ------------------------------------------------- */

static void silent(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;
}

static void fill_table(shadow *s, const tt_ops *real)
{
#define ENTRY(op_, OP) s->table[c].op_ = shadow_##op_;
    for (int c = 0; c < TT_CLASS_COUNT; c++) {
        const tt_ops *inner = tt_ops_class(real, (tt_class)c);
        if (!inner) continue;
        s->table[c] = *inner;
        s->table[c].self = (void *)(uintptr_t)inner;
        s->table[c].fused = NULL; /* two calls take no less than one */
        TT_OPS(ENTRY)
        s->table[c].of_class = s->of_class;
        s->of_class[c] = &s->table[c];
    }
}

shadow *shadow_open(tt_ctx *ctx)
{
    if (ctx->status) return NULL;
    shadow *s = calloc(1, sizeof *s);
    if (!s) {
        tt_fail(ctx, TT_ENOMEM, "out of memory for the plan of a run");
        return NULL;
    }
    s->real = ctx->ops;
    s->next = HUGE_PAGE;
    fill_table(s, ctx->ops);
    s->device = (tt_device){.name = "plan", .self = s, .imagined = true,
                            .alloc = take, .free = give, .put = put,
                            .get = get, .copy = copy, .zero = zero,
                            .total = total, .most = most,
                            .choose = choose, .locate = locate,
                            .pick = pick, .apart = apart, .rates = rates,
                            .follow = follow,
                            .narrow = narrow};
    s->files = s->device;
    s->files.alloc = take_file;
    s->device.files = &s->files;
    s->ctx = (tt_ctx){.ops = &s->table[ctx->ops->cls], .device = &s->device,
                      .nthreads = ctx->nthreads, .interrupt = ctx->interrupt,
                      .matrix_unit = ctx->matrix_unit, .warn = silent};
    join(s, ctx->team);
    return s;
}

void shadow_close(shadow *s)
{
    if (!s) return;
    tt_ctx_free(&s->ctx);
    free(s->block);
    free(s->matrix);
    free(s);
}

void shadow_mark(shadow *s)
{
    s->nmarked = s->ncalls;
    memcpy(s->marked, s->call, (size_t)s->ncalls * sizeof *s->call);
}

void shadow_repeat(shadow *s, double times)
{
    static const shadow_call none = {.op = SHADOW_COPY};
    for (int i = 0; i < s->ncalls; i++) {
        shadow_call *c = &s->call[i];
        const shadow_call *m = i < s->nmarked ? &s->marked[i] : &none;
        c->calls += times * (c->calls - m->calls);
        c->size += times * (c->size - m->size);
        c->flops += times * (c->flops - m->flops);
        c->sent += times * (c->sent - m->sent);
    }
}

void shadow_keep(shadow *s, double times)
{
    for (int i = 0; i < s->ncalls; i++) {
        shadow_call *c = &s->call[i];
        const shadow_call m = i < s->nmarked ? s->marked[i] : (shadow_call){0};
        c->calls = times * (c->calls - m.calls);
        c->size = times * (c->size - m.size);
        c->flops = times * (c->flops - m.flops);
        c->sent = times * (c->sent - m.sent);
    }
}
