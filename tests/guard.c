/* guard.c: see guard.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/guard.h"

#ifdef __linux__

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache/policy.h"

/* Of addresses; memory comes with use. */
#define SIZE ((size_t)1 << (sizeof(size_t) == 8 ? 36 : 29))
#define PAGE ((size_t)1 << 16)

/* Of `holes`: ranks that are threads of one process share them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A range that is free, in ascending order. */
typedef struct hole {
    struct hole *next;
    size_t at, size;
} hole;

static struct {
    char *shown, *real;
    bool strict, used;
    hole *holes;
} guard;

static bool inside(const void *p)
{
    return (uintptr_t)p - (uintptr_t)guard.shown < SIZE;
}

/* Where the bytes of p can be reached. */
static void *real(const void *p)
{
    return inside(p) ? guard.real + ((const char *)p - guard.shown)
                     : (void *)(uintptr_t)p;
}

/* ---- memory -------------------------------------------------------------- */

static size_t whole(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *guard_alloc(const tt_device *d, size_t bytes)
{
    const size_t need = whole(bytes);
    char *p = NULL;
    (void)d;
    pthread_mutex_lock(&lock);
    const char *file = guard.used ? NULL : getenv("TT_GUARD_USED");
    guard.used = true;
    if (file) close(open(file, O_CREAT | O_WRONLY, 0666));
    hole *h = guard.holes;
    while (h && h->size < need) h = h->next;
    if (h) {
        p = guard.shown + h->at;
        h->at += need;
        h->size -= need;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

static void guard_free(const tt_device *d, void *block, size_t bytes)
{
    (void)d;
    const size_t at = (size_t)((char *)block - guard.shown);
    hole **p = &guard.holes, *own = malloc(sizeof *own);
    if (!own) abort();
    madvise(guard.real + at, whole(bytes), MADV_REMOVE);
    pthread_mutex_lock(&lock);
    while ((*p)->next && (*p)->at < at) p = &(*p)->next;
    *own = (hole){*p, at, whole(bytes)};
    *p = own;
    for (hole *h = guard.holes; h && h->next;) {     /* neighbours become one */
        hole *n = h->next;
        if (h->at + h->size != n->at) {
            h = n;
            continue;
        }
        h->size += n->size;
        h->next = n->next;
        free(n);
    }
    pthread_mutex_unlock(&lock);
}

/* Is the pointer on the side where it belongs? */
static void check(tt_ctx *ctx, const void *p, bool values, const char *what,
                  const char *operand)
{
    if (guard.strict && p && inside(p) != values)
        tt_fail(ctx, TT_EINVAL, "%s: %s is memory of the %s", what, operand,
                values ? "host" : "device");
}

static void guard_put(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    check(ctx, to, true, "put", "to");
    check(ctx, from, false, "put", "from");
    memcpy(real(to), real(from), bytes);
}

static void guard_get(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    check(ctx, from, true, "get", "from");
    check(ctx, to, false, "get", "to");
    memcpy(real(to), real(from), bytes);
}

static void guard_copy(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    check(ctx, to, true, "copy", "to");
    check(ctx, from, true, "copy", "from");
    memmove(real(to), real(from), bytes);
}

static void guard_zero(tt_ctx *ctx, void *to, size_t bytes)
{
    check(ctx, to, true, "zero", "to");
    memset(real(to), 0, bytes);
}

static const tt_device device;

/* ---- operators ----------------------------------------------------------- */

/* The values an operator is given; weights W come from files or are values,
 * frames F are a list of the host. */
#define GUARD_linear(P, W, F) P(y) P(x) P(b) W(w)
#define GUARD_attention(P, W, F) P(o) P(q) P(k) P(v) P(rel_bias) P(packed)
#define GUARD_conv(P, W, F) P(y) P(b) W(w) F(frame, kt)
#define GUARD_layer_norm(P, W, F) P(y) P(x) P(w) P(b)
#define GUARD_rms_norm(P, W, F) P(y) P(x) P(w)
#define GUARD_channel_norm(P, W, F) P(y) P(x) P(gamma)
#define GUARD_modulate(P, W, F) P(x) P(scale) P(shift)
#define GUARD_gate_add(P, W, F) P(x) P(y) P(gate)
#define GUARD_add(P, W, F) P(x) P(y)
#define GUARD_mul(P, W, F) P(x) P(y)
#define GUARD_gelu_tanh(P, W, F) P(x)
#define GUARD_silu(P, W, F) P(x)
#define GUARD_rope(P, W, F) P(y) P(x) EITHER(pos)
#define GUARD_col_mean(P, W, F) P(x) EITHER(mean)
#define GUARD_col_moment(P, W, F) P(x) EITHER(m2) EITHER(mean)
#define GUARD_col_blend(P, W, F) P(x) EITHER(mean) EITHER(gain) EITHER(target)

#define FRAMES 8
#define VALUES(of)                                                             \
    check(ctx, own.of, true, what, #of);                                       \
    own.of = real(own.of);
#define EITHER(of) own.of = real(own.of); /* on either side                  */
#define WEIGHT(of)                                                             \
    weight = *own.of;                                                          \
    check(ctx, weight.data, true, what, #of);                                  \
    weight.data = real(weight.data);                                           \
    own.of = &weight;
#define LIST(of, n)                                                            \
    for (int i = 0; i < own.n && i < FRAMES; i++) {                            \
        check(ctx, own.of[i], true, what, #of);                                \
        list[i] = real(own.of[i]);                                             \
    }                                                                          \
    own.of = list;

/* After the guard: operators of the host, whose scratch is the host's. */
#define BEHIND(op, OP)                                                         \
    static void guard_##op(tt_ctx *ctx, const tt_##op##_args *a)               \
    {                                                                          \
        static const char what[] = #op;                                        \
        const tt_ops *outer = ctx->ops;                                        \
        const tt_real *list[FRAMES];                                           \
        tt_##op##_args own = *a;                                               \
        tt_tensor weight;                                                      \
        (void)list, (void)weight;                                              \
        GUARD_##op(VALUES, WEIGHT, LIST)                                       \
        if (ctx->status) return;                                               \
        ctx->ops = outer->self;                                                \
        ctx->device = NULL;                                                    \
        ctx->ops->op(ctx, &own);                                               \
        ctx->ops = outer;                                                      \
        ctx->device = &device;                                                 \
    }
TT_OPS(BEHIND)

/* Verbs likewise. */
#define VERB(verb, ...)                                                        \
    static void guard_##verb(tt_ctx *ctx, const tt_##verb##_args *a)           \
    {                                                                          \
        static const char what[] = #verb;                                      \
        tt_##verb##_args own = *a;                                             \
        __VA_ARGS__                                                            \
        ctx->device = NULL;                                                    \
        tt_##verb(ctx, &own);                                                  \
        ctx->device = &device;                                                 \
    }
VERB(locate, VALUES(to))
VERB(pick, VALUES(to) VALUES(from) VALUES(list))

static const tt_device device = {
    .name = "guard", .alloc = guard_alloc, .free = guard_free,
    .put = guard_put, .get = guard_get, .copy = guard_copy, .zero = guard_zero,
    .locate = guard_locate, .pick = guard_pick,
};

/* ---- install ------------------------------------------------------------- */

static bool map(void)
{
    /* no file of a name or a number: limits of files do not count. An old
     * size of 0 makes a second mapping of what is shared. */
    guard.real = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (guard.real == MAP_FAILED) return false;
    guard.shown = mremap(guard.real, 0, SIZE, MREMAP_MAYMOVE);
    guard.holes = malloc(sizeof *guard.holes);
    if (guard.shown == MAP_FAILED || mprotect(guard.shown, SIZE, PROT_NONE)
        || !guard.holes)
        return false;
    *guard.holes = (hole){NULL, 0, SIZE};
    return true;
}

bool guard_install(tt_ctx *ctx)
{
    enum { BACKENDS = 8 };
    static tt_ops tables[BACKENDS][TT_CLASS_COUNT];
    static const tt_ops *of_classes[BACKENDS][TT_CLASS_COUNT];
    int b = 0;
    if (!guard.holes && !map()) return false;
    while (b < BACKENDS - 1 && tt_ops_at(b) && tt_ops_at(b) != ctx->ops) b++;
    tt_ops *table = tables[b];
    const tt_ops **of_class = of_classes[b];
    for (int c = 0; c < TT_CLASS_COUNT; c++) {
        const tt_ops *inner = tt_ops_class(ctx->ops, (tt_class)c);
        if (!inner) continue;
        table[c] = *inner;
        table[c].self = (void *)(uintptr_t)inner;
        table[c].fused = NULL;
#define ENTRY(op, OP) table[c].op = guard_##op;
        TT_OPS(ENTRY)
        table[c].of_class = of_class;
        of_class[c] = &table[c];
    }
    ctx->ops = &table[ctx->ops->cls];
    ctx->device = &device;
    return true;
}

void guard_strict(bool strict)
{
    guard.strict = strict;
}

#else

bool guard_install(tt_ctx *ctx)
{
    (void)ctx;
    return false;
}

void guard_strict(bool strict)
{
    (void)strict;
}

#endif
