/* torchzip.h: the directory of a PyTorch zip file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_TORCHZIP_H
#define TT_IO_TORCHZIP_H

#include "io/file.h"

typedef struct zip_entry {
    const char *name;     /* in the mapping, not terminated                   */
    size_t nname;
    const uint8_t *data;
    int64_t size;
    uint32_t crc;         /* as the directory says; checked by verify.c alone */
    int64_t begin, end;   /* bytes of the file: local header to end of data   */
} zip_entry;

typedef struct torchzip {
    zip_entry *entry;     /* sorted by name                                   */
    int64_t count;
    const char *root;     /* "archive/": the one top folder, with its slash   */
    size_t nroot;
    const zip_entry *pickle;
} torchzip;

/* Read and check the whole directory of f->map; memory in `a`. */
tt_status torchzip_read(tt_ctx *ctx, torchzip *z, tt_arena *a,
                        const tt_file *f);

/* The entry "<root>data/<key>", NULL when there is none. */
const zip_entry *torchzip_storage(const torchzip *z, const char *key,
                                  size_t n);

#endif
