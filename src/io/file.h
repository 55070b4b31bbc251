/* file.h: the open checkpoint file as the readers of src/io see it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A reader gets a mapped file and fills `entry` and `count`; names, paths and
 * entries live in the file's own arena, the data stays in the mapping. */
#ifndef TT_IO_FILE_H
#define TT_IO_FILE_H

#include "io/map.h"
#include "io/io.h"

/* The true shape of a tensor that GGUF could only store flattened. */
typedef struct gguf_shape {
    const char *name;     /* stored name of the tensor                       */
    int rank;
    int64_t dim[TT_MAX_RANK];
    struct gguf_shape *next;
} gguf_shape;

/* A pair of __metadata__. */
typedef struct file_meta {
    const char *key, *value;
    struct file_meta *next;
} file_meta;

struct tt_file {
    tt_arena arena;
    io_map map;
    const char *path;     /* as given                                        */
    const char *format;
    tt_entry *entry;      /* stored order                                    */
    int64_t count;
    int64_t *by_name;     /* entry numbers sorted by name                    */
    file_meta *meta;      /* of a safetensors file                            */
    tt_file **shard;      /* of a sharded index                              */
    int64_t nshards;
    gguf_shape *orig;     /* of a GGUF file: shapes to be restored           */
    struct gguf_value *tokenizer; /* and its tokenizer                       */
};

/* A file from n bytes in memory, which stay the caller's; `path` names it in
 * messages and, for an index, its folder. For tests. */
tt_status file_open_bytes(tt_ctx *ctx, tt_file **out, const void *data,
                          size_t n, const char *path);

/* The readers. On failure the caller gives everything back. */
tt_status safetensors_read(tt_ctx *ctx, tt_file *f);
tt_status torch_read(tt_ctx *ctx, tt_file *f);
/* f->map holds the JSON text of an index; opens the shards next to it. */
tt_status index_read(tt_ctx *ctx, tt_file *f);
/* f->path is one of a set without index; opens all of it. */
tt_status parts_read(tt_ctx *ctx, tt_file *f);

/* A file that must be safetensors or a torch zip: an index never leads to
 * another index. */
tt_status file_open_shard(tt_ctx *ctx, tt_file **out, const char *path);
/* Is it called X-00001-of-00003.safetensors or so, of more than one? */
bool file_is_part(const char *path);
bool file_has_all_parts(tt_ctx *ctx, const char *path);
/* All of those, as if there were an index. */
tt_status file_open_parts(tt_ctx *ctx, tt_file **out, const char *path);

/* Refuse a folder of DCP, or a file of one. */
tt_status file_refuse_dcp(tt_ctx *ctx, const char *path);

/* Refuse a file that ends before the `whole` bytes its header speaks of. */
tt_status io_cut_off(tt_ctx *ctx, const tt_file *f, int64_t whole);

/* If the packed view lies in a mapping of f, its pages leave the resident set
 * (io_map_release). */
void file_release(const tt_file *f, const tt_tensor *t);
/* n of its elements, from `first` on, will be read soon: a disk that is asked
 * for many places at once is not waited for at each. */
void file_expect(const tt_file *f, const tt_tensor *t, int64_t first,
                 int64_t n);

/* The elements in row-major order, bytes as they are (tt_gather without a
 * change of byte order). */
void io_gather(void *dst, const tt_tensor *t);

/* Entry arrays for n flat names (npath 1), zeroed. False: recorded. */
bool file_alloc_entries(tt_ctx *ctx, tt_file *f, int64_t n);

/* "<folder of path>/<name>" in `a`; folder_of gives "." for a bare name. */
char *io_join(tt_ctx *ctx, tt_arena *a, const char *dir, const char *name);
char *io_folder_of(tt_ctx *ctx, tt_arena *a, const char *path);

#endif
