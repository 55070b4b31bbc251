/* version.c: what was built, and what this machine can run.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The Makefile passes TT_GIT_REV to this file alone, so that a commit
 * recompiles one object. */
#include "core/threads.h"
#include "tether/version.h"

#include <stdio.h>
#include <string.h>

#include "core/tensor.h"

#ifndef TT_GIT_REV
#define TT_GIT_REV "unknown"
#endif

const char *tt_version(void)
{
    return TT_VERSION;
}

const char *tt_git_revision(void)
{
    return TT_GIT_REV;
}

const char *tt_real_name(void)
{
    return TT_REAL_NAME;
}

const char *tt_compiler(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "unknown compiler";
#endif
}

#if defined(__x86_64__) || defined(__i386__)
static void add_feature(char *buf, size_t n, const char *name, int there)
{
    size_t at = strlen(buf);
    if (there && at < n) snprintf(buf + at, n - at, " %s", name);
}
#endif

const char *tt_cpu_features(char *buf, size_t n)
{
#if defined(__x86_64__) || defined(__i386__)
    snprintf(buf, n, "%s", sizeof(void *) == 8 ? "x86-64" : "x86");
    __builtin_cpu_init();
    add_feature(buf, n, "sse2", __builtin_cpu_supports("sse2"));
    add_feature(buf, n, "avx", __builtin_cpu_supports("avx"));
    add_feature(buf, n, "avx2", __builtin_cpu_supports("avx2"));
    add_feature(buf, n, "fma", __builtin_cpu_supports("fma"));
    add_feature(buf, n, "avx512f", __builtin_cpu_supports("avx512f"));
    add_feature(buf, n, "avx512bf16", __builtin_cpu_supports("avx512bf16"));
#elif defined(__aarch64__)
    snprintf(buf, n, "aarch64 neon");
#elif defined(TT_OS_NEON)
    snprintf(buf, n, "wasm32 simd128");
#elif defined(__riscv)
    snprintf(buf, n, "riscv%d", (int)(8 * sizeof(void *)));
#elif defined(__powerpc64__)
    snprintf(buf, n, tt_host_little_endian() ? "ppc64le" : "ppc64");
#elif defined(__s390x__)
    snprintf(buf, n, "s390x");
#elif defined(__arm__)
    snprintf(buf, n, "arm");
#else
    snprintf(buf, n, "generic");
#endif
    return buf;
}
