/* metrics.c: how far one tensor is from another, in every usual measure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/verdict.h"

#include <float.h>
#include <math.h>
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
    double ee = 0, gg = 0, ww = 0, gw = 0;
    memset(m, 0, sizeof *m);
    m->n = n;
    for (int64_t i = 0; i < n; i++) {
        const double g = got[i], w = want[i], d = fabs(g - w);
        if (!metrics_count(m, g, w, i)) continue;
        ee += d * d, gg += g * g, ww += w * w, gw += g * w;
        m->max_ulp = fmax(m->max_ulp, d / ulp_at(w));
    }
    m->rel_l2 = ww > 0 ? sqrt(ee / ww) : ee > 0 ? INFINITY : 0;
    m->snr_db = ee > 0 ? ww > 0 ? 10 / 2.302585092994046 * tt_log(ww / ee)
                                : -INFINITY : INFINITY;
    m->cosine = gg > 0 && ww > 0 ? gw / sqrt(gg * ww)
                                  : ee == 0 && !m->broken;
}
