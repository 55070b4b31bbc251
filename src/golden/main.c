/* main.c: a video from a prompt, from the command line to the last pixel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#define SF {1000, 750, 500, 250}                 /* Self-Forcing, and others with its network */
static const struct { const char *name; const policy *cache; int chunk; double steps[5], first[5]; }
    models[] = {
        {"causal-forcing", &full, 3, SF, {0}}, {"causal-forcing-frame", &full, 1, SF, {0}},
        {"causal-forcing-2step", &full, 1, {1000, 500}, SF}, {"longlive", &longlive, 3, SF, {0}},
        {"causal-forcing-1step", &full, 1, {1000}, SF}, {"reward-forcing", &reward, 3, SF, {0}}};
enum { MODELS = sizeof models / sizeof *models };

static void print_help(void) {
    puts("usage: golden -m DIR (-p TEXT | --ids FILE) [options]\n\n"
         "  -m, --model DIR        config.json, google/umt5-xxl/spiece.model and the safetensors\n"
         "                         of diffusion_pytorch_model, umT5 and Wan2.1_VAE\n"
         "  -p, --prompt TEXT      what the video shows\n"
         "      --ids FILE         token ids instead, in decimal\n"
         "  -n, --latents N        latent frames to make (21)\n"
         "      --size WxH         multiples of 16 (that of the model)\n"
         "  -s, --seed N           of the noise (0)\n"
         "      --image FILE.ppm   the first frame\n"
         "      --scene CHUNK=TEXT another prompt from this chunk on; with a cut: CHUNK#=TEXT\n"
         "      --preset NAME      of tether: official, paper, grab-only, attention-only,\n"
         "                         recency-only, sink-recent, no-memory; or a model (below)\n"
         "  -o, --output FILE.y4m  pictures, 16 a second\n"
         "      --latents-out FILE latents, as safetensors\n"
         "      --trace FILE       every decision of the cache, as text\n"
         "      --cache NAME       a policy (tether), and its settings:");
    for (int i = 0; policies[i]; i++) {
        printf("  %-16s %s\n", policies[i]->name, policies[i]->about);
        for (const knob *k = policies[i]->knobs; k->name; k++)
            printf("      --%s %s (%g)\n", k->name, k->words ? k->words : "X", k->value);
    }
    for (int i = 0; i < MODELS; i++) printf("  --preset %s\n", models[i].name);
}

/* A compiler that contracts a * b + c, or a wrong fmaf, would give other numbers and no error. */
static void check_arithmetic(void) {
    volatile float a = 1 + 0x1p-12f, c = -1 - 0x1p-11f, small = 0x1p-149f;
    volatile double b = 1 + 0x1p-27, d = -1 - 0x1p-26;
    const float x = a, y = c;
    const double u = b, v = d;
    if (x * x + y != 0 || u * u + v != 0) fail("a * b + c is contracted: add -ffp-contract=off");
    if (fmaf(a, a, c) != 0x1p-24f || fma(b, b, d) != 0x1p-54)
        fail("fma of this C library rounds twice: link another one");
    if (small * 0.75f != small) fail("subnormal numbers are flushed, or not rounded to nearest");
}

typedef struct options {
    const char *model, *prompt, *ids, *output, *latents, *trace, *image, *size, *preset, *cache;
    const char *count, *seed, *scene[SCENES_MAX];
    int scenes;
} options;

/* Ids in decimal, </s> included; returns how many. */
static int read_ids(const char *path, int *ids, int limit) {
    size_t size;
    char *text = read_file(path, &size), *at = text, *end = text;
    int n = 0;
    for (; n < limit; n++, at = end) {
        const long id = strtol(at, &end, 10);
        if (end == at || id < 0 || id > INT_MAX) break;
        ids[n] = (int)id;
    }
    if (!n || at[strspn(at, " \t\r\n")]) fail("%s: expected 1 to %d ids in decimal", path, limit);
    free(text);
    return n;
}

/* The end of a long prompt is cut off; </s> is always there. */
static int read_prompt(const char *folder, const char *utf8, int *ids, int limit) {
    char path[1024], *clean = clean_prompt(utf8);
    snprintf(path, sizeof path, "%s/google/umt5-xxl/spiece.model", folder);
    const tokenizer *t = tokenizer_open(path);
    const int n = tokenize(t, clean, strlen(clean), ids, limit - 1);
    ids[n] = tokenizer_end(t);
    free(clean);
    return n + 1;
}

/* What the transformer attends to: states of the ids, then rows of zeros. */
static prompt *make_prompt(const transformer *m, const options *g, const char *text) {
    char path[1024];
    const int length = m->text_len;
    int *ids = memory((size_t)length, sizeof *ids), dim;
    uint8_t *mask = memory((size_t)length, 1);
    const int n = text ? read_prompt(g->model, text, ids, length) : read_ids(g->ids, ids, length);
    memset(mask, 1, (size_t)n);
    snprintf(path, sizeof path, "%s/models_t5_umt5-xxl-enc-bf16.safetensors", g->model);
    weights *f = weights_open(path);
    float *states = text_encode(f, ids, mask, length, &dim);
    if (dim != m->text_dim) fail("%s makes states of %d, expected %d", path, dim, m->text_dim);
    for (int i = n * dim; i < length * dim; i++) states[i] = 0;
    prompt *p = prompt_open(m, states);
    weights_close(f);
    free(ids), free(mask), free(states);
    return p;
}

static void make_prompts(video *v, const options *g) {
    v->text[v->scenes++] = make_prompt(v->model, g, g->prompt);
    for (int i = 0; i < g->scenes; i++, v->scenes++) {
        char *end;
        v->scene[v->scenes] = (int)strtol(g->scene[i], &end, 10);
        v->cut[v->scenes] = *end == '#';
        end += *end == '#';
        if (*end != '=' || v->scene[v->scenes] <= v->scene[v->scenes - 1])
            usage("--scene %s: expected CHUNK=TEXT, with chunks in order", g->scene[i]);
        if (v->cut[v->scenes] && v->policy != &infinity) usage("a cut needs --cache infinity");
        v->text[v->scenes] = make_prompt(v->model, g, end + 1);
    }
}

static unsigned long long number(const char *name, const char *text, unsigned long long most) {
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || n > most) usage("%s %s: no such number", name, text);
    return n;
}

/* False: not an option of the program, so perhaps a setting of the policy. */
static bool take(options *g, const char *name, const char *value) {
    const struct { const char *name, *other, **to; } texts[] = {
        {"-m", "--model", &g->model}, {"-p", "--prompt", &g->prompt}, {"", "--ids", &g->ids},
        {"-o", "--output", &g->output}, {"", "--latents-out", &g->latents},
        {"", "--trace", &g->trace}, {"", "--image", &g->image}, {"", "--size", &g->size},
        {"", "--preset", &g->preset}, {"", "--scene", &g->scene[g->scenes]},
        {"-n", "--latents", &g->count}, {"-s", "--seed", &g->seed}, {"", "--cache", &g->cache}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(name, texts[i].name) && strcmp(name, texts[i].other)) continue;
        *texts[i].to = value;
        g->scenes += !strcmp(name, "--scene");
        if (g->scenes == SCENES_MAX) usage("more than %d scenes", SCENES_MAX - 1);
        return true;
    }
    return false;
}

/* First the program's options; then, when the policy is known, its defaults, preset and settings.
 * An image is one frame, so a cache of 1 + 3 i frames fills exactly. */
static void take_options(options *g, video *v, int argc, char **argv) {
    const double *steps = models[0].steps;
    bool taken[1000] = {false};
    int m = 0;
    *v = (video){.policy = &tethercache, .frames = 21, .chunk = 3};
    if (argc % 2 == 0 || argc > 1000) usage("%s: no value", argv[argc - 1]);
    for (int i = 1; i < argc; i += 2) taken[i] = take(g, argv[i], argv[i + 1]);
    while (m < MODELS && (!g->preset || strcmp(models[m].name, g->preset))) m++;
    if (m < MODELS) {
        v->policy = models[m].cache, v->chunk = models[m].chunk, steps = models[m].steps;
        schedule_make(&v->opening, 5, models[m].first, true);
    }
    if (g->cache && !(v->policy = policy_find(g->cache))) usage("no policy %s", g->cache);
    if (g->count) v->frames = (int)number("--latents", g->count, 1000000);
    if (g->seed) v->seed = number("--seed", g->seed, UINT64_MAX);
    if (!g->model || !g->prompt == !g->ids) usage("give a model and a prompt: -m DIR -p TEXT");
    memcpy(v->o, v->policy->knobs, sizeof v->o);
    if (g->preset && (m < MODELS ? v->policy != models[m].cache
                      : v->policy != &tethercache || !tether_preset(v->o, g->preset)))
        usage("--cache %s has no preset %s", v->policy->name, g->preset);
    if (g->image && v->policy == &tethercache && setting(v->o, "budget") == 21)
        setting_put(v->o, "budget", "22");
    for (int i = 1; i < argc; i += 2)
        if (!taken[i] && (strstr(argv[i], "--") != argv[i]
                          || !setting_put(v->o, argv[i] + 2, argv[i + 1])))
            usage("%s is no option, and no setting of %s; see --help", argv[i], v->policy->name);
    const double *own = v->policy->steps;
    schedule_make(&v->schedule, own ? 8 : 5, own ? own : steps, !own);
}

static void take_size(const options *g, video *v) {
    int w = v->model->width, h = v->model->height;
    char rest;
    if (g->size && sscanf(g->size, "%dx%d%c", &w, &h, &rest) != 2) w = 0;
    if (w < 16 || h < 16 || w % 16 || h % 16 || w > 16384 || h > 16384)
        usage("the size must be WxH, multiples of 16");
    v->h = h / 8, v->w = w / 8;
}

/* The first latent of an image, which is one picture. */
static void take_image(const options *g, video *v) {
    if (!g->image) return;
    float *rgb = read_ppm(g->image, 8 * v->h, 8 * v->w);
    float *z = floats((size_t)v->model->channels * v->h * v->w);
    vae_run(vae_open(v->vae, true), z, rgb, 8 * v->h, 8 * v->w);
    v->given = z, v->given_frames = 1, v->lone_first = true;
    free(rgb);
}

/* Decode every rollout on its own. CausVid shows no frame twice: all but the last 4 (overlap - 1)
 * + 1 pictures, where there are several. */
static void make_pictures(const options *g, const video *v, const float *x) {
    const int overlap = (int)setting(v->o, "overlap"), rollouts = video_rollouts(v);
    const int total = v->given_frames + v->frames, H = 8 * v->h, W = 8 * v->w;
    const int shown = 4 * total - 3 - (rollouts > 1 ? 4 * overlap - 3 : 0);
    const size_t latent = (size_t)v->model->channels * v->h * v->w, picture = (size_t)3 * H * W;
    float *rgb = floats(4 * picture);
    vae *decoder = vae_open(v->vae, false);
    FILE *f = g->output ? y4m_create(g->output, H, W) : NULL;
    uint64_t hash = DIGEST_BEGIN;
    for (int r = 0; r < rollouts; r++) {
        vae_restart(decoder);
        for (int i = 0, done = 0; i < total; i++, x += latent) {
            const int n = vae_run(decoder, rgb, x, v->h, v->w);
            for (int k = 0; k < n && done < shown; k++, done++)
                hash = y4m_picture(f, hash, rgb + k * picture, H, W);
        }
    }
    if (f) close_whole(f, g->output);
    printf("frames  %d %016llx\n", rollouts * shown, (unsigned long long)hash);
    free(rgb);
}

int main(int argc, char **argv) {
    char vae_path[1024];
    options g = {.scenes = 0};
    video v;
    check_arithmetic();
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) return print_help(), 0;
    take_options(&g, &v, argc, argv);
    v.model = transformer_open(g.model);
    snprintf(vae_path, sizeof vae_path, "%s/Wan2.1_VAE.safetensors", g.model);
    v.vae = vae_path;
    take_size(&g, &v), take_image(&g, &v);
    make_prompts(&v, &g);
    weights_close(weights_open(vae_path));       /* what is wrong should fail before the work */
    if (g.output) fclose(y4m_create(g.output, 8 * v.h, 8 * v.w));
    if (g.trace && !(v.trace = fopen(g.trace, "w"))) fail("cannot write %s", g.trace);
    float *x = video_make(&v);
    const int dim[] = {video_rollouts(&v), v.given_frames + v.frames, v.model->channels, v.h, v.w};
    printf("latents %d %016llx\n", dim[0] * dim[1],
           (unsigned long long)save_latents(g.latents, dim, x));
    if (v.trace) close_whole(v.trace, g.trace);
    fflush(stdout);
    make_pictures(&g, &v, x);
    return 0;
}
