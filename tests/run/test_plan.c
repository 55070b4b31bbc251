/* test_plan.c: what a plan says against what a run takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  the bytes of a process, as the system counts them; the
 *   operations of its operators, as the profile counts them; and that what a
 *   refusal proposes is not refused.
 * Properties  no limit counts twice what the process took itself; latents that
 *   may be there are no reason to refuse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/plan.h"
#include "tests/harness.h"
#include "run/needs.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static tt_ctx *ctx;

static tt_settings settings_of(const char *cache, const char *size,
                               const char *latents)
{
    tt_settings s = tt_settings_defaults();
    tt_settings_set(ctx, &s, "model", ref_path("demo"));
    tt_settings_set(ctx, &s, "prompt", "a red circle moves left");
    tt_settings_set(ctx, &s, "size", size);
    tt_settings_set(ctx, &s, "latents", latents);
    tt_settings_set(ctx, &s, "cache", cache);
    return s;
}

/* Clips of causvid are no longer than its budget. */
static const char *length_of(const char *policy, const char *latents)
{
    return strcmp(policy, "causvid") ? latents : "21";
}

/* All chunks; the most that the process held after one. */
static int64_t all_chunks(tt_ctx *c, tt_run *run)
{
    const tt_host *x;
    int64_t n, most = 0;
    while (tt_run_next(c, run, &x, &n) == TT_OK) {
        const int64_t held = plan_anonymous();
        if (held > most) most = held;
    }
    return most;
}

static tt_status no_frame(void *user, const tt_host *rgb, int64_t h, int64_t w)
{
    int64_t *most = user, held = plan_anonymous();
    (void)rgb, (void)h, (void)w;
    if (held > *most) *most = held;
    return TT_OK;
}

static int64_t decode(tt_ctx *c, tt_run *run)
{
    tt_vae *vae;
    tt_vae_decoder *d;
    tt_tensor x;
    int64_t most = 0;
    tt_run_latents(c, run, &x);
    tt_run_open_vae(c, run, &vae);
    tt_vae_decoder_open(c, &d, vae, x.dim[3], x.dim[4]);
    const tt_host *z = x.data;
    for (int i = 0; i < 4 && !c->status; i++)
        tt_vae_decode_next(c, d, z + i * x.dim[2] * x.dim[3] * x.dim[4],
                           no_frame, &most);
    tt_vae_decoder_close(d);
    tt_vae_close(vae);
    return most;
}

/* Chunks and their frames interleaved. */
static int64_t both(tt_ctx *c, tt_run *run)
{
    tt_vae *vae;
    tt_vae_decoder *d;
    const tt_host *x;
    int64_t n, most = 0;
    tt_run_begin(c, run, 0, NULL);
    const tt_tensor all = tt_run_stand(run).latents;
    tt_run_open_vae(c, run, &vae);
    tt_vae_decoder_open(c, &d, vae, all.dim[3], all.dim[4]);
    while (tt_run_next(c, run, &x, &n) == TT_OK)
        for (int64_t i = 0; i < n && !c->status; i++)
            tt_vae_decode_next(c, d, x + i * all.dim[2] * all.dim[3]
                                         * all.dim[4], no_frame, &most);
    tt_vae_decoder_close(d);
    tt_vae_close(vae);
    return most;
}

/* 10 %, and what small runs and a heap differ by. */
static void expect_bytes(const char *what, const char *policy, int64_t planned,
                         int64_t held)
{
    const double far = fabs((double)(planned - held));
    expect(far <= 0.1 * (double)held + 1.5e6, "%s of %s: planned %lld bytes, "
           "held %lld", what, policy, (long long)planned, (long long)held);
}

/* ---- bytes and operations ------------------------------------------------ */

static void bytes_of(const char *policy, tt_class cls, const char *size,
                     const char *latents, bool with_decoder,
                     const char *keep, const char *files)
{
    tt_ctx c;
    tt_run *run;
    tt_needs n;
    char what[64];
    if (sizeof(tt_real) == 8 && cls != TT_CLASS_F32) return; /* has none */
    tt_settings s = settings_of(policy, size, latents);
    snprintf(what, sizeof what, "%s, class %s", policy, tt_class_name(cls));
    if (!with_decoder) tt_settings_set(ctx, &s, "no-decode", NULL);
    else tt_settings_set(ctx, &s, "vae-class", tt_class_name(cls));
    tt_settings_set(ctx, &s, "keep-keys", keep);
    if (files) tt_settings_set(ctx, &s, "kv-dir", files);
    if (files && with_decoder) tt_settings_set(ctx, &s, "history-dir", files);
    tt_ctx_init(&c);
    c.nthreads = 2;
    c.ops = tt_ops_class(c.ops, cls);
    if (!expect(!tt_run_open(&c, &run, &s, NULL), "%s: %s", what,
                tt_message(&c))) return;
    expect_ok(tt_run_plan(&c, run, &n), what);
    expect(n.keys == !strcmp(keep, "yes"), "%s: keys are kept or not", what);
    expect((n.cache_files > 0) == (files != NULL), "%s: %lld bytes in files",
           what, (long long)n.cache_files);
    expect_bytes("latents", what, n.latents.peak + n.cache_files,
                 all_chunks(&c, run) + n.cache_files);
    expect((n.history_files > 0) == (files && with_decoder), "%s: %lld bytes "
           "of history in files", what, (long long)n.history_files);
    if (with_decoder)
        /* next to the history, wherever it is: without, a plan of this size
         * is 1.2 MB too high, whose cause is not known */
        expect_bytes("decoding", what, n.decoding.peak + n.history_files,
                     decode(&c, run) + n.history_files);
    expect_ok(c.status, what);
    tt_run_close(run);
    tt_settings_free(&s);
    tt_ctx_free(&c);
}

static void bytes_of_both(const char *size, const char *latents)
{
    tt_ctx c;
    tt_run *run;
    tt_needs n;
    tt_settings s = settings_of("tether", size, latents);
    tt_settings_set(ctx, &s, "decode", "during");
    tt_ctx_init(&c);
    c.nthreads = 2;
    expect_ok(tt_run_open(&c, &run, &s, NULL), "latents and frames in turns");
    expect_ok(tt_run_plan(&c, run, &n), "their plan");
    expect_bytes("both", "during", n.peak, both(&c, run));
    expect(n.latents.peak == n.peak && n.decoding.peak == n.peak,
           "one peak of both");
    tt_run_close(run);
    tt_settings_free(&s);
    tt_ctx_free(&c);
}

/* Between two clips the VAE works next to the cache, and it stays open. What it
 * takes for that alone is free again after the chunk. */
static void bytes_of_restarts(const char *files, tt_needs *out)
{
    tt_ctx c;
    tt_run *run;
    tt_needs n;
    tt_settings s = settings_of("causvid", "64x64", "6");
    tt_settings_set(ctx, &s, "rollouts", "2");
    tt_settings_set(ctx, &s, "no-decode", NULL);
    if (files) tt_settings_set(ctx, &s, "history-dir", files);
    tt_ctx_init(&c);
    expect_ok(tt_run_open(&c, &run, &s, NULL), "clips");
    expect_ok(tt_run_plan(&c, run, &n), "their plan");
    const int64_t held = all_chunks(&c, run);
    expect(n.latents.peak > held && n.latents.peak < 5 * held / 2,
           "planned %lld bytes of clips, held %lld after a chunk",
           (long long)n.latents.peak, (long long)held);
    *out = n;
    tt_run_close(run);
    tt_settings_free(&s);
    tt_ctx_free(&c);
}

/* What the VAE of a restart remembers is planned as files, where it is. */
static void bytes_of_all_restarts(void)
{
    tt_needs memory, files;
    bytes_of_restarts(NULL, &memory);
    bytes_of_restarts(".", &files);
    const int64_t less = memory.latents.peak - files.latents.peak;
    expect(memory.history_files == 0 && files.history_files > 0,
           "%lld bytes of history", (long long)files.history_files);
    expect(less > files.history_files / 2 && less <= files.history_files,
           "%lld bytes less for %lld in files", (long long)less,
           (long long)files.history_files);
}

/* Of matrix products so far. */
static double operations(const tt_ctx *c)
{
    double all = 0;
    for (int i = 0; i < TT_PROFILE_ROWS && c->profile[i].name; i++)
        all += c->profile[i].flops;
    return all;
}

#define SWITCHES "a red[1.5s]|a blue[1.5s]|a green[1.5s]|red[3s]|green"

/* `switched`: every second chunk has a new prompt. */
static void operations_of(const char *policy, bool switched)
{
    tt_ctx c;
    tt_run *run;
    tt_needs n;
    tt_settings s = settings_of(policy, "32x32",
                                length_of(policy, "54"));
    tt_settings_set(ctx, &s, "no-decode", NULL);
    if (switched) s.prompt = NULL;
    if (switched) tt_settings_set(ctx, &s, "scene", SWITCHES);
    tt_ctx_init(&c);
    if (!expect(!tt_run_open(&c, &run, &s, NULL), "%s: %s", policy,
                tt_message(&c))) return;
    expect_ok(tt_run_time(&c, run, &n), policy);
    expect(n.text.seconds > 0 && n.latents.seconds > 0
           && isfinite(n.latents.seconds), "%s takes time", policy);
    expect_ok(tt_run_encode(&c, run), "the text");
    c.profiling = true;
    all_chunks(&c, run);
    const double made = operations(&c);
    expect(fabs(n.latents.operations - made) <= 0.06 * made, "%s: planned "
           "%.6g operations, made %.6g", policy, n.latents.operations, made);
    tt_run_close(run);
    tt_settings_free(&s);
    tt_ctx_free(&c);
}

/* Their operators take scratch of their own. */
static void every_class(void)
{
    const tt_class_info *info;
    for (int i = 1; (info = tt_class_at(i)) != NULL; i++) {
        if (!tt_ops_class(ctx->ops, (tt_class)i)) continue;
        bytes_of("tether", (tt_class)i, "32x32", "9", false, "no", NULL);
        bytes_of("tether", (tt_class)i, "64x64", "24", false, "no", NULL);
    }
}

static tt_needs needs_in(const char *files, const char *policy)
{
    tt_run *run;
    tt_needs n = {0};
    tt_settings s = settings_of(policy, "128x128", "24");
    tt_settings_set(ctx, &s, "no-decode", NULL);
    tt_settings_set(ctx, &s, "keep-keys", files ? "auto" : "no");
    if (files) tt_settings_set(ctx, &s, "kv-dir", files);
    expect_ok(tt_run_open(ctx, &run, &s, NULL), policy);
    expect_ok(tt_run_plan(ctx, run, &n), policy);
    tt_run_close(run);
    tt_settings_free(&s);
    return n;
}

/* What goes to the disk is the cache, all of it and once. */
static void bytes_in_files(void)
{
    static const char *const policies[] = {"tether", "deep-forcing:fusion=max",
                                           "memrope"};
    for (int i = 0; i < 3; i++) {
        const tt_needs a = needs_in(NULL, policies[i]);
        const tt_needs b = needs_in(".", policies[i]);
        const int64_t files = b.cache_files, less = a.latents.peak
                                                  - b.latents.peak;
        expect_bytes("in files", policies[i], files + b.cache, a.cache);
        expect_bytes("less memory", policies[i], less, files);
        expect_bytes("states", policies[i], b.states, a.states);
        expect(b.cache > 0 && b.cache < a.cache / 4, "those of the prompt");
    }
}

static void every_policy(void)
{
    const tt_policy_class *cls;
    for (int i = 0; (cls = tt_policy_at(i)) != NULL; i++) {
        for (int k = 0; k < 2 && !SANITIZED && plan_anonymous(); k++)
            bytes_of(cls->name, TT_CLASS_F32, "64x64",
                     length_of(cls->name, "24"), false, k ? "yes" : "no",
                     NULL);
        operations_of(cls->name, false);
    }
    operations_of("longlive", true);
    operations_of("longlive:budget=-1", true);
    if (!SANITIZED && plan_anonymous()) {
        bytes_of("tether", TT_CLASS_F32, "128x128", "6", true, "yes", NULL);
        bytes_of("tether", TT_CLASS_F32, "128x128", "24", false, "yes", NULL);
        bytes_of("tether", TT_CLASS_VDP, "128x128", "24", false, "yes", NULL);
        bytes_of("tether", TT_CLASS_F32, "64x64", "24", false, "no", ".");
        bytes_of("tether", TT_CLASS_F32, "128x128", "6", true, "no", ".");
        bytes_of("tether", TT_CLASS_VDP, "128x128", "6", true, "no", ".");
        bytes_in_files();
        every_class();
        bytes_of_both("128x128", "24");
        bytes_of_all_restarts();
    } else
        skip("bytes are not those of the program: a sanitizer's are among "
             "them, or the system does not tell");
}

/* ---- refusals ------------------------------------------------------------ */

/* What the process holds, and so many bytes more. */
static void set_limit(int64_t more)
{
    char value[32];
    snprintf(value, sizeof value, "%lld", (long long)(plan_anonymous() + more));
    setenv("TT_MEMORY", value, 1);
}

/* The same run with what was proposed. */
static void take_up(tt_settings *s, int64_t capacity, const char *message,
                    const char *option)
{
    char value[32] = "";
    tt_run *run;
    const char *at = strstr(message, option);
    if (!expect(at != NULL, "%s is proposed: %s", option, message)) return;
    if (strstr(at, "FOLDER") == at + strlen(option) + 1) strcpy(value, ".");
    else sscanf(at + strlen(option), " %31[0-9a-z]", value);
    tt_settings_set(ctx, s, option + 2, *value ? value : NULL);
    set_limit(capacity);
    expect_ok(tt_run_open(ctx, &run, s, NULL), option);
    tt_run_close(run);
}

/* `decoded`: after or during; NULL: not. Kept keys are of a larger picture. */
static void refuses(const char *decoded, int64_t capacity, const char *what,
                    const char *option)
{
    char message[sizeof ctx->message];
    tt_run *run;
    const bool kept = !strcmp(option, "--keep-keys");
    tt_settings s = settings_of("tether", kept ? "128x128" : "64x64", "27");
    tt_settings_set(ctx, &s, decoded ? "decode" : "no-decode", decoded);
    if (kept) tt_settings_set(ctx, &s, "keep-keys", "yes");
    set_limit(capacity);
    tt_status status = tt_run_open(ctx, &run, &s, NULL);
    snprintf(message, sizeof message, "%s", tt_message(ctx));
    expect_status(status, TT_ENOMEM, what);
    expect(!run && strstr(message, what), "%s is named: %s", what, message);
    take_up(&s, capacity, message, option);
    unsetenv("TT_MEMORY");
    tt_settings_free(&s);
}

/* What would be refused for another reason is not proposed. */
static void refuses_history(int64_t capacity)
{
    char message[sizeof ctx->message];
    tt_run *run;
    tt_settings s = settings_of("tether", "64x64", "27");
    tt_settings_set(ctx, &s, "history-dir", ".");
    tt_settings_set(ctx, &s, "decode", "during");
    set_limit(capacity);
    tt_status status = tt_run_open(ctx, &run, &s, NULL);
    snprintf(message, sizeof message, "%s", tt_message(ctx));
    expect_status(status, TT_ENOMEM, "history in files");
    expect(strstr(message, "--no-decode without --history-dir")
           && !strstr(message, "--history-dir FOLDER"), "%s", message);
    unsetenv("TT_MEMORY");
    tt_settings_free(&s);
}

/* Latents that are there need no transformer. */
static void warns_only(void *user, const char *sentence)
{
    int *times = user;
    expect(strstr(sentence, "the transformer needs") != NULL, "%s", sentence);
    ++*times;
}

static void resumes(int64_t capacity)
{
    tt_ctx c;
    tt_run *run;
    int times = 0;
    tt_settings s = settings_of("tether", "64x64", "27");
    tt_settings_set(ctx, &s, "no-decode", NULL);
    tt_settings_set(ctx, &s, "resume", NULL);
    tt_ctx_init(&c);
    c.warn = warns_only;
    c.warn_user = &times;
    set_limit(capacity);
    expect(!tt_run_open(&c, &run, &s, NULL), "it goes on: %s", tt_message(&c));
    expect(times == 1, "warned %d times", times);
    tt_run_close(run);
    unsetenv("TT_MEMORY");
    tt_settings_free(&s);
    tt_ctx_free(&c);
}

/* Before anything is computed. */
static void no_folder(void)
{
    tt_run *run;
    tt_settings s = settings_of("tether", "64x64", "27");
    tt_settings_set(ctx, &s, "no-decode", NULL);
    tt_settings_set(ctx, &s, "kv-dir", "/no/folder");
    expect_status(tt_run_open(ctx, &run, &s, NULL), TT_EIO, "no folder");
    tt_settings_free(&s);
    s = settings_of("tether", "64x64", "27");
    tt_settings_set(ctx, &s, "history-dir", "/no/folder");
    expect_status(tt_run_open(ctx, &run, &s, NULL), TT_EIO, "no folder either");
    tt_settings_free(&s);
}

/* Limits between what the parts need, whatever the process holds already. */
static void refusals(void)
{
    tt_run *run;
    tt_needs n;
    tt_settings s = settings_of("tether", "64x64", "27");
    tt_settings_set(ctx, &s, "keep-keys", "no");
    expect_ok(tt_run_open(ctx, &run, &s, NULL), "a run that fits");
    expect_ok(tt_run_plan(ctx, run, &n), "its plan");
    tt_run_close(run);
    tt_settings_free(&s);
    const int64_t small = n.latents.peak - n.before;
    const int64_t large = n.decoding.peak - n.before;
    if (!expect(small > 0 && large > 3 * small / 2, "the decoder needs more"))
        return;
    refuses("after", (small + large) / 2, "the decoder needs", "--no-decode");
    refuses("after", (small + large) / 2, "TT_MEMORY leaves", "--size");
    refuses("after", (small + large) / 2, "the decoder needs", "--history-dir");
    refuses(NULL, 4 * small / 5, "the transformer needs", "--size");
    refuses(NULL, 4 * small / 5, "the transformer needs", "--budget");
    refuses(NULL, 4 * small / 5, "the transformer needs", "--kv-dir");
    no_folder();
    refuses("during", large + small / 2, "the transformer with the decoder "
            "needs", "--decode");
    refuses("during", small + small / 3, "the transformer with the decoder "
            "needs", "--no-decode");
    refuses_history(small + small / 3);
    resumes(4 * small / 5);
}

/* ---- keys that are kept -------------------------------------------------- */

/* Are they, with so much room? The bytes of the plan are those of the answer.
 */
static bool kept_with(const char *keep, const char *size, const char *decode,
                      int64_t capacity, tt_needs *n)
{
    tt_run *run;
    tt_settings s = settings_of("tether", size, "27");
    tt_settings_set(ctx, &s, decode ? "decode" : "no-decode", decode);
    tt_settings_set(ctx, &s, "keep-keys", keep);
    set_limit(capacity);
    expect_ok(tt_run_open(ctx, &run, &s, NULL), keep);
    expect_ok(tt_run_plan(ctx, run, n), keep);
    const bool kept = tt_run_rollout(run)->keep_keys;
    expect(n->keys == kept, "%s: the plan knows", keep);
    tt_run_close(run);
    unsetenv("TT_MEMORY");
    tt_settings_free(&s);
    return kept;
}

/* Between what kept keys take and what the proposal has to spare. */
static void refuses_kept(void)
{
    const int64_t much = INT64_C(1) << 40;
    tt_needs n;
    kept_with("no", "128x128", NULL, much, &n);
    refuses(NULL, n.peak - n.before + n.peak / 20 + (2 << 20),
            "the transformer needs", "--keep-keys");
}

/* Where someone asks for them: they are half a cache more. */
static void keys_of(const char *decode)
{
    const int64_t much = INT64_C(1) << 40;
    tt_needs with, without, n;
    expect(kept_with("yes", "64x64", decode, much, &with), "yes");
    expect(!kept_with("no", "64x64", decode, much, &without), "no");
    const int64_t each = 21 * 16 * 128 * 6 * (int64_t)sizeof(tt_real);
    const int64_t more = with.latents.held - without.latents.held;
    expect(more > each / 2 && more < each, "%lld bytes more",
           (long long)more);
    expect(with.cache == without.cache && with.states == without.states,
           "the cache is the same");
    expect(!kept_with("auto", "64x64", decode, much, &n)
           && n.peak <= without.peak + (1 << 18), "not in host memory");
}

/* Laid out for attention with values they are, where half of the memory holds
 * all. */
static void packed_of(const char *decode)
{
    const int64_t much = INT64_C(1) << 40;
    tt_needs with, n;
    const bool packed = ctx->ops->packed != NULL;
    kept_with("yes", "128x128", decode, much, &with);
    const int64_t all = with.peak - with.before;
    expect(with.keys, "windows of more than a block are laid out");
    expect(kept_with("auto", "128x128", decode, much, &n) == packed, "kept");
    expect(kept_with("auto", "128x128", decode, 2 * all + all / 8,
                     &n) == packed, "half of the memory is enough");
    expect(!kept_with("auto", "128x128", decode, 2 * all - all / 8, &n)
           && n.peak < with.peak, "less is not");
}

/* What the process took since is there for the run, and the user knows more
 * than the system: less, or more. */
static void limits(void)
{
    const int64_t now = plan_anonymous(), much = INT64_C(1) << 50;
    const plan_limit l = plan_memory(now);
    if (now && l.bytes < much)
        expect(plan_memory(now - much).bytes > much / 2, "%s counts what was "
               "taken since", l.who);
    static const char *const words[] = {"1500", "2K", "1.5M", "7000000G"};
    static const int64_t bytes[] = {1500, 2000, 1500000,
                                    INT64_C(7000000000000000)};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        setenv("TT_MEMORY", words[i], 1);
        expect(plan_memory(1000).bytes == bytes[i] - 1000, "TT_MEMORY=%s is "
               "%lld", words[i], (long long)plan_memory(1000).bytes);
    }
    unsetenv("TT_MEMORY");
}

int main(void)
{
    ctx = test_begin("run/test_plan");
    if (test_guarded()) {
        skip("plans are of memory of the host");
        return test_end();
    }
    limits();
    refusals();
    refuses_kept();
    keys_of(NULL);
    keys_of("during");
    packed_of(NULL);
    packed_of("during");
    every_policy();
    return test_end();
}
