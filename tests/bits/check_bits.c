/* check_bits.c: are the bits of this build the stored ones?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs every case of ref_data and the demo run, each into a file as
 * build/run_case writes it, and compares the SHA-256 of every tensor of that
 * file with ref_data/bits.txt. Equal means equal: no tolerance. What is
 * computed but not stored fails, and what is stored but not computed.
 *
 * Exit codes: 0 all equal, 1 not, 2 usage.
 * Next    tests/bits/check_all.sh runs it in every configuration. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/exact/bf16.h"
#include "ops/exact/exact.h"
#include "tests/bits/bits.h"
#include "tests/guard.h"
#include "tests/run_case/run_case.h"
#include "ops/backend.h"
#include "core/threads.h"
#include "tether/version.h"

#define REF "ref_data"

static const char comment[] =
    "# bits.txt: SHA-256 of every output of every reference case and of the\n"
    "# demo run, little-endian values in row-major order. `make check-bits`\n"
    "# compares a build with it; `build/check_bits --write` makes it anew, "
    "which\n"
    "# is right only when the definition of an operator (ops/golden) or a "
    "case\n"
    "# was changed on purpose.\n"
    "# class case tensor sha256\n";

#define CLASS_LISTED(name, ...) " " #name
#define CLASS_LIST TT_CLASSES(CLASS_LISTED)

static const char usage[] =
    "usage: check_bits [options]\n"
    "  --class NAME      one of " CLASS_LIST " (default: all)\n"
    "  --demo DIR        the model of the demo run, written by\n"
    "                    make_checkpoint --preset demo (default\n"
    "                    build/demo-random)\n"
    "  --filter TEXT     only cases whose name contains TEXT (\"demo\": the\n"
    "                    demo run)\n"
    "  --quick           without vae_fullwidth, two thirds of the work\n"
    "  --brief           and without the decoding of the demo run, two thirds\n"
    "                    of the rest\n"
    "  --small           and without whole rollouts and whole VAEs\n"
    "  --backend NAME    (default: exact)\n"
    "  --guard           values in memory that only operators may touch\n"
    "  -t N              threads (default: all)\n"
    "  --manifest FILE   (default: " REF "/bits.txt)\n"
    "  --write           store what is computed instead of comparing\n";

/* How much is computed, where all of it takes too long: emulators, CPUs
 * without FMA. Each leaves out what the one before does. */
typedef enum extent { ALL, QUICK, BRIEF, SMALL } extent;

typedef struct check {
    tt_ctx ctx;
    const char *class;                 /* in work, as the file says it        */
    const char *only, *demo, *filter, *backend, *manifest;
    int threads;
    extent extent;
    bool write;
    bool guard;
    tt_manifest stored, made;
    char **cases;
    int ncases;
    int64_t passed, failed, left_out;
} check;

static void fail(check *c, const char *name, const char *tensor,
                 const char *why)
{
    if (c->failed++ < 20)
        printf("FAIL %s %s%s%s: %s\n", c->class, name, *tensor ? " " : "",
               tensor, why);
    else if (c->failed == 21)
        printf("FAIL ... further ones are counted only\n");
}

/* What an extent leaves out, by the beginning of the case's name. The rollouts
 * that stay under SMALL are those of the policies and two of the cache. */
static bool within(const check *c, const char *name)
{
    static const struct {
        extent from;
        const char *name;
        bool stays;
    } rule[] = {
        {QUICK, "vae_fullwidth", false},
        {SMALL, "dit/roll_nowarp", true}, {SMALL, "dit/roll_tether_temp", true},
        {SMALL, "dit/roll_", false}, {SMALL, "demo", false},
        {SMALL, "vae_full_a", false}, {SMALL, "vae_taehv", false},
        {SMALL, "t5_len512", false},
    };
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++)
        if (c->extent >= rule[i].from
            && !strncmp(name, rule[i].name, strlen(rule[i].name)))
            return rule[i].stays;
    return true;
}

static bool asked_for(const check *c, const char *name)
{
    return within(c, name) && (!c->filter || strstr(name, c->filter));
}

/* The same for one stored digest: BRIEF ends the demo run at its latents. */
static bool row_asked_for(const check *c, const tt_manifest_row *r)
{
    const bool decoded = !strcmp(r->name, "demo")
                         && (!strcmp(r->tensor, "frames")
                             || !strcmp(r->tensor, "rgb"));
    return (!c->only || !strcmp(r->cls, c->only))
           && asked_for(c, r->name) && !(decoded && c->extent >= BRIEF);
}

/* ---- one output ---------------------------------------------------------- */

static void take(check *c, const char *name, const char *tensor,
                 const char *sha)
{
    char why[200];
    if (c->write) {
        tt_manifest_add(&c->ctx, &c->made, c->class, name, tensor, sha);
        c->passed++;
        return;
    }
    tt_manifest_row *r = tt_manifest_find(&c->stored, c->class, name, tensor);
    if (r) r->seen = true;
    snprintf(why, sizeof why, "%s, stored %s", sha, r ? r->sha : "nowhere");
    if (r && !strcmp(r->sha, sha)) c->passed++;
    else fail(c, name, tensor, why);
}

static tt_status take_all(check *c, const char *name, const char *path)
{
    tt_ctx *ctx = &c->ctx;
    tt_file *f;
    char sha[65];
    TT_TRY(tt_file_open(ctx, &f, path));
    unlink(path);                       /* the mapping stays */
    for (int64_t i = 0; i < tt_file_count(f) && !ctx->status; i++) {
        const tt_entry *e = tt_file_entry(f, i);
        if (tt_tensor_digest(ctx, sha, &e->t) == TT_OK)
            take(c, name, e->name, sha);
    }
    tt_file_close(f);
    return ctx->status;
}

/* ---- one case ------------------------------------------------------------ */

static void temporary(char *path, size_t n)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, n, "%s/tether_bits_%ld.safetensors",
             tmp && *tmp ? tmp : "/tmp", (long)getpid());
}

static void run(check *c, const char *name)
{
    tt_ctx *ctx = &c->ctx;
    char dir[512], path[512];
    bool unknown;
    tt_st_writer *w = NULL;
    snprintf(dir, sizeof dir, REF "/%s", name);
    temporary(path, sizeof path);
    tt_status s = tt_st_create(ctx, &w, path);
    /* a case may give operators numbers of its own, a run never does */
    const bool demo = !strcmp(name, "demo");
    guard_strict(demo);
    if (s == TT_OK)
        s = demo ? bits_demo(ctx, c->demo, c->extent < BRIEF, w)
                 : run_case(ctx, dir, w, &unknown);
    guard_strict(false);
    if (s == TT_OK) s = tt_st_finish(w);
    else tt_st_abort(w);
    if (s == TT_OK) take_all(c, name, path);
    if (ctx->status) fail(c, name, "", tt_message(ctx));
    tt_clear(ctx);
}

/* The files themselves: the generator of the weights must agree too. */
static void demo_files(check *c)
{
    for (int i = 0; bits_demo_files[i]; i++) {
        char path[1024], sha[65];
        tt_file *f;
        snprintf(path, sizeof path, "%s/%s", c->demo, bits_demo_files[i]);
        if (tt_file_open(&c->ctx, &f, path) == TT_OK) {
            tt_file_digest(sha, f);
            tt_file_close(f);
            take(c, "demo", bits_demo_files[i], sha);
        } else {
            fail(c, "demo", bits_demo_files[i], tt_message(&c->ctx));
            tt_clear(&c->ctx);
        }
    }
}

/* ---- which cases --------------------------------------------------------- */

/* Every folder below `name` (relative to REF, "" at the top) with a case. */
static void find_cases(check *c, const char *name)
{
    char path[600];
    struct stat st;
    struct dirent *e;
    snprintf(path, sizeof path, REF "/%s%scase.json", name, *name ? "/" : "");
    if (stat(path, &st) == 0) {
        char **more = realloc(c->cases, (size_t)(c->ncases + 1) * sizeof *more);
        char *copy = malloc(strlen(name) + 1);
        TT_ASSERT(more && copy);
        c->cases = more;
        c->cases[c->ncases++] = strcpy(copy, name);
    }
    snprintf(path, sizeof path, REF "/%s", name);
    DIR *d = opendir(path);
    while (d && (e = readdir(d))) {
        char below[300];
        if (e->d_name[0] == '.') continue;
        snprintf(below, sizeof below, "%s%s%s", name, *name ? "/" : "",
                 e->d_name);
        snprintf(path, sizeof path, REF "/%s", below);
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) find_cases(c, below);
    }
    if (d) closedir(d);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- one class ----------------------------------------------------------- */

/* Stored rows that nothing computed; in write mode, rows that stay. */
static void leftovers(check *c)
{
    for (int64_t i = 0; i < c->stored.n; i++) {
        const tt_manifest_row *r = &c->stored.row[i];
        const bool ours = row_asked_for(c, r);
        c->class = r->cls;
        c->left_out += !ours;
        if (c->write && !ours)
            tt_manifest_add(&c->ctx, &c->made, r->cls, r->name, r->tensor,
                            r->sha);
        else if (!c->write && ours && !r->seen)
            fail(c, r->name, r->tensor, "stored, but not computed");
    }
}

static void run_class(check *c, const tt_ops *ops, tt_class cls)
{
    c->class = tt_class_saved(cls);
    if (c->only && strcmp(c->only, c->class)) return;
    c->ctx.ops = tt_ops_class(ops, cls);
    if (!c->ctx.ops) {
        c->ctx.ops = ops;
        fail(c, ops->name, "", "this backend has no such class");
        return;
    }
    for (int i = 0; i < c->ncases; i++)
        if (asked_for(c, c->cases[i])) run(c, c->cases[i]);
    if (asked_for(c, "demo")) {
        demo_files(c);
        run(c, "demo");
    }
}

/* ---- main ---------------------------------------------------------------- */

static void no_warning(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;     /* one case is known to warn */
}

static bool parse(check *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        const char **text = !strcmp(a, "--class") ? &c->only
                            : !strcmp(a, "--demo") ? &c->demo
                            : !strcmp(a, "--filter") ? &c->filter
                            : !strcmp(a, "--backend") ? &c->backend
                            : !strcmp(a, "--manifest") ? &c->manifest : NULL;
        if (text && v) *text = v, i++;
        else if (!strcmp(a, "--quick")) c->extent = QUICK;
        else if (!strcmp(a, "--brief")) c->extent = BRIEF;
        else if (!strcmp(a, "--small")) c->extent = SMALL;
        else if (!strcmp(a, "--write")) c->write = true;
        else if (!strcmp(a, "--guard")) c->guard = true;
        else if (!strcmp(a, "-t") && v && atoi(v) > 0)
            c->threads = atoi(v), i++;
        else return false;
    }
    tt_class cls;
    if (!c->only) return true;
    if (!tt_class_find(&cls, c->only)) return false;
    c->only = tt_class_saved(cls);
    return true;
}

static bool begin(check *c)
{
    tt_ctx *ctx = &c->ctx;
    if (tt_ctx_init(ctx) != TT_OK) {
        printf("FAIL check_bits: %s\n", tt_message(ctx));
        return false;
    }
    ctx->warn = no_warning;
    if (c->threads) ctx->nthreads = c->threads;
    if (c->backend && tt_ops_use(ctx, c->backend) != TT_OK) {
        printf("FAIL check_bits: %s\n", tt_message(ctx));
        return false;
    }
    if (c->guard && !guard_install(ctx)) {
        printf("FAIL check_bits: this system cannot map memory twice\n");
        return false;
    }
    if (sizeof(tt_real) == 8) {
        printf("FAIL check_bits: the stored bits are those of a float build\n");
        return false;
    }
    tt_manifest_read(ctx, &c->stored, c->manifest);
    find_cases(c, "");
    if (c->ncases)
        qsort(c->cases, (size_t)c->ncases, sizeof *c->cases, by_name);
    if (ctx->status) printf("FAIL check_bits: %s\n", tt_message(ctx));
    return !ctx->status;
}

static void say_what_runs(check *c)
{
    char cpu[128];
    printf("%s, %s, backend %s", tt_compiler(),
           tt_cpu_features(cpu, sizeof cpu), c->ctx.ops->name);
#ifndef TT_REAL_DOUBLE
    if (!strcmp(c->ctx.ops->name, "exact"))
        printf(" (f32 %s, amx %s, vdp %s)", exact_kernels()->name,
               exact_bf16_kernels(&c->ctx)->name,
               exact_vdp_kernels(&c->ctx)->name);
#endif
    printf(", threads %d\n", c->ctx.nthreads);
}

int main(int argc, char **argv)
{
    check c = {.demo = "build/demo-random",
               .manifest = REF "/bits.txt"};
    tt_threads_sleep();
    if (!parse(&c, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!begin(&c)) return 1;
    say_what_runs(&c);
    const tt_ops *ops = c.ctx.ops;
    for (int i = 0; i < TT_CLASS_COUNT; i++) run_class(&c, ops, (tt_class)i);
    leftovers(&c);
    if (c.write && !c.failed
        && tt_manifest_write(&c.ctx, &c.made, c.manifest, comment)) {
        printf("FAIL check_bits: %s\n", tt_message(&c.ctx));
        c.failed++;
    }
    if (c.left_out)
        printf("not compared: %lld of %lld stored digests\n",
               (long long)c.left_out, (long long)c.stored.n);
    printf("bits: %lld passed, %lld failed\n", (long long)c.passed,
           (long long)c.failed);
    for (int i = 0; i < c.ncases; i++) free(c.cases[i]);
    free(c.cases);
    tt_manifest_free(&c.stored);
    tt_manifest_free(&c.made);
    tt_ctx_free(&c.ctx);
    return c.failed || !c.passed;
}
