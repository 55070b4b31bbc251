/* cases.c: see cases.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/run_case/run_case.h"

/* Run the case into a temporary file and open it; NULL after a failed check. */
static tt_file *run_to_file(tt_ctx *ctx, const test_case *c)
{
    char path[600];
    bool unknown;
    tt_st_writer *w = NULL;
    tt_file *f = NULL;
    tmp_path(path, sizeof path, "case.safetensors");
    tt_status s = tt_st_create(ctx, &w, path);
    if (s == TT_OK) s = run_case(ctx, c->dir, w, &unknown);
    if (s == TT_OK) s = tt_st_finish(w);
    else tt_st_abort(w);
    if (!expect_ok(s, c->dir)) return NULL;
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) f = NULL;
    unlink(path);                     /* the mapping stays */
    return f;
}

static bool is_real(tt_dtype t)
{
    return t == TT_F32 || t == TT_F64;
}

static bool same_shape(const tt_tensor *a, const tt_tensor *b)
{
    return a->rank == b->rank
           && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

static const case_rule *find_rule(const char *name, const case_rule *rules,
                                  int n)
{
    for (int i = 0; i < n; i++) {
        const size_t len = strlen(rules[i].name);
        if (len && rules[i].name[len - 1] == '*'
                ? !strncmp(name, rules[i].name, len - 1)
                : !strcmp(name, rules[i].name))
            return &rules[i];
    }
    return NULL;
}

/* The rule of the references from case.json. */
static double module_rule(const test_case *c, const char *name)
{
    const tt_json *o = tt_json_get(tt_json_get(c->json, "official_f32_vs_f64"),
                                   name);
    return 8 * tt_json_num(o, "max_abs_err", -1)
           + 2e-6 * tt_json_num(o, "max_abs_value", 0);
}

static bool check_real(tt_ctx *ctx, const test_case *c, const char *what,
                       const tt_entry *got, const tt_entry *f32,
                       const case_rule *r)
{
    const tt_entry *f64 = c->expected_f64
                              ? tt_file_find(c->expected_f64, got->name) : NULL;
    const bool exact = sizeof(tt_real) == 8 && f64;
    double max = exact ? (r && r->f64_max ? r->f64_max : 1e-11)
                       : r && r->f32_max ? r->f32_max
                                         : module_rule(c, got->name);
    const double rms = !exact && r ? r->f32_rms : 0;
    if (!expect(max > 0, "%s: no official error to judge by", what))
        return false;
    tt_arena tmp = {0};
    const int64_t n = tt_tensor_count(&got->t);
    const tt_real *x = tt_read_real(ctx, &tmp, &got->t);
    const bool ok = expect_close(what, x, n, f64 ? f64 : f32, max, rms);
    tt_arena_free(&tmp);
    return ok;
}

static bool check_integers(tt_ctx *ctx, const char *what, const tt_entry *got,
                           const tt_entry *want)
{
    tt_arena tmp = {0};
    const int64_t n = tt_tensor_count(&got->t);
    const size_t size = tt_dtype_size(got->t.dtype);
    int64_t *x = tt_alloc(ctx, &tmp, n, sizeof *x, "integers");
    unsigned char *raw = tt_alloc(ctx, &tmp, n, size, "integers");
    tt_gather(raw, &got->t);
    for (int64_t i = 0; i < n; i++) {
        int32_t narrow;
        if (size == 8) memcpy(&x[i], raw + 8 * i, 8);
        else if (size == 4) memcpy(&narrow, raw + 4 * i, 4), x[i] = narrow;
        else x[i] = raw[i];
    }
    const bool ok = expect_int(what, x, n, want);
    tt_arena_free(&tmp);
    return ok;
}

bool check_case(tt_ctx *ctx, const char *path, const case_rule *rules,
                int nrules)
{
    test_case c;
    bool all = case_open(&c, "%s", path);
    tt_file *out = all ? run_to_file(ctx, &c) : NULL;
    all = all && out && expect(c.expected && tt_file_count(c.expected) > 0,
                               "%s: nothing expected", path);
    const int64_t n = all ? tt_file_count(c.expected) : 0;
    for (int64_t i = 0; i < n; i++) {
        const tt_entry *want = tt_file_entry(c.expected, i);
        const tt_entry *got = tt_file_find(out, want->name);
        char what[400], a[96], b[96];
        snprintf(what, sizeof what, "%s %s", path, want->name);
        if (!expect(got != NULL, "%s: not written", what)) {
            all = false;
        } else if (!same_shape(&got->t, &want->t)) {
            all = expect(false, "%s: shape %s, expected %s", what,
                         tt_shape_string(a, sizeof a, got->t.rank, got->t.dim),
                         tt_shape_string(b, sizeof b, want->t.rank,
                                         want->t.dim));
        } else if (is_real(want->t.dtype)) {
            if (!check_real(ctx, &c, what, got, want,
                            find_rule(want->name, rules, nrules)))
                all = false;
        } else if (!check_integers(ctx, what, got, want)) {
            all = false;
        }
    }
    if (out) tt_file_close(out);
    case_close(&c);
    return all;
}
