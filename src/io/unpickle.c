/* unpickle.c: the stack machine of pickle protocol 2, cut down to what
 * torch.save writes for dictionaries of tensors.
 *
 * Source  Python's pickletools for the opcodes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   no recursion; stack, memo and objects are limited, so a small file
 *         cannot ask for much memory; every opcode not listed is refused.
 * Next    pickle_torch.c: the tags; torchfile.c: from values to tensors */
#include "io/unpickle.h"

#include <string.h>

#include "io/bytes.h"

#define PICKLE_LIMIT ((int64_t)512 << 20)
#define STACK_LIMIT 1000000
#define OBJECT_LIMIT 10000000
#define CHUNK 65536
#define MEMO_PAGE 1024

bool pickle_refuse(pickle_machine *m, const char *why)
{
    tt_fail(m->ctx, TT_EFORMAT, "%s: data.pkl refused at byte %lld: %s",
            m->f->path, (long long)m->at, why);
    return false;
}

/* ---- memory -------------------------------------------------------------- */

static void *claim(pickle_machine *m, size_t bytes)
{
    if ((int64_t)bytes > m->budget) {
        pickle_refuse(m, "more values than a dictionary of tensors needs");
        return NULL;
    }
    m->budget -= (int64_t)bytes;
    return tt_alloc(m->ctx, m->arena, (int64_t)bytes, 1, "pickled values");
}

/* Arena pieces are 64 bytes at least; values are much smaller. */
static void *unpickle_cut(pickle_machine *m, int64_t count, size_t size)
{
    size_t n = ((size_t)count * size + 7) & ~(size_t)7;
    if (n > CHUNK / 4) return claim(m, n);
    if (n > m->left) {
        m->chunk = claim(m, CHUNK);
        m->left = m->chunk ? CHUNK : 0;
        if (!m->chunk) return NULL;
    }
    char *p = m->chunk;
    m->chunk += n;
    m->left -= n;
    return p;
}

void *pickle_new(pickle_machine *m, size_t size)
{
    if (++m->objects > OBJECT_LIMIT) {
        pickle_refuse(m, "too many objects");
        return NULL;
    }
    void *p = unpickle_cut(m, 1, size);
    if (p) memset(p, 0, size);
    return p;
}

/* Room for one more element of an array that doubles. */
static bool unpickle_grow(pickle_machine *m, void *array, int64_t used,
                          int64_t *cap, size_t size, int64_t first)
{
    void *old, *new;
    if (used < *cap) return true;
    int64_t bigger = *cap ? 2 * *cap : first;
    memcpy(&old, array, sizeof old);
    new = unpickle_cut(m, bigger, size);
    if (!new) return false;
    if (used > 0) memcpy(new, old, (size_t)used * size);
    memcpy(array, &new, sizeof new);
    *cap = bigger;
    return true;
}

bool pickle_append(pickle_machine *m, pickle_list *l, const pickle_value *v)
{
    if (!unpickle_grow(m, &l->item, l->count, &l->cap, sizeof *v, 4))
        return false;
    l->item[l->count++] = *v;
    return true;
}

/* ---- input --------------------------------------------------------------- */

static const uint8_t *unpickle_take(pickle_machine *m, int64_t n)
{
    if (n > m->n - m->at) {
        pickle_refuse(m, "unexpected end");
        return NULL;
    }
    const uint8_t *p = m->text + m->at;
    m->at += n;
    return p;
}

/* ---- stack and memo ------------------------------------------------------ */

static bool push(pickle_machine *m, const pickle_value *v)
{
    if (m->top == STACK_LIMIT) return pickle_refuse(m, "stack too deep");
    if (!unpickle_grow(m, &m->stack, m->top, &m->cap, sizeof *v, 256))
        return false;
    m->stack[m->top++] = *v;
    return true;
}

/* The n topmost values above the last mark, NULL when there are fewer. */
static pickle_value *top(pickle_machine *m, int64_t n)
{
    if (m->top - m->floor >= n) return m->stack + m->top - n;
    pickle_refuse(m, "stack underflow");
    return NULL;
}

static bool push_mark(pickle_machine *m)
{
    if (m->nmarks == STACK_LIMIT) return pickle_refuse(m, "too many marks");
    if (!unpickle_grow(m, &m->mark, m->nmarks, &m->mark_cap, sizeof *m->mark,
                       64))
        return false;
    m->mark[m->nmarks++] = m->floor;
    m->floor = m->top;
    return true;
}

/* Take off everything above the last mark, and the mark. */
static pickle_value *pop_mark(pickle_machine *m, int64_t *n)
{
    if (m->nmarks == 0) {
        pickle_refuse(m, "no mark");
        return NULL;
    }
    int64_t from = m->floor;
    *n = m->top - from;
    m->floor = m->mark[--m->nmarks];
    m->top = from;
    return m->stack + from;
}

/* Picklers number what they remember from 0, without a gap. */
static bool put_memo(pickle_machine *m, uint32_t key)
{
    const pickle_value *v = top(m, 1);
    if (!v) return false;
    if (key > m->nmemo) return pickle_refuse(m, "a gap in the memo's numbers");
    if (key == m->nmemo) {
        pickle_value **page = &m->memo[key / MEMO_PAGE];
        if (key % MEMO_PAGE == 0) *page = unpickle_cut(m, MEMO_PAGE, sizeof *v);
        if (!*page) return false;
        m->nmemo++;
    }
    m->memo[key / MEMO_PAGE][key % MEMO_PAGE] = *v;
    return true;
}

static bool get_memo(pickle_machine *m, uint32_t key)
{
    if (key >= m->nmemo) return pickle_refuse(m, "an unset memo entry");
    return push(m, &m->memo[key / MEMO_PAGE][key % MEMO_PAGE]);
}

/* ---- opcodes that read text ---------------------------------------------- */

static bool op_string(pickle_machine *m)
{
    const uint8_t *p = unpickle_take(m, 4);
    if (!p) return false;
    uint32_t n = le32(p);
    p = unpickle_take(m, n);
    if (!p) return false;
    if (utf8_check(p, n) < n) return pickle_refuse(m, "malformed UTF-8");
    pickle_value v = {.kind = PV_STR, .len = n, .as.s = (const char *)p};
    return push(m, &v);
}

static const char *line(pickle_machine *m, size_t *n)
{
    const uint8_t *p = m->text + m->at;
    const uint8_t *end = memchr(p, '\n', (size_t)(m->n - m->at));
    if (!end) {
        pickle_refuse(m, "unexpected end");
        return NULL;
    }
    *n = (size_t)(end - p);
    m->at += (int64_t)*n + 1;
    return (const char *)p;
}

static bool op_global(pickle_machine *m)
{
    size_t nmodule, nname;
    pickle_value v;
    const char *module = line(m, &nmodule);
    const char *name = module ? line(m, &nname) : NULL;
    return name && pickle_global(m, &v, module, nmodule, name, nname)
           && push(m, &v);
}

/* ---- opcodes that push numbers ------------------------------------------- */

static bool push_int(pickle_machine *m, pickle_kind kind, int64_t i)
{
    pickle_value v = {.kind = (uint8_t)kind, .as.i = i};
    return push(m, &v);
}

/* LONG1: up to 8 bytes, two's complement. */
static bool op_long(pickle_machine *m)
{
    const uint8_t *p = unpickle_take(m, 1);
    if (!p) return false;
    int n = *p;
    if (n > 8) return pickle_refuse(m, "an integer of more than 64 bits");
    p = unpickle_take(m, n);
    if (!p) return false;
    uint64_t u = n > 0 && p[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (int i = n - 1; i >= 0; i--) u = u << 8 | p[i];
    int64_t v;
    memcpy(&v, &u, sizeof v);
    return push_int(m, PV_INT, v);
}

static bool op_float(pickle_machine *m)
{
    const uint8_t *p = unpickle_take(m, 8);
    pickle_value v = {.kind = PV_FLOAT};
    uint64_t u = 0;
    if (!p) return false;
    for (int i = 0; i < 8; i++) u = u << 8 | p[i]; /* big-endian */
    memcpy(&v.as.f, &u, sizeof u);
    return push(m, &v);
}

/* ---- opcodes that build -------------------------------------------------- */

static bool push_list(pickle_machine *m, pickle_kind kind,
                      const pickle_value *from, int64_t n)
{
    pickle_value v = {.kind = (uint8_t)kind};
    v.as.list = pickle_new(m, sizeof *v.as.list);
    if (!v.as.list) return false;
    if (n > 0) {
        v.as.list->item = unpickle_cut(m, n, sizeof *from);
        if (!v.as.list->item) return false;
        memcpy(v.as.list->item, from, (size_t)n * sizeof *from);
        v.as.list->count = v.as.list->cap = n;
    }
    return push(m, &v);
}

static bool op_tuple_of(pickle_machine *m, int64_t n)
{
    pickle_value *v = top(m, n);
    if (!v) return false;
    m->top -= n;
    return push_list(m, PV_TUPLE, v, n);
}

static bool op_tuple(pickle_machine *m)
{
    int64_t n;
    pickle_value *v = pop_mark(m, &n);
    return v && push_list(m, PV_TUPLE, v, n);
}

/* Add n popped values to the list or dictionary now on top. */
static bool extend(pickle_machine *m, pickle_kind kind, const pickle_value *v,
                   int64_t n)
{
    const pickle_value *to = top(m, 1);
    if (!to) return false;
    if (to->kind != kind)
        return pickle_refuse(m, "items for something that takes none");
    if (kind == PV_DICT && n % 2 != 0)
        return pickle_refuse(m, "a key without a value");
    for (int64_t i = 0; i < n; i++)
        if (!pickle_append(m, to->as.list, &v[i])) return false;
    return true;
}

static bool op_extend(pickle_machine *m, pickle_kind kind)
{
    int64_t n;
    pickle_value *v = pop_mark(m, &n);
    return v && extend(m, kind, v, n);
}

static bool op_extend_by(pickle_machine *m, pickle_kind kind, int64_t n)
{
    pickle_value *v = top(m, n);
    if (!v) return false;
    m->top -= n;
    return extend(m, kind, v, n);
}

/* Two operands become one result, or (BUILD) the first stays. */
static bool op_pair(pickle_machine *m, uint8_t op)
{
    pickle_value *v = top(m, 2), result;
    if (!v) return false;
    m->top--;
    if (op == 'b') return pickle_build(m, &v[0], &v[1]);
    if (!pickle_reduce(m, &result, &v[0], &v[1])) return false;
    m->stack[m->top - 1] = result;
    return true;
}

static bool op_persistent(pickle_machine *m)
{
    pickle_value *v = top(m, 1), result;
    if (!v || !pickle_persistent(m, &result, v)) return false;
    *v = result;
    return true;
}

/* ---- the loop ------------------------------------------------------------ */

static bool op_memo(pickle_machine *m, uint8_t op)
{
    bool wide = op == 'r' || op == 'j';
    const uint8_t *p = unpickle_take(m, wide ? 4 : 1);
    if (!p) return false;
    uint32_t key = wide ? le32(p) : *p;
    return op == 'q' || op == 'r' ? put_memo(m, key) : get_memo(m, key);
}

static bool op_int(pickle_machine *m, uint8_t op)
{
    const uint8_t *p = unpickle_take(m, op == 'J' ? 4 : op == 'M' ? 2 : 1);
    if (!p) return false;
    if (op != 'J') return push_int(m, PV_INT, op == 'M' ? le16(p) : *p);
    uint32_t u = le32(p);
    int32_t i;
    memcpy(&i, &u, sizeof i);
    return push_int(m, PV_INT, i);
}

static bool step(pickle_machine *m, uint8_t op)
{
    switch (op) {
    case '}': return push_list(m, PV_DICT, NULL, 0);
    case ']': return push_list(m, PV_LIST, NULL, 0);
    case ')': return push_list(m, PV_TUPLE, NULL, 0);
    case '(': return push_mark(m);
    case 't': return op_tuple(m);
    case 0x85: case 0x86: case 0x87: return op_tuple_of(m, op - 0x84);
    case 'X': return op_string(m);
    case 'q': case 'r': case 'h': case 'j': return op_memo(m, op);
    case 'J': case 'K': case 'M': return op_int(m, op);
    case 0x8A: return op_long(m);
    case 'G': return op_float(m);
    case 'N': return push_int(m, PV_NONE, 0);
    case 0x88: return push_int(m, PV_BOOL, 1);
    case 0x89: return push_int(m, PV_BOOL, 0);
    case 'c': return op_global(m);
    case 'Q': return op_persistent(m);
    case 'R': case 'b': return op_pair(m, op);
    case 's': return op_extend_by(m, PV_DICT, 2);
    case 'u': return op_extend(m, PV_DICT);
    case 'a': return op_extend_by(m, PV_LIST, 1);
    case 'e': return op_extend(m, PV_LIST);
    default: return pickle_refuse(m, "an operation that dictionaries of "
                                     "tensors do not need");
    }
}

static bool unpickle_run(pickle_machine *m, pickle_value *root)
{
    const uint8_t *p = unpickle_take(m, 2);
    if (!p || !unpickle_grow(m, &m->stack, 0, &m->cap, sizeof *m->stack, 256))
        return false;
    if (p[0] == 0x80 && p[1] > 2 && p[1] < 6)
        return pickle_refuse(m, "its pickle has a protocol above 2; load it in "
                             "PyTorch and save it with torch.save(x, FILE), "
                             "without pickle_protocol");
    if (p[0] != 0x80 || p[1] != 2)
        return pickle_refuse(m, "not pickle protocol 2");
    for (;;) {
        p = unpickle_take(m, 1);
        if (!p) return false;
        if (*p == '.') break;
        if (!step(m, *p)) return false;
    }
    if (m->at != m->n) return pickle_refuse(m, "bytes after the end");
    if (m->top != 1 || m->nmarks != 0)
        return pickle_refuse(m, "values left over at the end");
    if (m->stack[0].kind != PV_DICT)
        return pickle_refuse(m, "the file does not hold a dictionary");
    *root = m->stack[0];
    return true;
}

tt_status unpickle(tt_ctx *ctx, pickle_value *root, tt_arena *a,
                   const torchzip *z, const tt_file *f, int64_t *budget)
{
    pickle_machine m = {.ctx = ctx, .arena = a, .zip = z, .f = f,
                        .text = z->pickle->data, .n = z->pickle->size,
                        .budget = *budget};
    if (ctx->status) return ctx->status;
    if (m.n > PICKLE_LIMIT)
        return tt_fail(ctx, TT_EFORMAT, "%s: data.pkl has %lld bytes, at most "
                       "512 MB are read", f->path, (long long)m.n);
    /* an entry takes two bytes of pickle */
    m.memo = unpickle_cut(&m, m.n / 2 / MEMO_PAGE + 1, sizeof *m.memo);
    if (m.memo) unpickle_run(&m, root);
    *budget = m.budget;
    return ctx->status;
}
