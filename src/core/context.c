/* context.c: the context, failures, scopes, taps and the profile.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A context begins in ops/init.c: it begins with a table of operators. */
#include "core/context.h"

#include <float.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/utf8.h"

#if FLT_EVAL_METHOD != 0
#error "float must be computed in float: no x87 (-msse2 -mfpmath=sse), and \
-fexcess-precision=fast where -std=c11 widens"
#endif
#if defined(__clang__) && defined(__arm__) && defined(__ARM_NEON)
#error "the vectors of 32-bit NEON flush subnormals, and this compiler uses \
them: build with -mfpu=vfpv4"
#endif
#ifdef __FAST_MATH__
#error "tether must not be built with -ffast-math: its bits are its contract"
#endif

tt_status tt_fail(tt_ctx *ctx, tt_status s, const char *fmt, ...)
{
    if (ctx->status) return ctx->status;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ctx->message, sizeof ctx->message, fmt, ap);
    va_end(ap);
    utf8_plain(ctx->message);
    ctx->status = s;
    return s;
}

void tt_clear(tt_ctx *ctx)
{
    ctx->status = TT_OK;
    ctx->message[0] = '\0';
}

const char *tt_message(const tt_ctx *ctx)
{
    return ctx->message;
}

void tt_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "tether: internal error: %s does not hold (%s:%d)\n", what,
            file, line);
    abort();
}

void tt_warn(tt_ctx *ctx, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    utf8_plain(text);
    if (ctx->warn)
        ctx->warn(ctx->warn_user, text);
    else
        fprintf(stderr, "warning: %s\n", text);
}

tt_status tt_check_interrupt(tt_ctx *ctx)
{
    if (ctx->interrupt && *ctx->interrupt && !ctx->finishing)
        return tt_fail(ctx, TT_EINTR, "interrupted");
    return ctx->status;
}

void tt_ctx_free(tt_ctx *ctx)
{
    tt_arena_free(&ctx->scratch);
}

size_t tt_scope(tt_ctx *ctx, const char *fmt, ...)
{
    size_t mark = strlen(ctx->path);
    if (!ctx->tap && !ctx->inject) return mark;
    size_t at = mark;
    if (at && at + 1 < sizeof ctx->path) {
        ctx->path[at++] = '/';
        ctx->path[at] = '\0';
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ctx->path + at, sizeof ctx->path - at, fmt, ap);
    va_end(ap);
    return mark;
}

void tt_scope_end(tt_ctx *ctx, size_t mark)
{
    ctx->path[mark] = '\0';
}

typedef struct tap_path {
    char text[sizeof ((tt_ctx *)0)->path + 128];
} tap_path;

static tap_path full_path(const tt_ctx *ctx, const char *name)
{
    tap_path p;
    snprintf(p.text, sizeof p.text, "%s%s%s", ctx->path,
             ctx->path[0] ? "/" : "", name);
    return p;
}

void tt_tap_show(tt_ctx *ctx, const char *name, tt_dtype dtype,
                 const void *data, int rank, const int64_t *dim)
{
    if (!ctx->tap) return;
    const tap_path p = full_path(ctx, name);
    ctx->tap(ctx->tap_user, p.text, dtype, rank, dim, data);
}

bool tt_name_chosen(const char *globs, const char *name)
{
    char one[512];
    for (const char *g = globs; g; g++) {
        const size_t n = strcspn(g, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, g);
        if (!fnmatch(one, name, 0)) return true;
        g += n;
        if (!*g) return false;
    }
    return true;
}

void tt_tap_emit(tt_ctx *ctx, const char *name, tt_dtype dtype, void *data,
                 int rank, const int64_t *dim)
{
    tt_tap_show(ctx, name, dtype, data, rank, dim);
    if (!ctx->inject) return;
    const tap_path p = full_path(ctx, name);
    ctx->inject(ctx->inject_user, p.text, dtype, rank, dim, data);
}

void tt_ignore_warning(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;
}

double tt_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int64_t tt_peak_memory(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u)) return 0;
    return (int64_t)u.ru_maxrss * 1024;
}

void tt_profile_add(tt_ctx *ctx, const char *name, double seconds, double flops)
{
    for (int i = 0; i < TT_PROFILE_ROWS; i++) {
        tt_profile_row *row = &ctx->profile[i];
        if (!row->name) row->name = name;
        if (strcmp(row->name, name) != 0) continue;
        row->seconds += seconds;
        row->flops += flops;
        row->calls++;
        return;
    }
}
