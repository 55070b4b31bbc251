/* weights.c: safetensors and config.json.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A safetensors file is 8 bytes N (little-endian), N bytes of JSON
 *     {"NAME": {"dtype": "BF16", "shape": [8, 4], "data_offsets": [0, 64]}}
 * and the data. Other formats: `tether convert IN -o OUT.safetensors`. */
#include "golden.h"

_Noreturn void stop(int status, const char *format, ...) {
    va_list args;
    fflush(stdout);
    fputs("golden: error: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    exit(status);
}

void *memory(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size);
    if (!p) fail("no memory for %zu times %zu bytes", n, size);
    return p;
}

char *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) fail("cannot open %s", path);
    const long n = ftell(f);
    if (n < 0 || n == LONG_MAX) fail("%s is not a file", path);
    char *text = memory((size_t)n + 1, 1);
    rewind(f);
    if (fread(text, 1, (size_t)n, f) != (size_t)n) fail("cannot read %s", path);
    fclose(f);
    *size = (size_t)n;
    return text;
}

/* What comes after "key": in the text, or NULL; names hold no quotes. */
static const char *json_find(const char *text, const char *key) {
    const size_t n = strlen(key);
    for (const char *at = text; (at = strstr(at, key)); at++) {
        if (at == text || at[-1] != '"' || at[n] != '"') continue;
        const char *end = at + n + 1;
        end += strspn(end, " \t\r\n");
        if (*end == ':') return end + 1 + strspn(end + 1, " \t\r\n");
    }
    return NULL;
}

double config_number(const char *path, const char *key, double missing) {
    size_t size;
    char *text = read_file(path, &size), *end;
    const char *at = json_find(text, key);
    const double x = at ? strtod(at, &end) : missing;
    if (at && end == at) fail("%s: %s is not a number", path, key);
    free(text);
    return x;
}

enum { RANK_MAX = 5, F32 = 'F' + '3', F16 = 'F' + '1', BF16 = 'B' + 'F' };

struct weights {
    char path[1024], *header;
    FILE *file;
    uint64_t data;               /* where the data begins                                         */
};

typedef struct tensor { int type, rank; long long dim[RANK_MAX], count, begin; } tensor;

uint64_t little_endian(const uint8_t *bytes, size_t n) {
    uint64_t x = 0;
    while (n-- > 0) x = x << 8 | bytes[n];
    return x;
}

weights *weights_open(const char *path) {
    weights *f = memory(1, sizeof *f);
    uint8_t head[8];
    snprintf(f->path, sizeof f->path, "%s", path);
    f->file = fopen(path, "rb");
    if (!f->file) fail("cannot open %s: make it with `tether convert IN -o %s`", path, path);
    const size_t got = fread(head, 1, 8, f->file);
    const uint64_t n = little_endian(head, 8);
    if (got != 8 || n > 100 << 20) fail("%s is not a safetensors file", path);
    f->header = memory((size_t)n + 1, 1);
    if (fread(f->header, 1, (size_t)n, f->file) != n) fail("%s: the header is cut off", path);
    f->data = 8 + n;
    return f;
}

void weights_close(weights *f) { fclose(f->file), free(f->header), free(f); }

static bool find(const weights *f, tensor *t, const char *name) {
    const char *at = json_find(f->header, name), *end = at ? strchr(at, '}') : NULL;
    long long *d = t->dim, last = -1;
    if (!end) return false;
    char *text = memory((size_t)(end - at) + 1, 1);
    memcpy(text, at, (size_t)(end - at));
    const char *type = json_find(text, "dtype"), *shape = json_find(text, "shape");
    const char *span = json_find(text, "data_offsets");
    *t = (tensor){.count = 1, .type = type && type[1] ? type[1] + type[2] : 0};
    if (t->type != F32 && t->type != F16 && t->type != BF16)
        fail("%s: %s is %.8s, not F32, F16 or BF16: use `tether convert`", f->path, name,
             type ? type : "untyped");
    if (shape) t->rank = sscanf(shape, "[ %lld , %lld , %lld , %lld , %lld", d, d + 1, d + 2, d + 3,
                                d + 4);
    for (int i = 0; i < t->rank; t->count *= d[i++])
        if (d[i] < 0 || d[i] > INT_MAX || t->count > INT_MAX) fail("%s: huge %s", f->path, name);
    if (!span || sscanf(span, "[ %lld , %lld", &t->begin, &last) != 2 || t->begin < 0
        || last - t->begin != t->count * (t->type == F32 ? 4 : 2))
        fail("%s: the size of %s is not that of its shape", f->path, name);
    free(text);
    return true;
}

/* The name that a format and its arguments make. */
#define NAME_OF(name, format)                                                                      \
    char name[256];                                                                                \
    va_list args;                                                                                  \
    va_start(args, format);                                                                        \
    vsnprintf(name, sizeof name, format, args);                                                    \
    va_end(args)

int weights_dim(const weights *f, int axis, const char *format, ...) {
    tensor t;
    NAME_OF(name, format);
    return find(f, &t, name) && axis < t.rank ? (int)t.dim[axis] : 0;
}

static float widen_half(uint32_t half) {
    const int e = half >> 10 & 31, m = (half & 1023) + (e ? 1024 : 0);
    const float x = e == 31 ? (m > 1024 ? NAN : INFINITY) : ldexpf((float)m, (e ? e : 1) - 25);
    return half >> 15 ? -x : x;
}

/* n numbers of the tensor from number `first` on, widened exactly. */
static void read_numbers(weights *f, float *to, const tensor *t, uint64_t first, size_t n) {
    const size_t size = t->type == F32 ? 4 : 2;
    const uint64_t at = f->data + (uint64_t)t->begin + first * size;
    uint8_t *bytes = memory(n, size);
    if (at > LONG_MAX || fseek(f->file, (long)at, SEEK_SET) || fread(bytes, size, n, f->file) != n)
        fail("%s is cut off", f->path);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)little_endian(bytes + i * size, size);
        if (t->type == BF16) bits <<= 16;
        if (t->type == F16) to[i] = widen_half(bits);
        else memcpy(to + i, &bits, sizeof bits);
    }
    free(bytes);
}

float *load(weights *f, int rank, const int *shape, const char *format, ...) {
    char want[80] = "";
    tensor t = {.rank = 0};
    NAME_OF(name, format);
    const bool there = find(f, &t, name);
    bool same = there && t.rank == rank;
    for (int i = 0, at = 0; i < rank; i++) {
        at += snprintf(want + at, sizeof want - at, " %d", shape[i]);
        same = same && t.dim[i] == shape[i];
    }
    if (!there) fail("%s: there is no %s [%s ]", f->path, name, want);
    if (!same) fail("%s: %s has another shape than [%s ]", f->path, name, want);
    float *x = floats((size_t)t.count);
    read_numbers(f, x, &t, 0, (size_t)t.count);
    return x;
}

void load_dense(dense *m, weights *f, int out, int in, const char *format, ...) {
    NAME_OF(name, format);
    const bool bias = weights_dim(f, 0, "%s.bias", name);
    *m = (dense){.w = load(f, SHAPE(out, in), "%s.weight", name),
                 .b = bias ? load(f, SHAPE(out), "%s.bias", name) : NULL, .out = out, .in = in};
}

void load_row(weights *f, float *to, const char *name, int row, int n) {
    tensor t;
    if (!find(f, &t, name) || t.rank != 2 || t.dim[1] != n || row < 0 || row >= t.dim[0])
        fail("%s: %s has no row %d of %d numbers", f->path, name, row, n);
    read_numbers(f, to, &t, (uint64_t)row * n, (size_t)n);
}
