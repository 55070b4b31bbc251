/* files.h: folders and whole files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_FILES_H
#define ANALYZE_FILES_H

#include "core/context.h"

/* mkdir -p */
tt_status files_make_folder(tt_ctx *ctx, const char *path);
/* "folder/name" + ending, in `mem`. */
const char *files_join(tt_ctx *ctx, tt_arena *mem, const char *folder,
                       const char *name, const char *ending);
bool files_exist(const char *path);
tt_status files_copy(tt_ctx *ctx, const char *to, const char *from);

#endif
