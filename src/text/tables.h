/* tables.h: how tables.c packs numbers in text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A number has 1 to 4 digits of base 92: printable ASCII without '"', '?' and
 * '\'. The first digit tells how many follow. An array of strings ends with
 * NULL; no number is cut by the end of a string. */
#ifndef TT_TEXT_TABLES_H
#define TT_TEXT_TABLES_H

#include <stdint.h>

extern const char *const uni_classes[], *const uni_parts[], *const uni_zeros[],
    *const uni_width[], *const html5_names[], *const html5_upper[];

/* The next number at *p. */
static inline uint32_t table_next(const char **p)
{
    enum { BASE = 92, ONE = 58, TWO = 79, THREE = 91 };
    static const uint32_t more[] = {0, ONE, ONE + (TWO - ONE) * BASE,
                                    ONE + (TWO - ONE) * BASE
                                        + (THREE - TWO) * BASE * BASE};
    uint32_t v = 0;
    int n = 0;
    for (int i = 0; i <= n; i++) {
        const char c = *(*p)++;
        const uint32_t d = (uint32_t)(c - ' ' - (c > '"') - (c > '?')
                                      - (c > '\\'));
        v = v * BASE + d;
        if (i > 0) continue;
        n = (d >= ONE) + (d >= TWO) + (d >= THREE);
        v -= n == 0 ? 0 : n == 1 ? ONE : n == 2 ? TWO : THREE;
    }
    return v + more[n];
}

/* The next number at *p, which may be negative. */
static inline uint32_t table_change(const char **p)
{
    const uint32_t v = table_next(p);
    return v & 1 ? ~(v >> 1) : v >> 1;
}

#endif
