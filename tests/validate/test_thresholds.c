/* test_thresholds.c: the smallest fault that validation still finds.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   test_thresholds              two rows of the table: a fault twice as large
 *                                as is written there is found, a quarter is not
 *   test_thresholds --all FILE   every row by bisection; the table as Markdown
 *
 * The candidate is right but for one operator, whose fault has a dial d. It is
 * searched by the operator checks with default settings, then at half of what
 * they find in runs of small models. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/validate/lab.h"

#define PAGE "tests/validate/thresholds.txt"

static struct dial {
    double d;
    const tt_ops *right;
    const tt_arith *arith;
    int which;
} dial;

enum dials {
    RESULT, BIAS, ATT_SCALE, EXP, EPS, FLOOR, ONE, INPUT, CUBIC, SLOPE, ANGLE,
    TAU
};

static const struct row {
    const char *op, *what;
    int which;
} rows[] = {
    {"linear", "result times 1 + d", RESULT},
    {"linear", "bias times 1 + d", BIAS},
    {"attention", "scale of the logits times 1 + d", ATT_SCALE},
    {"attention", "exp wrong by +d and -d in turn", EXP},
    {"conv", "result times 1 + d", RESULT},
    {"layer_norm", "result times 1 + d", RESULT},
    {"layer_norm", "eps times 1 + d", EPS},
    {"rms_norm", "result times 1 + d", RESULT},
    {"rms_norm", "eps times 1 + d", EPS},
    {"channel_norm", "result times 1 + d", RESULT},
    {"channel_norm", "floor of the norm d, where 1e-12 belongs", FLOOR},
    {"modulate", "1 + d + scale", ONE},
    {"gate_add", "branch times 1 + d", INPUT},
    {"add", "second operand times 1 + d", INPUT},
    {"mul", "result times 1 + d", RESULT},
    {"gelu_tanh", "cubic coefficient times 1 + d", CUBIC},
    {"gelu_tanh", "slope, sqrt(2/pi), times 1 + d", SLOPE},
    {"gelu_tanh", "exp wrong by +d and -d in turn", EXP},
    {"silu", "slope in exp times 1 + d", SLOPE},
    {"silu", "exp wrong by +d and -d in turn", EXP},
    {"rope", "angles times 1 + d", ANGLE},
    {"col_mean", "result times 1 + d", RESULT},
    {"col_moment", "result times 1 + d", RESULT},
    {"col_blend", "tau times 1 + d", TAU},
};
enum { ROWS = sizeof rows / sizeof rows[0] };
static const char *const ariths[] = {"f32", "bf16", "bf16-stored"};

/* ---- the faults ---------------------------------------------------------- */

static tt_real stored(double x)
{
    return (tt_real)tt_format_round(dial.arith->stored, (float)x);
}

static tt_real product(double x)
{
    return (tt_real)tt_format_round(dial.arith->product, (float)x);
}

static double turn(int64_t i)
{
    return 1 + (i % 2 ? -dial.d : dial.d);
}

static void scale(tt_real *y, int64_t n)
{
    for (int64_t i = 0; dial.which == RESULT && i < n; i++)
        y[i] = stored((double)y[i] * (1 + dial.d));
}

static tt_real *scaled_copy(tt_ctx *ctx, const tt_real *x, int64_t n)
{
    tt_real *y = x ? tt_scratch(ctx, n) : NULL;
    for (int64_t i = 0; y && i < n; i++)
        y[i] = stored((double)x[i] * (1 + dial.d));
    return y;
}

/* Before a function of the right table is called, and after. */
#define RIGHT(op, args)                                                        \
    do {                                                                       \
        const tt_ops *table = ctx->ops;                                        \
        ctx->ops = dial.right;                                                 \
        dial.right->op(ctx, args);                                             \
        ctx->ops = table;                                                      \
    } while (0)

static void linear(tt_ctx *ctx, const tt_linear_args *p)
{
    tt_linear_args a = *p;
    const int64_t o = p->w->dim[0];
    if (dial.which == BIAS) a.b = scaled_copy(ctx, p->b, o);
    RIGHT(linear, &a);
    scale(p->y, p->n * o);
}

/* One row of logits to weights, by their sum. */
static void softmax(const tt_attention_args *p, int64_t t, int64_t h,
                    double *w)
{
    const tt_real *q = p->q + t * p->q_stride + h * p->D;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < p->N; j++) {
        const tt_real *k = p->k + j * p->kv_stride + h * p->D;
        double s = 0;
        for (int64_t i = 0; i < p->D; i++)
            s += (double)product(q[i]) * (double)product(k[i]);
        s *= (double)p->scale;
        if (p->rel_bias)
            s += (double)p->rel_bias[h * (2 * p->N - 1) + j - t + p->N - 1];
        if (p->key_mask && !p->key_mask[j]) s = -3.4028234663852886e38;
        w[j] = s;
        top = s > top ? s : top;
    }
    for (int64_t j = 0; j < p->N; j++)
        sum += w[j] = exp(w[j] - top) * turn(j);
    for (int64_t j = 0; j < p->N; j++) w[j] = (double)product(w[j] / sum);
}

static void attention(tt_ctx *ctx, const tt_attention_args *p)
{
    tt_attention_args a = *p;
    a.scale = (tt_real)((double)p->scale * (1 + dial.d));
    if (dial.which == ATT_SCALE) {
        RIGHT(attention, &a);
        return;
    }
    double *w = tt_alloc(ctx, &ctx->scratch, p->N, sizeof *w, "weights");
    for (int64_t r = 0; w && r < p->T * p->H; r++) {
        const int64_t t = r / p->H, h = r % p->H;
        softmax(p, t, h, w);
        for (int64_t i = 0; i < p->D; i++) {
            double s = 0;
            for (int64_t j = 0; j < p->N; j++)
                s += w[j]
                     * (double)product(p->v[j * p->kv_stride + h * p->D + i]);
            p->o[(t * p->H + h) * p->D + i] = stored(s);
        }
    }
}

static void conv(tt_ctx *ctx, const tt_conv_args *p)
{
    RIGHT(conv, p);
    scale(p->y, p->Ho * p->Wo * p->Cout);
}

static void layer_norm(tt_ctx *ctx, const tt_layer_norm_args *p)
{
    tt_layer_norm_args a = *p;
    if (dial.which == EPS) a.eps *= 1 + dial.d;
    RIGHT(layer_norm, &a);
    scale(p->y, p->n * p->c);
}

static void rms_norm(tt_ctx *ctx, const tt_rms_norm_args *p)
{
    tt_rms_norm_args a = *p;
    if (dial.which == EPS) a.eps *= 1 + dial.d;
    RIGHT(rms_norm, &a);
    scale(p->y, p->n * p->c);
}

static void channel_norm(tt_ctx *ctx, const tt_channel_norm_args *p)
{
    double *norm = tt_alloc0(ctx, &ctx->scratch, p->n, sizeof *norm, "norms");
    if (!norm) return;
    for (int64_t i = 0; i < p->n * p->c; i++)
        norm[i / p->c] += (double)p->x[i] * (double)p->x[i];
    RIGHT(channel_norm, p);
    scale(p->y, p->n * p->c);
    for (int64_t i = 0; i < p->n * p->c; i++) {
        const double n = fmax(sqrt(norm[i / p->c]), 1e-12);
        if (dial.which == FLOOR && n < dial.d)
            p->y[i] = stored((double)p->y[i] * (n / dial.d));
    }
}

static void modulate(tt_ctx *ctx, const tt_modulate_args *p)
{
    (void)ctx;
    for (int64_t i = 0; i < p->n * p->c; i++) {
        const int64_t at = i / p->c / p->rows * p->stride + i % p->c;
        p->x[i] = stored((double)p->x[i] * (1 + dial.d + (double)p->scale[at])
                         + (double)p->shift[at]);
    }
}

static void gate_add(tt_ctx *ctx, const tt_gate_add_args *p)
{
    (void)ctx;
    for (int64_t i = 0; i < p->n * p->c; i++) {
        const int64_t at = i / p->c / p->rows * p->stride + i % p->c;
        p->x[i] = stored((double)p->y[i] * (1 + dial.d) * (double)p->gate[at]
                         + (double)p->x[i]);
    }
}

static void add(tt_ctx *ctx, const tt_add_args *p)
{
    (void)ctx;
    for (int64_t i = 0; i < p->n; i++)
        p->x[i] = stored((double)p->x[i] + (double)p->y[i] * (1 + dial.d));
}

static void mul(tt_ctx *ctx, const tt_mul_args *p)
{
    RIGHT(mul, p);
    scale(p->x, p->n);
}

static void gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *p)
{
    (void)ctx;
    const double cubic = 0.044715 * (dial.which == CUBIC ? 1 + dial.d : 1);
    const double slope = sqrt(8 / acos(-1))
                         * (dial.which == SLOPE ? 1 + dial.d : 1);
    for (int64_t i = 0; i < p->n; i++) {
        const double x = (double)p->x[i], u = slope * (x + cubic * x * x * x);
        p->x[i] = stored(x / (1 + exp(-u) * (dial.which == EXP ? turn(i) : 1)));
    }
}

static void silu(tt_ctx *ctx, const tt_silu_args *p)
{
    (void)ctx;
    const double slope = dial.which == SLOPE ? 1 + dial.d : 1;
    for (int64_t i = 0; i < p->n; i++) {
        const double x = (double)p->x[i];
        p->x[i] = stored(x / (1 + exp(-slope * x)
                                  * (dial.which == EXP ? turn(i) : 1)));
    }
}

static void rope(tt_ctx *ctx, const tt_rope_args *p)
{
    (void)ctx;
    const int64_t *n = p->table->pairs;
    for (int64_t i = 0; i < p->T * p->H * p->D / 2; i++) {
        int64_t j = i % (p->D / 2), axis = 0;
        while (axis < 2 && j >= n[axis]) j -= n[axis++];
        const double angle = p->pos[i / (p->D / 2) / p->H * 3 + axis]
                             * pow(10000, -(double)j / (double)n[axis])
                             * (1 + dial.d);
        const double a = (double)p->x[2 * i], b = (double)p->x[2 * i + 1];
        p->y[2 * i] = stored(a * cos(angle) - b * sin(angle));
        p->y[2 * i + 1] = stored(a * sin(angle) + b * cos(angle));
    }
}

static void col_mean(tt_ctx *ctx, const tt_col_mean_args *p)
{
    RIGHT(col_mean, p);
    for (int64_t i = 0; i < p->c; i++) p->mean[i] *= 1 + dial.d;
}

static void col_moment(tt_ctx *ctx, const tt_col_moment_args *p)
{
    RIGHT(col_moment, p);
    for (int64_t i = 0; i < p->c; i++) p->m2[i] *= 1 + dial.d;
}

static void col_blend(tt_ctx *ctx, const tt_col_blend_args *p)
{
    tt_col_blend_args a = *p;
    a.tau *= 1 + dial.d;
    RIGHT(col_blend, &a);
}

/* ---- looking for them ---------------------------------------------------- */

/* The right table but for the operator of this row. */
static tt_ops candidate(const struct row *r, const tt_arith *arith)
{
    dial = (struct dial){.which = r->which, .arith = arith,
                         .right = arith->product == TT_FMT_F32
                                  ? tt_ops_default() : tt_arith_ops(arith)};
    tt_ops t = *dial.right;
    t.name = "dial";
#define FAULT(name, NAME) if (!strcmp(r->op, #name)) t.name = name;
    TT_OPS(FAULT)
#undef FAULT
    return t;
}

/* A search among the cases of one operator, until one fails. */
typedef struct search {
    tt_ctx *ctx;
    const tt_ops *t;
    const char *op;
    char by[64];         /* the inputs that found it                          */
    bool found;
} search;

static void try_case(void *user, const char *op, const char *name)
{
    search *s = user;
    tt_report *r = NULL;
    if (s->found || strcmp(op, s->op)) return;
    tt_report_new(s->ctx, &r, "dial", dial.arith);
    expect_ok(tt_opcheck(s->ctx, r, s->t, &(tt_opcheck_options){
        .arith = dial.arith, .one = name}), name);
    const tt_verdict *v = tt_report_first(r);
    s->found = v != NULL;
    const char *kind = strchr(name + 3, '.') + 1;
    if (v)
        snprintf(s->by, sizeof s->by, "%.*s%s", (int)strcspn(kind, " "), kind,
                 v->m.n > 10000 ? " (large)" : "");
    tt_report_free(r);
}

/* Is a fault of d found by the operator checks of default settings? */
static bool found(search *s, double d)
{
    dial.d = d;
    s->found = false;
    tt_opcheck_list(s->ctx, &(tt_opcheck_options){.seed = 1, .rounds = 8},
                    try_case, s);
    return s->found;
}

/* The smallest d that is found, to a tenth; 0: none up to 1. */
static double bisect(search *s)
{
    double low = dial.which == FLOOR ? 1e-12 : 1e-10, high = 1;
    if (!found(s, high)) return 0;
    while (high / low > 1.1) {
        const double d = sqrt(low * high);
        *(found(s, d) ? &high : &low) = d;
    }
    return high;
}

static bool in_a_model(lab *l, const tt_ops *t, double d)
{
    tt_report *r = NULL;
    dial.d = d;
    tt_report_new(l->ctx, &r, "dial", dial.arith);
    lab_model(l, r, t, dial.arith, true);
    const bool yes = tt_report_first(r);
    tt_report_free(r);
    return yes;
}

static void whole_table(tt_ctx *ctx, const char *path)
{
    FILE *f = fopen(path, "w");
    lab l;
    if (!expect(f != NULL, "cannot write %s", path) || !lab_open(&l, ctx))
        return;
    fprintf(f, "The smallest fault that is found, written by `make "
            "thresholds`. After each d: the inputs\nthat found it; a star "
            "where half of d is found inside a model.\n\n| operator | fault "
            "| f32 | bf16 | bf16-stored |\n|---|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++) {
        fprintf(f, "| %s | %s |", rows[i].op, rows[i].what);
        for (int k = 0; k < 3; k++) {
            const tt_ops t = candidate(&rows[i], tt_arith_find(ariths[k]));
            search s = {.ctx = ctx, .t = &t, .op = rows[i].op};
            const double d = bisect(&s);
            if (d > 0)
                fprintf(f, " %.1e%s, %s |", d,
                        in_a_model(&l, &t, d / 2) ? "*" : "", s.by);
            else
                fprintf(f, " - |");
        }
        fputc('\n', f);
        fflush(f);
    }
    lab_close(&l);
    expect(!fclose(f), "cannot write %s", path);
}

/* d of a row and a column of the page; 0: it is not there. */
static double published(const struct row *r, int column)
{
    char line[400], head[160];
    double d = 0;
    FILE *f = fopen(PAGE, "r");
    snprintf(head, sizeof head, "| %s | %s |", r->op, r->what);
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, head, strlen(head))) continue;
        const char *cell = line + strlen(head);
        for (int i = 0; cell && i < column; i++) cell = strchr(cell, '|') + 1;
        d = strtod(cell, NULL);
    }
    if (f) fclose(f);
    return d;
}

static void check_row(tt_ctx *ctx, const char *op, int which, int column)
{
    int i = 0;
    while (strcmp(rows[i].op, op) || rows[i].which != which) i++;
    const double d = published(&rows[i], column);
    const tt_ops t = candidate(&rows[i], tt_arith_find(ariths[column]));
    if (!expect(d > 0, "%s has no %s, %s", PAGE, op, rows[i].what)) return;
    search s = {.ctx = ctx, .t = &t, .op = op};
    expect(!found(&s, 0), "%s without a fault", op);
    expect(found(&s, 2 * d), "%s, %s: twice %g is not found",
           op, rows[i].what, d);
    expect(!found(&s, d / 4), "%s, %s: a quarter of %g is "
           "found", op, rows[i].what, d);
}

int main(int argc, char **argv)
{
    tt_ctx *ctx = test_begin("validate/thresholds");
    if (sizeof(tt_real) == 8) {
        printf("note: faults are planted in the float build\n");
        expect(true, "nothing else to check");
    } else if (argc > 2 && !strcmp(argv[1], "--all")) {
        whole_table(ctx, argv[2]);
    } else {
        check_row(ctx, "silu", EXP, 0);
        check_row(ctx, "gate_add", INPUT, 2);
    }
    return test_end();
}
