/* settings.c: the settings of a run, by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   one table: command line, help, records and tt_settings_set are made
 *         from it. Rules about more than one setting are in rules.c.
 * Holds   nothing is stored for a setting whose value does not parse. */
#include "run/parts.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(tt_settings, member)
static const tt_setting fixed[] = {
    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Model"},
    TT_MODEL_ROW_FOLDER(tt_settings, model),
    TT_MODEL_ROWS_DIT(tt_settings, model),
    TT_MODEL_ROW_LORA(tt_settings, model.lora),
    TT_MODEL_ROW_VAE(tt_settings, model),
    TT_MODEL_ROW_TINY_VAE(tt_settings, model),
    TT_MODEL_ROW_VAE_CLASS(tt_settings, model),
    TT_MODEL_ROWS_TEXT(tt_settings, model),

    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Text (one of these)"},
    {TT_SETTING_TEXT, "prompt", 'p', AT(prompt), "TEXT",
     "what the video shows"},
    {TT_SETTING_READ, "prompt-file", 0, AT(prompt_file), "FILE",
     "one prompt per line, one video (or --num-samples videos) each"},
    {TT_SETTING_READ, "extended-prompt-file", 0, AT(extended_prompt_file),
     "FILE", "what the model reads instead of each line of --prompt-file: as "
     "many lines. Files are called by the prompts of --prompt-file, as VBench "
     "wants them (--vbench-name)"},
    {TT_SETTING_READ, "embeds", 0, AT(embeds), "FILE",
     "text [1, rows, dim] from `tether embed`, instead of the text encoder; "
     "with scenes text, text_1, ... for the distinct prompts in order"},
    {TT_SETTING_TEXT, "scene", 0, AT(scene), "LIST",
     "a video of several prompts: 'A[3s] | B[2.3s#] | C'. A scene lasts as "
     "many whole chunks as fit its seconds (14 chunks without a tag), # makes "
     "a cut (--cache infinity)"},
    {TT_SETTING_READ, "scene-file", 0, AT(scene_file), "FILE",
     "the same with one scene per line: first chunk, blank, prompt; 12# "
     "begins with a cut"},
    {TT_SETTING_TEXT, "cut-rule", 0, AT(cut_rule), "official|readme",
     "the # of a scene list makes a cut after its scene (official, the "
     "default: what infinity-RoPE's code does) or before it (readme)"},

    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Size and length"},
    {TT_SETTING_INT, "width", 'W', AT(width), "PIXELS",
     "multiple of 16 (default 832, or that of the model's "
     "config.json or of --noise)"},
    {TT_SETTING_INT, "height", 'H', AT(height), "PIXELS",
     "multiple of 16 (default 480, or that of the model's "
     "config.json or of --noise)"},
    {TT_SETTING_TEXT, "size", 0, AT(size), "WxH",
     "both at once: 832x480"},
    {TT_SETTING_INT, "latents", 0, AT(latents), "N",
     "latent frames to generate (default 21, which is 81 video frames). A "
     "count here; a file in `decode`"},
    {TT_SETTING_INT, "frames", 0, AT(frames), "N",
     "length as video frames: 1 + 4 (latents-1)"},
    {TT_SETTING_REAL, "seconds", 0, AT(seconds), "X",
     "length in seconds at 16 fps, met to a quarter of a second"},

    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Noise"},
    {TT_SETTING_U64, "seed", 's', AT(seed), "S",
     "64-bit seed (default 0), or random: one that is drawn and printed"},
    {TT_SETTING_INT, "sample", 0, AT(sample), "I",
     "index of the first sample (default 0)"},
    {TT_SETTING_INT, "num-samples", 0, AT(num_samples), "N",
     "videos per prompt (default 1)"},
    {TT_SETTING_TEXT, "seed-rule", 0, AT(seed_rule), "plain|official",
     "plain: the seed as given (default); official: seed + 100*prompt + "
     "sample"},
    {TT_SETTING_READ, "noise", 0, AT(noise), "FILE",
     "noise [1, n, C, h, w] and renoise, as `tether noise` writes them, "
     "instead of the generator"},

    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Sampler"},
    {TT_SETTING_TEXT, "steps", 0, AT(steps), "N",
     "denoising steps: how many, 1 to 100 (default 4), evenly spaced from 1000 "
     "downwards; or the list itself, like 1000,750,500,250. -v prints the "
     "timesteps"},
    {TT_SETTING_TEXT, "first-steps", 0, AT(first_steps), "N",
     "the same for the first chunk (default: as the others)"},
    {TT_SETTING_SWITCH, "warp", 0, AT(warp), NULL,
     "map the steps through the shifted schedule (default: yes)"},
    {TT_SETTING_REAL, "shift", 0, AT(shift), "X",
     "shift of the noise schedule (default 5)"},
    {TT_SETTING_INT, "chunk", 0, AT(chunk), "F",
     "latent frames generated together (default 3)"},
    {TT_SETTING_INT, "context-noise", 0, AT(context_noise), "T",
     "timestep of the pass that fills the cache (default 0)"},
    {TT_SETTING_SWITCH, "independent-first-frame", 0,
     AT(independent_first_frame), NULL,
     "the first chunk is one frame (default: no)"},
    {TT_SETTING_READ, "initial-latents", 0, AT(initial), "FILE",
     "latents to continue: initial_latent [1, n0, C, h, w], or the latents of "
     "`encode` and `generate`"},
    {TT_SETTING_READ, "image", 0, AT(image), "FILE",
     "the first frame, a PNG or JPEG, resized to the video's size; implies "
     "--independent-first-frame"},
    {TT_SETTING_READ, "initial-video", 0, AT(initial_video), "PATH",
     "frames to continue: a video or frames/%05d.png, as `encode` reads them"},
    {TT_SETTING_INT, "initial-frames", 0, AT(initial_frames), "N",
     "only the last N frames of --initial-video (default: all)"},

    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Cache policy"},
    {TT_SETTING_TEXT, "cache", 0, AT(cache), "NAME",
     "what stays in the cache (default tether), also with knobs as in "
     "tether:tau=0.6:pool=frame. The policies:"},
    {TT_SETTING_TEXT, "preset", 0, AT(preset), "NAME",
     "settings of --cache tether, or of a model, by name; an explicit option "
     "wins:"},
    {TT_SETTING_INT, "rollouts", 0, AT(rollouts), "N",
     "causvid: clips, each with --latents frames, of which all but the last "
     "4 (overlap-1) + 1 video frames are shown (default 1)"},
    {TT_SETTING_INT, "overlap", 0, AT(overlap), "O",
     "causvid: frames a clip takes over from the one before (default 3)"},
    {TT_SETTING_TEXT, "restart", 0, AT(restart), "vae|latent",
     "causvid: the first of them is decoded and encoded again (vae, the "
     "default), or used as it is (latent: not what CausVid does, needs no "
     "VAE). start_frame in --noise replaces both"},

    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Output"},
    {TT_SETTING_WRITE, "output", 'o', AT(output), "PATH",
     ".apng (browsers show it), .mp4 .mov .webm .mkv .gif (through ffmpeg, 16 "
     "fps), .y4m, frames/%05d.png, or - for y4m on standard output. Meanwhile, "
     "and after an interruption, it is NAME.unfinished.mp4 and so on, which "
     "can be played up to where it is (.apng cannot)"},
    {TT_SETTING_WRITE, "animation", 0, AT(animation), "FILE.apng",
     "the same video as an animated PNG, next to what -o writes"},
    {TT_SETTING_WRITE, "contact-sheet", 0, AT(sheet), "FILE",
     "PNG with evenly spaced frames"},
    {TT_SETTING_WRITE, "latents-out", 0, AT(latents_out), "FILE",
     "latents [1, n0+n, C, h, w], complete before decoding starts (default: "
     "next to the output, ending in .latents.safetensors; with -o - "
     "tether-SEED.latents.safetensors)"},
    {TT_SETTING_TEXT, "decode", 0, AT(decode), "after|during",
     "when frames are made: after all latents (default: less memory), or "
     "during the work, those of a chunk as soon as it is done. The bits are "
     "the same"},
    {TT_SETTING_FLAG, "no-decode", 0, AT(no_decode), NULL,
     "stop after the latents"},
    {TT_SETTING_MAYBE, "preview", 0, AT(preview), "FILE.png",
     "a small picture of each chunk as soon as it is there; with %d in the "
     "name one per chunk (default name: next to the output)"},
    {TT_SETTING_FLAG, "vbench-name", 0, AT(vbench_name), NULL,
     "-o is a folder; videos are called PROMPT-SAMPLE.mp4 in it, as VBench "
     "knows them (prompts are those of --prompt-file, also with "
     "--extended-prompt-file)"},

    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Records"},
    {TT_SETTING_WRITE, "record", 0, AT(record), "FILE",
     "JSON with every option, versions, hashes of all inputs (reads every "
     "weight file once more) and times"},
    {TT_SETTING_WRITE, "summary", 0, AT(summary), "FILE",
     "JSON with what became of every video: complete, there before, failed and "
     "why, not begun"},
    {TT_SETTING_WRITE, "dump", 0, AT(dump), "FILE",
     "safetensors with the tensors inside, named like "
     "chunk.0/step.1/block.5/self_attn.q; with text/... of the encoder and "
     "vae/... of the decoder (text/... only where one video is made)"},
    {TT_SETTING_TEXT, "dump-filter", 0, AT(dump_filter), "GLOB",
     "only names that match, e.g. 'chunk.2/*/block.0/*'; what is in the KV "
     "cache after each chunk only when asked for: 'chunk.*/cache.*'"},
    {TT_SETTING_READ, "inject", 0, AT(inject), "FILE",
     "take the tensors of this dump instead of the computed ones, wherever it "
     "has one of the same name and shape (--dump shows what was computed)"},
    {TT_SETTING_TEXT, "inject-filter", 0, AT(inject_filter), "GLOB",
     "only names that match"},
    {TT_SETTING_TEXT, "analyze", 0, AT(analyze), "FOLDER",
     "record the run: latents, what was in the cache, statistics of keys and "
     "values, for `tether analyze` and `explain`, and index.html, a page that "
     "shows it. With --decode during the record can be read meanwhile"},
    {TT_SETTING_TEXT, "label", 0, AT(label), "NAME",
     "what the run is called in tables and legends (default: the policy)"},
    {TT_SETTING_WRITE, "trace-cache", 0, AT(trace), "FILE",
     "safetensors with every decision of the cache policy"},
    {TT_SETTING_FLAG, "plan", 0, AT(plan), NULL,
     "say what the run will take, in bytes per stage and in time, and stop: "
     "nothing is written but --log-json. The time is measured in about 4 "
     "seconds, with golden in more. -m wan1.3b is planned without any file"},
    {TT_SETTING_FLAG, "profile", 0, AT(profile), NULL,
     "print the time per operator at the end"},
    {TT_SETTING_TEXT, "keep-keys", 0, AT(keep_keys), "auto|yes|no",
     "keep the rotated keys of the window from pass to pass of a chunk, and do "
     "not rotate all in each: half as much memory again as the cache. The "
     "backend exact keeps keys and values as attention lays them out: as much "
     "memory again, in class vdp half. auto (default): so where a run takes no "
     "more than half of the memory with it, and on a GPU that has room. No bit "
     "depends on it"},
    {TT_SETTING_TEXT, "kv-dir", 0, AT(kv_dir), "FOLDER",
     "keep keys and values in files of this folder, not in memory: for a "
     "machine whose memory the cache does not fit into. It needs a fast disk "
     "with room for the cache (--plan says how much), not a folder that is "
     "memory itself (tmpfs). The files have no name and are gone when the run "
     "ends, however it ends. No bit depends on it"},
    TT_MODEL_ROW_HISTORY_DIR(tt_settings, model),
    {TT_SETTING_TEXT, "shares", 0, AT(shares), "LIST",
     "how mpirun's ranks share the work: 4,4,1 gives the third a ninth "
     "(default: equal). No bit depends on it"},

    {TT_SETTING_GROUP, NULL, 0, 0, NULL, "Files that are there"},
    {TT_SETTING_FLAG, "resume", 0, AT(resume), NULL,
     "go on where the same command was interrupted, to the same bits, from the "
     "latents in NAME.unfinished; the video is decoded again. Of several "
     "videos those that are complete are left as they are. With a larger "
     "--latents a finished video is made longer. What is there is replaced "
     "where the latents are of this very run"},
    {TT_SETTING_INT, "checkpoint-every", 0, AT(checkpoint_every), "N",
     "save the state of the run every N chunks, next to the latents; 0: never. "
     "--resume goes on from it at once (default: as often as costs 1 % of the "
     "time). A policy that cannot go on without a state also saves its first "
     "chunk"},
    {TT_SETTING_FLAG, "overwrite", 0, AT(overwrite), NULL,
     "replace files that are there, discard unfinished work"},
    {TT_SETTING_END, NULL, 0, 0, NULL, NULL},
};

/* The rows above and one per knob of a policy. */
static tt_setting all[TT_SETTINGS_MAX];

static void settings_fill(void)
{
    int n = 0;
    for (const tt_setting *o = fixed; o->kind; o++) {
        TT_ASSERT(n < TT_SETTINGS_MAX - 1);
        all[n] = *o;
        if (o->name && !strcmp(o->name, "cache"))
            all[n].help = settings_policy_help(o->help);
        if (o->name && !strcmp(o->name, "preset")) {
            all[n].help = settings_preset_help(o->help);
            n += settings_knob_rows(all + n + 1, TT_SETTINGS_MAX - 2 - n);
        }
        n++;
    }
    all[n] = (tt_setting){TT_SETTING_END, NULL, 0, 0, NULL, NULL};
}

/* ---- values -------------------------------------------------------------- */

/* A seed that no one chose; the commands print which it is. */
static bool random_seed(uint64_t *out)
{
    FILE *f = fopen("/dev/urandom", "rb");
    const bool there = f && fread(out, sizeof *out, 1, f) == 1;
    if (f) fclose(f);
    *out &= UINT32_MAX; /* short enough to be typed again */
    return there;
}

static bool store_int(void *at, const char *s)
{
    char *end;
    errno = 0;
    const long long v = strtoll(s, &end, 10);
    if (end == s || *end || errno) return false;
    *(int64_t *)at = v;
    return true;
}

static bool store_u64(void *at, const char *s)
{
    char *end;
    if (!*s || *s == '-' || *s == '+' || *s == ' ') return false;
    const bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    errno = 0;
    const unsigned long long v = strtoull(s, &end, hex ? 16 : 10);
    if (end == s || *end || errno) return false;
    *(uint64_t *)at = v;
    return true;
}

static bool store_real(void *at, const char *s)
{
    char *end;
    errno = 0;
    const double v = strtod(s, &end);
    if (end == s || *end || !isfinite(v)) return false;
    errno = 0; /* a number that rounds to 0 is one */
    *(double *)at = v;
    return true;
}

/* "yes" and 1, "no" and 0; NULL: yes. */
static bool store_switch(void *at, const char *s)
{
    const int yes = !s || !strcmp(s, "yes") || !strcmp(s, "1");
    if (!yes && strcmp(s, "no") && strcmp(s, "0")) return false;
    *(int *)at = yes;
    return true;
}

static bool store_flag(void *at, const char *s)
{
    int yes;
    if (!store_switch(&yes, s)) return false;
    *(bool *)at = yes;
    return true;
}

static bool store_text(void *at, const char *s)
{
    *(const char **)at = s ? s : "";
    return true;
}

static const char *show_int(const void *at, char *buf, size_t n)
{
    snprintf(buf, n, "%lld", (long long)*(const int64_t *)at);
    return buf;
}

static const char *show_u64(const void *at, char *buf, size_t n)
{
    snprintf(buf, n, "%llu", (unsigned long long)*(const uint64_t *)at);
    return buf;
}

static const char *show_real(const void *at, char *buf, size_t n)
{
    snprintf(buf, n, "%.17g", *(const double *)at);
    return buf;
}

static const char *show_switch(const void *at, char *buf, size_t n)
{
    const int yes = *(const int *)at;
    (void)buf;
    (void)n;
    return yes < 0 ? NULL : yes ? "yes" : "no";
}

static const char *show_flag(const void *at, char *buf, size_t n)
{
    const int yes = *(const bool *)at;
    return show_switch(&yes, buf, n);
}

static const char *show_text(const void *at, char *buf, size_t n)
{
    (void)buf;
    (void)n;
    return *(const char *const *)at;
}

static const struct {
    const char *words;         /* what a value must be                        */
    bool alone;                /* may the name stand without one (NULL)?      */
    bool (*store)(void *at, const char *text);
    const char *(*show)(const void *at, char *buf, size_t n);
} kinds[] = {
    [TT_SETTING_FLAG] = {"yes or no", true, store_flag, show_flag},
    [TT_SETTING_SWITCH] = {"yes or no", true, store_switch, show_switch},
    [TT_SETTING_INT] = {"a whole number", false, store_int, show_int},
    [TT_SETTING_U64] = {"a whole number from 0 to 2^64-1", false, store_u64,
                        show_u64},
    [TT_SETTING_REAL] = {"a finite number", false, store_real, show_real},
    [TT_SETTING_TEXT] = {"a value", false, store_text, show_text},
    [TT_SETTING_READ] = {"a value", false, store_text, show_text},
    [TT_SETTING_WRITE] = {"a value", false, store_text, show_text},
    [TT_SETTING_MAYBE] = {"a value", true, store_text, show_text},
    [TT_SETTING_LIST] = {"a value", false, store_text, show_text},
};

static bool is_text(tt_setting_kind k)
{
    return kinds[k].store == store_text;
}

static bool settings_store(const tt_setting *o, void *at, const char *text)
{
    if (!kinds[o->kind].store || (!text && !kinds[o->kind].alone))
        return false;
    if (o->kind == TT_SETTING_U64 && !strcmp(o->name, "seed")
        && !strcmp(text, "random")) return random_seed(at);
    return kinds[o->kind].store(at, text);
}

/* A number too large for its type is told apart. */
tt_status tt_setting_store(tt_ctx *ctx, const tt_setting *row, void *base,
                           const char *text)
{
    if (ctx->status) return ctx->status;
    errno = 0;
    if (settings_store(row, (char *)base + row->offset, text)) return TT_OK;
    if (row->kind == TT_SETTING_U64 && !strcmp(row->name, "seed") && text
        && errno != ERANGE)
        return tt_fail(ctx, TT_EINVAL, "--seed needs a whole number from 0 to "
                       "2^64-1, but `%s` was given; --seed random draws one",
                       text);
    return tt_fail(ctx, TT_EINVAL, errno == ERANGE
                   ? "--%s needs %s, and `%s` is out of range"
                   : text ? "--%s needs %s, but `%s` was given"
                   : "--%s needs %s (%s)", row->name, kinds[row->kind].words,
                   text ? text : row->arg ? row->arg : "");
}

const char *tt_setting_show(const tt_setting *row, const void *base, char *buf,
                            size_t n)
{
    const void *at = (const char *)base + row->offset;
    return kinds[row->kind].show ? kinds[row->kind].show(at, buf, n) : NULL;
}

int tt_setting_reals(double *values, int max, const char *text)
{
    int n = 0;
    while (1) {
        char *end;
        double v = strtod(text, &end);
        if (end == text || !isfinite(v) || n == max) return -1;
        values[n++] = v;
        if (!*end) return n;
        if (*end != ',') return -1;
        text = end + 1;
    }
}

/* "1000, 750" in brackets or not: the count, or -1. */
static int list_of_steps(double *values, const char *text)
{
    const char *const blanks = " \t";
    int n = 0;
    text += strspn(text, blanks);
    const bool brackets = *text == '[';
    text += brackets;
    while (n < TT_MAX_STEPS) {
        char *end;
        const double v = strtod(text, &end);
        if (end == text || !isfinite(v)) return -1;
        values[n++] = v;
        text = end + strspn(end, blanks);
        if (brackets && *text == ']')
            return text[1 + strspn(text + 1, blanks)] ? -1 : n;
        if (!*text) return brackets ? -1 : n;
        if (*text == ',') text++;
        else if (text == end) return -1;
    }
    return -1;
}

tt_status tt_setting_steps(tt_ctx *ctx, double *values, int *n, bool *counted,
                           const char *text)
{
    enum { NEAR = 950 };
    if (ctx->status) return ctx->status;
    *n = list_of_steps(values, text);
    const bool list = text[strspn(text, " \t")] == '[';
    const int count = *n == 1 && !list && values[0] >= 1
                    && values[0] <= TT_MAX_STEPS
                    && values[0] == floor(values[0]) ? (int)values[0] : 0;
    if (counted) *counted = count > 0;
    for (int i = 0; i < count; i++)
        values[i] = round((double)TT_TABLE * (count - i) / count);
    if (count) *n = count;
    if (*n < 1)
        return tt_fail(ctx, TT_EINVAL, "--steps needs up to %d numbers like "
                       "1000,750,500,250, or a count like 4, but `%s` was "
                       "given", TT_MAX_STEPS, text);
    if (values[0] >= NEAR && values[0] <= TT_TABLE) return TT_OK;
    if (*n == 1)
        return tt_fail(ctx, TT_EINVAL, "--steps %s: one number is the count of "
                       "steps, a whole one from 1 to %d; a list of step values "
                       "begins near 1000, like 1000,750,500,250", text,
                       TT_MAX_STEPS);
    return tt_fail(ctx, TT_EINVAL, "--steps %s: a list of step values begins "
                   "near 1000 (%d or more), where a video is noise alone, like "
                   "1000,750,500,250; --steps %d is %d evenly spaced ones",
                   text, NEAR, *n, *n);
}

/* ---- by name ------------------------------------------------------------- */

const tt_setting *tt_settings_table(void)
{
    static atomic_flag filling = ATOMIC_FLAG_INIT;
    static atomic_bool filled;
    if (atomic_load(&filled)) return all;
    while (atomic_flag_test_and_set(&filling)) continue;
    if (!atomic_load(&filled)) settings_fill();
    atomic_store(&filled, true);
    atomic_flag_clear(&filling);
    return all;
}

const tt_setting *tt_settings_find(const char *name)
{
    for (const tt_setting *o = tt_settings_table(); name && o->kind; o++)
        if (o->name && !strcmp(o->name, name)) return o;
    return NULL;
}

tt_settings tt_settings_defaults(void)
{
    return (tt_settings){
        .model = TT_MODEL_PATHS, .num_samples = 1, .seed_rule = "plain",
        .steps = "1000,750,500,250", .warp = 1, .shift = 5, .chunk = 3,
        .cache = "tether", .cut_rule = "official", .rollouts = 1, .overlap = 3,
        .restart = "vae", .decode = "after", .keep_keys = "auto",
        .checkpoint_every = -1,
    };
}

void tt_settings_free(tt_settings *s)
{
    tt_arena_free(&s->mem);
    *s = (tt_settings){0};
}

static const char *own(tt_ctx *ctx, tt_settings *s, const char *text)
{
    return text ? tt_strdup(ctx, &s->mem, text) : NULL;
}

tt_status tt_settings_copy(tt_ctx *ctx, tt_settings *to,
                           const tt_settings *from)
{
    *to = *from;
    to->mem = (tt_arena){0};
    for (const tt_setting *o = tt_settings_table(); o->kind; o++) {
        const char **text = (const char **)(void *)((char *)to + o->offset);
        if (is_text(o->kind)) *text = own(ctx, to, *text);
    }
    for (int i = 0; i < to->given.n; i++)
        to->given.value[i] = own(ctx, to, to->given.value[i]);
    return ctx->status;
}

/* A list with one more value. */
static const char *settings_longer(tt_ctx *ctx, tt_settings *s,
                                   const tt_setting *o, const char *text)
{
    const char *before = show_text((char *)s + o->offset, NULL, 0);
    if (!before || !*before || !*text) return own(ctx, s, text);
    const size_t n = strlen(before) + strlen(text) + 2;
    char *list = tt_alloc(ctx, &s->mem, (int64_t)n, 1, "a list");
    if (list) snprintf(list, n, "%s\n%s", before, text);
    return list;
}

/* The last one wins: a name stands in the list once. */
static void note_given(tt_settings_given *g, const char *name,
                       const char *value)
{
    int at = 0;
    while (at < g->n && strcmp(g->name[at], name)) at++;
    TT_ASSERT(at < TT_SETTINGS_MAX);
    g->name[at] = name;
    g->value[at] = value;
    if (at == g->n) g->n++;
}

tt_status tt_settings_set(tt_ctx *ctx, tt_settings *s, const char *name,
                          const char *text)
{
    const tt_setting *o = tt_settings_find(name);
    if (ctx->status) return ctx->status;
    if (!o)
        return tt_fail(ctx, TT_EINVAL, "a run has no setting `%s`; `tether "
                       "generate --help` lists them", name ? name : "");
    const char *kept = o->kind == TT_SETTING_LIST && text
                     ? settings_longer(ctx, s, o, text) : own(ctx, s, text);
    TT_TRY(ctx->status);
    TT_TRY(tt_setting_store(ctx, o, s, kept));
    if (o->kind == TT_SETTING_SWITCH && !kept) kept = "yes";
    note_given(&s->given, o->name, o->kind == TT_SETTING_FLAG ? NULL : kept);
    return TT_OK;
}

const char *tt_settings_get(const tt_settings *s, const char *name, char *buf,
                            size_t n)
{
    const tt_setting *o = s ? tt_settings_find(name) : NULL;
    return o ? tt_setting_show(o, s, buf, n) : NULL;
}

bool tt_settings_was_given(const tt_settings *s, const char *name)
{
    for (int i = 0; s && name && i < s->given.n; i++)
        if (!strcmp(s->given.name[i], name)) return true;
    return false;
}
