/* mirror.c: see mirror.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/isolate/mirror.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void mirror_put(const watch *w, const void *from, size_t n)
{
    const char *at = from;
    while (n > 0) {
        const ssize_t done = write(w->events, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) _exit(1);         /* no one reads any more */
        at += done;
        n -= (size_t)done;
    }
}

static void send(const watch *w, mirror_kind kind, const char *name,
                 const void *body, size_t n)
{
    const mirror_frame f = {.kind = kind, .size = (int32_t)n, .name = name};
    mirror_put(w, &f, sizeof f);
    mirror_put(w, body, n);
}

static size_t map_bytes(const error_map *m)
{
    return m ? sizeof *m + (size_t)(m->rows * m->cols) * sizeof *m->cell : 0;
}

void mirror_verdict(watch *w, const tt_verdict *v, const error_map *map)
{
    if (!w) return;
    const mirror_frame f = {.kind = MIRROR_VERDICT,
                            .size = (int32_t)(sizeof *v + map_bytes(map))};
    mirror_put(w, &f, sizeof f);
    mirror_put(w, v, sizeof *v);
    if (map) mirror_put(w, map, map_bytes(map));
}

void mirror_growth(watch *w, const tt_growth *g)
{
    if (w) send(w, MIRROR_GROWTH, NULL, g, sizeof *g);
}

void mirror_text(watch *w, const char *name, const char *text)
{
    if (w) send(w, MIRROR_NOTE, name, text, strlen(text) + 1);
}

void mirror_arith(watch *w, const tt_arith *arith)
{
    if (!w) return;
    watch_end(w);                        /* the backend is open */
    send(w, MIRROR_ARITH, NULL, &arith, sizeof arith);
}

void mirror_closing(watch *w)
{
    if (!w) return;
    watch_enter(w, PART_CLOSE, 0);
    watch_place(w, "the backend");
    watch_begin(w, OP_KINDS);
}

void mirror_finish(watch *w, const tt_ctx *ctx)
{
    if (atomic_load(&w->board->calls) % 2) watch_end(w);
    mirror_end end = {.status = ctx->status};
    memcpy(end.message, ctx->message, sizeof end.message);
    send(w, MIRROR_END, NULL, &end, sizeof end);
}

/* ---- the supervisor's side ----------------------------------------------- */

static void take_verdict(tt_report *r, const char *body, size_t size)
{
    tt_verdict v;
    error_map *map = NULL;
    const size_t left = size - sizeof v;
    memcpy(&v, body, sizeof v);
    if (left > 0) map = tt_alloc(r->ctx, &r->arena, (int64_t)left, 1, "a map");
    if (map) memcpy(map, body + sizeof v, left);
    report_put(r, &v, map);
}

bool mirror_take(tt_report *r, const mirror_frame *f, const void *body,
                 mirror_end *end)
{
    tt_growth g;
    const tt_arith *arith;
    switch (f->kind) {
    case MIRROR_VERDICT: take_verdict(r, body, (size_t)f->size); break;
    case MIRROR_GROWTH:
        memcpy(&g, body, sizeof g);
        tt_report_grow(r, &g);
        break;
    case MIRROR_NOTE:
        tt_report_fact(r, f->name, "%s", (const char *)body);
        break;
    case MIRROR_ARITH:
        memcpy(&arith, body, sizeof arith);
        tt_report_declare(r, arith);
        break;
    case MIRROR_END: memcpy(end, body, sizeof *end); return false;
    }
    return true;
}
