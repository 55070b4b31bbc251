/* gguf.h: the reader of GGUF files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_GGUF_H
#define TT_IO_GGUF_H

#include "io/file.h"

/* Fill f from its mapping, which begins with "GGUF". */
tt_status gguf_read(tt_ctx *ctx, tt_file *f);

#endif
