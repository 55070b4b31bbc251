/* score.c: totals of VBench and quality drift, from files of scores.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  VBench (score_rules.c). Paper: TetherCache reports the difference
 *         of imaging quality between the first and the last clip and does not
 *         say how long a clip is; we take whatever clips were scored. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/files.h"
#include "analyze/output.h"
#include "io/json.h"

static const char what[] = "scores";
enum { FILE_LIMIT = 1 << 26 };

/* One scored clip of a video, or one dimension (clip -1). */
typedef struct score_line {
    const char *name;
    double clip, score;
} score_line;

typedef struct score_file {
    tt_ctx *ctx;
    tt_arena *mem;
    const char *path;
    score_line *line;
    int64_t n, cap;
} score_file;

static void add(score_file *f, const char *name, double clip, double score)
{
    if (f->n == f->cap) {
        int64_t cap = 2 * f->cap + 64;
        score_line *more = tt_alloc(f->ctx, f->mem, cap, sizeof *more, what);
        if (!more) return;
        if (f->n) memcpy(more, f->line, (size_t)f->n * sizeof *more);
        f->line = more;
        f->cap = cap;
    }
    f->line[f->n++] = (score_line){name, clip, score};
}

/* ---- JSON ---------------------------------------------------------------- */

/* A dimension: a number, or a list that starts with one. A video: a list of
 * numbers. */
static tt_status read_json(score_file *f, const char *s, size_t n)
{
    const tt_json *root;
    TT_TRY(tt_json_parse(f->ctx, f->mem, &root, s, n, f->path));
    for (const tt_json *x = root->first; x; x = x->next) {
        const tt_json *first = x->kind == TT_JSON_ARRAY ? x->first : x;
        bool dimension = score_find(x->key ? x->key : "") >= 0;
        if (!x->key || !first || first->kind != TT_JSON_NUMBER)
            return tt_fail(f->ctx, TT_EFORMAT, "%s: \"%s\" is neither a score "
                           "nor a list that starts with one", f->path,
                           x->key ? x->key : "");
        if (dimension || x->kind == TT_JSON_NUMBER) {
            add(f, x->key, -1, first->num);
            continue;
        }
        double clip = 0;
        for (; first; first = first->next) {
            if (first->kind != TT_JSON_NUMBER)
                return tt_fail(f->ctx, TT_EFORMAT, "%s: the clips of \"%s\" "
                               "must be numbers", f->path, x->key);
            add(f, x->key, clip++, first->num);
        }
    }
    return f->ctx->status;
}

/* ---- CSV ----------------------------------------------------------------- */

/* The next field of a line, quotes removed in place; NULL at its end. */
static char *next_field(char **at)
{
    char *s = *at, *out, *field;
    if (!s) return NULL;
    while (*s == ' ') s++;
    if (*s == '"') {
        field = out = ++s;
        while (*s && !(*s == '"' && s[1] != '"')) {
            if (*s == '"') s++;
            *out++ = *s++;
        }
        if (*s) s++;
        s += strcspn(s, ",");
    } else {
        field = s;
        s += strcspn(s, ",");
        out = s;
    }
    *at = *s ? s + 1 : NULL;
    *out = 0;
    while (out > field && isspace((unsigned char)out[-1])) *--out = 0;
    return field;
}

static bool number(double *out, const char *s)
{
    char *end;
    *out = s ? strtod(s, &end) : NAN;
    return s && *s && !*end && isfinite(*out);
}

static tt_status read_line(score_file *f, char *line, int64_t at)
{
    char *field[3] = {NULL, NULL, NULL}, *rest = line;
    double clip, score;
    int n = 0;
    while (n < 3 && (field[n] = next_field(&rest))) n++;
    if (n >= 2 && !rest && number(&score, field[n - 1])
        && (n == 2 || number(&clip, field[1]))) {
        add(f, field[0], n == 3 ? clip : -1, score);
        return f->ctx->status;
    }
    if (at == 1) return TT_OK; /* names of the columns */
    return tt_fail(f->ctx, TT_EFORMAT, "%s, line %lld: expected "
                   "dimension,score or video,clip,score", f->path,
                   (long long)at);
}

static tt_status read_csv(score_file *f, char *s)
{
    int64_t at = 0;
    for (char *line = s; line && *line;) {
        char *end = line + strcspn(line, "\r\n");
        char *next = *end ? end + 1 + (*end == '\r' && end[1] == '\n') : NULL;
        *end = 0;
        at++;
        if (*line) TT_TRY(read_line(f, line, at));
        line = next;
    }
    return f->ctx->status;
}

/* ---- F ------------------------------------------------------------------- */

static tt_status totals(score_file *f, text *say,
                        const tt_analyze_options *opt)
{
    double raw[SCORE_DIMENSIONS];
    table t;
    for (int i = 0; i < SCORE_DIMENSIONS; i++) raw[i] = NAN;
    for (int64_t k = 0; k < f->n; k++) {
        int i = score_find(f->line[k].name);
        if (i < 0)
            return tt_fail(f->ctx, TT_EFORMAT, "%s: \"%s\" is not a dimension "
                           "of VBench", f->path, f->line[k].name);
        raw[i] = f->line[k].score;
        /* MUSIQ's own scale is 0..100. */
        if (!strcmp(score_rule_at(i)->name, "imaging_quality") && raw[i] > 1)
            raw[i] /= 100;
    }
    score_result r = score_combine(raw);
    output_begin(&t, f->ctx, "scores");
    for (int i = 0; i < SCORE_DIMENSIONS; i++) {
        table_row(&t);
        table_str(&t, score_rule_at(i)->name);
        table_num(&t, raw[i]);
        table_num(&t, r.normal[i]);
        table_num(&t, score_rule_at(i)->weight);
        if (!isfinite(raw[i]))
            text_add(say, "missing, counted as 0: %s\n",
                     score_rule_at(i)->name);
    }
    static const char *const name[3] = {"quality", "semantic", "total"};
    const double value[3] = {r.quality, r.semantic, r.total};
    for (int i = 0; i < 3; i++) {
        table_row(&t);
        table_str(&t, name[i]);
        table_num(&t, NAN);
        table_num(&t, value[i]);
        table_num(&t, NAN);
        text_add(say, "%-8s %6.2f\n", name[i], 100 * value[i]);
    }
    return output_table(f->ctx, &t, "scores", opt);
}

/* ---- G ------------------------------------------------------------------- */

static int by_name_and_clip(const void *a, const void *b)
{
    const score_line *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->clip > y->clip) - (x->clip < y->clip);
}

double score_ends(double *first, double *last, const double *clip, int64_t n,
                  double ends)
{
    int64_t k = (int64_t)(ends >= 1 ? ends : ends * (double)n + 0.5);
    if (k < 1) k = 1;
    if (k > n) k = n;
    *first = *last = 0;
    for (int64_t i = 0; i < k; i++) {
        *first += clip[i] / (double)k;
        *last += clip[n - 1 - i] / (double)k;
    }
    return *first - *last;
}

static tt_status drift(score_file *f, text *say,
                       const tt_analyze_options *opt)
{
    table t;
    double sum = 0, scale = 100; /* scores 0..1 are shown in percent points */
    int64_t videos = 0;
    double *clip = tt_alloc(f->ctx, f->mem, f->n, sizeof *clip, what);
    if (!clip) return f->ctx->status;
    qsort(f->line, (size_t)f->n, sizeof *f->line, by_name_and_clip);
    for (int64_t k = 0; k < f->n; k++) {
        clip[k] = f->line[k].score;
        if (clip[k] > 1) scale = 1;
    }
    output_begin(&t, f->ctx, "quality_drift");
    for (int64_t k = 0, n; k < f->n; k += n) {
        double first, last;
        for (n = 1; k + n < f->n && !strcmp(f->line[k].name,
                                            f->line[k + n].name); n++) {}
        double d = score_ends(&first, &last, clip + k, n, opt->ends);
        table_row(&t);
        table_str(&t, f->line[k].name);
        table_num(&t, (double)n);
        table_num(&t, scale * first);
        table_num(&t, scale * last);
        table_num(&t, scale * d);
        sum += scale * d;
        videos++;
    }
    text_add(say, "quality drift %.2f (first minus last clip, mean of %lld "
             "video%s)\n", sum / (double)videos, (long long)videos,
             videos == 1 ? "" : "s");
    table_row(&t);
    table_str(&t, "mean");
    table_num(&t, (double)f->n);
    table_num(&t, NAN);
    table_num(&t, NAN);
    table_num(&t, sum / (double)videos);
    return output_table(f->ctx, &t, "quality_drift", opt);
}

/* ---- both ---------------------------------------------------------------- */

tt_status tt_analyze_scores(tt_ctx *ctx, tt_arena *mem, const char **summary,
                            const char *path, const tt_analyze_options *opt)
{
    static const char *const name[2][2] = {{"scores", NULL},
                                           {"quality_drift", NULL}};
    score_file f = {.ctx = ctx, .mem = mem, .path = path};
    size_t n;
    *summary = NULL;
    char *all = files_read(ctx, mem, path, FILE_LIMIT, &n);
    if (!all) return ctx->status;
    size_t blank = strspn(all, " \t\r\n");
    if (all[blank] == '{') TT_TRY(read_json(&f, all, n));
    else TT_TRY(read_csv(&f, all));
    if (!f.n)
        return tt_fail(ctx, TT_EFORMAT, "%s holds no scores", path);
    bool clips = f.line[0].clip >= 0;
    for (int64_t k = 0; k < f.n; k++)
        if ((f.line[k].clip >= 0) != clips)
            return tt_fail(ctx, TT_EFORMAT, "%s mixes scores of dimensions "
                           "and of clips", path);
    TT_TRY(output_keep(ctx, opt, name[clips]));
    text say;
    text_begin(&say, ctx);
    if (files_make_folder(ctx, opt->folder) == TT_OK) {
        if (clips) drift(&f, &say, opt);
        else totals(&f, &say, opt);
    }
    if (!ctx->status && say.at) *summary = tt_strdup(ctx, mem, say.at);
    text_end(&say);
    return ctx->status;
}
