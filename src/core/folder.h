/* folder.h: folders whose files stand in for memory (arena.h, `folder`).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_FOLDER_H
#define CORE_FOLDER_H

#include "core/context.h"

/* Can files of `bytes` bytes be made there? `who` asks for it: an option.
 * Errors  TT_EIO  there is no such folder, it cannot be written to, or its disk
 *                 has less room */
tt_status folder_check(tt_ctx *ctx, const char *folder, int64_t bytes,
                       const char *who);

#endif
