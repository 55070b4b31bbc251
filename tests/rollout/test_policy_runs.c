/* test_policy_runs.c: properties of whole rollouts under every cache policy.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties: all policies are one until they first evict; policies that are
 * described as each other's special case give each other's bits; neither
 * threads nor an interruption change a bit; scenes change what comes after
 * them and nothing else; a CausVid clip begins with the end of the one
 * before. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/rollout/tiny.h"
#include "vae/vae.h"

static tt_rollout_options evicting(const char *name)
{
    return evicting_for(name, FRAMES, 3);
}

static size_t all_bytes(const tt_rollout_options *o)
{
    return (size_t)((o->initial_frames + o->latents) * o->rollouts * SIZE)
           * sizeof(tt_real);
}

static const char *state_path(void)
{
    static char path[600];
    tmp_path(path, sizeof path, "policy");
    return path;
}

static void check_same_start(tt_ctx *ctx, const char *name,
                             const tt_real *full)
{
    const tt_rollout_options o = evicting(name);
    const int64_t K = o.policy.K < 0 ? FRAMES : o.policy.K;
    tt_real *got = whole(ctx, &o);
    expect_bits(name, full, got, (size_t)(K * SIZE) * sizeof *full);
    if (K < FRAMES)
        expect(memcmp(full + K * SIZE, got + K * SIZE, SIZE * sizeof *full),
               "%s: and not longer", name);
    free(got);
}

static void check_threads(tt_ctx *ctx, const char *name)
{
    const tt_rollout_options o = evicting(name);
    const int threads = ctx->nthreads;
    ctx->nthreads = 1;
    tt_real *one = whole(ctx, &o);
    ctx->nthreads = 3;
    tt_real *three = whole(ctx, &o);
    ctx->nthreads = threads;
    expect_bits(name, one, three, all_bytes(&o));
    free(one), free(three);
}

static void check_resume(tt_ctx *ctx, const tt_rollout_options *o,
                         int64_t chunks)
{
    const char *name = o->policy.name;
    tt_real *want = whole(ctx, o), *got = calloc(1, all_bytes(o));
    tt_rollout *r = start(ctx, o);
    const int64_t n = go(ctx, r, got, chunks);
    expect_ok(tt_rollout_save(ctx, r, state_path()), "save");
    tt_rollout_close(r);

    r = start(ctx, o);
    expect_ok(tt_rollout_restore(ctx, r, state_path()), "restore");
    expect(tt_rollout_frames_done(r) == n, "%s: frames done", name);
    go(ctx, r, got + n * SIZE, 100);
    tt_rollout_close(r);
    unlink(state_path());
    expect_bits(name, want, got, all_bytes(o));

    r = start(ctx, o);
    const tt_status s = tt_rollout_replay(ctx, r, want, n);
    if (tt_cache_class(tt_rollout_cache(r))->flags & TT_KEEPS_NOISY) {
        expect_status(s, TT_EUNSUPPORTED, "a replay is refused");
    } else if (expect_ok(s, "replay")) {
        memset(got, 0, all_bytes(o));
        memcpy(got, want, (size_t)(n * SIZE) * sizeof *got);
        go(ctx, r, got + n * SIZE, 100);
        expect_bits(name, want, got, all_bytes(o));
    }
    tt_rollout_close(r);
    free(want), free(got);
}

/* The same with keys and values in files, which no device has. */
static void check_files(tt_ctx *ctx, tt_rollout_options o, const tt_real *plain)
{
    tt_rollout *r;
    o.kv_dir = folder;
    if (ctx->device) {
        expect_status(tt_rollout_open(ctx, &r, model, prompt, &o),
                      TT_EUNSUPPORTED, "files for a device");
        return;
    }
    tt_real *files = whole(ctx, &o);
    expect_bits("keys and values in files", plain, files, all_bytes(&o));
    check_resume(ctx, &o, 3);
    free(files);
    expect(!rmdir(folder) && !mkdir(folder, 0700), "nothing is left there");
}

/* The same with keys that stay rotated, also after a state that was loaded.  */
static void check_kept(tt_ctx *ctx, const char *name)
{
    tt_rollout_options o = evicting(name);
    tt_real *plain = whole(ctx, &o);
    check_files(ctx, o, plain);
    o.keep_keys = true;
    tt_real *kept = whole(ctx, &o);
    expect_bits(name, plain, kept, all_bytes(&o));
    check_resume(ctx, &o, 3);
    free(plain), free(kept);
}

/* In a class that rounds, slots of bf16 numbers change nothing, nor where a
 * state or frames computed anew are among them; a state says which it holds. */
static void check_half_slots(tt_ctx *ctx, tt_rollout_options o, tt_class cls)
{
    const tt_ops *before = ctx->ops, *ops = tt_ops_class(before, cls);
    const bool moves = tt_policy_find(o.policy.name)->flags & TT_ONLY_MOVES;
    if (!ops) return;
    ctx->ops = ops;
    tt_real *plain = whole(ctx, &o), *half[2];
    tt_rollout *r = start(ctx, &o);
    go(ctx, r, plain, 2);
    expect_ok(tt_rollout_save(ctx, r, state_path()), "save");
    tt_rollout_close(r);
    o.bf16_kv = true;
    for (int keep = 0; keep < 2; keep++) {
        o.keep_keys = keep;
        half[keep] = whole(ctx, &o);
        expect_bits(o.policy.name, plain, half[keep], all_bytes(&o));
    }
    r = start(ctx, &o);
    expect(tt_cache_geometry(tt_rollout_cache(r))->bf16 == moves, "%s: bf16",
           o.policy.name);
    expect_status(tt_rollout_restore(ctx, r, state_path()),
                  moves ? TT_EINVAL : TT_OK, "a state of floats");
    tt_rollout_close(r);
    check_resume(ctx, &o, 3);
    free(plain), free(half[0]), free(half[1]);
    ctx->ops = before;
}

/* One policy is another's special case. */
static void check_equal(tt_ctx *ctx, const char *what, tt_rollout_options a,
                        tt_rollout_options b)
{
    tt_real *x = whole(ctx, &a), *y = whole(ctx, &b);
    expect_bits(what, x, y, all_bytes(&a));
    free(x), free(y);
}

static tt_rollout_options eviction(int64_t K, int64_t S)
{
    tt_rollout_options o = options("memrope", K, S);
    tt_policy_put(&o.policy, "memrope-method", 1);
    return o;
}

static tt_rollout_options preset(tt_ctx *ctx, const char *name)
{
    tt_rollout_options o = options("tether", 9, 2);
    expect_ok(tt_policy_apply_preset(ctx, &o.policy, name), name);
    return o;
}

static void check_special_cases(tt_ctx *ctx)
{
    check_equal(ctx, "infinity with one sink is eviction, K 6",
                options("infinity", 6, 1), eviction(6, 1));
    check_equal(ctx, "infinity with one sink is eviction, K 9",
                options("infinity", 9, 1), eviction(9, 1));
    check_equal(ctx, "recency only is eviction without sink",
                preset(ctx, "recency-only"), eviction(9, 0));
    check_equal(ctx, "sink and recent is eviction", preset(ctx, "sink-recent"),
                eviction(9, 2));
    tt_rollout_options o = preset(ctx, "grab-only");
    tt_rollout_options p = options("tether", 9, 2);
    tt_policy_put(&p.policy, "tau", 0);
    check_equal(ctx, "grab only", o, p);
    o = options("causvid-rolling", 9, 0);
    check_equal(ctx, "rolling is fifo", o, options("fifo", 9, 0));
    o = options("causvid", FRAMES, 0);
    p = options("full", -1, 0);
    check_equal(ctx, "one clip is full", o, p);

    /* Nothing is averaged where everything fits. */
    o = options("memrope", FRAMES, 1);
    check_equal(ctx, "memrope with room", o, p);
    o = options("deep-forcing", FRAMES, 2);
    check_equal(ctx, "deep-forcing with room", o, p);
    /* A limit no one reaches is none. */
    o = evicting("deep-forcing");
    tt_policy_put(&o.policy, "max-reuse", 0);
    p = o;
    tt_policy_put(&p.policy, "max-reuse", 1000);
    check_equal(ctx, "no reuse limit", o, p);
}

/* ... and options that must change something do. */
static void check_different(tt_ctx *ctx)
{
    const tt_rollout_options base = evicting("deep-forcing");
    tt_rollout_options o = base;
    tt_real *x = whole(ctx, &base);
    for (int i = 0; i < 3; i++) {
        o = base;
        if (i == 0) tt_policy_put(&o.policy, "fusion", 1);
        if (i == 1) tt_policy_put(&o.policy, "unify", true);
        if (i == 2) tt_policy_put(&o.policy, "max-reuse", 1);
        tt_real *y = whole(ctx, &o);
        expect(memcmp(x, y, all_bytes(&o)) != 0, "deep-forcing option %d", i);
        free(y);
    }
    free(x);
}

/* ---- scenes -------------------------------------------------------------- */

static tt_prompt *second;

static void with_scenes(tt_rollout_options *o, const tt_scene *scenes, int n,
                        const tt_prompt *const *prompts)
{
    o->scenes = scenes;
    o->nscenes = n;
    o->prompts = prompts;
    o->nprompts = 2;
}

static void check_scenes(tt_ctx *ctx, const char *name)
{
    const tt_prompt *const prompts[] = { prompt, second };
    const tt_scene same[] = { { 0, 0, false } };
    const tt_scene two[] = { { 0, 0, false }, { 4, 1, false } };
    const tt_rollout_options plain = evicting(name);
    const size_t boundary = (size_t)(4 * 3 * SIZE) * sizeof(tt_real);
    tt_rollout_options o = plain;
    with_scenes(&o, same, 1, prompts);
    check_equal(ctx, name, plain, o);

    with_scenes(&o, two, 2, prompts);
    tt_real *x = whole(ctx, &plain), *y = whole(ctx, &o);
    expect_bits(name, x, y, boundary);
    expect(memcmp((char *)x + boundary, (char *)y + boundary,
                  SIZE * sizeof *x) != 0, "%s: the prompt changed", name);
    free(x), free(y);
    check_resume(ctx, &o, 3);
    check_resume(ctx, &o, 4);
    check_resume(ctx, &o, 6);
    check_half_slots(ctx, o, TT_CLASS_VDP);
}

/* A flush forgets even when the prompt stays; a cut is one more change, for
 * infinity alone. */
static void check_flush_and_cut(tt_ctx *ctx)
{
    const tt_prompt *const prompts[] = { prompt, second };
    const tt_scene flush[] = { { 0, 0, false }, { 4, 0, false } };
    const tt_scene cut[] = { { 0, 0, false }, { 4, 0, true } };
    tt_rollout_options o = evicting("infinity");
    o.policy.K = 9;              /* at 6 a flush keeps what rolling keeps */
    tt_real *plain = whole(ctx, &o);
    with_scenes(&o, flush, 2, prompts);
    tt_real *flushed = whole(ctx, &o);
    with_scenes(&o, cut, 2, prompts);
    tt_real *cut_too = whole(ctx, &o);
    check_resume(ctx, &o, 5);
    const size_t at = 4 * 3 * SIZE, one = SIZE * sizeof *plain;
    expect(memcmp(plain + at, flushed + at, one) != 0, "a flush forgets");
    expect(memcmp(flushed + at, cut_too + at, one) != 0, "a cut jumps");
    tt_policy_put(&o.policy, "cut-at", 60);
    tt_real *elsewhere = whole(ctx, &o);
    expect(memcmp(elsewhere + at, cut_too + at, one) != 0, "somewhere else");
    free(plain), free(flushed), free(cut_too), free(elsewhere);

    o = evicting("fifo");
    tt_rollout_options p = o;
    with_scenes(&p, flush, 2, prompts);
    check_equal(ctx, "fifo does not flush", o, p);
}

static void check_scene_options(tt_ctx *ctx)
{
    const tt_prompt *const prompts[] = { prompt, second };
    const struct {
        tt_scene s[2];
        const char *word;
    } bad[] = {
        { { { 1, 0, false }, { 2, 1, false } }, "chunk 0" },
        { { { 0, 0, false }, { 0, 1, false } }, "scene 2" },
        { { { 0, 0, false }, { 3, 2, false } }, "prompt 2 of 2" },
        { { { 0, -1, false }, { 3, 1, false } }, "scene 1" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tt_rollout_options o = evicting("fifo");
        tt_rollout *r;
        with_scenes(&o, bad[i].s, 2, prompts);
        const tt_status s = tt_rollout_open(ctx, &r, model, prompt, &o);
        expect(strstr(tt_message(ctx), bad[i].word) != NULL, "\"%s\"",
               tt_message(ctx));
        expect_status(s, TT_EINVAL, "scenes");
        expect_status(tt_rollout_check(ctx, model, &o), TT_EINVAL, "checked");
    }
    /* A saved state belongs to its scenes. */
    const tt_scene two[] = { { 0, 0, false }, { 4, 1, false } };
    tt_rollout_options o = evicting("fifo"), p = o;
    static tt_real buf[FRAMES * SIZE];
    with_scenes(&o, two, 2, prompts);
    tt_rollout *r = start(ctx, &o);
    go(ctx, r, buf, 2);
    expect_ok(tt_rollout_save(ctx, r, state_path()), "save");
    tt_rollout_close(r);
    r = start(ctx, &p);
    expect_status(tt_rollout_restore(ctx, r, state_path()), TT_EINVAL,
                  "other scenes");
    tt_rollout_close(r);
    unlink(state_path());
}

/* ---- restarts ------------------------------------------------------------ */

static tt_real *random_frames(int64_t n, uint32_t frame)
{
    float words[SIZE];
    tt_real *x = calloc((size_t)n * SIZE, sizeof *x);
    for (int64_t f = 0; f < n; f++) {
        tt_noise_frame(words, SIZE, 3, 0, frame + (uint32_t)f, 0);
        for (int i = 0; i < SIZE; i++) x[f * SIZE + i] = words[i];
    }
    return x;
}

/* From files: the noise of given frames is never looked at, start_frame is. */
static void check_restart_inputs(tt_ctx *ctx)
{
    tt_rollout_options o = evicting("causvid");
    const int64_t denoised = CLIP + 2 * (CLIP - 3);
    tt_real *noise = random_frames(3 * CLIP, 0);
    tt_real *re = random_frames(denoised * 3, 100);
    tt_real *first = random_frames(2, 900);
    o.noise.noise = noise;
    o.noise.renoise = re;
    o.start_frame = first;
    o.latent_restart = false;
    tt_real *x = whole(ctx, &o);
    for (int r = 0; r < 2; r++) {
        const tt_real *next = x + (r + 1) * CLIP * SIZE;
        expect_bits("the start frame", next, first + r * SIZE,
                    SIZE * sizeof *x);
        expect_bits("the other frames", next + SIZE, next - 2 * SIZE,
                    2 * SIZE * sizeof *x);
    }
    for (int i = 0; i < 3 * SIZE; i++) noise[CLIP * SIZE + i] = 77;
    tt_real *y = whole(ctx, &o);
    expect_bits("unused noise", x, y, all_bytes(&o));
    noise[(CLIP + 3) * SIZE] += 1;
    free(y);
    y = whole(ctx, &o);
    expect_bits("before", x, y, (CLIP + 3) * SIZE * sizeof *x);
    expect(memcmp(x + (CLIP + 3) * SIZE, y + (CLIP + 3) * SIZE,
                  SIZE * sizeof *x) != 0, "used noise");
    /* The last value of renoise belongs to the last chunk. */
    noise[(CLIP + 3) * SIZE] -= 1;
    re[denoised * 3 * SIZE - 1] += 1;
    free(y);
    y = whole(ctx, &o);
    expect_bits("but the last chunk", x, y,
                (size_t)((3 * CLIP - 3) * SIZE) * sizeof *x);
    expect(memcmp(x, y, all_bytes(&o)) != 0, "the last chunk");
    check_resume(ctx, &o, 2);
    check_resume(ctx, &o, 3);
    check_resume(ctx, &o, 4);
    check_resume(ctx, &o, 8);
    free(noise), free(re), free(first), free(x), free(y);
}

/* A clip after a restart is a clip with the same given frames. */
static void check_restart_is_given(tt_ctx *ctx)
{
    tt_rollout_options o = evicting("causvid");
    o.rollouts = 2;
    tt_real *x = whole(ctx, &o);
    expect_bits("the labelled fallback reuses the last frames",
                x + CLIP * SIZE, x + (CLIP - 3) * SIZE, 3 * SIZE * sizeof *x);
    tt_rollout_options p = evicting("causvid");
    p.rollouts = 1;
    p.initial = x + CLIP * SIZE;
    p.initial_frames = 3;
    p.latents = CLIP - 3;
    /* The generator numbers frames through all rollouts. */
    float words[SIZE];
    tt_real *noise = calloc((CLIP - 3) * SIZE, sizeof *noise);
    tt_real *re = calloc(3 * (CLIP - 3) * SIZE, sizeof *re);
    for (int f = 0; f < CLIP - 3; f++)
        for (int j = 0; j < 4; j++) {
            const int at = f / 3 * 9 + (j - 1) * 3 + f % 3;
            tt_real *to = j == 0 ? noise + f * SIZE : re + at * SIZE;
            tt_noise_frame(words, SIZE, 11, 0, (uint32_t)(CLIP + 3 + f),
                           (uint32_t)j);
            for (int i = 0; i < SIZE; i++) to[i] = words[i];
        }
    p.noise.noise = noise;
    p.noise.renoise = re;
    tt_real *y = whole(ctx, &p);
    expect_bits("a clip after a restart", x + CLIP * SIZE, y,
                CLIP * SIZE * sizeof *x);
    free(x), free(y), free(noise), free(re);
}

typedef struct frames {
    int seen, wanted;
    tt_real rgb[3 * 64 * HH * WW];
} frames;

static tt_status keep_frame(void *user, const tt_real *rgb, int64_t height,
                            int64_t width)
{
    frames *f = user;
    if (f->seen++ == f->wanted)
        memcpy(f->rgb, rgb, (size_t)(3 * height * width) * sizeof *rgb);
    return TT_OK;
}

/* The frame between two clips: decoded as pixel frame 4(W-1)+1 - (4(o-1)+1) of
 * its clip, clamped, and encoded as a clip of its own. */
static void check_restart_vae(tt_ctx *ctx)
{
    static frames f = { .wanted = 4 * (CLIP - 1) + 1 - (4 * 2 + 1) };
    tt_rollout_options o = evicting("causvid");
    tt_weights *w;
    tt_vae *vae = NULL;
    tt_vae_decoder *d;
    tt_vae_encoder *e;
    tt_real z[SIZE];
    bool ready = false;
    if (!expect_ok(tt_weights_open(ctx, &w,
                       ref_path("vae_full_a/weights.safetensors"),
                       TT_MODEL_VAE, NULL), "VAE")
        || !expect_ok(tt_vae_load_parts(ctx, &vae, w, TT_VAE_DECODER
                                        | TT_VAE_ENCODER), "VAE"))
        return;
    o.latent_restart = false;
    o.rollouts = 2;
    o.vae = vae;
    tt_real *x = whole(ctx, &o);
    expect_ok(tt_vae_decoder_open(ctx, &d, vae, HH, WW), "decoder");
    for (int i = 0; i < CLIP; i++)
        tt_vae_decode_next(ctx, d, x + i * SIZE, keep_frame, &f);
    tt_vae_decoder_close(d);
    expect(f.seen == 4 * (CLIP - 1) + 1, "frames of a clip");
    for (int i = 0; i < 3 * 64 * HH * WW; i++)
        f.rgb[i] = f.rgb[i] > 1 ? 1 : f.rgb[i] < -1 ? -1 : f.rgb[i];
    expect_ok(tt_vae_encoder_open(ctx, &e, vae, 8 * HH, 8 * WW), "encoder");
    tt_vae_encode_next(ctx, e, z, &ready, f.rgb);
    tt_vae_encoder_close(e);
    double worst = 0;
    for (int i = 0; i < SIZE; i++) {
        const double diff = (double)z[i] - (double)x[CLIP * SIZE + i];
        if (!(diff <= worst && -diff <= worst)) worst = diff < 0 ? -diff : diff;
    }
    expect(ready && worst <= 2e-5, "the re-encoded frame: %g", worst);
    expect_bits("the other frames", x + (CLIP + 1) * SIZE,
                x + (CLIP - 2) * SIZE, 2 * SIZE * sizeof *x);
    check_resume(ctx, &o, 3);
    check_resume(ctx, &o, 4);
    free(x);
    tt_vae_close(vae);
}

static void check_restart_options(tt_ctx *ctx)
{
    for (int i = 0; i < 7; i++) {
        static const char *const word[] = {
            "multiple of the chunk", "below the 9", "causvid", "given",
            "VAE", "does not fit", "timestep 0" };
        static const tt_real given[3 * SIZE];
        tt_rollout_options o = evicting("causvid");
        tt_rollout *r;
        if (i == 0) o.overlap = 2;
        if (i == 1) o.overlap = 9;
        if (i == 2) o.policy = tt_policy_defaults("fifo");
        if (i == 3) o.initial = given, o.initial_frames = 3;
        if (i == 4) o.latent_restart = false;
        if (i == 5) o.latents = 12;
        if (i == 6) o.context_noise = 5;
        const tt_status s = tt_rollout_open(ctx, &r, model, prompt, &o);
        expect(strstr(tt_message(ctx), word[i]) != NULL, "\"%s\" lacks \"%s\"",
               tt_message(ctx), word[i]);
        expect_status(s, TT_EINVAL, word[i]);
    }
    tt_rollout_options o = tt_rollout_defaults();
    tt_rollout_use_schedule(&o, "causvid-rolling");
    expect(o.nsteps == 3 && o.steps[1] == 757 && o.steps[2] == 522
           && !o.warp && o.shift == 8, "CausVid's schedule");
    tt_rollout_use_schedule(&o, "memrope");
    expect(o.nsteps == 4 && o.steps[3] == 250 && o.warp && o.shift == 5,
           "everybody else's");
}

/* Cuts for other policies and scenes beyond the end are pointed out. */
/* The first chunk as with its own steps throughout, also when the run is loaded
 * or made again after it. */
static void check_first_steps(tt_ctx *ctx)
{
    tt_rollout_options four = options("full", -1, 0), o = four;
    const size_t chunk = (size_t)(3 * SIZE) * sizeof(tt_real);
    o.nsteps = 1;
    tt_real *of_one = whole(ctx, &o);
    memcpy(o.first_steps, four.steps, sizeof four.steps);
    o.nfirst = four.nsteps;
    tt_real *x = whole(ctx, &four), *y = whole(ctx, &o);
    expect_bits("the first chunk", x, y, chunk);
    expect(memcmp((char *)x + chunk, (char *)y + chunk, chunk)
               && memcmp(of_one, y, chunk), "the other chunks have one step");
    check_resume(ctx, &o, 1);
    o.first_steps[1] = 1000;
    tt_rollout *r;
    expect_status(tt_rollout_open(ctx, &r, model, prompt, &o), TT_EINVAL,
                  "first steps that do not decrease");
    free(x), free(y), free(of_one);
}

static int warnings;
static void count_warning(void *user, const char *sentence)
{
    (void)user, (void)sentence;
    warnings++;
}

static void check_warnings(tt_ctx *ctx)
{
    const tt_prompt *const prompts[] = { prompt, second };
    const tt_scene late[] = { { 0, 0, false }, { 40, 1, false } };
    const tt_scene cut[] = { { 0, 0, false }, { 4, 1, true } };
    void (*const warn)(void *, const char *) = ctx->warn;
    ctx->warn = count_warning;
    for (int i = 0; i < 3; i++) {
        tt_rollout_options o = evicting(i == 2 ? "infinity" : "fifo");
        with_scenes(&o, i == 0 ? late : cut, 2, prompts);
        warnings = 0;
        tt_rollout_close(start(ctx, &o));
        expect(warnings == (i < 2), "warning %d", i);
    }
    ctx->warn = warn;
}

int main(void)
{
    static tt_real text[24 * 48];
    tt_ctx *ctx = test_begin("rollout/policy_runs");
    load(ctx);
    folder_make();
    for (int i = 0; i < 24 * 48; i++)
        text[i] = (tt_real)(i * 53 % 97) / 48 - 1;
    expect_ok(tt_prompt_make(ctx, &second, model, text, 24), "second prompt");

    tt_rollout_options o = options("full", -1, 0);
    tt_real *full = whole(ctx, &o);
    for (int i = 0; tt_policy_at(i); i++) {
        const char *name = tt_policy_at(i)->name;
        check_same_start(ctx, name, full);
        check_threads(ctx, name);
        check_kept(ctx, name);
        o = evicting(name);
        check_half_slots(ctx, o, i % 2 ? TT_CLASS_AMX : TT_CLASS_SM90);
        check_resume(ctx, &o, 2);
        check_resume(ctx, &o, 5);
        if (strcmp(name, "causvid")) check_scenes(ctx, name);
    }
    free(full);
    o = options("memrope", 9, 1);
    tt_policy_put(&o.policy, "adaptive", true);
    check_resume(ctx, &o, 5);
    o = options("infinity", 7, 1);   /* C does not divide K: two query rules */
    check_resume(ctx, &o, 3);
    check_resume(ctx, &o, 4);
    o = evicting("deep-forcing");
    tt_policy_put(&o.policy, "fusion", 1);
    check_resume(ctx, &o, 5);
    check_special_cases(ctx);
    check_different(ctx);
    check_flush_and_cut(ctx);
    check_scene_options(ctx);
    check_restart_inputs(ctx);
    check_restart_is_given(ctx);
    check_restart_vae(ctx);
    check_restart_options(ctx);
    check_warnings(ctx);
    check_first_steps(ctx);
    tt_prompt_free(second);
    tt_prompt_free(prompt);
    tt_dit_close(model);
    folder_remove_empty();
    return test_end();
}
