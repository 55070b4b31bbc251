/* metrics.c: how far one tensor is from another, in every usual measure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/verdict.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tether/mathfn.h"

/* The last place of float32 at x. */
static double ulp_at(double x)
{
    int e;
    if (fabs(x) < FLT_MIN) return 0x1p-149;
    frexp(x, &e);
    return ldexp(1, e - 24);
}

static bool metrics_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

double value_distance(double a, double b)
{
    const double d = fabs(a - b);
    if (metrics_same(a, b)) return 0;
    return isfinite(d) ? d : INFINITY;
}

int value_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Quantiles of the errors: sorted when few, of every s-th element else. */
static void quantiles(tt_metrics *m, const double *got, const double *want,
                      int64_t n)
{
    enum { SAMPLE = 1 << 16 };
    const int64_t step = (n + SAMPLE - 1) / SAMPLE, most = n / step + 1;
    double *e = malloc((size_t)most * sizeof *e);
    int64_t k = 0;
    for (int64_t i = 0; e && i < n; i += step) {
        const double d = fabs(got[i] - want[i]);
        if (isfinite(d)) e[k++] = d;
    }
    if (k) {
        qsort(e, (size_t)k, sizeof *e, value_order);
        m->q50 = e[k / 2];
        m->q90 = e[k * 9 / 10];
        m->q99 = e[k * 99 / 100];
        m->q999 = e[k * 999 / 1000];
    }
    free(e);
}

/* bin 0: equal; bin i: at most 2^(i-2) ulp */
static int ulp_bin(double u)
{
    int i = 0;
    for (double top = 0.5; u > 0 && i < TT_ULP_BINS - 1; top *= 2) {
        i++;
        if (u <= top) break;
    }
    return i;
}

/* What counts at element i whether it is finite or not: false when one side
 * is not. */
static bool metrics_count(tt_metrics *m, double g, double w, int64_t i)
{
    const double d = fabs(g - w);
    m->nan += isnan(g);
    m->inf += isinf(g);
    m->denormal += g != 0 && fabs(g) < FLT_MIN;
    m->differ += !metrics_same(g, w);
    if (!isfinite(g) || !isfinite(w)) {
        if (!metrics_same(g, w) && !m->broken++) m->worst = i;
        return false;
    }
    if (d > m->max_abs && !m->broken) m->worst = i;
    m->max_abs = fmax(m->max_abs, d);
    m->top = fmax(m->top, fabs(w));
    return true;
}

void tt_metrics_measure(tt_metrics *m, const double *got, const double *want,
                        int64_t n)
{
    double ee = 0, gg = 0, ww = 0, gw = 0, sum = 0, ulps = 0;
    int64_t k = 0;
    memset(m, 0, sizeof *m);
    m->n = n;
    for (int64_t i = 0; i < n; i++) {
        const double g = got[i], w = want[i], d = fabs(g - w);
        if (!metrics_count(m, g, w, i)) continue;
        ee += d * d, gg += g * g, ww += w * w, gw += g * w, sum += g - w;
        const double u = d / ulp_at(w);
        m->max_ulp = fmax(m->max_ulp, u);
        ulps += u;
        m->ulp[ulp_bin(u)]++;
        k++;
    }
    if (!k) return;
    m->rms = sqrt(ee / (double)k);
    m->rel_l2 = ww > 0 ? sqrt(ee / ww) : ee > 0 ? INFINITY : 0;
    m->snr_db = ee > 0 ? ww > 0 ? 10 / 2.302585092994046 * tt_log(ww / ee)
                                : -INFINITY : INFINITY;
    m->cosine = gg > 0 && ww > 0 ? gw / sqrt(gg * ww) : ee > 0 ? 0 : 1;
    m->bias = sum / (double)k;
    m->mean_ulp = ulps / (double)k;
    quantiles(m, got, want, n);
}
