/* dtype.c: storage types, checked sizes, byte order.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    tensor.c */
#include "core/tensor.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;       /* of an element or block                              */
    int64_t block;
} dtypes[TT_DTYPE_COUNT] = {
    [TT_NONE] = {"?", 0, 1},          [TT_F64] = {"F64", 8, 1},
    [TT_F32] = {"F32", 4, 1},         [TT_F16] = {"F16", 2, 1},
    [TT_BF16] = {"BF16", 2, 1},       [TT_F8_E4M3] = {"F8_E4M3", 1, 1},
    [TT_F8_E5M2] = {"F8_E5M2", 1, 1}, [TT_I64] = {"I64", 8, 1},
    [TT_I32] = {"I32", 4, 1},         [TT_I16] = {"I16", 2, 1},
    [TT_I8] = {"I8", 1, 1},           [TT_U64] = {"U64", 8, 1},
    [TT_U32] = {"U32", 4, 1},         [TT_U16] = {"U16", 2, 1},
    [TT_U8] = {"U8", 1, 1},           [TT_BOOL] = {"BOOL", 1, 1},
    [TT_Q8_0] = {"Q8_0", 34, 32},     [TT_Q4_0] = {"Q4_0", 18, 32},
    [TT_Q4_1] = {"Q4_1", 20, 32},     [TT_Q5_0] = {"Q5_0", 22, 32},
    [TT_Q5_1] = {"Q5_1", 24, 32},     [TT_Q2_K] = {"Q2_K", 84, 256},
    [TT_Q3_K] = {"Q3_K", 110, 256},   [TT_Q4_K] = {"Q4_K", 144, 256},
    [TT_Q5_K] = {"Q5_K", 176, 256},   [TT_Q6_K] = {"Q6_K", 210, 256},
    [TT_IQ4_NL] = {"IQ4_NL", 18, 32}, [TT_IQ4_XS] = {"IQ4_XS", 136, 256},
};

static bool known(tt_dtype t)
{
    return t > TT_NONE && t < TT_DTYPE_COUNT;
}

size_t tt_dtype_size(tt_dtype t)
{
    return known(t) ? dtypes[t].size : 0;
}

int64_t tt_dtype_block(tt_dtype t)
{
    return known(t) ? dtypes[t].block : 1;
}

bool tt_dtype_is_real(tt_dtype t)
{
    return known(t) && (t <= TT_F8_E5M2 || t >= TT_Q8_0);
}

const char *tt_dtype_name(tt_dtype t)
{
    return known(t) ? dtypes[t].name : "?";
}

tt_dtype tt_dtype_from_name(const char *name)
{
    for (int t = TT_NONE + 1; t < TT_DTYPE_COUNT; t++)
        if (dtypes[t].block == 1 && strcmp(dtypes[t].name, name) == 0)
            return (tt_dtype)t;
    return TT_NONE;
}

/* ---- sizes --------------------------------------------------------------- */

bool tt_checked_mul(int64_t *out, int64_t a, int64_t b)
{
    if (a < 0 || b < 0) return false;
    if (b != 0 && a > INT64_MAX / b) return false;
    *out = a * b;
    return true;
}

bool tt_checked_add(int64_t *out, int64_t a, int64_t b)
{
    if (a < 0 || b < 0 || a > INT64_MAX - b) return false;
    *out = a + b;
    return true;
}

bool tt_checked_size(int64_t *out, const int64_t *dim, int rank, size_t size)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (dim[i] < 0 || !tt_checked_mul(&n, n, dim[i])) return false;
    /* 32-bit machines: what no object can hold is refused here, so that a
     * result may be converted to size_t */
    return tt_checked_mul(&n, n, (int64_t)size) && n <= PTRDIFF_MAX
           && tt_checked_add(out, n, 0);
}

/* ---- byte order ---------------------------------------------------------- */

bool tt_host_little_endian(void)
{
    const uint16_t one = 1;
    unsigned char b;
    memcpy(&b, &one, 1);
    return b == 1;
}

void tt_swap_stored(void *data, tt_dtype t, int64_t n)
{
    const size_t size = tt_dtype_size(t);
    unsigned char *p = data;
    if (tt_host_little_endian() || tt_dtype_block(t) > 1 || size < 2) return;
    for (int64_t i = 0; i < n; i++, p += size)
        for (size_t k = 0; k < size / 2; k++) {
            const unsigned char low = p[k];
            p[k] = p[size - 1 - k];
            p[size - 1 - k] = low;
        }
}
