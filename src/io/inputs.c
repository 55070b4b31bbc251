/* inputs.c: named tensors out of files the user gave.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/inputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_float(tt_dtype t)
{
    return t == TT_F64 || t == TT_F32 || t == TT_F16 || t == TT_BF16;
}

/* "[1, n, 16, any, any]" */
static void wanted(char *buf, size_t n, int rank, const int64_t *dim)
{
    size_t at = (size_t)snprintf(buf, n, "[");
    for (int i = 0; i < rank && at < n; i++) {
        if (dim[i] < 0)
            at += (size_t)snprintf(buf + at, n - at, "%sany", i ? ", " : "");
        else
            at += (size_t)snprintf(buf + at, n - at, "%s%lld", i ? ", " : "",
                                   (long long)dim[i]);
    }
    if (at < n) snprintf(buf + at, n - at, "]");
}

static tt_status check_shape(tt_ctx *ctx, const tt_tensor *t, const char *path,
                             const char *name, int rank, const int64_t *dim)
{
    bool ok = t->rank == rank && is_float(t->dtype) && tt_tensor_packed(t);
    for (int i = 0; ok && i < rank; i++)
        ok = dim[i] < 0 ? t->dim[i] >= 1 : t->dim[i] == dim[i];
    if (ok) return TT_OK;
    char want[160], found[160];
    wanted(want, sizeof want, rank, dim);
    tt_shape_string(found, sizeof found, t->rank, t->dim);
    return tt_fail(ctx, TT_ESHAPE, "%s: tensor `%s` must be a packed, non-"
                   "empty floating-point tensor of shape %s, but it is %s %s",
                   path, name, want, tt_dtype_name(t->dtype), found);
}

tt_status input_open(tt_ctx *ctx, tt_file **file, tt_tensor *t,
                     const char *path, const char *name, int rank,
                     const int64_t *dim)
{
    *file = NULL;
    TT_TRY(tt_file_open(ctx, file, path));
    const tt_entry *e = tt_file_find(*file, name);
    if (e) {
        *t = e->t;
        check_shape(ctx, t, path, name, rank, dim);
    } else {
        tt_fail(ctx, TT_EFORMAT, "%s: no tensor `%s` in this file; `tether "
                "inspect %s` lists what it holds", path, name, path);
    }
    if (ctx->status) {
        tt_file_close(*file);
        *file = NULL;
    }
    return ctx->status;
}

tt_real *input_read(tt_ctx *ctx, tt_arena *a, const char *path,
                    const char *name, int rank, int64_t *dim)
{
    tt_file *file;
    tt_tensor t;
    if (input_open(ctx, &file, &t, path, name, rank, dim)) return NULL;
    tt_real *x = tt_read_real(ctx, a, &t);
    int64_t n = tt_tensor_count(&t);
    memcpy(dim, t.dim, (size_t)rank * sizeof *dim);
    tt_file_close(file);
    for (int64_t i = 0; x && i < n; i++)
        if (!isfinite(x[i])) {
            tt_fail(ctx, TT_EFORMAT, "%s: tensor `%s` holds a value that is "
                    "not finite (element %lld)", path, name, (long long)i);
            return NULL;
        }
    return x;
}
