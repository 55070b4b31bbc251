/* picks.c: the picks of frames that stand in two files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Next    selection.c, the rule that they are held to */
#include "validate/files/dump.h"

#include <stdio.h>
#include <string.h>

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

/* Candidates of a round; 0: there are none. */
static int64_t picks_row_of(const tt_entry *e)
{
    return e->t.rank ? e->t.dim[e->t.rank - 1] : 1;
}

bool selection_find(dump_run *d, tt_file *file, const tt_entry *e,
                    const double *got, const double *want, other_pick *other)
{
    char score[224];
    const int64_t n = tt_tensor_count(&e->t), P = picks_row_of(e);
    const int64_t end = d->of[RUN_EMULATED].row;   /* of a trace */
    tt_file *oracle = history_file(d, RUN_ORACLE, e);
    if (P < 1 || !selection_score_name(score, sizeof score, e->name))
        return false;
    const double *ours = scores_of(d, oracle ? oracle : d->f.want, score, n);
    const double *theirs = scores_of(d, file, score, n);
    const double *emul = scores_of(d, history_file(d, RUN_EMULATED, e), score,
                                   n);
    for (int64_t at = 0; at + P <= n; at += P) {
        const bool late = end >= 0 && at / P > end;
        const selection s = {
            got + at, want + at, ours ? ours + at : NULL,
            emul && !late ? emul + at : NULL, theirs ? theirs + at : NULL, P};
        other->row = at / P;
        other->what = selection_compare(&s, d->limits, &other->ratio,
                                        other->why, sizeof other->why);
        if (other->what != PICK_SAME) return true;
    }
    return false;
}

bool selection_own(dump_run *d, const tt_entry *e, const double *got)
{
    char score[224];
    const int64_t n = tt_tensor_count(&e->t), P = picks_row_of(e);
    if (!selection_score_name(score, sizeof score, e->name)) return true;
    const double *theirs = scores_of(d, d->f.got, score, n);
    for (int64_t at = 0; theirs && P > 0 && at + P <= n; at += P)
        if (!selection_best(got + at, theirs + at, P)) return false;
    return true;
}
