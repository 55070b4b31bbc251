/* folder.h: which file of a model folder holds which model.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_FOLDER_H
#define TT_IO_FOLDER_H

#include "io/io.h"

bool folder_is(const char *path);

/* The weight file of `kind` in folder `dir`: first the names under which the
 * model is published, else the only file whose content fits. *path lives in
 * `a`. The failure lists what was looked for. */
tt_status folder_find(tt_ctx *ctx, tt_arena *a, char **path, const char *dir,
                      tt_model_kind kind);

/* True when the content of the file is the weights of such a model. */
bool weights_fit(const tt_file *f, tt_model_kind kind);

#endif
