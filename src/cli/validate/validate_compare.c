/* validate_compare.c: `tether validate compare`: two reports of one check, of a
 * candidate before and after a change, say.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensors are matched by name. An operator check is matched by operator and
 * kind of input, since a failing one has other sizes than a passing one; the
 * large sizes, which have the kind of ordinary ones, come second. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/validate/validate_files.h"
#include "core/utf8.h"
#include "io/json.h"

typedef struct settings {
    double factor;
} settings;

static const opt_spec options[] = {
    {OPT_REAL, "factor", 0, offsetof(settings, factor), "X",
     "worse and better: X times the error in units of the allowed one (default "
     "2)"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command compare_command = {
    .name = "validate compare",
    .summary = "what a change broke, mended and made worse",
    .usage = "BEFORE.json AFTER.json [--factor X]",
    .intro = "Two reports of --json, of the same check. Exit status 1: "
             "something is broken or gone that was right before.",
    .examples = "  tether validate compare before.json after.json\n"
                "  the two reports:\n"
                "  tether validate --backend ./old.so --json before.json\n"
                "  tether validate --backend ./new.so --json after.json",
    .options = options,
    .no_log = true,
    .positional_max = 2,
    .bare = "expected BEFORE.json and AFTER.json",
};

enum { BROKEN, GONE, MENDED, WORSE, BETTER, BITS, CHANGES };

typedef struct comparison {
    double factor;
    int64_t count[CHANGES], same, added, lost;
} comparison;

static const char *path_of(const tt_json *v)
{
    return tt_json_str(v, "path", "");
}

static const tt_json *verdicts(tt_ctx *ctx, tt_arena *mem, const char *path)
{
    const tt_json *root = NULL;
    if (tt_json_file(ctx, mem, &root, path, (size_t)1 << 30)) return NULL;
    const tt_json *list = tt_json_get(root, "verdicts");
    if (strncmp(tt_json_str(root, "schema", ""), "tether-validate/", 16)) {
        tt_fail(ctx, TT_EFORMAT, "%s is no report of tether validate --json: "
                "its schema is \"%s\"", path, tt_json_str(root, "schema", ""));
        return NULL;
    }
    bool whole = list && list->kind == TT_JSON_ARRAY;
    for (const tt_json *v = tt_json_first(list); v; v = tt_json_next(v))
        whole = whole && *path_of(v) && *tt_json_str(v, "outcome", "");
    if (!whole)
        tt_fail(ctx, TT_EFORMAT, "%s: \"verdicts\" is no list of verdicts with "
                "path and outcome; write the report again with --json", path);
    return whole ? list : NULL;
}

/* Bytes of a path that name the tensor. */
static size_t key(const char *path)
{
    return strncmp(path, "op.", 3) ? strlen(path) : strcspn(path, " ");
}

static bool same_key(const tt_json *a, const tt_json *b)
{
    const size_t n = key(path_of(a));
    return n == key(path_of(b)) && !strncmp(path_of(a), path_of(b), n);
}

/* The verdict of `list` that stands for v, which is one of `of`. */
static const tt_json *counterpart(const tt_json *list, const tt_json *of,
                                  const tt_json *v)
{
    int64_t before = 0;
    for (const tt_json *i = tt_json_first(of); i != v; i = tt_json_next(i))
        before += !strncmp(path_of(v), "op.", 3) && same_key(i, v);
    for (const tt_json *i = tt_json_first(list); i; i = tt_json_next(i))
        if (same_key(i, v) && before-- == 0) return i;
    return NULL;
}

static bool right(const tt_json *v)
{
    const char *o = tt_json_str(v, "outcome", "");
    return !strcmp(o, "pass") || !strcmp(o, "tie");
}

static bool wrong(const tt_json *v)
{
    return !right(v) && strcmp(tt_json_str(v, "outcome", ""), "not checked")
        && strcmp(tt_json_str(v, "outcome", ""), "unsupported");
}

static bool checked(const tt_json *v)
{
    return right(v) || wrong(v);
}

/* Infinite errors are null. */
static double ratio(const tt_json *v)
{
    return tt_json_num(v, "ratio", right(v) ? 0 : INFINITY);
}

static void validate_compare_say(comparison *c, int what, const tt_json *a,
                                 const tt_json *b)
{
    static const char *const word[CHANGES] = {"broken", "gone", "mended",
                                              "worse", "better", "bits"};
    const tt_json *v = b ? b : a;
    c->count[what]++;
    printf("%-7s ", word[what]);
    utf8_print(stdout, path_of(v));
    printf("  %.3g", ratio(a));
    if (b) printf(" -> %.3g", ratio(b));
    fputs(" of the allowed error", stdout);
    if (what == BITS) fputs(", no longer equal in every bit", stdout);
    if (b && wrong(b) && *tt_json_str(b, "hint", "")) {
        fputs(": ", stdout);
        utf8_print(stdout, tt_json_str(b, "hint", ""));
    }
    fputc('\n', stdout);
}

/* What became of a; NULL: b is gone. What was not checked has no error. */
static void validate_compare_check(comparison *c, const tt_json *a,
                                   const tt_json *b)
{
    const bool equal = !strcmp(tt_json_str(a, "bits", ""), "equal");
    if (!b || (checked(a) && !checked(b))) {
        validate_compare_say(c, GONE, a, NULL);
        c->lost += right(a);
    } else if (!checked(a) && right(b)) c->added++;
    else if (right(a) && wrong(b)) validate_compare_say(c, BROKEN, a, b);
    else if (wrong(a) && right(b)) validate_compare_say(c, MENDED, a, b);
    else if (ratio(b) > c->factor * ratio(a))
        validate_compare_say(c, WORSE, a, b);
    else if (ratio(a) > c->factor * ratio(b))
        validate_compare_say(c, BETTER, a, b);
    else if (equal && !strcmp(tt_json_str(b, "bits", ""), "differ"))
        validate_compare_say(c, BITS, a, b);
    else c->same++;
}

int validate_compare(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.factor = 2};
    cli_common common;
    opt_result given;
    tt_arena mem = {0};
    int status = opt_parse(&compare_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    if (given.npositional != 2 || !(s.factor >= 1))
        return opt_usage("validate compare", "expected BEFORE.json, AFTER.json "
                         "and a factor of at least 1");
    comparison c = {.factor = s.factor};
    const tt_json *a = verdicts(ctx, &mem, given.positional[0]);
    const tt_json *b = a ? verdicts(ctx, &mem, given.positional[1]) : NULL;
    for (const tt_json *v = b ? tt_json_first(a) : NULL; v; v = tt_json_next(v))
        validate_compare_check(&c, v, counterpart(b, a, v));
    for (const tt_json *v = tt_json_first(b); v; v = tt_json_next(v))
        c.added += !counterpart(a, b, v);
    tt_arena_free(&mem);
    if (ctx->status) return validate_failed(ctx);
    printf("%lld broken, %lld gone, %lld mended, %lld worse, %lld better, %lld "
           "with other bits, %lld as before, %lld added\n",
           (long long)c.count[BROKEN], (long long)c.count[GONE],
           (long long)c.count[MENDED], (long long)c.count[WORSE],
           (long long)c.count[BETTER], (long long)c.count[BITS],
           (long long)c.same, (long long)c.added);
    return c.count[BROKEN] + c.lost ? VALIDATE_MISMATCH : VALIDATE_PASS;
}
