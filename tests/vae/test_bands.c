/* test_bands.c: pictures decoded in bands by the ranks of a team.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: at ranks that divide nothing, at more ranks than rows of a latent
 * frame and at unequal shares, rank 0 hands out the pictures of one rank, bit
 * by bit, and every rank's history is its lines of one rank's history: a frame
 * that becomes history with wrong lines next to it shows two frames later. The
 * latents are as many as that takes. Taps are whole, in the order of one rank.
 * Who stops stops all. The small decoder runs on rank 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/folder.h"
#include "tests/harness.h"
#include "tests/run_case/vae_case.h"
#include "team/team.h"

enum { Z = 16, LATENTS = 4, ROWS = 6, COLUMNS = 3, SLOTS = 32, MOST = 9 };
enum { PICTURES = 1 + 4 * (LATENTS - 1) };

static tt_ctx *ctx;
static tt_vae *vae, *tiny;
static tt_real latents[LATENTS * Z * ROWS * COLUMNS];
static const double *shares;      /* NULL: equal                              */
static bool tapped;

/* What one rank has seen. Threads of a team cannot call expect(). */
typedef struct outcome {
    int64_t frames;
    uint64_t taps;                 /* digest, rank 0 alone                    */
    int slots, wrong;              /* compared with those of one rank         */
    tt_status status;
    char said[256];
    tt_real rgb[PICTURES * 3 * 64 * ROWS * COLUMNS];
} outcome;

typedef struct trial {
    const tt_vae *v;
    int64_t h;
    tt_vae_decoder *one;           /* that of one rank, for its history       */
    int64_t stop;                  /* the receiver gives up after so many     */
} trial;

static outcome alone, ranks[MOST];

static tt_status keep(void *user, const tt_real *rgb, int64_t h, int64_t w)
{
    outcome *x = user;
    const int64_t n = 3 * h * w;
    memcpy(x->rgb + x->frames++ * n, rgb, (size_t)n * sizeof *rgb);
    return TT_OK;
}

static tt_status refuse(void *user, const tt_real *rgb, int64_t h, int64_t w)
{
    keep(user, rgb, h, w);
    return ((outcome *)user)->frames < 3 ? TT_OK : TT_EIO;
}

static void add_bytes(uint64_t *sum, const void *data, size_t n)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < n; i++)
        *sum = (*sum ^ byte[i]) * 1099511628211u;
}

static void look_at_tap(void *user, const char *path, tt_dtype dtype, int rank,
                        const int64_t *dim, const void *data)
{
    size_t n = tt_dtype_size(dtype);
    for (int i = 0; i < rank; i++) n *= (size_t)dim[i];
    add_bytes(user, path, strlen(path));
    add_bytes(user, dim, (size_t)rank * sizeof *dim);
    add_bytes(user, data, n);
}

static void no_tap(void *user, const char *path, tt_dtype dtype, int rank,
                   const int64_t *dim, const void *data)
{
    (void)user, (void)path, (void)dtype, (void)rank, (void)dim, (void)data;
}

/* ---- one rank ------------------------------------------------------------ */

/* Frames of a slot that are not ours of the same slot of one rank. */
static int wrong_in_slot(tt_ctx *c, const trial *t, const tt_vae_decoder *d,
                         int i)
{
    const tt_real *ours[2], *all[2];
    int64_t dim[3], whole[3];
    const int n = tt_vae_decoder_slot(d, i, ours, dim);
    if (n != tt_vae_decoder_slot(t->one, i, all, whole)) return 1;
    const tt_band b = tt_team_band(c, t->h, whole[0] / t->h);
    const int64_t halves = tt_vae_class(t->v) == TT_CLASS_F32 ? 1 : 2;
    const int64_t width = dim[1] * dim[2] / halves, count = dim[0] * width;
    int wrong = dim[0] != b.lines || dim[1] != whole[1] || dim[2] != whole[2];
    for (int k = 0; k < n && !wrong && count; k++)
        wrong = memcmp(tt_get(c, ours[k], count),
                       tt_get(c, all[k] + b.first * width, count),
                       (size_t)count * sizeof **ours) != 0;
    return wrong;
}

/* Decodes all latents; the decoder stays open. */
static tt_vae_decoder *decode(tt_ctx *c, outcome *x, const trial *t)
{
    const int64_t n = Z * t->h * COLUMNS;
    tt_vae_decoder *d = NULL;
    x->frames = x->slots = x->wrong = 0;
    x->taps = 14695981039346656037u;
    if (tapped) {
        c->tap = tt_team_rank(c) ? no_tap : look_at_tap;
        c->tap_user = &x->taps;
    }
    tt_vae_decoder_open(c, &d, t->v, t->h, COLUMNS);
    for (int64_t i = 0; i < LATENTS && !c->status; i++)
        tt_vae_decode_next(c, d, latents + i * n, t->stop ? refuse : keep, x);
    c->tap = NULL;
    x->status = c->status;
    snprintf(x->said, sizeof x->said, "%s", tt_message(c));
    return d;
}

static void decode_rank(void *user, tt_ctx *c)
{
    const trial *t = user;
    outcome *x = &ranks[tt_team_rank(c)];
    if (shares) tt_team_share(c, shares, tt_team_size(c));
    tt_vae_decoder *d = decode(c, x, t);
    for (; t->one && !c->status && x->slots < SLOTS; x->slots++)
        x->wrong += wrong_in_slot(c, t, d, x->slots);
    tt_vae_decoder_close(d);
}

/* ---- whole decodes ------------------------------------------------------- */

static void check_ranks(trial *t, int size)
{
    const size_t pixels = (size_t)(3 * 64 * t->h * COLUMNS);
    expect_ok(tt_team_threads(ctx, size, decode_rank, t), "a team");
    expect(ranks[0].frames == alone.frames
           && !memcmp(ranks[0].rgb, alone.rgb, (size_t)alone.frames * pixels
                                               * sizeof *alone.rgb),
           "%lld rows on %d ranks: pictures", (long long)t->h, size);
    expect(ranks[0].taps == alone.taps, "%lld rows on %d ranks: taps",
           (long long)t->h, size);
    for (int r = 0; r < size; r++) {
        expect(r == 0 || ranks[r].frames == 0, "rank %d has pictures", r);
        expect(!t->one || (ranks[r].slots == SLOTS && ranks[r].wrong == 0),
               "%lld rows: history of rank %d of %d", (long long)t->h, r,
               size);
    }
}

/* `inside`: a folder whose files hold what the ranks remember; NULL: none. */
static void check_in(const char *inside, tt_vae *v, int64_t h, const int *sizes)
{
    const int64_t frames = v == tiny ? 4 * LATENTS - 3 : PICTURES;
    trial t = {.v = v, .h = h};
    tt_vae_decoder *one = decode(ctx, &alone, &t);
    expect_ok(ctx->status, "one rank");
    expect(alone.frames == frames, "frames");
    if (v == vae) t.one = one;
    if (inside) tt_vae_use_folder(ctx, v, inside);
    for (; *sizes; sizes++) check_ranks(&t, *sizes);
    if (inside) tt_vae_use_folder(ctx, v, NULL);
    tt_vae_decoder_close(one);
}

static void check(tt_vae *v, int64_t h, const int *sizes)
{
    check_in(NULL, v, h, sizes);
}

/* Each rank has files of its own. */
static void check_files(const int *sizes)
{
    if (ctx->device || !folder_make()) return;
    check_in(folder, vae, 5, sizes);
    folder_remove_empty();
}

/* ---- failures ------------------------------------------------------------ */

static void check_stop(void)
{
    trial t = {.v = vae, .h = 4, .stop = 3};
    expect(tt_team_threads(ctx, 3, decode_rank, &t) == TT_EIO
           && !strcmp(tt_message(ctx), "rank 0: the receiver of decoded "
                                       "frames gave up"),
           "\"%s\"", tt_message(ctx));
    tt_clear(ctx);
    expect(ranks[0].frames == 3, "%lld frames", (long long)ranks[0].frames);
    for (int r = 1; r < 3; r++)
        expect(ranks[r].status == TT_EIO && !strncmp(ranks[r].said, "rank 0: ",
                                                     8),
               "rank %d: \"%s\"", r, ranks[r].said);
}

/* ---- models -------------------------------------------------------------- */

static void load(void)
{
    tt_weights *w = NULL;
    if (!expect_ok(tt_weights_open(ctx, &w,
                                   ref_path("vae_full_a/weights.safetensors"),
                                   TT_MODEL_VAE, NULL), "weights")
        || !expect_ok(tt_vae_load(ctx, &vae, w), "VAE"))
        exit(1);
    for (int i = 0; i < LATENTS * Z * ROWS * COLUMNS; i++)
        latents[i] = (tt_real)(i * 7919 % 997) / 400 - (tt_real)1.2;
}

static void load_tiny(void)
{
    const char *const without[] = {"encoder.", NULL};
    tt_weights *w = vae_made_weights(ctx, ref_path("vae_taehv"), 1, without);
    if (!w || !expect_ok(tt_vae_load_tiny(ctx, &tiny, w), "small VAE")) exit(1);
}

int main(void)
{
    static const int few[] = {1, 2, 3, 5, 6, 0}, more[] = {4, 7, 9, 0};
    static const int odd[] = {2, 3, 5, 9, 0}, three[] = {3, 0};
    static const double uneven[] = {4, 1, 3, 1000, 1, 1, 9, 2, 2};
    ctx = test_begin("vae/bands");
    load();
    check(vae, ROWS, few);
    check(vae, 5, more);
    check(vae, 1, three);
    shares = uneven;
    check(vae, 5, odd);
    shares = NULL;
    tapped = true;
    check(vae, 5, three);
    tapped = false;
    check_files(three);
    check_stop();
    if (sizeof(tt_real) == 4) {
        expect_ok(tt_vae_use_class(ctx, vae, TT_CLASS_VDP), "a class");
        check(vae, 5, odd); /* histories of bf16 numbers */
    }
    load_tiny();
    check(tiny, 1, three);
    tt_vae_close(vae);
    tt_vae_close(tiny);
    return test_end();
}
