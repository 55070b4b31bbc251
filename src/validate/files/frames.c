/* frames.c: a round of TetherCache and the tokens of its frames, from one dump.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a frame's keys are those of the last pass of its chunk, or what a
 *         round edited them to. From them, and the queries of the pass, the
 *         whole round follows (src/cache/grab.c, tame.c): it is done again
 *         in double, right and with one change or two.
 * Next    named_grab.c, named_tame.c */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/files/frames.h"

enum { ROUNDS = 16 };                     /* of a chunk, at most              */

/* ---- the tokens of a frame ----------------------------------------------- */

void frames_statistic(double *out, const double *rows, int64_t L, int64_t width,
                      frame_form form)
{
    if (form == FRAME_ROWS)
        memcpy(out, rows, (size_t)(L * width) * sizeof *rows);
    for (int64_t i = 0; form != FRAME_ROWS && i < width; i++) {
        double mean = 0, size = 0, squares = 0, top = -INFINITY;
        for (int64_t r = 0; r < L; r++) {
            const double x = rows[r * width + i];
            mean += x / (double)L;
            size += fabs(x) / (double)L;
            top = fmax(top, x);
        }
        for (int64_t r = 0; r < L; r++)
            squares += pow(rows[r * width + i] - mean, 2);
        out[i] = form == FRAME_MAX ? top : form == FRAME_SIZE ? size
                 : form == FRAME_SQUARES ? squares : mean;
    }
}

/* Rows [L, width] of frame `at` of the F of a tensor, in scratch; NULL: no such
 * shape. */
static const double *rows_in(const named *t, const tt_entry *e, int64_t at,
                             int64_t F, int64_t width, int64_t *L)
{
    const int64_t n = e ? tt_tensor_count(&e->t) : 0;
    *L = n / F / width;
    const double *x = *L > 0 && n == *L * F * width ? named_read(t, e, n)
                                                    : NULL;
    return x ? x + at * *L * width : NULL;
}

const double *frames_rows(const named *t, char what, int64_t frame,
                          int64_t width, int64_t *L)
{
    char pass[64];
    int64_t at, F;
    if (!named_pass_of(t, frame, pass, sizeof pass, &at, &F)) return NULL;
    return rows_in(t, named_find(t, "%sblock.%" PRId64 "/self_attn.%c", pass,
                                 t->at.block, what), at, F, width, L);
}

/* What TAME left of a frame in round `admit` of a chunk; NULL: it was no
 * candidate there. */
static const double *edited_in(const named *t, int64_t chunk, int64_t admit,
                               char what, int64_t frame, int64_t width,
                               int64_t *L)
{
    char round[128];
    const tt_entry *e = NULL;
    for (int64_t s = 0; !e && s < 64; s++) {
        snprintf(round, sizeof round, "chunk.%" PRId64 "/step.%" PRId64
                 "/block.%" PRId64 "/admit.%" PRId64 "/", chunk, s, t->at.block,
                 admit);
        e = named_find(t, "%sgrab.candidates", round);
    }
    const double *x = named_read(t, e, -1);
    for (int64_t i = 0; x && i < tt_tensor_count(&e->t); i++)
        if ((int64_t)x[i] == frame)
            return rows_in(t, named_find(t, "%stame.%c/c.%" PRId64, round, what,
                                         i), 0, 1, width, L);
    return NULL;
}

/* The same as TAME left them in a round before this one, else as they were. */
static const double *edited_rows(const named *t, char what, int64_t frame,
                                 int64_t width, int64_t *L)
{
    for (int64_t c = t->at.chunk; c >= 0; c--)
        for (int64_t a = c == t->at.chunk ? t->at.admit : ROUNDS; a > 0; a--) {
            const double *x = edited_in(t, c, a - 1, what, frame, width, L);
            if (x) return x;
        }
    return frames_rows(t, what, frame, width, L);
}

double *frames_of(const named *t, char what, int64_t frame, bool edited,
                  int64_t width, frame_form form, int64_t tokens)
{
    tt_ctx *ctx = t->d->ctx;
    int64_t L;
    double *out = named_capacity(t, form == FRAME_ROWS ? tokens * width
                                                       : width);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const double *rows = edited ? edited_rows(t, what, frame, width, &L)
                                : frames_rows(t, what, frame, width, &L);
    const bool right = rows && (L == tokens || form != FRAME_ROWS);
    if (right && out) frames_statistic(out, rows, L, width, form);
    tt_arena_reset(&ctx->scratch, mark);
    return right ? out : NULL;
}

/* ---- a round ------------------------------------------------------------- */

bool frames_round(named *t, round_of *r)
{
    const char *scope = strstr(t->name, "grab.");
    if (!scope) scope = strstr(t->name, "tame.");
    const int n = scope ? (int)(scope - t->name) : 0;
    const tt_entry *e = named_find(t, "%.*sgrab.candidates", n, t->name);
    *r = (round_of){.P = e ? tt_tensor_count(&e->t) : 0};
    t->state = r;
    r->index = named_read(t, e, r->P);
    const double *keep = named_read(t, named_find(t, "%.*sgrab.keep", n,
                                                  t->name), r->P);
    for (int64_t i = 0; keep && i < r->P; i++) r->M += keep[i] != 0;
    for (int64_t i = 0; r->index && i < r->P; i++)
        if (!(r->index[i] >= 0 && r->index[i] < 1e6)) return false;
    return r->index && keep && r->P > 0 && r->P <= CANDIDATES_MOST
           && t->at.admit >= 0;
}
