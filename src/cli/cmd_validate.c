/* cmd_validate.c: tether validate, which of its ways was asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    validate_backend.c, validate_dump.c, validate_cases.c */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/ui/manual.h"
#include "cli/validate/validate_files.h"
#include "tether/plugin.h"

#define WAYS                                                                   \
    "--backend FILE.so [options]\n"                                            \
    "       tether validate --dump THEIRS --against OURS [options]\n"          \
    "       tether validate --dump THEIRS [options] -- generate ARGS...\n"     \
    "       tether validate --manifest [FILE] [options]\n"                     \
    "       tether validate export FOLDER [options]\n"                         \
    "       tether validate check FOLDER --got FOLDER2 [options]\n"            \
    "       tether validate compare BEFORE.json AFTER.json [options]"

static const char help[] =
    "usage: tether validate " WAYS "\n\n"
    "Is another implementation of the model right to within what its\n"
    "arithmetic allows, and if not, which tensor is the first to be wrong?\n"
    "\n"
    "  --backend   a shared object that fills any part of the operator table\n"
    "  --dump      a safetensors file of named tensors written by any program\n"
    "  --manifest  are the bits of this build the stored ones\n"
    "  export      cases: inputs, weights and expected results as folders\n"
    "  check       outputs that were computed elsewhere from such cases\n"
    "  compare     what a change broke, mended and made worse: two reports\n"
    "  --abi       version and sizes of structs, as JSON, for plug-ins that\n"
    "              are not written in C\n"
    "\n"
    "`tether validate WAY --help` explains one (WAY: --backend, --dump, "
    "--manifest,\nexport, check, compare). Exit status: 0 everything passed, "
    "1 a mismatch,\n2 usage, 3 data that cannot be read.\n";

static const opt_command bare = {
    .name = "validate", .usage = WAYS,
    .bare = "expected --backend, --dump, --manifest, export, check or compare",
    .examples = "  tether validate --backend ./mine.so",
};

/* "--name", "--name=..." */
static bool is_option(const char *arg, const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(arg, "--", 2) && !strncmp(arg + 2, name, n)
        && (arg[2 + n] == '\0' || arg[2 + n] == '=');
}

static bool is_given(int argc, char **argv, const char *name)
{
    for (int k = 1; k < argc && strcmp(argv[k], "--"); k++)
        if (is_option(argv[k], name)) return true;
    return false;
}

/* An option of another way that was given with --manifest; NULL: none. */
static const char *adjacent_manifest(int argc, char **argv)
{
    if (!is_given(argc, argv, "manifest")) return NULL;
    return is_given(argc, argv, "dump") ? "--dump"
         : is_given(argc, argv, "backend") ? "--backend" : NULL;
}

/* What a plug-in's TT_ABI must be, and the parts of its sums. */
static int print_abi(void)
{
    const tt_abi abi = TT_ABI;
    printf("{\"abi\": {\"version\": %d, \"real\": %d, \"table\": %d, "
           "\"context\": %d, \"tensor\": %d, \"args\": %d},\n"
           " \"symbol\": \"%s\",\n \"args\": {", abi.version, abi.real,
           abi.table, abi.context, abi.tensor, abi.args, TT_BACKEND_SYMBOL);
    const char *before = "";
#define ARGS(op, OP)                                                           \
    printf("%s\n  \"tt_" #op "_args\": {\"size\": %zu, \"entry\": %zu}",       \
           before, sizeof(tt_##op##_args), offsetof(tt_ops, op));              \
    before = ",";
    TT_OPS(ARGS)
#undef ARGS
    puts("}}");
    return VALIDATE_PASS;
}

int cmd_validate(tt_ctx *ctx, int argc, char **argv)
{
    static const struct {
        const char *word;
        int (*run)(tt_ctx *ctx, int argc, char **argv);
    } way[] = {{"export", validate_export}, {"check", validate_check},
               {"compare", validate_compare}},
      option[] = {{"dump", validate_dump}, {"backend", validate_backend},
                  {"manifest", validate_manifest}};
    for (size_t i = 0; argc > 1 && i < sizeof way / sizeof way[0]; i++)
        if (!strcmp(argv[1], way[i].word))
            return way[i].run(ctx, argc - 1, argv + 1);
    const char *other = adjacent_manifest(argc, argv);
    if (other)
        return opt_usage("validate", "%s has no effect with --manifest, which "
                         "computes with every backend that has stored bits; "
                         "leave one of them out", other);
    for (size_t i = 0; i < sizeof option / sizeof option[0]; i++)
        if (is_given(argc, argv, option[i].word))
            return option[i].run(ctx, argc, argv);
    if (argc == 2 && !strcmp(argv[1], "--abi")) return print_abi();
    if (is_given(argc, argv, "list")) return validate_backend(ctx, argc, argv);
    if (argc > 1 && !strncmp(argv[1], "--help=", 7)) {
        static const char *const words[] = {"export", "check", "compare",
                                            "--backend", "--dump",
                                            "--manifest"};
        return manual_text("validate", "is another implementation right, and "
                           "if not, where is it wrong", help, words, 6,
                           argv[1] + 7);
    }
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(help, stdout);
        return VALIDATE_PASS;
    }
    if (argc > 1)
        return opt_usage("validate", "%s is not one of --backend, --dump, "
                         "--manifest, export, check and compare, and none of "
                         "them was given", argv[1]);
    return opt_bare(&bare);
}
