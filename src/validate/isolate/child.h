/* child.h: the process of a backend: how it begins, and what it leaves.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_CHILD_H
#define VALIDATE_CHILD_H

#include <sys/types.h>

#include "validate/isolate/watch.h"
#include "validate/report/report.h"

/* What is done there. */
typedef struct child_of {
    tt_ctx *ctx;
    tt_report *report;
    watch *w;
    tt_isolated_fn work;
    void *user;
} child_of;

/* Can this process have such a child? Where a process cannot be copied the
 * program is started once more with the same words: this call is then where
 * the new one does its work and ends. */
bool child_possible(const child_of *k);
/* Memory that both see, for munmap; NULL with errno. */
watch_board *child_board(void);
/* Start it: *events is read for what it reports (mirror.h). */
tt_status child_start(const child_of *k, pid_t *pid, int *events);
/* The work, in the child. */
void child_work(const child_of *k);

/* End what `child`, which has ended, has started and left in its group. */
void child_end_family(pid_t child);

#endif
