/* io.h: what the modules use of tether/io.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_IO_H
#define TT_IO_IO_H

#include "core/context.h"
#include "tether/io.h"

/* ---- a file as stored --------------------------------------------------- */

/* Bytes of the mapping(s). */
int64_t tt_file_bytes(const tt_file *f);

/* Read a whole tensor widened to tt_host. [count] values into `a`. */
tt_host *tt_read_real(tt_ctx *ctx, tt_arena *a, const tt_tensor *t);
/* The same widened to double, whatever tt_real is: nothing of an F64 or a
 * 32-bit integer is lost, 64-bit integers round beyond 2^53. */
double *tt_read_double(tt_ctx *ctx, tt_arena *a, const tt_tensor *t);

/* ---- weights for a model ------------------------------------------------ */

/* A line of such a list; *list moves on to the next one. The text after the
 * last colon is the strength, unless a file has the whole name.
 * Errors  TT_EINVAL  it is no number */
typedef struct tt_lora {
    char path[4096];
    double strength;      /* 1 where none was given                           */
} tt_lora;
tt_status tt_lora_next(tt_ctx *ctx, const char **list, tt_lora *out);
bool tt_lora_describe(tt_ctx *ctx, char *buf, size_t n, const tt_file *f);
/* Is this what it should be? Opening looks at names; this refuses what has the
 * right ones and cannot work. What loads a model asks.
 * Errors  TT_EUNSUPPORTED  a relative of the model (LoRA, FastWan, ...), or one
 *                          of the two experts of Wan2.2 A14B
 *         TT_EFORMAT       its download did not end (FILE.aria2, .part,
 *                          .incomplete ... next to it), or a matrix, norm or
 *                          modulation was never written: rows of zeros */
tt_status tt_weights_check(tt_ctx *ctx, tt_weights *w);
const char *tt_weights_path(const tt_weights *w);

/* The values of `t` are not needed for a while: if they lie in a mapped file
 * of `w` (never copies), their pages leave the resident set. They stay valid;
 * the next use reads them from the page cache. Callers that come back soon
 * should ask tt_weights_large first. */
void tt_weights_release(const tt_weights *w, const tt_tensor *t);
/* True when the files are so large (over 1 GB) that they should not stay
 * resident as a whole, if each value is needed once. */
bool tt_weights_large(const tt_weights *w);
/* True when they are large and this machine has not the memory to keep them
 * resident: what is free, or could be freed, is less than their size. Asks the
 * system at every call; where it does not say, large is too large. */
bool tt_weights_crowded(const tt_weights *w);

/* TT_OK where each of the LoRAs of w had keys for it.
 * Errors  TT_ESHAPE  one has none: it would change nothing */
tt_status tt_weights_lora_used(const tt_weights *w);

/* The hub's cache has models as models--OWNER--NAME, where refs/main says which
 * folder in `snapshots` is meant: that one, in buf; of another folder dir. */
const char *tt_folder_snapshot(char buf[4096], const char *dir);
/* The checkpoint files directly in folder `dir`, sorted by name: *.safetensors
 * (not single shards), *.safetensors.index.json, *.pt, *.pth, *.bin, *.gguf.
 * Paths in `a`. */
tt_status tt_folder_files(tt_ctx *ctx, tt_arena *a, char ***path, int64_t *n,
                          const char *dir);

/* ---- binding ------------------------------------------------------------ */

typedef struct tt_bind {
    tt_ctx *ctx;
    tt_weights *w;
    tt_arena *arena;       /* where small parameters are widened to           */
    const char *what;      /* "transformer", for the message                  */
    int missing, misshapen, bound;
    char first[512];       /* the first few problems                          */
    uint8_t *taken;        /* one flag per tensor of w                        */
} tt_bind;

void tt_bind_begin(tt_bind *b, tt_ctx *ctx, tt_weights *w, tt_arena *arena,
                   const char *what);
/* A large matrix, left in its stored type in the mapping. On a problem the
 * view is empty and the problem is recorded in `b`. Shape follows. */
tt_tensor tt_bind_tensor(tt_bind *b, const char *name, int rank,
                         const int64_t *dim);
/* A small parameter widened into the arena. NULL on a problem. A [n,1,1,1]
 * gamma is asked for with its stored shape. */
tt_real *tt_bind_real(tt_bind *b, const char *name, int rank,
                      const int64_t *dim);
/* Report: TT_OK, or TT_ESHAPE with one sentence that counts and names the
 * first few missing, misshapen and (strict) unexpected tensors. Tensors whose
 * name starts with one of the NULL-terminated `ignore` prefixes never count. */
tt_status tt_bind_end(tt_bind *b, const char *const *ignore);

/* ---- writing ------------------------------------------------------------ */

/* Leave room for a header of up to nbytes in front, before the first tensor:
 * finishing then needs no second copy of the data. Whatever the header does
 * not fill is spaces; one that is longer costs that copy after all. */
tt_status tt_st_reserve(tt_st_writer *w, int64_t nbytes);
/* A tensor whose dim[...] values follow in order, in pieces of any number of
 * bytes as they are to be stored (little-endian), through tt_st_write. */
tt_status tt_st_open_tensor(tt_st_writer *w, const char *name, tt_dtype dtype,
                            int rank, const int64_t *dim);
tt_status tt_st_write(tt_st_writer *w, const void *data, size_t nbytes);
/* Append rows to the tensor added last: grows dim[0] of [n, ...], or dim[1]
 * of [1, n, ...] when `axis` is 1. */
tt_status tt_st_append(tt_st_writer *w, int axis, int64_t rows,
                       const void *data);
/* Push everything appended so far to the disk. */
tt_status tt_st_flush(tt_st_writer *w);

/* ---- conversion --------------------------------------------------------- */

typedef struct tt_convert_options {
    int kind;         /* a tt_model_kind; -1: found by content                */
    tt_dtype dtype;   /* TT_F32, TT_BF16, TT_F16 for all floating-point
                         values; TT_NONE: as stored (quantised and scaled
                         8-bit values become F32)                             */
    bool diffusers;   /* Diffusers' (Hugging Face's) names instead of Wan's   */
    int ema;          /* as in tt_weights_options                             */
    const char *lora; /* as there: merged values become F32 where dtype is
                         TT_NONE                                              */
    void (*chosen)(void *user, const char *what, const char *path,
                   const char *origin);     /* what was found; may be NULL    */
    void (*progress)(void *user, const char *phase, int64_t done,
                     int64_t total);        /* in values; may be NULL         */
    void *user;
} tt_convert_options;

/* Write the model in file or folder `in` to the safetensors file `out`; a file
 * that is no known model keeps its names. Streams; the result is read again
 * and compared, and removed if it differs.
 * Errors  those of opening and writing; TT_EUNSUPPORTED when a value does not
 *         fit float16 or unknown names should be renamed. */
tt_status tt_convert(tt_ctx *ctx, const char *out, const char *in,
                     const tt_convert_options *opt);

/* ---- digests ------------------------------------------------------------ */

typedef struct tt_sha256 {
    uint32_t h[8];
    uint64_t nbytes;
    uint8_t block[64]; /* the first nbytes % 64 are waiting */
} tt_sha256;

void tt_sha256_init(tt_sha256 *s);
void tt_sha256_add(tt_sha256 *s, const void *data, size_t n);
/* Lower-case hex, 64 digits and a NUL. `s` must be initialised again. */
void tt_sha256_hex(tt_sha256 *s, char hex[65]);
/* Of the row-major values of a tensor, little-endian (gathered if strided). */
tt_status tt_tensor_digest(tt_ctx *ctx, char hex[65], const tt_tensor *t);
/* Of the bytes of a file; of a sharded set: of the index and then the shards
 * in the order of their names. Reads everything. */
void tt_file_digest(char hex[65], const tt_file *f);

/* A table of SHA-256, one line "class case tensor sha256" each, as in
 * ref_data/bits.txt. The words are of printable ASCII and hold no spaces;
 * # begins a comment. */
typedef struct tt_manifest_row {
    char *cls, *name, *tensor, *sha;
    int64_t at;              /* order of appearance                           */
    int64_t line;            /* of the file; 0: was not read                  */
    bool seen;               /* for the caller                                */
} tt_manifest_row;
typedef struct tt_manifest {
    tt_manifest_row *row;
    int64_t n, capacity;
} tt_manifest;
/* Adds the rows of a file; a file that does not exist has none.
 * Errors  TT_EFORMAT names the line (a row of another form, or listed twice),
 *         or says that the file has more than 64 MB; TT_EIO. */
tt_status tt_manifest_read(tt_ctx *ctx, tt_manifest *l, const char *path);
/* Sorted by class and case, tensors of a case in their order, after `comment`
 * (lines that begin with #). */
tt_status tt_manifest_write(tt_ctx *ctx, tt_manifest *l, const char *path,
                            const char *comment);
tt_status tt_manifest_add(tt_ctx *ctx, tt_manifest *l, const char *cls,
                          const char *name, const char *tensor,
                          const char *sha);
tt_manifest_row *tt_manifest_find(tt_manifest *l, const char *cls,
                                  const char *name, const char *tensor);
void tt_manifest_free(tt_manifest *l);
/* The word that manifests keep for a class of a file: "bf16" for "amx". Others
 * stay, so that "sm90", a first version, is not "sm90.2". */
const char *tt_manifest_class(const char *cls);

/* ---- checksums ----------------------------------------------------------- */

/* Read every byte again, from the disk, and compare the checksums the format
 * carries: those of the entries of a PyTorch zip. One whose entries all carry
 * the same number was written without; safetensors and GGUF have none. A file
 * from the hub of Hugging Face is compared with its SHA-256, where the hub's
 * programs left that: as the name of a file of their cache, or in the folder
 * .cache next to it. Then no matrix ("*.weight") may hold 4096 zeros.
 *   progress  in bytes; may be NULL
 * Errors    TT_EFORMAT names the first entry that differs, the digests, or the
 *           matrix; TT_EIO a place that cannot be read; TT_EINTR. */
typedef struct tt_verify_report {
    int64_t bytes;    /* read                                                 */
    int64_t agree;    /* checksums that were right                            */
    int64_t without;  /* entries or files that carry none                     */
} tt_verify_report;
tt_status tt_file_verify(tt_ctx *ctx, tt_verify_report *out, const tt_file *f,
                         void (*progress)(void *user, int64_t done,
                                          int64_t total), void *user);
/* The same of a file of any kind, as far as the hub's SHA-256 goes; without one
 * nothing is read, and `without` is 1. */
tt_status tt_digest_verify(tt_ctx *ctx, tt_verify_report *out,
                           const char *path);

#endif
