/* fit.c: a run that cannot fit is refused, with what would.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every proposal has been planned itself: the same settings but for one. It has
 * room to spare. */
#include "run/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/folder.h"
#include "team/engine.h"
#include "core/device.h"
#include "core/context.h"

/* Addresses of a stage, with what the C library takes for itself and the gaps
 * that it leaves between blocks. */
static int64_t addresses_of(const tt_needs *n, const tt_stage *stage)
{
    const int64_t gaps = stage->held / 4, most = 64 << 20;
    int64_t all = stage->mapped + stage->peak - n->before;
    if (!stage->held) return 0;
    if (n->during && stage != &n->text)
        all = n->latents.mapped + n->decoding.mapped + stage->peak - n->before;
    return all + (gaps < most ? gaps : most) + (10 << 20);
}

bool plan_fits(const tt_run *run, const tt_needs *n, bool spare)
{
    const plan_limit m = plan_memory(n->before);
    const plan_limit a = plan_addresses(run->mapped);
    const int64_t peak = n->peak - n->before;
    const int64_t more = spare ? peak / 20 + (512 << 10) : 0;
    const tt_stage *const all[] = {&n->text, &n->latents, &n->decoding};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (addresses_of(n, all[i]) > a.bytes - more) return false;
    return peak + more <= m.bytes;
}

/* Would all but the latents, which may be there already? */
static bool rest_holds(const tt_run *run, const tt_needs *n)
{
    tt_needs rest = *n;
    rest.latents = (tt_stage){0};
    rest.peak = n->text.peak > n->decoding.peak ? n->text.peak
                                                : n->decoding.peak;
    return plan_fits(run, &rest, false);
}

/* A run that does not fit, and its decoder. */
typedef struct search {
    const tt_ctx *ctx;
    const tt_run *run;
    tt_vae *vae;               /* NULL: nothing is decoded                    */
    bool during;               /* latents and frames alternate                */
} search;

static tt_ctx aside(const tt_ctx *ctx)
{
    return (tt_ctx){.ops = ctx->ops, .nthreads = ctx->nthreads,
                    .warn = tt_ignore_warning,
                    .matrix_unit = ctx->matrix_unit, .team = ctx->team,
                    .interrupt = ctx->interrupt};
}

static bool must_keep(const tt_run *run)
{
    return !strcmp(run->s.keep_keys, "yes");
}

/* What these options need. Keys that may be kept are not. */
static tt_needs needs_of(const search *s, const tt_rollout_options *o,
                         bool decoded)
{
    plan_question q = {.opt = *o, .vae = decoded ? s->vae : NULL,
                       .during = s->during};
    q.opt.keep_keys = o->keep_keys && must_keep(s->run);
    return plan_needs(s->ctx, s->run, &q);
}

static bool would_fit(const search *s, const tt_rollout_options *o)
{
    const tt_needs n = needs_of(s, o, true);
    return plan_fits(s->run, &n, true);
}

/* ---- other settings ------------------------------------------------------ */

/* The options with one setting changed; false: it cannot be. */
static bool changed(const tt_run *run, tt_rollout_options *o, const char *name,
                    const char *value)
{
    tt_ctx c = {.status = TT_OK};
    tt_settings s;
    tt_rollout_options other;
    tt_settings_copy(&c, &s, &run->s);
    tt_settings_set(&c, &s, name, value);
    tt_settings_check(&c, &s, &other);
    *o = run->opt;
    o->policy = other.policy;
    const bool good = !c.status && !tt_rollout_check(&c, run->dit, o);
    tt_settings_free(&s);
    tt_ctx_free(&c);
    return good;
}

/* The largest smaller budget that fits, 0: none. Budgets that are too small
 * for their policy lie below all that are not. */
static int64_t smaller_budget(const search *s)
{
    int64_t good = 0, bad = s->run->opt.policy.K;
    bool fits = false;
    while (good + 1 < bad) {
        const int64_t k = good + (bad - good) / 2;
        char value[32];
        tt_rollout_options o;
        snprintf(value, sizeof value, "%lld", (long long)k);
        const bool valid = changed(s->run, &o, "budget", value);
        if (valid && !would_fit(s, &o)) {
            bad = k;
            continue;
        }
        good = k;
        fits = valid;
    }
    return fits ? good : 0;
}

/* A policy with a window of its own size, NULL: none fits. */
static const char *other_policy(const search *s)
{
    static const char *const names[] = {"tether", "infinity"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tt_rollout_options o;
        if (strcmp(s->run->opt.policy.name, names[i])
            && changed(s->run, &o, "cache", names[i]) && would_fit(s, &o))
            return names[i];
    }
    return NULL;
}

/* The same picture in steps of 16 pixels of its width: the largest that fits.
 * Files of noise and frames have the size they have. */
static bool smaller_size(const search *s, int64_t *h, int64_t *w)
{
    const tt_rollout_options *own = &s->run->opt;
    int64_t good = 0, bad = own->w / 2;
    if (own->noise.noise || own->initial_frames) return false;
    while (good + 1 < bad) {
        const int64_t k = good + (bad - good) / 2;
        tt_rollout_options o = *own;
        o.w = 2 * k;
        o.h = own->h * k / (own->w / 2) / 2 * 2;
        if (o.h < 2) o.h = 2;
        if (!would_fit(s, &o)) {
            bad = k;
            continue;
        }
        good = k;
        *h = o.h;
        *w = o.w;
    }
    return good > 0;
}

/* Ranks of which the first, who has most, has room for its part; 0: no such
 * number. */
static int enough_ranks(const search *s, int64_t available)
{
    static const int sizes[] = {2, 3, 4, 6, 8, 12, 16};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tt_team team;
        tt_ctx c = aside(s->ctx);
        search part = *s;
        if (sizes[i] <= tt_team_size(s->ctx)) continue;
        team_init(&team, 0, sizes[i]);
        c.team = &team;
        part.ctx = &c;
        const tt_needs n = needs_of(&part, &s->run->opt, true);
        if (21 * ((n.peak - n.before) / 20) + (512 << 10) <= available)
            return sizes[i];
    }
    return 0;
}

/* ---- the sentence -------------------------------------------------------- */

typedef struct words {
    char text[512];
    int n;                     /* proposals                                   */
} words;

TT_PRINTF(2, 3)
static void propose(words *w, const char *fmt, ...)
{
    const size_t used = strlen(w->text);
    va_list ap;
    snprintf(w->text + used, sizeof w->text - used, "%s", w->n ? ", or " : "");
    va_start(ap, fmt);
    vsnprintf(w->text + strlen(w->text), sizeof w->text - strlen(w->text), fmt,
              ap);
    va_end(ap);
    w->n++;
}

static bool fits_undecoded(const search *s)
{
    const tt_needs n = needs_of(s, &s->run->opt, false);
    return s->vae && plan_fits(s->run, &n, true);
}

static bool fits_decoded_after(const search *s)
{
    search other = *s;
    other.during = false;
    if (!s->during) return false;
    const tt_needs n = needs_of(&other, &s->run->opt, true);
    return plan_fits(s->run, &n, true)
        || (s->run->s.resume && rest_holds(s->run, &n));
}

/* Keys are kept because the user wants it. */
static bool fits_unkept(const search *s)
{
    tt_rollout_options o = s->run->opt;
    o.keep_keys = false;
    return must_keep(s->run) && would_fit(s, &o);
}

/* ... or keys and values in files, of so many bytes. */
static bool fits_on_disk(const search *s, int64_t *bytes)
{
    tt_rollout_options o = s->run->opt;
    if (o.kv_dir || must_keep(s->run)) return false;
    o.kv_dir = ".";
    const tt_needs n = needs_of(s, &o, true);
    *bytes = n.cache_files;
    return plan_fits(s->run, &n, true);
}

/* ... or what the decoder remembers. */
static bool fits_remembered(const search *s, int64_t *bytes)
{
    if (!s->vae || tt_vae_folder(s->vae)) return false;
    tt_ctx c = aside(s->ctx);
    tt_vae_use_folder(&c, s->vae, ".");
    const tt_needs n = needs_of(s, &s->run->opt, true);
    tt_vae_use_folder(&c, s->vae, NULL);
    tt_ctx_free(&c);
    *bytes = n.history_files;
    return plan_fits(s->run, &n, true);
}

/* What has no effect then is refused. */
static const char *of_vae_alone(const tt_settings *s)
{
    const bool cls = s->model.vae_class, files = s->model.history_dir;
    if (settings_encode(s)) return "";
    return cls && files ? " without --vae-class and --history-dir"
         : cls ? " without --vae-class"
         : files ? " without --history-dir" : "";
}

static void find_proposals(const tt_ctx *ctx, const tt_run *run, words *w)
{
    tt_ctx c = aside(ctx);
    const tt_needs *n = &run->needs;
    search s = {.ctx = ctx, .run = run,
                .during = !strcmp(run->s.decode, "during")};
    const plan_limit m = plan_memory(n->before);
    int64_t h, width, bytes;
    if (!run->s.no_decode) tt_run_open_vae(&c, run, &s.vae);
    if (fits_unkept(&s)) propose(w, "--keep-keys no");
    if (fits_decoded_after(&s)) propose(w, "--decode after");
    if (fits_on_disk(&s, &bytes))
        propose(w, "--kv-dir FOLDER, which needs %.4g GB of disk",
                1e-9 * (double)bytes);
    if (fits_remembered(&s, &bytes))
        propose(w, "--history-dir FOLDER, which needs %.4g GB of disk",
                1e-9 * (double)bytes);
    if (smaller_size(&s, &h, &width))
        propose(w, "--size %lldx%lld", (long long)(8 * width),
                (long long)(8 * h));
    const int64_t k = smaller_budget(&s);
    if (k) propose(w, "--budget %lld", (long long)k);
    const char *policy = k ? NULL : other_policy(&s);
    if (policy) propose(w, "--cache %s", policy);
    if (fits_undecoded(&s))
        propose(w, "--no-decode%s", of_vae_alone(&run->s));
    const bool memory = n->peak - n->before > m.bytes;
    const int ranks = memory ? enough_ranks(&s, m.bytes) : 0;
    if (ranks) propose(w, "%d ranks (make MPI=1)", ranks);
    tt_vae_close(s.vae);
    tt_ctx_free(&c);
}

/* The stage that needs most, of memory or of addresses. */
static const char *fit_largest(const tt_needs *n, bool memory, int64_t *most)
{
    const tt_stage *const all[] = {&n->latents, &n->text, &n->decoding};
    static const char *const names[] = {"the transformer", "the text encoder",
                                        "the decoder"};
    const char *name = names[0];
    *most = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int64_t each = memory ? all[i]->peak - n->before
                                    : addresses_of(n, all[i]);
        if (each <= *most) continue;
        *most = each;
        name = n->during && n->decoding.held && all[i] != &n->text
             ? "the transformer with the decoder" : names[i];
    }
    return name;
}

/* Who needs how much, and who leaves less; how the user may know better. */
typedef struct shortage {
    char text[256], better[64];
} shortage;

static shortage shortage_of(const tt_run *run, const tt_needs *n)
{
    shortage s = {.better = ""};
    plan_limit l = plan_addresses(run->mapped); /* stays; free memory may not */
    int64_t most;
    const char *what = fit_largest(n, false, &most);
    const bool memory = most <= l.bytes;
    if (memory) {
        what = fit_largest(n, true, &most);
        l = plan_memory(n->before);
    }
    snprintf(s.text, sizeof s.text, "%s needs %.4g MB%s, and %s leaves %.4g MB",
             what, 1e-6 * (double)most, memory ? " of memory" : " of addresses",
             l.who, 1e-6 * (double)l.bytes);
    if (memory && strcmp(l.who, "TT_MEMORY"))
        snprintf(s.better, sizeof s.better, "; TT_MEMORY=%lldM if you know "
                 "better", 1 + (long long)(1.05e-6 * (double)n->peak));
    return s;
}

static bool same_disk(const char *a, const char *b)
{
    struct stat x, y;
    return a && b && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev;
}

/* The folders of a run, before anything is computed for it. One that goes on
 * may need none. */
static tt_status check_folders(tt_ctx *ctx, const tt_run *run,
                               const tt_needs *n)
{
    const char *keys = run->opt.kv_dir, *history = run->s.model.history_dir;
    const bool both = n->during && same_disk(keys, history);
    const int64_t more = both ? n->history_files : 0;
    if (run->s.resume) return ctx->status;
    if (keys && n->cache_files)
        TT_TRY(folder_check(ctx, keys, n->cache_files + more,
                            both ? "--kv-dir and --history-dir" : "--kv-dir"));
    if (history && n->history_files)
        TT_TRY(folder_check(ctx, history, n->history_files, "--history-dir"));
    return ctx->status;
}

/* Why not, and what would fit. */
static const char *no_fit(tt_ctx *ctx, const tt_run *run, const shortage *s,
                          char buf[1024])
{
    words w = {.n = 0};
    find_proposals(ctx, run, &w);
    snprintf(buf, 1024, "the run cannot fit: %s; %s%s%s", s->text,
             w.n ? "this would fit: " : "no smaller setting of it fits either",
             w.text, s->better);
    return buf;
}

tt_status plan_check(tt_ctx *ctx, const tt_run *run, const tt_needs *n)
{
    char text[1024];
    TT_TRY(check_folders(ctx, run, n));
    if (ctx->status || ctx->device || plan_fits(run, n, false)
        || run->s.model.sizes_alone)
        return ctx->status;
    const shortage s = shortage_of(run, n);
    if (run->s.resume && rest_holds(run, n)) {
        tt_warn(ctx, "%s: it cannot make latents that are missing", s.text);
        return TT_OK;
    }
    no_fit(ctx, run, &s, text);
    return ctx->status ? ctx->status : tt_fail(ctx, TT_ENOMEM, "%s", text);
}

void plan_warn(tt_ctx *ctx, const tt_run *run)
{
    char text[1024];
    if (ctx->status || ctx->device || plan_fits(run, &run->needs, false))
        return;
    const shortage s = shortage_of(run, &run->needs);
    no_fit(ctx, run, &s, text);
    if (!ctx->status) tt_warn(ctx, "%s", text);
}
