/* report_run.c: one run as JSON for the viewer.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   label policy prompt seed seconds K S M R alpha tau
 *   frames layers slots chunks, start [chunk], count [chunk]
 *   src [chunk, layer, slot], region [chunk, layer, slot] as digits of
 *     tt_region, readable [chunk, frame] in per cent, the mean over layers
 *   motion [latent frame]      how far it is from the frame before
 *   grab [{layer, chunk, round, members, frames, mass, diversity, score, keep,
 *     margin}]                 keep: a digit per candidate
 *   edits [{layer, chunk, frame, keys, values}] each {distance, spread,
 *     channel, own, trusted (edit_part), z, ratio}: of some channels the two
 *     numbers as bytes in base64, z + 128 in 1/16, ratio in 1/32
 *   channels                   how many z and ratio have, and of how many
 *   film                       see film.c */
#include "analyze/report.h"

#include <math.h>

#include "io/jsonout.h"
#include "io/page.h"

void report_reals(FILE *f, const double *x, int64_t n, int digits)
{
    for (int64_t i = 0; i < n; i++) {
        fputs(i ? "," : "[", f);
        page_number(f, x[i], digits);
    }
    fputs(n ? "]" : "[]", f);
}

static void put_integers(FILE *f, const char *name, const int64_t *x,
                         int64_t n)
{
    fprintf(f, ",\n\"%s\": [", name);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%s%lld", i ? "," : "", (long long)x[i]);
    fputc(']', f);
}

static void put_digits(FILE *f, const char *name, const int64_t *x, int64_t n)
{
    fprintf(f, ",\n\"%s\": \"", name);
    for (int64_t i = 0; i < n; i++) fputc('0' + (int)x[i], f);
    fputc('"', f);
}

static void put_text(FILE *f, const char *name, const char *s)
{
    if (!s) return;
    fprintf(f, ", \"%s\": ", name);
    json_string(f, s);
}

static void report_run_put_number(FILE *f, const char *name, double x)
{
    fprintf(f, ", \"%s\": ", name);
    page_number(f, x, 9);
}

static void put_knob(FILE *f, const char *name, int64_t x)
{
    if (x >= 0) fprintf(f, ", \"%s\": %lld", name, (long long)x);
}

static void report_run_put_facts(FILE *f, const tt_recording *r)
{
    fputs("{\"label\": ", f);
    json_string(f, r->label);
    put_text(f, "policy", r->policy);
    put_text(f, "prompt", r->prompt);
    put_text(f, "seed", r->seed);
    if (r->seconds >= 0) report_run_put_number(f, "seconds", r->seconds);
    put_knob(f, "K", r->K);
    put_knob(f, "S", r->S);
    put_knob(f, "M", r->M);
    put_knob(f, "R", r->R);
    report_run_put_number(f, "alpha", r->alpha);
    report_run_put_number(f, "tau", r->tau);
    fprintf(f, ", \"frames\": %lld", (long long)(r->src ? r->frames : r->n));
    if (r->latents)
        fprintf(f, ", \"size\": [%lld, %lld]",
                8 * (long long)r->latents->dim[4],
                8 * (long long)r->latents->dim[3]);
}

/* ---- the cache ----------------------------------------------------------- */

static void report_run_put_cache(FILE *f, tt_ctx *ctx, const tt_recording *r)
{
    tt_arena mem = {0};
    const int64_t n = r->chunks * r->layers * r->slots;
    double *map = tt_alloc(ctx, &mem, r->chunks * r->frames, sizeof *map,
                           "a report");
    if (map) retention_map(map, r, -1);
    for (int64_t i = 0; map && i < r->chunks * r->frames; i++)
        map[i] = rint(100 * map[i]);
    fprintf(f, ", \"layers\": %lld, \"slots\": %lld, \"chunks\": %lld",
            (long long)r->layers, (long long)r->slots, (long long)r->chunks);
    put_integers(f, "start", r->start, r->chunks);
    put_integers(f, "count", r->count, r->chunks);
    put_integers(f, "src", r->src, n);
    put_digits(f, "region", r->region, n);
    fputs(",\n\"readable\": ", f);
    if (map) report_reals(f, map, r->chunks * r->frames, 3);
    tt_arena_free(&mem);
}

static void put_motion(FILE *f, tt_ctx *ctx, const tt_recording *r)
{
    tt_arena mem = {0};
    float *z = tt_alloc(ctx, &mem, 2 * r->C * r->P, sizeof *z, "a report");
    fputs(",\n\"motion\": [", f);
    for (int64_t i = 0; z && i < r->n; i++) {
        fputs(i ? "," : "", f);
        page_number(f, frame_motion(z, r, i), 6);
    }
    fputc(']', f);
    tt_arena_free(&mem);
}

/* ---- decisions ----------------------------------------------------------- */

static void report_run_put_round(FILE *f, const tt_recording *r, int64_t i)
{
    int64_t n = 0;
    const int64_t at = i * r->candidates;
    while (n < r->candidates && r->grab_candidates[at + n] >= 0) n++;
    fprintf(f, "\n{\"layer\": %lld, \"chunk\": %lld, \"round\": %lld, "
            "\"members\": %lld", (long long)r->grab_layer[i],
            (long long)r->grab_chunk[i], (long long)r->grab_sub[i],
            (long long)round_members(r, i));
    put_integers(f, "frames", r->grab_candidates + at, n);
    fputs(",\n\"mass\": ", f);
    report_reals(f, r->grab_mass + at, n, 9);
    if (r->grab_div) {
        fputs(",\n\"diversity\": ", f);
        report_reals(f, r->grab_div + at, n, 9);
    }
    fputs(",\n\"score\": ", f);
    report_reals(f, r->grab_scores + at, n, 9);
    put_digits(f, "keep", r->grab_keep + at, n);
    if (r->grab_margin) report_run_put_number(f, "margin", r->grab_margin[i]);
    fputc('}', f);
}

static void put_rounds(FILE *f, const tt_recording *r)
{
    fputs(",\n\"grab\": [", f);
    for (int64_t i = 0; i < r->rounds; i++) {
        fputs(i ? "," : "", f);
        report_run_put_round(f, r, i);
    }
    fputc(']', f);
}

/* ---- edits --------------------------------------------------------------- */

enum { SHOWN = 64, FEW = 16, MANY_ROUNDS = 600 };

typedef struct edit_file {
    FILE *f;
    int64_t n, channels;
} edit_file;

static uint8_t report_run_byte_of(double x)
{
    return (uint8_t)fmax(0, fmin(255, rint(x)));
}

/* Channels 0, step, 2 step, ... of the two numbers. */
static void put_part(FILE *f, const tt_recording *r, const frame_edit *e,
                     bool values, int64_t channels)
{
    uint8_t z[SHOWN], ratio[SHOWN];
    const edit_part p = edit_sum_up(r, e, values);
    for (int64_t i = 0; i < channels; i++) {
        const int64_t at = (values ? 2 * r->width : 0)
                         + i * r->width / channels;
        const double sd = e->trusted[at + r->width];
        z[i] = report_run_byte_of(128 + 16 * (e->own[at] - e->trusted[at])
                                  / sd);
        ratio[i] = report_run_byte_of(32 * e->own[at + r->width] / sd);
    }
    fprintf(f, ",\n\"%s\": {\"channel\": %lld", values ? "values" : "keys",
            (long long)p.channel);
    report_run_put_number(f, "distance", p.distance);
    report_run_put_number(f, "spread", p.spread);
    fputs(", \"own\": ", f);
    report_reals(f, p.own, 2, 9);
    fputs(", \"trusted\": ", f);
    report_reals(f, p.trusted, 2, 9);
    fputs(", \"z\": \"", f);
    page_base64(f, z, (size_t)channels);
    fputs("\", \"ratio\": \"", f);
    page_base64(f, ratio, (size_t)channels);
    fputs("\"}", f);
}

static void report_run_put_edit(void *user, const tt_recording *r,
                                const frame_edit *e)
{
    edit_file *o = user;
    fprintf(o->f, "%s\n{\"layer\": %lld, \"chunk\": %lld, \"frame\": %lld",
            o->n++ ? "," : "", (long long)e->layer,
            (long long)r->grab_chunk[e->round], (long long)e->frame);
    put_part(o->f, r, e, false, o->channels);
    put_part(o->f, r, e, true, o->channels);
    fputc('}', o->f);
}

static void put_edits(FILE *f, tt_ctx *ctx, const tt_recording *r)
{
    const int64_t most = r->rounds > MANY_ROUNDS ? FEW : SHOWN;
    edit_file o = {f, 0, r->width < most ? r->width : most};
    fprintf(f, ",\n\"channels\": [%lld, %lld],\n\"edits\": [",
            (long long)o.channels, (long long)r->width);
    edits_all(ctx, r, report_run_put_edit, &o);
    fputc(']', f);
}

/* Curves of more runs cannot be told apart. */
enum { MOVING = 16 };

void report_run(FILE *f, tt_ctx *ctx, const tt_recording *r, int runs)
{
    report_run_put_facts(f, r);
    if (r->src) report_run_put_cache(f, ctx, r);
    if (r->latents && runs <= MOVING && !ctx->status) put_motion(f, ctx, r);
    if (r->rounds) put_rounds(f, r);
    if (r->features && r->rounds && !ctx->status) put_edits(f, ctx, r);
    if (!ctx->status)
        report_film(f, ctx, r, runs == 1 ? 128 : runs < 5 ? 96 : 64);
    fputc('}', f);
}
