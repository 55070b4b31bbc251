/* selection.c: did another program keep the same frames, and if not, was it
 * entitled to?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   GRAB keeps the M best of P scores. A program may swap two frames
 *         whose scores differ by less than TT_SLACK e, where e is the largest
 *         error of the declared arithmetic over the row, at least half a unit
 *         of its format at the largest score. */
#include "validate/dump.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double score_error(const selection *s, const tt_arith *arith)
{
    double e = 0, top = 0;
    for (int64_t c = 0; c < s->P; c++) {
        if (fabs(s->score[c]) > top) top = fabs(s->score[c]);
        if (s->emul && fabs(s->emul[c] - s->score[c]) > e)
            e = fabs(s->emul[c] - s->score[c]);
    }
    const tt_format f = s->emul ? arith->stored : arith->product;
    const double half = tt_format_epsilon(f) / 2 * top;
    return e > half ? e : half;
}

pick selection_compare(const selection *s, const tt_arith *arith,
                       double *margin, double *allowed)
{
    bool same = true, finite = s->score != NULL;
    int64_t kept[2] = {0, 0};
    *margin = *allowed = 0;
    for (int64_t c = 0; c < s->P; c++) {
        same = same && s->got[c] == s->want[c];
        finite = finite && isfinite(s->score[c])
                 && (s->got[c] == 0 || s->got[c] == 1);
        kept[0] += s->got[c] != 0;
        kept[1] += s->want[c] != 0;
    }
    if (same) return PICK_SAME;
    if (!arith || !finite || kept[0] != kept[1]) return PICK_WRONG;
    *allowed = TT_SLACK * score_error(s, arith);
    for (int64_t c = 0; c < s->P; c++)
        for (int64_t d = 0; d < s->P; d++)
            if (s->got[c] && !s->want[c] && s->want[d] && !s->got[d]) {
                const double gap = s->score[d] - s->score[c];
                if (gap > *margin) *margin = gap;
            }
    return *margin <= *allowed ? PICK_TIE : PICK_WRONG;
}

bool selection_score_name(char *out, size_t size, const char *name)
{
    const size_t n = strlen(name);
    const char *keep = n >= 9 ? name + n - 9 : "";
    if (!strcmp(keep, "grab.keep"))
        snprintf(out, size, "%.*sgrab.score", (int)(n - 9), name);
    else if (!strcmp(keep, "grab_keep"))
        snprintf(out, size, "%.*sgrab_scores", (int)(n - 9), name);
    else
        return false;
    return true;
}

/* The scores [n] of a file, NULL when it has none that fit. */
static const double *scores_of(dump_run *d, tt_file *f, const char *name,
                               int64_t n)
{
    const tt_entry *e = f ? tt_file_find(f, name) : NULL;
    if (!e || !tt_dtype_is_real(e->t.dtype) || tt_tensor_count(&e->t) != n)
        return NULL;
    return tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
}

/* The chunk of a round of a trace, -1 when the file does not say. */
static int64_t chunk_of_round(dump_run *d, int64_t round)
{
    const tt_entry *e = tt_file_find(d->f.want, "grab_chunk");
    if (!e || e->t.rank != 1 || round >= e->t.dim[0]) return -1;
    const double *x = tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
    return x ? (int64_t)x[round] : -1;
}

void selection_judge(dump_run *d, tt_verdict *v, const char *name,
                     const double *got, const double *want, int64_t n)
{
    char score[sizeof v->path];
    const int64_t P = v->rank > 0 ? v->dim[v->rank - 1] : n;
    if (!selection_score_name(score, sizeof score, name) || P < 1) return;
    const double *ours = scores_of(d, d->f.oracle ? d->f.oracle : d->f.want,
                                   score, n);
    const double *emul = scores_of(d, d->f.emul, score, n);
    for (int64_t row = 0; row < n / P; row++) {
        double margin, allowed;
        const selection s = {
            got + row * P, want + row * P, ours ? ours + row * P : NULL,
            emul ? emul + row * P : NULL, P};
        const pick p = selection_compare(&s, d->opt->arith, &margin, &allowed);
        if (p == PICK_SAME) continue;
        v->outcome = p == PICK_TIE ? TT_TIE : TT_MISMATCH;
        v->ratio = allowed > 0 ? margin / allowed : INFINITY;
        v->m.worst = row * P;
        snprintf(v->where, sizeof v->where, "[%lld]", (long long)row);
        snprintf(v->hint, sizeof v->hint, "other frames were kept in round "
                 "%lld: scores %.3g apart, the arithmetic allows %.3g",
                 (long long)row, margin, allowed);
        if (p == PICK_TIE && d->rounds >= 0) {
            d->tie_round = row;
            d->tie_chunk = chunk_of_round(d, row);
        }
        return; /* what comes after it is not comparable */
    }
}
