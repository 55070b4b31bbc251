/* pickle_torch.c: what the few allowed globals of a PyTorch file mean.
 *
 * Source  torch._utils (_rebuild_tensor_v2, _rebuild_parameter),
 *         torch.serialization (persistent ids), read as a data format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   a tensor that leaves this file lies inside its storage, and the
 *         storage inside the file. */
#include <string.h>

#include "io/bytes.h"
#include "io/unpickle.h"

typedef enum role {
    ORDERED_DICT, REBUILD_TENSOR, REBUILD_TENSOR_V3, REBUILD_PARAMETER,
    STORAGE, UNTYPED_STORAGE, DTYPE, SIZE
} role;

static const struct { const char *module, *name; role role; tt_dtype dtype; }
tags[] = {
    {"collections", "OrderedDict", ORDERED_DICT, TT_NONE},
    {"torch._utils", "_rebuild_tensor_v2", REBUILD_TENSOR, TT_NONE},
    {"torch._utils", "_rebuild_tensor_v3", REBUILD_TENSOR_V3, TT_NONE},
    {"torch._utils", "_rebuild_parameter", REBUILD_PARAMETER, TT_NONE},
    {"torch", "FloatStorage", STORAGE, TT_F32},
    {"torch", "DoubleStorage", STORAGE, TT_F64},
    {"torch", "HalfStorage", STORAGE, TT_F16},
    {"torch", "BFloat16Storage", STORAGE, TT_BF16},
    {"torch", "LongStorage", STORAGE, TT_I64},
    {"torch", "IntStorage", STORAGE, TT_I32},
    {"torch", "ShortStorage", STORAGE, TT_I16},
    {"torch", "CharStorage", STORAGE, TT_I8},
    {"torch", "ByteStorage", STORAGE, TT_U8},
    {"torch", "BoolStorage", STORAGE, TT_BOOL},
    {"torch.storage", "UntypedStorage", UNTYPED_STORAGE, TT_NONE},
    {"torch", "float8_e4m3fn", DTYPE, TT_F8_E4M3},
    {"torch", "float8_e5m2", DTYPE, TT_F8_E5M2},
    {"torch", "Size", SIZE, TT_NONE},
};

static bool pickle_torch_same(const char *word, const char *s, size_t n)
{
    return strlen(word) == n && !memcmp(word, s, n);
}

bool pickle_global(pickle_machine *m, pickle_value *out, const char *module,
                   size_t nmodule, const char *name, size_t nname)
{
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (pickle_torch_same(tags[i].module, module, nmodule)
            && pickle_torch_same(tags[i].name, name, nname)) {
            *out = (pickle_value){.kind = PV_TAG, .as.i = (int64_t)i};
            return true;
        }
    char a[IO_SHOW], b[IO_SHOW];
    tt_fail(m->ctx, TT_EFORMAT, "%s: refused: the file asks for the Python "
            "object '%s.%s'; only dictionaries of tensors are read (save the "
            "state_dict alone)", m->f->path, io_show(a, module, nmodule),
            io_show(b, name, nname));
    return false;
}

static bool is_tag(const pickle_value *v, role r)
{
    return v->kind == PV_TAG && tags[v->as.i].role == r;
}

/* ---- storages ------------------------------------------------------------ */

/* ('storage', class, key, location, numel) */
static bool is_storage(const pickle_value *id)
{
    if (id->kind != PV_TUPLE || id->as.list->count != 5) return false;
    const pickle_value *v = id->as.list->item;
    return v[0].kind == PV_STR
           && pickle_torch_same("storage", v[0].as.s, v[0].len)
           && (is_tag(&v[1], STORAGE) || is_tag(&v[1], UNTYPED_STORAGE))
           && v[2].kind == PV_STR && v[3].kind == PV_STR
           && v[4].kind == PV_INT && v[4].as.i >= 0;
}

bool pickle_persistent(pickle_machine *m, pickle_value *out,
                       const pickle_value *id)
{
    if (!is_storage(id))
        return pickle_refuse(m, "a storage that is not described as expected");
    const pickle_value *v = id->as.list->item;
    tt_dtype dtype = tags[v[1].as.i].dtype;
    int64_t bytes = 0;
    size_t size = dtype == TT_NONE ? 1 : tt_dtype_size(dtype);
    const zip_entry *e = torchzip_storage(m->zip, v[2].as.s, v[2].len);
    if (!e) return pickle_refuse(m, "a storage whose data is missing");
    if (!tt_checked_mul(&bytes, v[4].as.i, (int64_t)size) || bytes != e->size)
        return pickle_refuse(m, "a storage whose size differs from its data");
    pickle_storage *s = pickle_new(m, sizeof *s);
    if (!s) return false;
    *s = (pickle_storage){e->data, dtype, v[4].as.i};
    *out = (pickle_value){.kind = PV_STORAGE, .as.storage = s};
    return true;
}

/* ---- tensors ------------------------------------------------------------- */

static bool pickle_torch_read_sizes(pickle_machine *m, int64_t *out, int *rank,
                                    const pickle_value *v)
{
    if (v->kind != PV_TUPLE) return pickle_refuse(m, "sizes are not a tuple");
    if (v->as.list->count > TT_MAX_RANK)
        return pickle_refuse(m, "a tensor of more than 8 dimensions");
    *rank = (int)v->as.list->count;
    for (int i = 0; i < *rank; i++) {
        const pickle_value *x = &v->as.list->item[i];
        if (x->kind != PV_INT || x->as.i < 0)
            return pickle_refuse(m, "a size or stride that is no count");
        out[i] = x->as.i;
    }
    return true;
}

/* The last element read must lie inside the storage. */
static bool pickle_torch_fits(const tt_tensor *t, int64_t offset, int64_t numel)
{
    int64_t last = offset, step;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == 0) return offset <= numel;
    for (int i = 0; i < t->rank; i++)
        if (!tt_checked_mul(&step, t->dim[i] - 1, t->stride[i])
            || !tt_checked_add(&last, last, step))
            return false;
    return last < numel;
}

/* Strides that are never used are made the packed ones, so that a packed
 * tensor is recognised as such. */
static void settle_strides(tt_tensor *t)
{
    tt_tensor packed = tt_tensor_make(t->data, t->dtype, t->rank, t->dim);
    bool empty = tt_tensor_count(t) == 0;
    for (int i = t->rank - 1; i >= 0; i--)
        if (empty || t->dim[i] == 1) t->stride[i] = packed.stride[i];
}

static bool make_tensor(pickle_machine *m, pickle_value *out,
                        const pickle_value *v, tt_dtype dtype)
{
    tt_tensor t = {.dtype = dtype};
    int64_t bytes, numel = v[0].as.storage->numel;
    int strides = 0;
    size_t size = tt_dtype_size(dtype);
    if (v[0].as.storage->dtype == TT_NONE) numel /= (int64_t)size;
    if (v[1].kind != PV_INT || v[1].as.i < 0)
        return pickle_refuse(m, "a storage offset that is no count");
    if (!pickle_torch_read_sizes(m, t.dim, &t.rank, &v[2])
        || !pickle_torch_read_sizes(m, t.stride, &strides, &v[3]))
        return false;
    if (strides != t.rank)
        return pickle_refuse(m, "as many strides as sizes are expected");
    if (!tt_checked_size(&bytes, t.dim, t.rank, size)
        || !pickle_torch_fits(&t, v[1].as.i, numel))
        return pickle_refuse(m, "a tensor that leaves its storage");
    t.data = v[0].as.storage->data + (size_t)v[1].as.i * size;
    settle_strides(&t);
    tt_tensor *keep = pickle_new(m, sizeof *keep);
    if (!keep) return false;
    *keep = t;
    *out = (pickle_value){.kind = PV_TENSOR, .as.tensor = keep};
    return true;
}

/* (storage, offset, sizes, strides, requires_grad, hooks[, metadata]); v3 has
 * the dtype after the hooks. */
static bool rebuild_tensor(pickle_machine *m, pickle_value *out,
                           const pickle_list *args, bool v3)
{
    const pickle_value *v = args->item;
    int64_t least = v3 ? 7 : 6;
    if (args->count < least || args->count > least + 1
        || v[0].kind != PV_STORAGE || v[4].kind != PV_BOOL)
        return pickle_refuse(m, "a tensor that is not described as expected");
    tt_dtype dtype = v[0].as.storage->dtype;
    if (v3 != (dtype == TT_NONE) || (v3 && !is_tag(&v[6], DTYPE)))
        return pickle_refuse(m, "a tensor whose type is not known");
    return make_tensor(m, out, v, v3 ? tags[v[6].as.i].dtype : dtype);
}

/* ---- REDUCE and BUILD ---------------------------------------------------- */

/* OrderedDict() or OrderedDict([(key, value), ...]) */
static bool pickle_torch_make_dict(pickle_machine *m, pickle_value *out,
                                   const pickle_list *args)
{
    static const char bad[] = "an OrderedDict that is not built as expected";
    if (args->count > 1) return pickle_refuse(m, bad);
    *out = (pickle_value){.kind = PV_DICT};
    out->as.list = pickle_new(m, sizeof *out->as.list);
    if (!out->as.list) return false;
    if (args->count == 0) return true;
    if (args->item[0].kind != PV_LIST) return pickle_refuse(m, bad);
    const pickle_list *pairs = args->item[0].as.list;
    for (int64_t i = 0; i < pairs->count; i++) {
        const pickle_value *p = &pairs->item[i];
        if ((p->kind != PV_TUPLE && p->kind != PV_LIST)
            || p->as.list->count != 2)
            return pickle_refuse(m, bad);
        for (int k = 0; k < 2; k++)
            if (!pickle_append(m, out->as.list, &p->as.list->item[k]))
                return false;
    }
    return true;
}

bool pickle_reduce(pickle_machine *m, pickle_value *out,
                   const pickle_value *tag, const pickle_value *args)
{
    static const char bad[] = "a call that builds no dictionary or tensor";
    if (tag->kind != PV_TAG || args->kind != PV_TUPLE)
        return pickle_refuse(m, bad);
    const pickle_list *a = args->as.list;
    switch (tags[tag->as.i].role) {
    case ORDERED_DICT: return pickle_torch_make_dict(m, out, a);
    case REBUILD_TENSOR: return rebuild_tensor(m, out, a, false);
    case REBUILD_TENSOR_V3: return rebuild_tensor(m, out, a, true);
    case REBUILD_PARAMETER: /* (tensor, requires_grad, hooks) */
        if (a->count != 3 || a->item[0].kind != PV_TENSOR)
            return pickle_refuse(m, "a parameter without a tensor");
        *out = a->item[0];
        return true;
    case SIZE:
        if (a->count != 1 || (a->item[0].kind != PV_TUPLE
                              && a->item[0].kind != PV_LIST))
            return pickle_refuse(m, bad);
        *out = a->item[0];
        out->kind = PV_TUPLE;
        return true;
    default: return pickle_refuse(m, bad);
    }
}

/* module.state_dict() hangs {'_metadata': version numbers} on its
 * dictionary; nothing else may be set. */
bool pickle_build(pickle_machine *m, const pickle_value *object,
                  const pickle_value *state)
{
    if (object->kind != PV_DICT || state->kind != PV_DICT
        || state->as.list->count != 2)
        return pickle_refuse(m, "an object with attributes");
    const pickle_value *key = &state->as.list->item[0];
    if (key->kind != PV_STR
        || !pickle_torch_same("_metadata", key->as.s, key->len))
        return pickle_refuse(m, "an attribute other than _metadata");
    return true;
}
