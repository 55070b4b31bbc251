/* harness.c: see harness.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/guard.h"
#include "tests/harness.h"

#include "ops/backend.h"
#include "core/threads.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Test programs are one file, one context: these may be global. */
static tt_ctx ctx;
static const char *program = "test";
static int passed, failed, skipped;
/* A file: values were on the guard, here or in a program that we started. */
static char used[256];

tt_ctx *test_begin(const char *name)
{
    program = name;
    tt_threads_sleep();
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (tt_ctx_init(&ctx) != TT_OK) {
        printf("FAIL %s: %s\n", name, tt_message(&ctx));
        exit(1);
    }
    const char *backend = getenv("TT_TEST_BACKEND");
    if (test_guarded()) {
        tmp_path(used, sizeof used, "used");
        setenv("TT_GUARD_USED", used, 1);
        if (guard_install(&ctx)) return &ctx;
        skip("this system cannot map memory twice");
        exit(test_end());
    }
    if (backend && *backend && tt_ops_use(&ctx, backend) != TT_OK) {
        printf("FAIL %s: %s\n", name, tt_message(&ctx));
        exit(1);
    }
    return &ctx;
}

bool test_guarded(void)
{
    const char *backend = getenv("TT_TEST_BACKEND");
    return backend && !strcmp(backend, "guard");
}

int test_end(void)
{
    if (test_guarded() && !skipped)
        expect(access(used, F_OK) == 0, "no values were on the guard device: "
               "say why in tests/guard.sh");
    if (*used) unlink(used);
    printf("%s: %d passed, %d failed", program, passed, failed);
    if (skipped) printf(", %d skipped", skipped);
    printf("\n");
    tt_ctx_free(&ctx);
    return failed || !passed;
}

bool expect(bool cond, const char *fmt, ...)
{
    if (cond) {
        passed++;
        return true;
    }
    failed++;
    printf("FAIL %s: ", program);
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    return false;
}

void skip(const char *fmt, ...)
{
    skipped++;
    printf("SKIP %s: ", program);
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

bool expect_ok(tt_status s, const char *what)
{
    bool ok = s == TT_OK && ctx.status == TT_OK;
    expect(ok, "%s: %s", what, tt_message(&ctx));
    tt_clear(&ctx);
    return ok;
}

bool expect_status(tt_status got, tt_status want, const char *what)
{
    bool ok = got == want;
    expect(ok, "%s: status %d, expected %d (%s)", what, (int)got, (int)want,
           tt_message(&ctx));
    tt_clear(&ctx);
    return ok;
}

void tmp_path(char *out, size_t size, const char *name)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(out, size, "%s/tether-%ld-%s", tmp && *tmp ? tmp : "/tmp",
             (long)getpid(), name);
}

const char *ref_path(const char *fmt, ...)
{
    static char ring[8][512];
    static int at;
    char *buf = ring[at++ % 8];
    const char *root = getenv("TT_REF_DATA");
    int n = snprintf(buf, sizeof ring[0], "%s/", root ? root : "ref_data");
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + n, sizeof ring[0] - (size_t)n, fmt, ap);
    va_end(ap);
    return buf;
}

/* ---- cases --------------------------------------------------------------- */

static bool open_part(tt_file **f, const char *dir, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *there = fopen(path, "rb");
    if (!there) return true;
    fclose(there);
    return expect_ok(tt_file_open(&ctx, f, path), path);
}

bool case_open(test_case *c, const char *fmt, ...)
{
    memset(c, 0, sizeof *c);
    char name[256], path[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    snprintf(c->dir, sizeof c->dir, "%s", ref_path("%s", name));
    snprintf(path, sizeof path, "%s/case.json", c->dir);
    return expect_ok(tt_json_file(&ctx, &c->arena, &c->json, path, 1 << 22),
                     path)
           && open_part(&c->inputs, c->dir, "inputs.safetensors")
           && open_part(&c->expected, c->dir, "expected.safetensors")
           && open_part(&c->expected_f64, c->dir, "expected_f64.safetensors");
}

void case_close(test_case *c)
{
    if (c->inputs) tt_file_close(c->inputs);
    if (c->expected) tt_file_close(c->expected);
    if (c->expected_f64) tt_file_close(c->expected_f64);
    tt_arena_free(&c->arena);
}

tt_real *case_input(test_case *c, const char *name, int64_t *count)
{
    const tt_entry *e = c->inputs ? tt_file_find(c->inputs, name) : NULL;
    if (!expect(e != NULL, "%s: no input '%s'", c->dir, name)) return NULL;
    if (count) *count = tt_tensor_count(&e->t);
    return tt_read_real(&ctx, &c->arena, &e->t);
}

const int64_t *case_input_i64(test_case *c, const char *name, int64_t *count)
{
    const tt_entry *e = c->inputs ? tt_file_find(c->inputs, name) : NULL;
    if (!expect(e && e->t.dtype == TT_I64, "%s: no I64 input '%s'", c->dir,
                name))
        return NULL;
    int64_t n = tt_tensor_count(&e->t);
    if (count) *count = n;
    int64_t *out = tt_alloc(&ctx, &c->arena, n, sizeof *out, "a case input");
    tt_gather(out, &e->t);
    return out;
}

const tt_entry *case_expected(test_case *c, const char *name)
{
    const tt_entry *e = c->expected_f64 ? tt_file_find(c->expected_f64, name)
                                        : NULL;
    if (!e && c->expected) e = tt_file_find(c->expected, name);
    expect(e != NULL, "%s: no expected tensor '%s'", c->dir, name);
    return e;
}

double case_tolerance(const test_case *c, const char *name, double f64_tol)
{
    if (sizeof(tt_real) == 8) return f64_tol;
    const tt_json *o = tt_json_get(tt_json_get(c->json, "official_f32_vs_f64"),
                                   name);
    double err = tt_json_num(o, "max_abs_err", -1.0);
    if (err < 0) err = tt_json_num(o, "max_abs", -1.0);
    double top = tt_json_num(o, "max_abs_value", -1.0);
    if (!expect(err >= 0 && top >= 0, "%s: no official error for '%s'", c->dir,
                name))
        return -1.0;
    return 8 * err + 2e-6 * top;
}

/* ---- comparisons --------------------------------------------------------- */

static void coordinates(char *buf, size_t n, int64_t at, int rank,
                        const int64_t *dim)
{
    int64_t idx[TT_MAX_RANK] = {0};
    for (int i = rank - 1; i >= 0; i--) {
        idx[i] = dim[i] ? at % dim[i] : 0;
        at = dim[i] ? at / dim[i] : 0;
    }
    tt_shape_string(buf, n, rank, idx);
}

static bool close_enough(const char *what, const tt_real *got, int64_t n,
                         const double *want, int rank, const int64_t *dim,
                         double tol, double rms_tol)
{
    double worst = -1.0, sum = 0, ref = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - want[i]);
        if (!(d <= worst)) {
            worst = d;
            at = i;
            if (d != d) break;
        }
        sum += d * d;
        ref += want[i] * want[i];
    }
    double rms = n ? sqrt(sum / (double)n) : 0;
    if (n == 0 || (worst <= tol && (rms_tol <= 0 || rms <= rms_tol)))
        return expect(true, "%s", what);
    char place[128];
    coordinates(place, sizeof place, at, rank, dim);
    return expect(false,
                  "%s: at %s got %.9g (%a), expected %.9g (%a)\n"
                  "     max abs %.3g (limit %.3g), rms %.3g (limit %.3g), "
                  "NMSE %.3g",
                  what, place, (double)got[at], (double)got[at], want[at],
                  want[at], worst, tol, rms, rms_tol, ref > 0 ? sum / ref : 0);
}

bool expect_close(const char *what, const tt_real *got, int64_t n,
                  const tt_entry *want, double tol, double rms_tol)
{
    if (!want || !got) return expect(false, "%s: nothing to compare", what);
    int64_t count = tt_tensor_count(&want->t);
    if (count != n)
        return expect(false, "%s: %lld values, expected %lld", what,
                      (long long)n, (long long)count);
    double *w = malloc((size_t)(n ? n : 1) * sizeof *w);
    if (want->t.dtype == TT_F64) {
        tt_gather(w, &want->t);
    } else {
        tt_arena tmp = {0};
        tt_real *r = tt_read_real(&ctx, &tmp, &want->t);
        for (int64_t i = 0; r && i < n; i++) w[i] = (double)r[i];
        tt_arena_free(&tmp);
    }
    bool ok = close_enough(what, got, n, w, want->t.rank, want->t.dim, tol,
                           rms_tol);
    free(w);
    return ok;
}

bool expect_close_f64(const char *what, const tt_real *got, int64_t n,
                      const double *want, double tol)
{
    return close_enough(what, got, n, want, 1, &n, tol, 0);
}

bool expect_int(const char *what, const int64_t *got, int64_t n,
                const tt_entry *want)
{
    if (!want || tt_tensor_count(&want->t) != n)
        return expect(false, "%s: %lld values, expected %lld", what,
                      (long long)n,
                      want ? (long long)tt_tensor_count(&want->t) : -1LL);
    tt_arena tmp = {0};
    int64_t bad = -1;
    size_t size = tt_dtype_size(want->t.dtype);
    unsigned char *raw = tt_alloc(&ctx, &tmp, n, size, "expected integers");
    tt_gather(raw, &want->t);
    long long w = 0;
    for (int64_t i = 0; i < n && bad < 0; i++) {
        const unsigned char *p = raw + (size_t)i * size;
        switch (want->t.dtype) {
        case TT_I64: { int64_t v; memcpy(&v, p, 8); w = v; break; }
        case TT_I32: { int32_t v; memcpy(&v, p, 4); w = v; break; }
        case TT_U8: case TT_BOOL: w = *p; break;
        default: return expect(false, "%s: %s is no integer type", what,
                               tt_dtype_name(want->t.dtype));
        }
        if (w != got[i]) bad = i;
    }
    tt_arena_free(&tmp);
    if (bad < 0) return expect(true, "%s", what);
    char place[128];
    coordinates(place, sizeof place, bad, want->t.rank, want->t.dim);
    return expect(false, "%s: at %s got %lld, expected %lld", what, place,
                  (long long)got[bad], w);
}

bool expect_bits(const char *what, const void *a, const void *b, size_t nbytes)
{
    const unsigned char *p = a, *q = b;
    for (size_t i = 0; i < nbytes; i++)
        if (p[i] != q[i])
            return expect(false, "%s: bits differ first at byte %zu of %zu",
                          what, i, nbytes);
    return expect(nbytes > 0, "%s: nothing to compare", what);
}

bool expect_values(const char *what, const tt_tensor *t, const void *want,
                   size_t nbytes)
{
    tt_arena tmp = {0};
    const size_t n = (size_t)tt_tensor_bytes(t);
    void *got = tt_alloc(&ctx, &tmp, (int64_t)n, 1, "values");
    bool ok = expect(n == nbytes, "%s: %zu bytes, expected %zu", what, n,
                     nbytes);
    if (ok && got) {
        tt_gather(got, t);
        ok = expect_bits(what, got, want, n);
    }
    tt_arena_free(&tmp);
    return ok;
}
