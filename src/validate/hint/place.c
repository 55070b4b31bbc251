/* place.c: where the wrong elements are, and what stands there.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For mistakes that no imitation explains: the axis along which the wrong
 * elements are confined most is named, with the indices; then whether zeros, a
 * constant, NaN, or values of another row stand there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/hint/hint.h"

/* Indices along one axis that hold wrong elements. */
typedef struct confined {
    int axis;
    int64_t b, c;            /* extent, elements of one index                 */
    int64_t count, first, last, step;  /* step 0: no pattern                  */
} confined;

static confined confine(const hint *h, int axis, bool *hit)
{
    confined f = {.axis = axis, .b = h->dim[axis], .c = 1, .first = -1};
    for (int i = axis + 1; i < h->rank; i++) f.c *= h->dim[i];
    memset(hit, 0, (size_t)f.b * sizeof *hit);
    for (int64_t i = 0; i < h->n; i++)
        if (h->wrong[i]) hit[i / f.c % f.b] = true;
    for (int64_t j = 0; j < f.b; j++) {
        if (!hit[j]) continue;
        if (f.first < 0) f.first = j;
        f.last = j;
        f.count++;
    }
    if (f.count < 2) return f;
    f.step = (f.last - f.first) / (f.count - 1);
    for (int64_t j = f.first, k = 0; j <= f.last; j++, k++)
        if (hit[j] != (k % f.step == 0)) {
            f.step = 0;
            break;
        }
    return f;
}

/* What stands along an axis: of a call by its operator, of a tensor of a file
 * by its name. */
const char *hint_axis(const hint *h, int axis, bool many, char *buf,
                      size_t size)
{
    static const char *const picture[] = {"picture row", "picture column",
                                          "channel"};
    static const char *const latents[] = {"frame", "channel", "latent row",
                                          "latent column"};
    static const char *const heads[] = {"token", "head", "channel"};
    const char *name = h->name ? h->name : "", *one = NULL;
    const bool conv = (h->q && h->q->kind == OP_CONV)
                      || !strncmp(name, "vae", 3);
    const bool token = h->q || strstr(name, "_attn");
    if (strstr(name, "grab.")) one = "candidate";
    else if (strstr(name, "tame.") && h->rank == 2) one = heads[1 + axis];
    else if (h->rank == 4 && !h->q && *name) one = latents[axis];
    else if (h->rank == 3 && (conv || token))
        one = conv ? picture[axis] : heads[axis];
    else if (axis == h->rank - 1) one = "channel";
    else if (h->rank == 2) one = "row";
    if (one) snprintf(buf, size, many ? "%ss" : "%s", one);
    else snprintf(buf, size, many ? "axis-%d slices" : "axis-%d slice", axis);
    return buf;
}

/* The axis whose wrong indices are the smallest part of its extent. */
static confined narrowest(const hint *h)
{
    confined best = {.axis = -1};
    int64_t widest = 1;
    for (int i = 0; i < h->rank; i++)
        if (h->dim[i] > widest) widest = h->dim[i];
    bool *hit = tt_alloc(h->ctx, &h->ctx->scratch, widest, sizeof *hit,
                         "hint");
    for (int i = 0; hit && i < h->rank; i++) {
        confined f = confine(h, i, hit);
        if (f.count == f.b) continue;
        if (!f.step && 2 * f.count > f.b) continue;   /* says nothing */
        if (best.axis < 0 || f.count * best.b < best.count * f.b) best = f;
    }
    return best;
}

static void place_describe(const hint *h, const confined *f, char *out,
                           size_t size)
{
    char buf[32];
    const long long first = f->first, last = f->last, b = f->b;
    const char *one = hint_axis(h, f->axis, false, buf, sizeof buf);
    char buf2[32];
    const char *many = hint_axis(h, f->axis, true, buf2, sizeof buf2);
    if (f->count == 1)
        snprintf(out, size, "only %s %lld of %lld", one, first, b);
    else if (f->step == 1 && last == b - 1)
        snprintf(out, size, "only the last %lld %s of %lld",
                 (long long)f->count, many, b);
    else if (f->step == 1)
        snprintf(out, size, "only %s %lld to %lld of %lld", many, first, last,
                 b);
    else if (f->step > 1 && f->count > 2)
        snprintf(out, size, "only every %lldth of the %s from %lld on",
                 (long long)f->step, many, first);
    else
        snprintf(out, size, "only %lld %s of %lld (%lld .. %lld)",
                 (long long)f->count, many, b, first, last);
}

void hint_where(const hint *h, char *out, size_t size)
{
    out[0] = 0;
    if (h->nwrong * 10 > h->n * 9) return;
    const confined f = narrowest(h);
    if (f.axis >= 0) place_describe(h, &f, out, size);
    else snprintf(out, size, "only %lld of %lld elements",
                  (long long)h->nwrong, (long long)h->n);
}

/* The index of the axis whose right values stand at index j, or -1. */
static int64_t donor(const hint *h, const confined *f, int64_t j)
{
    for (int64_t k = 0; k < f->b; k++) {
        if (k == j) continue;
        bool same = true;
        int64_t seen = 0;
        for (int64_t o = 0; o < h->n && same; o += f->b * f->c)
            for (int64_t e = 0; e < f->c && same; e++) {
                const double g = h->got[o + j * f->c + e];
                const double w = h->want[o + k * f->c + e];
                same = value_distance(g, w)
                       <= fmax(4 * h->earned, 1e-6 * h->top);
                seen++;
            }
        if (same && seen > 1) return k;
    }
    return -1;
}

/* Values of another index of the axis: a swap, or a copy. */
static bool place_moved(const hint *h, const confined *f, char *out,
                        size_t size)
{
    char buf[32];
    if (f->axis < 0 || f->count > 4 || f->b > 65536) return false;
    const int64_t k = donor(h, f, f->first);
    if (k < 0) return false;
    if (f->count == 2 && k == f->last && donor(h, f, f->last) == f->first) {
        snprintf(out, size, "%s %lld and %lld are exchanged",
                 hint_axis(h, f->axis, true, buf, sizeof buf),
                 (long long)f->first, (long long)f->last);
        return true;
    }
    snprintf(out, size, "%s %lld holds the values of %lld",
             hint_axis(h, f->axis, false, buf, sizeof buf),
             (long long)f->first, (long long)k);
    return true;
}

/* What the wrong elements hold; of more than a few values.c says it. */
static void content(const hint *h, char *out, size_t size)
{
    int64_t nan = 0, inf = 0, zero = 0;
    for (int64_t i = 0; i < h->n; i++) {
        if (!h->wrong[i]) continue;
        nan += isnan(h->got[i]) != 0;
        inf += isinf(h->got[i]) != 0;
        zero += h->got[i] == 0;
    }
    out[0] = 0;
    if (nan) snprintf(out, size, "%lld NaN", (long long)nan);
    else if (inf) snprintf(out, size, "%lld infinite", (long long)inf);
    else if (zero == h->nwrong)
        snprintf(out, size, "zero (not computed?)");
}

/* "[3, 0, 17]" of the first wrong element. */
static void first_wrong(const hint *h, char *out, size_t size)
{
    int64_t at = 0, index[TT_MAX_RANK];
    while (at < h->n - 1 && !h->wrong[at]) at++;
    for (int i = h->rank - 1; i >= 0; i--) {
        index[i] = at % h->dim[i];
        at /= h->dim[i];
    }
    tt_shape_string(out, size, h->rank, index);
}

bool hint_place(hint *h, char *out, size_t size)
{
    char what[96], where[96];
    if (h->nwrong == 0) return false;
    content(h, what, sizeof what);
    if (h->nwrong == 1 && h->n > 1) {
        first_wrong(h, where, sizeof where);
        snprintf(out, size, "one element alone, %s%s%s", where,
                 what[0] ? ": " : "", what);
        return true;
    }
    const confined f = narrowest(h);
    if (place_moved(h, &f, out, size)) return true;
    hint_where(h, where, sizeof where);
    if (!where[0] && !what[0]) return false;
    /* A handful of elements that follow no pattern says nothing. */
    if (!what[0] && f.axis < 0) return false;
    snprintf(out, size, "%s%s%s", where, where[0] && what[0] ? ": " : "", what);
    return true;
}

bool hint_noise(const hint *h, char *out, size_t size)
{
    double err = 0, want = 0, cross = 0;
    int64_t up = 0, n = 0;
    for (int64_t i = 0; i < h->n; i++) {
        const double e = h->got[i] - h->want[i];
        if (!isfinite(e) || e == 0) continue;
        err += e * e;
        want += h->want[i] * h->want[i];
        cross += e * h->want[i];
        up += e > 0;
        n++;
    }
    if (n < 16 || want == 0) return false;
    /* rounding errs to both sides and does not follow the value */
    const double bits = -0.5 * log2(err / want) - 1.8;
    const bool even = fabs((double)up - (double)n / 2) < 2.5 * sqrt((double)n);
    /* of a file anything may lie between: few bits are another mistake */
    if (bits < (h->q ? 3 : 5.5) || !even) return false;
    if (fabs(cross) > 0.4 * sqrt(err * want)) return false;
    if (h->q || bits + 1 < 8.5) /* few functions differ by as much as bf16 */
        snprintf(out, size, "low precision: error like rounding to %.0f bits "
                 "(f32 has 24, f16 and tf32 11, bf16 8) somewhere inside",
                 bits + 1);
    else             /* after a product all small errors look alike */
        snprintf(out, size, "a small error without a pattern, 2^-%.0f of the "
                 "values: a function in another form or low precision "
                 "somewhere inside", bits + 1);
    return true;
}
