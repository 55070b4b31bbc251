/* bench_peaks.c: what the machine does at most, as measured in this run.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/bench/bench.h"

/* The instructions of products, from BENCH_FMA on. */
static const struct {
    const char *key, *name;
    double (*run)(tt_ctx *ctx, int64_t n);
} product[BENCH_READ] = {
    {"fma", "multiply-adds", tt_machine_fma},
    {"vdp", "VDPBF16PS", tt_machine_vdp},
    {"amx", "TDPBF16PS", tt_machine_amx},
};

const char *bench_key(bench_limit k)
{
    return product[k].key;
}

bench_limit bench_top(tt_class cls, const double *peak)
{
    const bench_limit own = cls == TT_CLASS_VDP ? BENCH_VDP
                            : cls == TT_CLASS_AMX ? BENCH_AMX : BENCH_FMA;
    return peak[own] > 0 ? own : BENCH_FMA;
}

double bench_stream_bytes(tt_stream kind)
{
    const double arrays[] = {2, 3, 2, 1};
    return arrays[kind] * sizeof(tt_real);
}

static tt_real *bench_peaks_values(tt_ctx *ctx, uint32_t seed)
{
    tt_real *x = tt_scratch(ctx, BENCH_FORGET);
    if (x) bench_fill(x, BENCH_FORGET, seed);
    return x;
}

static double one_run(tt_ctx *ctx, const bench_settings *s, bench_limit kind,
                      tt_real *x, tt_real *y)
{
    const int64_t n = s->quick ? 2000000 : 20000000;
    if (kind < BENCH_READ) return product[kind].run(ctx, n);
    const tt_stream as = kind == BENCH_READ ? TT_STREAM_READ : TT_STREAM_COPY;
    tt_machine_stream(ctx, as, x, y, BENCH_FORGET);
    return bench_stream_bytes(as) * (double)BENCH_FORGET;
}

/* The best of some runs. */
void bench_find_peaks(tt_ctx *ctx, const bench_settings *s,
                      double peak[BENCH_LIMITS])
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *x = bench_peaks_values(ctx, 4), *y = bench_peaks_values(ctx, 5);
    for (bench_limit k = BENCH_FMA; k < BENCH_LIMITS; k++)
        for (int r = 0; r < 10 && !tt_check_interrupt(ctx); r++) {
            double start = bench_now(s), did = one_run(ctx, s, k, x, y);
            double rate = did / (bench_now(s) - start);
            peak[k] = rate > peak[k] ? rate : peak[k];
        }
    tt_arena_reset(&ctx->scratch, mark);
}

/* What is kept up for a second (0.05 with --quick): CPUs clock the loops of
 * milliseconds that a peak is found by higher than passes. */
void bench_find_kept(tt_ctx *ctx, const bench_settings *s,
                     double kept[BENCH_LIMITS])
{
    for (bench_limit k = BENCH_FMA; k < BENCH_READ; k++) {
        const double start = bench_now(s), least = s->quick ? 0.05 : 1;
        double one, did = 0, took = 0;
        do {
            one = one_run(ctx, s, k, NULL, NULL);
            did += one;
            took = bench_now(s) - start;
        } while (one > 0 && took < least && !tt_check_interrupt(ctx));
        kept[k] = took > 0 ? did / took : 0;
    }
}

static void json_peak(json_out *j, const tt_ctx *ctx, const char *name,
                      const char *key, double rate)
{
    if (!j || rate <= 0) return;
    json_open(j, NULL, '{');
    json_str(j, "operator", name);
    json_int(j, "threads", ctx->nthreads);
    json_real(j, key, rate * 1e-9);
    json_close(j, '}');
}

/* Rows "fma_peak" or "fma_kept_up", and so on. */
static void json_products(json_out *j, const tt_ctx *ctx, const char *what,
                          const double *rate)
{
    char name[32];
    for (bench_limit k = BENCH_FMA; k < BENCH_READ; k++) {
        snprintf(name, sizeof name, "%s_%s", product[k].key, what);
        json_peak(j, ctx, name, "gflops", rate[k]);
    }
}

static void print_others(const double *rate)
{
    for (bench_limit k = BENCH_VDP; k < BENCH_READ; k++)
        if (rate[k] > 0)
            printf(", %.1f of %s", rate[k] * 1e-9, product[k].name);
}

void bench_print_peaks(const tt_ctx *ctx, const double *peak)
{
    printf("peak with %d thread%s: %.1f GF/s of multiply-adds", ctx->nthreads,
           ctx->nthreads > 1 ? "s" : "", peak[BENCH_FMA] * 1e-9);
    print_others(peak);
    printf("; memory %.1f GB/s read, %.1f copied (both ways)\n",
           peak[BENCH_READ] * 1e-9, peak[BENCH_COPY] * 1e-9);
}

void bench_print_kept(const double *kept)
{
    printf("kept up after the passes: %.1f GF/s of multiply-adds",
           kept[BENCH_FMA] * 1e-9);
    print_others(kept);
    printf("\n");
}

void bench_log_kept(const tt_ctx *ctx, const double *kept, json_out *j)
{
    json_products(j, ctx, "kept_up", kept);
}

void bench_log_peaks(const tt_ctx *ctx, const double *peak, json_out *j)
{
    json_products(j, ctx, "peak", peak);
    json_peak(j, ctx, "memory_read", "gbytes_per_s", peak[BENCH_READ]);
    json_peak(j, ctx, "memory_copy", "gbytes_per_s", peak[BENCH_COPY]);
}
