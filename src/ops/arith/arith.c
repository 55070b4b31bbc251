/* arith.c: the arithmetic a backend declares: names and rounding.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Next    table.c, the operators in each of them; bound.c, what they may err */
#include "ops/arith/arith.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/nearest.h"

/* Every arithmetic that is no class, and what follows it. */
#define ROWS(X, ...)                                                           \
    X("f32", "float32 throughout, any order of sums", F32, F32, __VA_ARGS__)   \
    X("tf32", "matrix products of tf32 inputs (cut off), float32 sums",        \
      TF32, F32, __VA_ARGS__)                                                  \
    X("f16", "matrix products of f16 inputs, float32 sums", F16, F32,          \
      __VA_ARGS__)                                                             \
    X("bf16", "matrix products of bf16 inputs, float32 sums", BF16, F32,       \
      __VA_ARGS__)                                                             \
    X("f16-stored", "as f16, and every operator stores f16", F16, F16,         \
      __VA_ARGS__)                                                             \
    X("bf16-stored", "as bf16, and every operator stores bf16", BF16, BF16,    \
      __VA_ARGS__)
#define FORM(name, summary, product, stored, suffix, allows)                   \
    {name suffix, summary, TT_FMT_##product, TT_FMT_##stored, TT_CLASS_F32,    \
     false, allows},

const tt_arith arith_list[ARITH_COUNT + 1] = {
    ROWS(FORM, "", 0)
    FORM("tf32-rounded", "as tf32, inputs rounded", TF32, F32, "", 0)
};

/* Without a word and with it, in the order of its bit. */
#define ROW(words, allow) {ROWS(FORM, words, allow)},
#define FTZ(words, allow) ROW(words, allow) ROW("+ftz" words, allow | 1)
#define WINOGRAD(words, allow)                                                 \
    FTZ(words, allow) FTZ("+winograd" words, allow | 2)
#define BIAS(words, allow)                                                     \
    WINOGRAD(words, allow) WINOGRAD("+bias" words, allow | 4)
#define SATURATE(words, allow)                                                 \
    BIAS(words, allow) BIAS("+saturate" words, allow | 8)

/* By what they allow: a bit for each word. */
static const tt_arith allowing[TT_ALLOW_ALL + 1][ARITH_COUNT] = {
    SATURATE("", 0) SATURATE("+time32", 16)
};

/* A class by its limits and by its bits; those but f32 have bf16 products. */
#define CLASS(bits_)                                                           \
    {.product = TT_FMT_BF16, .stored = TT_FMT_F32, .bits = bits_
#define BY_BITS(name_, NAME, kernels, saved, summary_, ...)                    \
    [TT_CLASS_##NAME] = CLASS(true), .cls = TT_CLASS_##NAME, .name = #name_,   \
                        .summary = summary_ ", in every bit"},
#define BY_LIMITS(name_, NAME, kernels, saved, summary_, ...)                  \
    [TT_CLASS_##NAME] = CLASS(false), .cls = TT_CLASS_##NAME, .name = #name_,  \
                        .summary = summary_},
static const tt_arith by_bits[TT_CLASS_COUNT] = {TT_CLASSES(BY_BITS)};
static const tt_arith by_limits[TT_CLASS_COUNT] = {TT_CLASSES(BY_LIMITS)};

const tt_arith *tt_arith_at(int i)
{
    if (i >= 0 && i < ARITH_COUNT) return &arith_list[i];
    i -= ARITH_COUNT - 1;            /* f32, the first class, is listed above */
    return i > 0 && i < TT_CLASS_COUNT ? &by_limits[i] : NULL;
}

/* Words as "+ftz+bias" to what they allow; 0: one of them is none. */
static unsigned allowed_by(const char *words)
{
    static const char *const word[] = {"+ftz", "+winograd", "+bias",
                                       "+saturate", "+time32"};
    enum { WORDS = sizeof word / sizeof *word };
    unsigned allow = 0;
    while (*words) {
        const size_t n = 1 + strcspn(words + 1, "+");
        unsigned i = 0;
        while (i < WORDS && (strlen(word[i]) != n
                             || strncmp(words, word[i], n)))
            i++;
        if (i == WORDS) return 0;
        allow |= 1u << i;
        words += n;
    }
    return allow;
}

const tt_arith *tt_arith_allow(const tt_arith *arith, unsigned allow)
{
    const tt_arith *list = allowing[(arith->allows | allow) & TT_ALLOW_ALL];
    int i = 0;
    while (i < ARITH_COUNT && (list[i].product != arith->product
                               || list[i].stored != arith->stored)) i++;
    return arith->cls == TT_CLASS_F32 && !arith->bits && i < ARITH_COUNT
               ? &list[i] : NULL;
}

const tt_arith *tt_arith_find(const char *name)
{
    const size_t n = strcspn(name, "+");
    const unsigned allow = allowed_by(name + n);
    const tt_arith *a = tt_arith_at(0);
    for (int i = 1; a && (strlen(a->name) != n || strncmp(a->name, name, n));
         i++)
        a = tt_arith_at(i);
    if (!a || !name[n]) return a;
    return allow ? tt_arith_allow(a, allow) : NULL;
}

const char *tt_arith_names(void)
{
#define NAMED(name, NAME, ...) + (TT_CLASS_##NAME ? sizeof ", " #name : 0)
    static char list[sizeof "f32, tf32, f16, bf16, f16-stored, bf16-stored"
                     TT_CLASSES(NAMED)];
    char text[sizeof list] = "";
    for (int i = 0; tt_arith_at(i); i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
                 tt_arith_at(i)->name);
    }
    memcpy(list, text, sizeof list);     /* always the same bytes */
    return list;
}

const char *tt_arith_hint(char buf[TT_ARITH_HINT], const char *name)
{
    enum { MOST = 32 };
    const char *names[MOST], *rest = name + strcspn(name, "+");
    char word[48], with[96];
    int count = 0;
    for (; count < MOST && tt_arith_at(count); count++)
        names[count] = tt_arith_at(count)->name;
    snprintf(word, sizeof word, "%.*s", (int)(rest - name), name);
    const char *near = nearest_value(word, names, count);
    snprintf(with, sizeof with, "%s%.40s", near ? near : "", rest);
    *buf = 0;
    if (near && tt_arith_find(with))
        snprintf(buf, TT_ARITH_HINT, " (did you mean %s?)", with);
    else if (near && *rest)
        snprintf(buf, TT_ARITH_HINT, " (did you mean %s? A + is followed by "
                 "ftz, winograd, bias or saturate, of f32 and the like)", near);
    return buf;
}

const tt_arith *tt_arith_bits(const tt_arith *arith)
{
    if (!arith || sizeof(tt_real) == 8) return NULL;
    const tt_arith *a = &by_bits[arith->cls];
    return strcmp(a->name, arith->name) ? NULL : a;
}

const tt_arith *arith_plain(const tt_arith *a)
{
    int i = 0;
    if (a->cls != TT_CLASS_F32) return tt_arith_find("bf16");
    if (a->bits) return arith_list;
    if (!a->allows) return a;
    while (arith_list[i].product != a->product
           || arith_list[i].stored != a->stored) i++;
    return &arith_list[i];
}

/* The upper half of its bits, of a NaN one that stays a NaN. */
static float cut_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u) u |= 0x400000u;
    return tt_f32_from_bf16((uint16_t)(u >> 16));
}

/* The f16 next to it towards 0. */
static float cut_f16(float x)
{
    const uint16_t h = tt_f16_from_f32(x);
    const float up = tt_f32_from_f16(h);
    return fabsf(up) > fabsf(x) ? tt_f32_from_f16((uint16_t)(h - 1)) : up;
}

float tt_format_round(tt_format f, float x)
{
    uint32_t u;
    switch (f) {
    case TT_FMT_BF16_CUT: return cut_bf16(x);
    case TT_FMT_F16_CUT: return cut_f16(x);
    case TT_FMT_BF16: return tt_f32_from_bf16(tt_bf16_from_f32(x));
    case TT_FMT_F16: return tt_f32_from_f16(tt_f16_from_f32(x));
    case TT_FMT_TF32:
        if (!isfinite(x)) return x;
        memcpy(&u, &x, sizeof u);        /* 13 fraction bits go, ties to even */
        u += 0xfffu + (u >> 13 & 1);
        u &= ~0x1fffu;
        memcpy(&x, &u, sizeof u);
        return x;
    default: return x;
    }
}

float arith_cut_tf32(float x)
{
    uint32_t u;
    if (!isfinite(x)) return x;
    memcpy(&u, &x, sizeof u);
    u &= ~0x1fffu;
    memcpy(&x, &u, sizeof u);
    return x;
}

double tt_format_epsilon(tt_format f)
{
    return f == TT_FMT_F32 ? 0x1p-23
         : f == TT_FMT_BF16 || f == TT_FMT_BF16_CUT ? 0x1p-7 : 0x1p-10;
}
