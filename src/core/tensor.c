/* tensor.c: views of typed data.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    widen.c */
#include "core/tensor.h"

#include <stdio.h>

#include "tether/status.h"

/* The product; 0 where that is beyond an int64_t, as in an empty tensor: next
 * to an extent of 0 the others may be anything. */
static int64_t outer(int64_t n, int64_t dim)
{
    return tt_checked_mul(&n, n, dim) ? n : 0;
}

int64_t tt_tensor_count(const tt_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n = outer(n, t->dim[i]);
    return n;
}

int64_t tt_tensor_bytes(const tt_tensor *t)
{
    return tt_tensor_count(t) / tt_dtype_block(t->dtype)
         * (int64_t)tt_dtype_size(t->dtype);
}

tt_tensor tt_tensor_make(const void *data, tt_dtype dtype, int rank,
                         const int64_t *dim)
{
    tt_tensor t = {.data = data, .dtype = dtype, .rank = rank, .native = true};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        t.dim[i] = dim[i];
        t.stride[i] = step;
        step = outer(step, dim[i]);
    }
    return t;
}

tt_tensor tt_tensor_stored(const void *data, tt_dtype dtype, int rank,
                           const int64_t *dim)
{
    tt_tensor t = tt_tensor_make(data, dtype, rank, dim);
    t.native = false;
    return t;
}

tt_tensor tt_tensor_like(const tt_tensor *t, const void *data, int rank,
                         const int64_t *dim)
{
    tt_tensor r = tt_tensor_make(data, t->dtype, rank, dim);
    r.scale = t->scale;
    r.row_scale = t->row_scale;
    r.row = t->row;
    r.native = t->native;
    return r;
}

bool tt_tensor_is_real(const tt_tensor *t)
{
    return tt_dtype_is_real(t->dtype) || (t->dtype == TT_I8 && t->scale != 0);
}

tt_tensor tt_tensor_reshape(const tt_tensor *t, int rank, const int64_t *dim)
{
    tt_tensor r = tt_tensor_like(t, t->data, rank, dim);
    TT_ASSERT(tt_tensor_packed(t) && tt_tensor_count(&r) == tt_tensor_count(t));
    return r;
}

bool tt_tensor_packed(const tt_tensor *t)
{
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->dim[i] != 1 && t->stride[i] != step) return false;
        step = outer(step, t->dim[i]);
    }
    return true;
}

const char *tt_shape_string(char *buf, size_t n, int rank, const int64_t *dim)
{
    size_t at = 0;
    if (n == 0) return buf;
    at += (size_t)snprintf(buf, n, "[");
    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", i ? ", " : "",
                               (long long)dim[i]);
    if (at < n) snprintf(buf + at, n - at, "]");
    return buf;
}

const tt_real *tt_tensor_in_place(const tt_tensor *t)
{
    const bool ok = t->dtype == (sizeof(tt_real) == 8 ? TT_F64 : TT_F32)
                    && (t->native || tt_host_little_endian()) && t->scale == 0
                    && (uintptr_t)t->data % sizeof(tt_real) == 0
                    && tt_tensor_packed(t);
    return ok ? t->data : NULL;
}
