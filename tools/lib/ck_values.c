/* ck_values.c: the values of a random checkpoint, and files under temporary
 * names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "checkpoint.h"
#include "core/counter.h"

int64_t ck_count(const ck_spec *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->dim[i];
    return n;
}

static uint64_t name_hash(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;                /* FNV-1a                */
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return h;
}

void ck_fill(void *out, const ck_spec *s, tt_dtype type, uint64_t seed,
             int64_t first, int64_t n)
{
    const uint64_t key = name_hash(s->name) ^ seed * 0xD1342543DE82EF95u;
    for (int64_t i = 0; i < n; i++) {
        const float x = s->base + s->spread * counter_uniform(key, first + i);
        if (type == TT_F32) ((float *)out)[i] = x;
        else if (type == TT_BF16) ((uint16_t *)out)[i] = tt_bf16_from_f32(x);
        else ((uint16_t *)out)[i] = tt_f16_from_f32(x);
    }
}

FILE *ck_open(const char *path)
{
    char part[1024];
    snprintf(part, sizeof part, "%s.part", path);
    remove(part); /* a link too, which is not followed */
    FILE *f = fopen(part, "wbx");
    if (!f) fprintf(stderr, "make_checkpoint: cannot write %s: %s\n", part,
                    strerror(errno));
    return f;
}

bool ck_close(FILE *f, const char *path)
{
    char part[1024];
    snprintf(part, sizeof part, "%s.part", path);
    const bool bad = ferror(f) != 0;
    const bool ok = fclose(f) == 0 && !bad && rename(part, path) == 0;
    if (!ok) {
        fprintf(stderr, "make_checkpoint: writing %s failed: %s\n", path,
                strerror(errno));
        remove(part);
    }
    return ok;
}
