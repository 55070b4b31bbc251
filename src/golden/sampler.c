/* sampler.c: a video chunk by chunk, each by a few denoising steps.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, eq. 2; Self-Forcing (Huang et al. 2025).
 * Code    pipeline/causal_inference.py, utils/scheduler.py. */
#include "golden.h"

/* sigma is the share of noise; a shift s moves the steps towards noise. */
void schedule_make(schedule *s, double shift, const double *list, bool warp) {
    for (int i = 0; i < TABLE; i++) {
        const double u = 1 - i / (double)TABLE;
        s->sigma[i] = (float)(shift * u / (1 + (shift - 1) * u));
        s->timestep[i] = s->sigma[i] * 1000;
    }
    for (s->steps = 0; list[s->steps] > 0; s->steps++) {
        if (s->steps == STEPS_MAX || list[s->steps] > TABLE)
            usage("at most %d denoising steps of 1..%d", STEPS_MAX, TABLE);
        s->t[s->steps] = warp ? s->timestep[TABLE - (int)list[s->steps]] : list[s->steps];
    }
}

/* Of the entry with the nearest timestep, the first of equals. */
float schedule_sigma(const schedule *s, double t) {
    int best = 0;
    for (int i = 1; i < TABLE; i++)
        if (fabs(s->timestep[i] - t) < fabs(s->timestep[best] - t)) best = i;
    return s->sigma[best];
}

/* The network predicts flow = noise - clean. */
void flow_to_clean(float *x0, const float *x, const float *flow, float sigma, size_t n) {
    for (size_t i = 0; i < n; i++) x0[i] = (float)(x[i] - (double)sigma * (double)flow[i]);
}

void mix(float *x, float a, const float *y, float b, const float *z, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float left = a * y[i], right = b * z[i];
        x[i] = left + right;
    }
}

/* Where the work is. Frame `start` has the noise of frame `first` + start. */
typedef struct run {
    const video *v;
    cache *caches;
    size_t frame;                /* numbers in a latent frame                                     */
    int chunk, first, denoised;  /* chunks and frames so far                                      */
} run;

/* Stream 0 is where a chunk begins, stream j + 1 comes after step j. */
static void draw_noise(const run *r, float *x, const pass *p, int stream) {
    const video *v = r->v;
    const size_t gaps = (size_t)v->schedule.steps - 1, n = r->frame, frames = (size_t)p->frames;
    for (size_t f = 0; f < frames; f++) {
        const int at = r->first + p->start + (int)f;
        if (!v->noise) noise_frame(x + f * n, n, v->seed, 0, (uint32_t)at, (uint32_t)stream);
        else if (stream == 0) memcpy(x + f * n, v->noise + at * n, n * sizeof *x);
        else memcpy(x + f * n, v->renoise + (r->denoised * gaps + (stream - 1) * frames + f) * n,
                    n * sizeof *x);
    }
}

static int scene_of(const run *r) {
    int scene = r->v->scenes;
    while (--scene > 0 && r->chunk < r->v->scene[scene]) {}
    return scene;
}

static void network(const run *r, float *flow, const float *x, double t, pass p) {
    const video *v = r->v;
    const int scene = scene_of(r);
    double *each = doubles((size_t)p.frames);
    for (int f = 0; f < p.frames; f++) each[f] = t;
    p.chunk = r->chunk, p.h = v->h, p.w = v->w;
    p.scene = scene > 0 && v->scene[scene] == r->chunk;
    p.cut = p.scene && v->cut[scene];
    transformer_run(v->model, flow, x, each, &p, v->text[scene], r->caches);
    free(each);
}

/* Eq. 2: x0 = x - sigma_j flow, x = (1 - sigma_j+1) x0 + sigma_j+1 noise; the last x0 is the chunk.
 * Then the clean pass, whose keys and values later chunks see. Code: no context noise is added. */
static void make_chunk(const run *r, float *x0, int start, int frames) {
    const video *v = r->v;
    const schedule *s = !r->denoised && v->opening.steps ? &v->opening : &v->schedule;
    const size_t n = frames * r->frame;
    float *x = floats(n), *flow = floats(n), *fresh = floats(n);
    pass p = {.start = start, .frames = frames};
    draw_noise(r, x, &p, 0);
    for (int j = 0; j < s->steps; j++) {
        network(r, flow, x, s->t[j], p);
        flow_to_clean(x0, x, flow, schedule_sigma(s, s->t[j]), n);
        if (j == s->steps - 1) break;
        draw_noise(r, fresh, &p, j + 1);
        const float sigma = schedule_sigma(s, s->t[j + 1]);
        mix(x, 1 - sigma, x0, sigma, fresh, n);
    }
    p.clean = true;
    network(r, NULL, x0, v->context_noise, p);
    free(x), free(flow), free(fresh);
}

/* `total` frames. The first `given` are there, and take the clean pass alone, at timestep 0. */
static void make_clip(run *r, float *x, int given, int total) {
    const video *v = r->v;
    for (int start = 0, frames; start < total; r->chunk++, start += frames) {
        frames = start == 0 && v->lone_first ? 1 : v->chunk;
        if (v->policy == &longlive && r->chunk && r->chunk == v->scene[scene_of(r)]) {
            const int K = (int)setting(v->o, "budget"), n = K < 0 || K > start ? start : K;
            network(r, NULL, x + (start - n) * r->frame, v->context_noise,
                    (pass){.start = start - n, .frames = n, .anew = true});
        }
        float *to = x + start * r->frame;
        const pass p = {.start = start, .frames = frames, .clean = v->context_noise == 0};
        if (start < given) network(r, NULL, to, 0, p);
        else make_chunk(r, to, start, frames), r->denoised += frames;
    }
}

/* CausVid: a clip restarts from the end of the one before. The first frame taken over is decoded
 * and encoded again, because the first latent of a clip is one picture, and others are four. */
static void reencode(const video *v, float *to, const float *clip, int last, size_t frame) {
    const size_t picture = 3 * 64 * (size_t)v->h * v->w;
    vae *decoder = vae_open(v->vae, false);
    float *rgb = floats(4 * picture), *one = rgb;
    for (int i = 0; i <= last; i++)
        one = rgb + (vae_run(decoder, rgb, clip + i * frame, v->h, v->w) - 1) * picture;
    for (size_t i = 0; i < picture; i++) {       /* to [0, 1] and back */
        const float unit = one[i] * 0.5f + 0.5f;
        one[i] = (unit < 0 ? 0 : unit > 1 ? 1 : unit) * 2 - 1;
    }
    vae_run(vae_open(v->vae, true), to, one, 8 * v->h, 8 * v->w);
    free(rgb);
}

static void check_frames(const video *v, int rollouts, int overlap) {
    const int first = v->lone_first ? 1 : v->chunk, given = v->given_frames;
    const int old = given ? given - first : 0, rest = given ? v->frames : v->frames - first;
    if (v->frames < 1 || old < 0 || old % v->chunk || rest < 0 || rest % v->chunk)
        usage("%d frames after %d given ones are no whole chunks of %d%s", v->frames, given,
              v->chunk, v->lone_first ? ", the first of 1" : "");
    if (rollouts < 1 || rollouts > 1000) usage("--rollouts must be 1 to 1000");
    if (rollouts > 1 && (overlap < 1 || overlap >= v->frames || overlap % v->chunk || given))
        usage("the overlap of %d frames must be whole chunks, fewer than a rollout has", overlap);
}

int video_rollouts(const video *v) {
    return v->policy == &causvid ? (int)setting(v->o, "rollouts") : 1;
}

float *video_make(const video *v) {
    const transformer *m = v->model;
    const int total = v->given_frames + v->frames, rollouts = video_rollouts(v);
    const int overlap = (int)setting(v->o, "overlap");
    const geometry g = {.layers = m->layers, .L = v->h / 2 * (v->w / 2), .grid = v->w / 2,
                        .heads = m->heads, .D = m->dim / m->heads, .frames = total,
                        .chunk = v->chunk, .first_chunk = v->lone_first ? 1 : v->chunk,
                        .scenes = v->scenes};
    run r = {.v = v, .frame = (size_t)m->channels * v->h * v->w};
    const size_t clip = total * r.frame;
    check_frames(v, rollouts, overlap);
    float *x = floats(rollouts * clip), *at = x;
    memcpy(x, v->given ? v->given : x, v->given_frames * r.frame * sizeof *x);
    for (int i = 0; i < rollouts; i++, at += clip) {
        if (i > 0) memcpy(at, at - overlap * r.frame, overlap * r.frame * sizeof *x);
        if (i > 0 && v->start_frame)
            memcpy(at, v->start_frame + (i - 1) * r.frame, r.frame * sizeof *x);
        else if (i > 0 && setting(v->o, "restart") == 0)
            reencode(v, at, at - clip, total - overlap, r.frame);
        r.caches = cache_open(v->policy, v->o, &g, v->trace);
        r.first = i > 0 ? i * v->frames : -v->given_frames;
        make_clip(&r, at, i > 0 ? overlap : v->given_frames, total);
        cache_close(r.caches, m->layers);
    }
    return x;
}
