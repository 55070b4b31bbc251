/* ledger.h: which files a run has made.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Latents tell which run made them; a y4m tells nothing, and any program writes
 * a PNG. So a list is kept beside the latents, in "NAME.files": one line for
 * every file that was put under its final name, written before it gets it. A
 * line holds
 *
 *     SHA-256, size in bytes, digest of the run
 *
 * and no name or time: a video may be renamed, moved and copied, and is still
 * known. A file that no line tells of is not ours. Of one larger than HASH_MAX
 * the SHA-256 is that of pieces. A file made in one of several ways (in a
 * class, from so many latents) has a second line, with a digest of run and
 * way. */
#ifndef CLI_LEDGER_H
#define CLI_LEDGER_H

#include "core/context.h"

enum { LEDGER_LINE = 103 };

typedef struct ledger {
    tt_ctx *ctx;
    const char *path;           /* NULL: nothing is known, and nothing kept   */
    char run[17];               /* "": of any run                             */
    char way[17];               /* of the files now made; "": there is one    */
    char *line;                 /* [n * LEDGER_LINE]                          */
    size_t n, room;
    int fd;                     /* -1: nothing was added                      */
    bool there;                 /* it was before                              */
    bool lost;                  /* it could not be written, and that was said */
    tt_arena mem;
} ledger;

/* "NAME" -> "NAME.files", in `mem`; NULL for NULL. */
const char *ledger_name(tt_ctx *ctx, tt_arena *mem, const char *base);

/* Read the list `path`; it need not be there.
 *   run     what the run is made from, in one line; NULL: lines of every run
 *           count, and none is added
 * Errors  TT_EINVAL  a file of that name is no such list, and ctx->overwrite
 *                    is not set */
tt_status ledger_open(tt_ctx *ctx, ledger *l, const char *path,
                      const char *run);

/* Is nothing lost when `path` is replaced? Nothing is there, or an empty file,
 * or no file; or it is in the list. */
bool ledger_may(ledger *l, const char *path);

/* From here to ledger_close every file that the context puts under a final name
 * gets a line, and replaces none that ledger_may refuses, but with
 * ctx->overwrite. */
void ledger_watch(ledger *l);

/* Files are made in this way from here on; NULL: in the only one. */
void ledger_set_way(ledger *l, const char *way);
/* Has the list of a run `path` as made in this way? */
bool ledger_made(const ledger *l, const char *path, const char *way);

/* Files of the list, but for those that follow, count no more. */
void ledger_forget(ledger *l);

/* Leave; the list stays, or goes. Harmless on a zeroed ledger. */
void ledger_close(ledger *l);
void ledger_remove(ledger *l);

#endif
