/* common.c: see fuzz.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/utf8.h"
#include "io/file.h"
#include "tests/fuzz/fuzz.h"

static tt_ctx ctx;
static size_t scratch_used;
static struct { char path[300]; const char *suffix; } files[4];

static void stop(const char *why)
{
    fprintf(stderr, "fuzz target: %s: '%s'\n", why, tt_message(&ctx));
    abort();
}

/* Not empty, and fit for a terminal. */
static bool is_sentence(const char *s)
{
    for (const char *p = s; *p; p += utf8_shown(p))
        if (!utf8_shown(p)) return false;
    return *s;
}

static void no_warning(void *user, const char *sentence)
{
    (void)user;
    if (!is_sentence(sentence)) stop("a bad warning");
}

static void remove_files(void)
{
    for (int i = 0; i < 4 && files[i].suffix; i++) unlink(files[i].path);
}

tt_ctx *fuzz_ctx(void)
{
    static int ready;
    if (!ready) {
        if (tt_ctx_init(&ctx)) abort();
        ctx.nthreads = 1;
        ctx.warn = no_warning;
        ready = 1;
    }
    scratch_used = ctx.scratch.used;
    return &ctx;
}

void fuzz_settle(void)
{
    const char *said = tt_message(&ctx);
    if (ctx.status && !is_sentence(said))
        stop("a refusal is one sentence");
    if (ctx.scratch.used != scratch_used) stop("scratch memory left");
    tt_clear(&ctx);
}

static void read_tensor(const tt_file *f, const tt_entry *e)
{
    int64_t count;
    if (!tt_file_find(f, e->name)) stop("a name that is not found");
    if (!tt_checked_size(&count, e->t.dim, e->t.rank, 8)) stop("a size");
    if (count > 1 << 20) return;
    tt_arena a = {0};
    void *raw = tt_alloc(&ctx, &a, count, 1, "values");
    if (raw) tt_gather(raw, &e->t);
    tt_read_real(&ctx, &a, &e->t);
    tt_arena_free(&a);
}

void fuzz_checkpoint(const uint8_t *data, size_t size, const char *path)
{
    tt_file *f;
    fuzz_ctx();
    if (file_open_bytes(&ctx, &f, data, size, path) == TT_OK) {
        for (int64_t i = 0; i < tt_file_count(f); i++)
            read_tensor(f, tt_file_entry(f, i));
        tt_file_close(f);
    } else if (f) {
        stop("refused, but something is open");
    }
    fuzz_settle();
}

const char *fuzz_file(const uint8_t *data, size_t size, const char *suffix)
{
    int i = 0;
    while (i < 4 && files[i].suffix && strcmp(files[i].suffix, suffix)) i++;
    if (i == 4) abort();
    char *path = files[i].path;
    if (!files[i].suffix) {
        const char *tmp = getenv("TMPDIR");
        snprintf(path, sizeof files[i].path, "%s/tether-fuzz-%ld%s",
                 tmp ? tmp : "/tmp", (long)getpid(), suffix);
        if (i == 0) atexit(remove_files);
        files[i].suffix = suffix;
    }
    FILE *f = fopen(path, "wb");
    if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f)) abort();
    return path;
}

static char folder[300];

static void remove_folder(void)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command)) _exit(1);
}

const char *fuzz_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    if (folder[0]) return folder;
    snprintf(folder, sizeof folder, "%s/tether-fuzz-XXXXXX",
             tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
    return folder;
}

/* ---- files of tensors ---------------------------------------------------- */

enum { TENSORS = 40, BYTES = 1 << 16, NAME = 80 };

typedef struct damaged {
    fuzz_tensor t;
    char name[NAME];
    bool gone;
    double set;                  /* NAN: nothing is set                       */
    uint8_t where;               /* 0: everywhere, else element where - 1     */
} damaged;

static void damage(damaged *all, int n, const uint8_t c[4])
{
    damaged *d = &all[c[0] % n];
    const int axis = c[2] % 5;
    const int64_t old = d->t.dim[axis];
    static const int64_t extent[] = {
        0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 100, 1000, 65536, INT64_C(1) << 20,
        INT64_C(1) << 31, INT64_C(1) << 40, INT64_MAX};
    static const tt_dtype type[] = {TT_F32, TT_F64, TT_F16, TT_BF16, TT_U8,
                                    TT_I32, TT_I64, TT_BOOL, TT_U64, TT_I8};
    static const double value[] = {0, 1, 2, -1, -2, -3, -4, 5, 9, 100, 255,
                                   65536, 0x1p31 - 1, -0x1p31, 0x1p31, 1e15,
                                   0x1p62, -0x1p62, 1e-30, 0.5, 1e300,
                                   INFINITY, -INFINITY};
    const size_t extents = sizeof extent / sizeof *extent;
    const size_t values = sizeof value / sizeof *value;
    switch (c[1] % 7) {
    case 0: d->t.dim[axis] = extent[c[3] % extents]; break;
    case 1: d->t.dtype = type[c[3] % (sizeof type / sizeof *type)]; break;
    case 2: d->t.rank = c[3] % 6; break;
    case 3: d->gone = c[3] % 2; break;
    case 4:                      /* no quotes, controls: they are JSON's      */
        d->name[c[2] % strlen(d->name)] = (char)(c[3] < 0x80 && c[3] > ' '
            && c[3] != '"' && c[3] != '\\' && c[3] != 0x7f ? c[3] : '%');
        break;
    case 5: d->set = value[c[3] % values]; d->where = c[2]; break;
    case 6:                      /* extents that go together                  */
        for (int i = 0; i < n; i++)
            if (all[i].t.dim[axis] == old)
                all[i].t.dim[axis] = extent[c[3] % extents];
        break;
    }
}

static void store(uint8_t *p, tt_dtype type, double v)
{
    uint64_t bits = 0;
    const float f = (float)v;
    const int64_t n = v >= 0x1p63 ? INT64_MAX : v < -0x1p62 ? INT64_MIN
                      : (int64_t)v;
    if (type == TT_F64) memcpy(&bits, &v, 8);
    else if (type == TT_F32) memcpy(&bits, &f, 4);
    else if (type == TT_BF16) bits = tt_bf16_from_f32(f);
    else if (type == TT_F16) bits = tt_f16_from_f32(f);
    else if (type == TT_BOOL) bits = n & 1;
    else bits = (uint64_t)n;
    for (size_t i = 0; i < tt_dtype_size(type); i++)
        p[i] = (uint8_t)(bits >> 8 * i);
}

static size_t fill(uint8_t *to, const damaged *d, int64_t count)
{
    const size_t size = tt_dtype_size(d->t.dtype);
    for (int64_t i = 0; i < count; i++) {
        const bool set = !isnan(d->set) && (!d->where || d->where == i + 1);
        store(to + (size_t)i * size, d->t.dtype,
              set ? d->set : d->t.lo + (double)(i % d->t.span));
    }
    return (size_t)count * size;
}

static bool fits(const fuzz_tensor *t, size_t capacity, int64_t *count)
{
    *count = 1;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] == 0) *count = 0;
        if (*count && !tt_checked_mul(count, *count, t->dim[i])) return false;
    }
    return *count <= (int64_t)(capacity / tt_dtype_size(t->dtype));
}

const char *fuzz_tensors(const fuzz_tensor *t, int n, const uint8_t *data,
                         size_t size, const char *suffix)
{
    static uint8_t body[BYTES], file[8 + 400 * TENSORS + BYTES];
    damaged d[TENSORS];
    char *json = (char *)file + 8;
    size_t used = 0, length = 1;
    if (n > TENSORS) abort();
    for (int i = 0; i < n; i++) {
        d[i] = (damaged){.t = t[i], .set = NAN};
        snprintf(d[i].name, NAME, "%s", t[i].name);
    }
    for (size_t i = 0; i + 4 <= size; i += 4) damage(d, n, data + i);
    json[0] = '{';
    for (int i = 0; i < n; i++) {
        int64_t count;
        if (d[i].gone || !fits(&d[i].t, BYTES - used, &count)) continue;
        const size_t from = used;
        used += fill(body + used, &d[i], count);
        length += (size_t)sprintf(json + length, "%s\"%s\":{\"dtype\":\"%s\","
                                  "\"shape\":[", length > 1 ? "," : "",
                                  d[i].name, tt_dtype_name(d[i].t.dtype));
        for (int k = 0; k < d[i].t.rank; k++)
            length += (size_t)sprintf(json + length, "%s%" PRId64,
                                      k ? "," : "", d[i].t.dim[k]);
        length += (size_t)sprintf(json + length,
                                  "],\"data_offsets\":[%zu,%zu]}", from, used);
    }
    json[length++] = '}';
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)length >> 8 * i);
    memcpy(json + length, body, used);
    return fuzz_file(file, 8 + length + used, suffix);
}
