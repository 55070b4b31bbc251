/* cmd_bench.c: tether bench, speed of a pass and of the operators, their error.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    bench_pass.c, bench_ops.c, bench_error.c */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "cli/generate/generate.h"
#include "cli/ui/outputs.h"
#include "io/outfile.h"
#include "team/team.h"
#include "core/threads.h"
#include "tether/version.h"

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Benchmark"},
    {OPT_WRITE, "json", 0, offsetof(bench_settings, json), "FILE",
     "write every figure as JSON; a file that is there is replaced. - is the "
     "standard output, and the table goes to the standard error"},
    {OPT_TEXT, "only", 0, offsetof(bench_settings, only), "TEXT",
     "only cases whose name contains this"},
    {OPT_INT, "rounds", 0, offsetof(bench_settings, rounds), "N",
     "rounds per case, at most 31 (default 7; 3 with --quick)"},
    {OPT_FLAG, "quick", 0, offsetof(bench_settings, quick), NULL,
     "small shapes: seconds instead of minutes, for a first impression"},
    {OPT_FLAG, "cpu", 0, offsetof(bench_settings, cpu), NULL,
     "count CPU seconds; with --threads 1 they mean something on a machine "
     "that is busy with other work as well"},
    {OPT_FLAG, "overwrite", 0, offsetof(bench_settings, overwrite), NULL,
     "replace a file of --json that is no result of bench, too"},
    {OPT_GROUP, NULL, 0, 0, NULL, "A whole pass"},
    {OPT_INT, "layers", 0, offsetof(bench_settings, layers), "N",
     "of generated weights (default 30, as the model has; fewer take less time "
     "and memory, and a layer takes what it takes)"},
    {OPT_INT, "passes", 0, offsetof(bench_settings, passes), "N",
     "measured, the last one clean: 2 to 5 (default 2; 5 are a whole chunk)"},
    {OPT_INT, "prime", 0, offsetof(bench_settings, prime), "N",
     "chunks of two passes before them, which do not count (default 1)"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Estimate"},
    {OPT_FLAG, "estimate", 0, offsetof(bench_settings, estimate), NULL,
     "say what `tether generate` would take here, in bytes and in time: its "
     "--plan, of the model that -m names"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Model and size, of pass and estimates"},
    {OPT_READ, "model", 'm', offsetof(bench_settings, model), "DIR",
     "folder of a model, or wan1.3b: the sizes of Wan2.1-T2V-1.3B without any "
     "weights on the disk (the default; pass generates some)"},
    {OPT_TEXT, "width", 'W', offsetof(bench_settings, width), "N",
     "pixels, a multiple of 16 (default: of an estimate what the model was "
     "trained for, of pass 416x240)"},
    {OPT_TEXT, "height", 'H', offsetof(bench_settings, height), "N",
     "likewise"},
    {OPT_TEXT, "seconds", 0, offsetof(bench_settings, seconds), "X",
     "of an estimate: video at 16 frames a second (default: 21 latents)"},
    {OPT_TEXT, "cache", 0, offsetof(bench_settings, cache), "NAME",
     "cache policy, as in generate; of pass also NAME:OPTION=VALUE, like "
     "tether:budget=12"},
    {OPT_TEXT, "steps", 0, offsetof(bench_settings, steps), "N",
     "of an estimate: denoising steps, as in generate"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command bench_command = {
    .name = "bench",
    .summary = "speed of a whole pass and of the operators, and their error",
    .usage = "pass [-m DIR] [-W N -H N] [--cache NAME] [--json FILE]\n"
             "       tether bench ops|error [--json FILE] [--quick] "
             "[--only TEXT]\n"
             "       tether bench --estimate [-m DIR] [-W N -H N] "
             "[--seconds X]",
    .intro = "pass says how long a pass of a chunk takes in the middle of a "
             "long video, when the cache is full: a noisy pass (of which a "
             "chunk has four) and the clean one after them. It says what "
             "of that linear layers, attention, small operators and the cache "
             "policy take, what is between them, and which share of the "
             "peak of this machine's instruction they reach, and which share "
             "of what is kept up of it for a second (--quick: 0.05) right "
             "after the passes, at their clock. As it is it takes "
             "4.4 GB and about two minutes on two cores; --quick (208x112) a "
             "quarter of that time; -W 832 -H 480 14 GB and ten minutes, with "
             "--layers 3 a tenth of that and 2.2 GB. Its last line is a "
             "digest of the result, which is the same on every machine. "
             "ops measures what the machine can do at most (multiply-adds, "
             "VDPBF16PS and TDPBF16PS where classes vdp and amx use them, "
             "memory) and every operator at "
             "the shapes of Wan2.1-T2V-1.3B: linear layers, attention and "
             "convolutions compared with the blas backend and the peak of "
             "their instruction, all else with the time to stream the same "
             "bytes. Sides take turns inside one run; "
             "figures are medians, spread is (slowest - fastest) / median. "
             "With 1 thread and with all, unless --threads says one number. "
             "error compares float results with float64 sums at the lengths "
             "that occur. OPENBLAS_CORETYPE and TT_CPU are read by the "
             "backends as always.",
    .examples = "  tether bench pass\n"
                "  tether bench pass --class vdp --json pass.json\n"
                "  tether bench pass -W 832 -H 480 --layers 3\n"
                "  tether bench pass -m Wan2.1-T2V-1.3B -W 416 -H 240 "
                "--passes 5\n"
                "  tether bench ops --json ops.json\n"
                "  OPENBLAS_CORETYPE=SkylakeX tether bench ops --only linear\n"
                "  TT_CPU=avx2 OPENBLAS_CORETYPE=Haswell tether bench ops\n"
                "  tether bench error\n"
                "  tether bench --estimate -m Wan2.1-T2V-1.3B -W 416 -H 240 "
                "--seconds 5",
    .options = options,
    .no_log = true,
    .positional_max = 1,
    .bare = "say what to measure: `tether bench pass`, `tether bench "
            "ops` or `tether bench error`",
};

double bench_now(const bench_settings *s)
{
    struct timespec t;
    if (!s->cpu || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return tt_now();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_add(bench_times *b, double seconds)
{
    if (b->n < BENCH_ROUNDS_MAX) b->t[b->n++] = seconds;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const bench_times *b)
{
    bench_times s = *b;
    if (s.n == 0) return 0;
    qsort(s.t, (size_t)s.n, sizeof s.t[0], by_value);
    return s.n % 2 ? s.t[s.n / 2] : 0.5 * (s.t[s.n / 2 - 1] + s.t[s.n / 2]);
}

double bench_spread(const bench_times *b)
{
    double low = b->t[0], high = b->t[0];
    for (int i = 1; i < b->n; i++) {
        low = b->t[i] < low ? b->t[i] : low;
        high = b->t[i] > high ? b->t[i] : high;
    }
    return b->n ? (high - low) / bench_median(b) : 0;
}

void bench_fill(tt_real *x, int64_t n, uint32_t seed)
{
    uint32_t s = seed * 2654435761u + 1;
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (tt_real)((double)(int32_t)s * 0x1p-31);
    }
}

static const char *setting(const char *name)
{
    const char *v = getenv(name);
    return v ? v : "";
}

/* What the figures were measured on. */
static void bench_describe(const tt_ctx *ctx, const bench_settings *s,
                           json_out *j)
{
    char cpu[256];
    tt_cpu_features(cpu, sizeof cpu);
    printf("tether %s (%s), %s; %s; class %s; all = %d threads; TT_CPU='%s' "
           "OPENBLAS_CORETYPE='%s'%s\n", tt_version(), tt_git_revision(),
           tt_compiler(), cpu, tt_class_name(ctx->ops->cls), ctx->nthreads,
           setting("TT_CPU"),
           setting("OPENBLAS_CORETYPE"), s->cpu ? "; CPU seconds" : "");
    if (!j) return;
    json_str(j, "clock", s->cpu ? "cpu" : "wall");
    json_str(j, "version", tt_version());
    json_str(j, "revision", tt_git_revision());
    json_str(j, "compiler", tt_compiler());
    json_str(j, "compute_type", tt_real_name());
    json_str(j, "class", tt_class_name(ctx->ops->cls));
    json_str(j, "instruction_sets", cpu);
    json_int(j, "threads", ctx->nthreads);
    json_str(j, "TT_CPU", setting("TT_CPU"));
    json_str(j, "OPENBLAS_CORETYPE", setting("OPENBLAS_CORETYPE"));
}

/* Which backends run here, in the class of --class where they have it (blas
 * stays in f32)? What another one lacks is said once. */
static void ask_backends(tt_ctx *ctx, bench_settings *s)
{
    const tt_ops *before = ctx->ops;
    for (int i = 0; tt_ops_at(i) && s->nbackends < BENCH_BACKENDS_MAX; i++) {
        const tt_ops *table = tt_ops_class(tt_ops_at(i), before->cls);
        if (tt_ops_use(ctx, tt_ops_at(i)->name) == TT_OK)
            s->backend[s->nbackends++] = table ? table : tt_ops_at(i);
        else
            fprintf(stderr, "tether: note: not measured: %s\n",
                    tt_message(ctx));
        tt_clear(ctx);
    }
    ctx->ops = before;
}

const tt_ops *bench_backend(const bench_settings *s, const char *name)
{
    for (int i = 0; i < s->nbackends; i++)
        if (!strcmp(s->backend[i]->name, name)) return s->backend[i];
    return NULL;
}

/* "-" is the standard output; the table then goes where messages go. */
static tt_status open_json(tt_ctx *ctx, tt_out *o, const char *path)
{
    if (strcmp(path, "-")) return tt_out_open(ctx, o, path);
    fflush(stdout);
    const int fd = dup(STDOUT_FILENO);
    if (fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        o->file = fdopen(fd, "wb");
    return o->file ? TT_OK
         : tt_fail(ctx, TT_EIO, "cannot write the standard output: %s",
                   strerror(errno));
}

/* A reader that has seen enough (`| head`) is no failure. */
static tt_status close_json(tt_ctx *ctx, tt_out *o)
{
    if (o->path) return tt_out_finish(ctx, o);
    errno = 0;
    const bool bad = fflush(o->file) || ferror(o->file);
    const int error = errno;
    fclose(o->file);
    if (bad && error != EPIPE)
        tt_fail(ctx, TT_EIO, "cannot write the standard output: %s",
                error ? strerror(error) : "an earlier write has failed");
    return ctx->status;
}

static tt_status bench_run(tt_ctx *ctx, const bench_settings *s,
                           bench_kind kind)
{
    static const char *const names[] = {"ops", "errors", "pass"};
    const bool one = kind == BENCH_PASS; /* an object, not rows of a list */
    tt_out file = {0};
    json_out out, *j = NULL;
    if (s->json) {
        if (!s->overwrite)
            TT_TRY(outputs_kind(ctx, "--json", s->json, "\"instruction_sets\"",
                                "result of bench"));
        TT_TRY(open_json(ctx, &file, s->json));
        j = &out;
        json_begin(j, file.file, true);
    }
    bench_describe(ctx, s, j);
    if (j) json_open(j, names[kind], one ? '{' : '[');
    if (kind == BENCH_OPS) bench_ops(ctx, s, j);
    else if (one) bench_pass(ctx, s, j);
    else bench_error(ctx, s, j);
    if (j) {
        json_close(j, one ? '}' : ']');
        json_end(j);
        close_json(ctx, &file);
    }
    return ctx->status;
}

/* What each kind of benchmark does not heed. */
static const char *without_effect(bench_kind kind, const opt_result *given)
{
    enum { OPS = 1 << BENCH_OPS, ERRORS = 1 << BENCH_ERRORS,
           PASS = 1 << BENCH_PASS, ESTIMATE = 1 << BENCH_ESTIMATE };
    static const struct { const char *name; int of; } heeded[] = {
        {"json", OPS | ERRORS | PASS}, {"only", OPS}, {"rounds", OPS},
        {"quick", OPS | ERRORS | PASS}, {"cpu", OPS},
        {"layers", PASS}, {"passes", PASS}, {"prime", PASS},
        {"model", PASS | ESTIMATE}, {"width", PASS | ESTIMATE},
        {"height", PASS | ESTIMATE}, {"seconds", ESTIMATE},
        {"cache", PASS | ESTIMATE}, {"steps", ESTIMATE}};
    for (size_t i = 0; i < sizeof heeded / sizeof *heeded; i++)
        if (!(heeded[i].of & 1 << kind) && opt_given(given, heeded[i].name))
            return heeded[i].name;
    return NULL;
}

/* GO_ON or a status. */
static int bench_check(bench_settings *s, const opt_result *given,
                       bench_kind kind)
{
    static const char *const names[] = {"ops", "error", "pass",
                                        "--estimate"};
    const char *idle = without_effect(kind, given);
    if (idle)
        return opt_usage("bench", "--%s has no effect with `bench %s`", idle,
                         names[kind]);
    if (opt_given(given, "rounds")
        && (s->rounds < 1 || s->rounds > BENCH_ROUNDS_MAX))
        return opt_usage("bench", "--rounds must be 1 to %d, but %lld was "
                         "given", BENCH_ROUNDS_MAX, (long long)s->rounds);
    if (s->only && !bench_ops_has(s))
        return opt_usage("bench", "--only %s: no case has that in its name; "
                         "`tether bench ops --quick` shows them all", s->only);
    return kind == BENCH_PASS ? bench_pass_check(s) : GO_ON;
}

/* The settings of the run that is estimated. */
static tt_status estimated(tt_ctx *ctx, const bench_settings *s, tt_settings *g)
{
    const char *const set[][2] = {
        {"model", s->model}, {"width", s->width}, {"height", s->height},
        {"seconds", s->seconds}, {"cache", s->cache},
        {"steps", s->steps}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (set[i][1]) tt_settings_set(ctx, g, set[i][0], set[i][1]);
    if (!s->model) tt_settings_set(ctx, g, "model", "wan1.3b");
    tt_settings_set(ctx, g, "prompt", GENERATE_PROMPT);
    return tt_settings_set(ctx, g, "plan", NULL);
}

static int estimate(tt_ctx *ctx, bench_settings *s, const cli_common *common,
                    const opt_result *given)
{
    tt_settings g = tt_settings_defaults();
    if (given->npositional)
        return opt_usage("bench", "--estimate stands alone, without `%s`",
                         given->positional[0]);
    int status = bench_check(s, given, BENCH_ESTIMATE);
    if (status != GO_ON) return status;
    if (estimated(ctx, s, &g)) status = opt_refused("bench", ctx);
    else status = generate_videos(ctx, &g, common, 0, NULL);
    tt_settings_free(&g);
    return status;
}

/* What the word says; false: nothing is measured under it. */
static bool find_kind(bench_kind *kind, const opt_result *given)
{
    static const struct { const char *name; bench_kind kind; } kinds[] = {
        {"pass", BENCH_PASS}, {"ops", BENCH_OPS}, {"error", BENCH_ERRORS}};
    for (int i = 0; given->npositional == 1 && i < 3; i++) {
        *kind = kinds[i].kind;
        if (!strcmp(given->positional[0], kinds[i].name)) return true;
    }
    return false;
}

int cmd_bench(tt_ctx *ctx, int argc, char **argv)
{
    bench_settings s = {.layers = BENCH_USUAL, .passes = 2, .prime = 1};
    cli_common common;
    opt_result given;
    bench_kind kind;
    int status = opt_parse(&bench_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    if (cli_alone(ctx, "bench")) return cli_failed(ctx);
    if (s.estimate) return estimate(ctx, &s, &common, &given);
    if (!find_kind(&kind, &given))
        return opt_usage("bench", "say what to measure: `tether bench pass`, "
                         "`tether bench ops` or `tether bench error`");
    status = bench_check(&s, &given, kind);
    if (status != GO_ON) return status;
    if (s.model && !strcmp(s.model, "wan1.3b")) s.model = NULL; /* generated */
    if (sizeof(tt_real) != sizeof(float)) {
        fprintf(stderr, "tether: error: bench needs a float build; this one "
                "computes in double to check algorithms\n");
        return 1;
    }
    if (cli_setup(ctx, &common)) return cli_failed(ctx);
    if (!s.rounds) s.rounds = s.quick ? 3 : 7;
    s.quiet = common.quiet;
    s.threads[0] = common.threads ? ctx->nthreads : 1;
    s.threads[1] = ctx->nthreads;
    s.nthreads = s.threads[0] == s.threads[1] ? 1 : 2;
    cli_catch_signals(ctx);
    ctx->overwrite = s.overwrite;
    if (kind != BENCH_PASS) ask_backends(ctx, &s);
    bench_run(ctx, &s, kind);
    return ctx->status ? cli_failed(ctx) : 0;
}
