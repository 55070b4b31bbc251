/* nearest.c: see nearest.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/nearest.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tether/classes.h"

/* Levenshtein distance with adjacent swaps, capped lengths. */
static int nearest_distance(const char *a, const char *b)
{
    enum { N = 40 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= N || m >= N) return N;
    int d[N][N];
    for (size_t i = 0; i <= n; i++) d[i][0] = (int)i;
    for (size_t j = 0; j <= m; j++) d[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]
                && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *nearest_name(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    int best_d = 1000;
    for (int i = 0; i < n; i++) {
        int d = nearest_distance(word, names[i]);
        size_t len = strlen(word);
        if (len >= 3 && !strncmp(word, names[i], len)) d = 1;
        if (d < best_d) {
            best_d = d;
            best = names[i];
        }
    }
    int allowed = strlen(word) < 5 ? 1 : strlen(word) < 9 ? 2 : 3;
    return best_d <= allowed ? best : NULL;
}

/* What other projects say, without their - and _, and what it is here: the
 * first of the words that is among the names. */
static const struct { const char *said, *here[3]; } aliases[] = {
    {"fp32", {"f32"}}, {"float32", {"f32"}}, {"float", {"f32"}},
    {"single", {"f32"}}, {"full", {"f32"}}, {"highest", {"f32"}},
    {"fp64", {"f64", "f32"}}, {"float64", {"f64", "f32"}},
    {"double", {"f64", "f32"}}, {"f64", {"f32"}},
    {"fp16", {"f16"}}, {"float16", {"f16"}}, {"half", {"f16"}},
    {"amp", {"f16"}}, {"mixed", {"bf16", "f16"}},
    {"bf16", {"bf16", "vdp"}}, {"bfloat16", {"bf16", "vdp"}},
    {"bfloat", {"bf16", "vdp"}}, {"bfp16", {"bf16", "vdp"}},
    {"brainfloat16", {"bf16", "vdp"}}, {"autocast", {"bf16"}},
    {"fp16stored", {"f16-stored"}}, {"float16stored", {"f16-stored"}},
    {"halfstored", {"f16-stored"}}, {"bfloat16stored", {"bf16-stored"}},
    {"tensorfloat32", {"tf32"}}, {"tfloat32", {"tf32"}}, {"tf", {"tf32"}},
    {"avx512bf16", {"vdp"}}, {"vdpbf16ps", {"vdp"}}, {"amxbf16", {"amx"}},
    {"ampere", {"sm80"}}, {"a100", {"sm80"}}, {"sm86", {"sm80"}},
    {"sm89", {"sm80"}}, {"hopper", {"sm90"}}, {"h100", {"sm90"}},
    {"h200", {"sm90"}}, {"sm90a", {"sm90"}},
    {"cpu", {"exact"}}, {"native", {"exact"}}, {"default", {"exact"}},
    {"avx2", {"exact"}}, {"avx512", {"exact"}}, {"openmp", {"exact"}},
    {"gpu", {"cuda"}}, {"nvidia", {"cuda"}}, {"cuda0", {"cuda"}},
    {"cublas", {"cuda"}},
    {"openblas", {"blas"}}, {"mkl", {"blas"}}, {"cblas", {"blas"}},
    {"reference", {"golden"}}, {"ref", {"golden"}},
    {"tethercache", {"tether"}}, {"grab", {"tether"}}, {"tame", {"tether"}},
    {"baseline", {"fifo"}}, {"sliding", {"fifo"}}, {"window", {"fifo"}},
    {"slidingwindow", {"fifo"}}, {"selfforcing", {"full"}},
    {"none", {"full"}}, {"off", {"full"}}, {"all", {"full"}},
    {"infinityrope", {"infinity"}}, {"attentionsink", {"deep-sink"}},
    {"sink", {"deep-sink"}},
};

static const char *exact_name(const char *word, const char *const *names,
                              int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(word, names[i])) return names[i];
    return NULL;
}

static const char *by_alias(const char *word, const char *const *names, int n)
{
    for (size_t k = 0; k < sizeof aliases / sizeof *aliases; k++)
        for (int i = 0; i < 3 && aliases[k].here[i]; i++) {
            if (strcmp(word, aliases[k].said)) break;
            const char *name = exact_name(aliases[k].here[i], names, n);
            if (name) return name;
        }
    return NULL;
}

const char *nearest_value(const char *word, const char *const *names, int n)
{
    char lower[40], bare[40];
    size_t len = 0, at = 0;
    for (; word[len] && len < sizeof lower - 1; len++)
        lower[len] = (char)tolower((unsigned char)word[len]);
    lower[len] = 0;
    for (size_t i = 0; i < len; i++)
        if (!strchr("-_: ", lower[i])) bare[at++] = lower[i];
    bare[at] = 0;
    const char *name = exact_name(lower, names, n);
    if (!name) name = by_alias(bare, names, n);
    return name ? name : nearest_name(lower, names, n);
}

const char *nearest_hint(char buf[NEAREST_HINT], const char *word,
                         const char *const *names, int n)
{
    const char *name = nearest_value(word, names, n);
    if (!name || !strcmp(name, word)) return "";
    snprintf(buf, NEAREST_HINT, " (did you mean %.70s?)", name);
    return buf;
}

const char *nearest_class(char buf[NEAREST_HINT], const char *word)
{
#define NAME(name, NAME, ...) #name,
    static const char *const names[] = {TT_CLASSES(NAME) "bf16"};
#undef NAME
    return nearest_hint(buf, word, names, sizeof names / sizeof *names);
}
