/* mirror.h: what the process of a backend adds to its report goes to the
 * report of the supervisor.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both processes are the same program at the same addresses: a pointer to one
 * of its constants (the name of an operator, of a fact, an arithmetic) is good
 * in both. */
#ifndef VALIDATE_MIRROR_H
#define VALIDATE_MIRROR_H

#include "validate/isolate/watch.h"
#include "validate/report/report.h"

typedef enum mirror_kind {
    MIRROR_VERDICT, MIRROR_GROWTH, MIRROR_NOTE, MIRROR_ARITH, MIRROR_END
} mirror_kind;

/* In front of every piece. */
typedef struct mirror_frame {
    mirror_kind kind;
    int32_t size;                /* bytes that follow                         */
    const char *name;            /* of a fact; NULL: a note                   */
} mirror_frame;
enum { MIRROR_MOST = 1 << 16 };  /* bytes of a piece                          */

/* How the work ended. */
typedef struct mirror_end {
    tt_status status;
    char message[1024];
} mirror_end;

/* Do nothing where no one watches. Without a supervisor the process ends. */
void mirror_verdict(watch *w, const tt_verdict *v, const error_map *map);
void mirror_growth(watch *w, const tt_growth *g);
void mirror_text(watch *w, const char *name, const char *text);
void mirror_arith(watch *w, const tt_arith *arith);
void mirror_closing(watch *w);
void mirror_finish(watch *w, const tt_ctx *ctx);

/* One piece into the supervisor's report. False for MIRROR_END, which goes to
 * `end`. */
bool mirror_take(tt_report *r, const mirror_frame *f, const void *body,
                 mirror_end *end);

#endif
