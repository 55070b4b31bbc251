/* generate_names.c: what the files of a video are called.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   one set of options names the files of several videos: a suffix
 *         tells them apart. What has no name of its own is next to the
 *         video.
 * Next    cmd_generate.c */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/generate/generate.h"
#include "analyze/analyze.h"

/* What names are made from and where they are kept. */
typedef struct maker {
    tt_ctx *ctx;
    tt_arena *mem;
    const tt_settings *g;
    char suffix[64];           /* of this video; "" when it is the only one   */
    uint64_t seed;
} maker;

/* path with the suffix before its ending: "a/b.mp4" "-1" -> "a/b-1.mp4". */
static const char *with_suffix(const maker *m, const char *path)
{
    if (!path || !*m->suffix || !strcmp(path, "-")) return path;
    size_t n = strlen(path) + strlen(m->suffix) + 1;
    char *out = tt_alloc(m->ctx, m->mem, (int64_t)n, 1, "file name");
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    size_t stem = dot ? (size_t)(dot - path) : strlen(path);
    if (out) snprintf(out, n, "%.*s%s%s", (int)stem, path, m->suffix,
                      path + stem);
    return out;
}

/* The same for a folder, whose name has no ending. */
static const char *folder_with_suffix(const maker *m, const char *path)
{
    if (!path || !*m->suffix) return path;
    size_t n = strlen(path), capacity = n + strlen(m->suffix) + 1;
    while (n > 1 && path[n - 1] == '/') n--;
    char *out = tt_alloc(m->ctx, m->mem, (int64_t)capacity, 1, "file name");
    if (out) snprintf(out, capacity, "%.*s%s", (int)n, path, m->suffix);
    return out;
}

/* FOLDER/PROMPT-SAMPLE.mp4 as VBench wants it. */
static const char *vbench_name(const maker *m, const char *prompt,
                               int64_t sample)
{
    char stem[TT_VBENCH_STEM_MAX + 1];
    size_t capacity = strlen(m->g->output) + sizeof stem + 32;
    char *out = tt_alloc(m->ctx, m->mem, (int64_t)capacity, 1, "file name");
    tt_vbench_stem(stem, prompt);
    if (out) snprintf(out, capacity, "%s/%s-%lld.mp4", m->g->output, stem,
                      (long long)sample);
    return out;
}

/* Length of what all names next to pictures `folder/%05d.png` begin with: the
 * folder, which need not exist yet; its last part must be a name. */
static size_t folder_stem(const char *output, const char *base)
{
    size_t n = (size_t)(base - output);
    while (n && output[n - 1] == '/') n--;
    size_t name = n;
    while (name && output[name - 1] != '/') name--;
    return strspn(output + name, ".") >= n - name ? 0 : n;
}

/* Numbered pictures; `%` in the name of a video is a sign like others. */
static bool is_pictures(const char *base)
{
    const size_t n = strlen(base);
    return strchr(base, '%') && n > 4 && !strcasecmp(base + n - 4, ".png");
}

/* What is in the names of all pictures `base`, a_%05d.png, next to the
 * number and the suffix: "a"; its length is 0 when there is nothing. */
static size_t picture_stem(const maker *m, const char *base, char *name,
                           size_t size)
{
    static const char between[] = "_-. ";
    size_t before = strcspn(base, "%");
    const char *after = base + before + strcspn(base + before, "d");
    if (*after) after++;
    const size_t all = strcspn(after, "."), suffix = strlen(m->suffix);
    size_t own = all > suffix ? all - suffix : 0;
    while (before && strchr(between, base[before - 1])) before--;
    while (!before && own && strchr(between, *after)) after++, own--;
    return (size_t)snprintf(name, size, "%.*s%.*s", (int)before, base,
                            (int)own, after);
}

/* Next to `output`: its name with another ending. Next to pictures: what their
 * names have in common, or the name of their folder, and the suffix. For
 * standard output: in the current folder. */
static const char *adjacent(const maker *m, const char *output,
                            const char *ending)
{
    if (!output) return NULL;
    const char *slash = strrchr(output, '/');
    const char *base = slash ? slash + 1 : output;
    const char *dot = strrchr(base, '.');
    size_t n = dot ? (size_t)(dot - output) : strlen(output);
    char name[400] = "";
    if (!strcmp(output, "-")) {
        n = 0;
        snprintf(name, sizeof name, "tether-%llu", (unsigned long long)m->seed);
    } else if (is_pictures(base)) {
        n = (size_t)(base - output);
        if (!picture_stem(m, base, name, sizeof name - 64)) {
            n = folder_stem(output, base);
            if (!n) snprintf(name, sizeof name, "video");
            if (!n) n = (size_t)(base - output); /* "", "./" or "../" */
        }
        strcat(name, m->suffix);
    }
    size_t capacity = n + strlen(name) + strlen(ending) + 1;
    char *out = tt_alloc(m->ctx, m->mem, (int64_t)capacity, 1, "file name");
    if (out) snprintf(out, capacity, "%.*s%s%s", (int)n, output, name, ending);
    return out;
}

static void make_suffix(maker *m, const tt_run_video *w, bool several)
{
    const bool samples = m->g->num_samples > 1;
    if (several && samples)
        snprintf(m->suffix, sizeof m->suffix, "-%d-%lld", w->prompt,
                 (long long)w->sample);
    else if (several)
        snprintf(m->suffix, sizeof m->suffix, "-%d", w->prompt);
    else if (samples)
        snprintf(m->suffix, sizeof m->suffix, "-%lld", (long long)w->sample);
}

tt_run_files names_make(tt_ctx *ctx, tt_arena *mem, const tt_settings *g,
                        const tt_run_video *video, bool several)
{
    maker m = {.ctx = ctx, .mem = mem, .g = g, .seed = video->seed};
    tt_run_files v = {0};
    make_suffix(&m, video, several);
    v.output = g->vbench_name ? vbench_name(&m, video->text, video->sample)
             : with_suffix(&m, g->output);
    v.animation = with_suffix(&m, g->animation);
    v.sheet = with_suffix(&m, g->sheet);
    v.record = with_suffix(&m, g->record);
    v.dump = with_suffix(&m, g->dump);
    v.trace = with_suffix(&m, g->trace);
    v.analyze = folder_with_suffix(&m, g->analyze);
    const char *main_output = v.output && strcmp(v.output, "-") ? v.output
                                                                : v.sheet;
    if (!main_output) main_output = v.output; /* "-" */
    v.latents = g->latents_out ? with_suffix(&m, g->latents_out)
              : adjacent(&m, main_output, ".latents.safetensors");
    v.preview = !g->preview ? NULL
              : *g->preview ? with_suffix(&m, g->preview)
              : adjacent(&m, main_output, ".preview.png");
    if (g->no_decode) v.output = v.animation = v.sheet = NULL;
    return v;
}

const char *names_in(tt_ctx *ctx, tt_arena *mem, const char *folder,
                     const char *name)
{
    if (!folder) return NULL;
    size_t capacity = strlen(folder) + strlen(name) + 2;
    char *out = tt_alloc(ctx, mem, (int64_t)capacity, 1, "file name");
    if (out) snprintf(out, capacity, "%s/%s", folder, name);
    return out;
}
