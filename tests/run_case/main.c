/* main.c: the program run_case, which runs one case of ref_data.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exit codes: 0 done, 1 failed, 2 usage or a kind of case no one knows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/backend.h"
#include "core/threads.h"
#include "tests/run_case/run_case.h"

static int usage(void)
{
    fprintf(stderr, "usage: run_case CASE_DIR -o OUT.safetensors "
                    "[--backend NAME] [--class NAME] [-t N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *dir = NULL, *out = NULL, *backend = NULL;
    const char *class_name = NULL;
    int threads = 0;
    tt_threads_sleep();
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (*a != '-' && !dir) dir = a;
        else if (!strcmp(a, "-o") && v) out = v, i++;
        else if (!strcmp(a, "--backend") && v) backend = v, i++;
        else if (!strcmp(a, "--class") && v) class_name = v, i++;
        else if (!strcmp(a, "-t") && v && atoi(v) > 0) threads = atoi(v), i++;
        else return usage();
    }
    if (!dir || !out) return usage();

    tt_ctx ctx;
    tt_st_writer *w = NULL;
    bool unknown = false;
    tt_status s = tt_ctx_init(&ctx);
    if (s == TT_OK && backend && tt_ops_use(&ctx, backend) != TT_OK) {
        fprintf(stderr, "run_case: %s\n", tt_message(&ctx));
        return 2;
    }
    tt_class cls;
    if (s == TT_OK && class_name
        && (!tt_class_find(&cls, class_name)
            || !(ctx.ops = tt_ops_class(ctx.ops, cls)))) {
        fprintf(stderr, "run_case: no class '%s' in this backend\n",
                class_name);
        return 2;
    }
    if (threads) ctx.nthreads = threads;
    if (s == TT_OK) s = tt_st_create(&ctx, &w, out);
    if (s == TT_OK) s = run_case(&ctx, dir, w, &unknown);
    if (s == TT_OK) s = tt_st_finish(w);
    else tt_st_abort(w);
    if (s != TT_OK) fprintf(stderr, "run_case: %s\n", tt_message(&ctx));
    tt_ctx_free(&ctx);
    return unknown ? 2 : s != TT_OK;
}
