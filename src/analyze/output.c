/* output.c: where tables go, and what they may replace.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a file of an earlier analysis is known by how it begins: a table in
 *         CSV by its columns, in JSON by the word before them, the page by the
 *         program that made it. */
#include "analyze/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/files.h"

static const struct { const char *name, *columns; } tables[] = {
    {"drift", "run,frame,mean,std,k_mean,k_std,v_mean,v_std"},
    {"biography", "run,chunk,layer,slot,region,src_frame,share"},
    {"weights", "run,chunk,layer,summary,src_frame,weight"},
    {"retention", "run,layer,chunk,src_frame,readable"},
    {"steps", "run,chunk,distinct,span,mean_age,band_share,band_full"},
    {"summary",
     "run,policy,frames,chunks,last_distinct,last_span,last_mean_age,"
     "last_band_share,last_band_full,distinct,span,mean_age,band_share,"
     "band_full,admissions,rejections,edits,admitted,lifetime_chunks,"
     "quarter_drift_mean,quarter_drift_std"},
    {"selection", "run,chunk,layer,round,candidate,importance,diversity,total,"
     "chosen,margin"},
    {"compression", "run,chunk,layer,event,src_frame,candidates,chosen,"
     "phi_mean,phi_max"},
    {"chosen", "run,chunk,layer,src_frame,place,reuse,phi"},
    {"pixels", "video,frame,r_mean,g_mean,b_mean,r_std,g_std,b_std,"
     "saturation,laplacian_variance,change"},
    {"flickering", "video,frames,temporal_flickering"},
};

/* NULL: there is no table of that name. */
static const char *columns_of(const char *name)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (!strcmp(tables[i].name, name)) return tables[i].columns;
    return NULL;
}

/* ---- saving -------------------------------------------------------------- */

void output_begin(table *t, tt_ctx *ctx, const char *name)
{
    const char *columns = columns_of(name);
    TT_ASSERT(columns);
    table_begin(t, ctx, columns);
}

tt_status output_table(tt_ctx *ctx, table *t, const char *name,
                       const tt_analyze_options *opt)
{
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const char *path = files_join(ctx, &ctx->scratch, opt->folder, name, "");
    if (!ctx->status) table_save(t, path, opt->csv, opt->json);
    table_end(t);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* ---- what is there ------------------------------------------------------- */

/* Is there something that `mark` does not begin, or is not near the beginning
 * of? An empty file may go. */
static bool is_foreign(const char *path, const char *mark, bool begins)
{
    char head[1024] = "";
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size) return false;
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(head, 1, sizeof head - 1, f) : 0;
    if (f) fclose(f);
    head[n] = 0;
    const char *at = strstr(head, mark);
    return !at || (begins && at > head);
}

static tt_status analyze_output_keep(tt_ctx *ctx, const tt_analyze_options *opt,
                                     const char *name, const char *ending,
                                     const char *mark, bool begins)
{
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const char *path = files_join(ctx, &ctx->scratch, opt->folder, name,
                                  ending);
    errno = 0;
    const bool foreign = !ctx->status && is_foreign(path, mark, begins);
    if (!foreign && errno && errno != ENOENT && errno != ENOTDIR)
        tt_fail(ctx, TT_EIO, "%s cannot be looked at, and may not be ours to "
                "replace: %s", path, strerror(errno));
    if (foreign)
        tt_fail(ctx, TT_EINVAL, "%s would be replaced, and it was not made by "
                "`tether analyze`; give -o another folder, or --overwrite",
                path);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

tt_status output_keep(tt_ctx *ctx, const tt_analyze_options *opt,
                      const char *const *name, const char *page)
{
    char first[80];
    for (; *name && !ctx->overwrite; name++) {
        const char *columns = columns_of(*name);
        if (opt->csv && columns)
            TT_TRY(analyze_output_keep(ctx, opt, *name, ".csv", columns, true));
        const int n = columns ? (int)strcspn(columns, ",") : 0;
        if (columns)
            snprintf(first, sizeof first, TABLE_JSON "\"%.*s\", \"%.*s\"",
                     n, columns, (int)strcspn(columns + n + 1, ","),
                     columns + n + 1);
        if (opt->json && columns)
            TT_TRY(analyze_output_keep(ctx, opt, *name, ".json", first, true));
    }
    if (opt->html && !ctx->overwrite)
        return analyze_output_keep(ctx, opt, page, ".html",
                                   "name=\"generator\" content=\"tether ",
                                   false);
    return ctx->status;
}
