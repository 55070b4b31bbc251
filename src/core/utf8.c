/* utf8.c: UTF-8, strictly.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds  utf8_decode accepts exactly the well-formed sequences of Unicode
 *        table 3-7; utf8_encode produces only those. */
#include "core/utf8.h"

#include <stdbool.h>

int utf8_decode(uint32_t *cp, const unsigned char *s, size_t n)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (n == 0) return 0;
    if (s[0] < 0x80) {
        *cp = s[0];
        return 1;
    }
    int len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < (size_t)len) return 0;
    uint32_t c = s[0] & (0x7fu >> len);
    for (int i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *cp = c;
    return len;
}

int utf8_encode(unsigned char *out, uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (unsigned char)cp;
        return 1;
    }
    int len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = len - 1; i > 0; i--) {
        out[i] = (unsigned char)(0x80 | (cp & 0x3f));
        cp >>= 6;
    }
    out[0] = (unsigned char)((0xf00u >> len & 0xffu) | cp);
    return len;
}

size_t utf8_check(const unsigned char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint32_t cp;
        int len = utf8_decode(&cp, s + i, n - i);
        if (len == 0) return i;
        i += (size_t)len;
    }
    return n;
}

int utf8_length(const char *s)
{
    uint32_t cp;
    /* a NUL continues no sequence: nothing after it is looked at */
    return utf8_decode(&cp, (const unsigned char *)s, 4);
}

bool utf8_turns(const char *s)
{
    uint32_t cp;
    const int n = utf8_decode(&cp, (const unsigned char *)s, 4);
    return n && ((cp >= 0x202a && cp <= 0x202e)
                 || (cp >= 0x2066 && cp <= 0x2069));
}

int utf8_shown(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    const int n = utf8_length(s);
    const bool c1 = n == 2 && p[0] == 0xc2 && p[1] < 0xa0;
    return *p < 0x20 || *p == 0x7f || c1 || utf8_turns(s) ? 0 : n;
}

void utf8_plain(char *s)
{
    while (*s) {
        const int n = utf8_shown(s);
        if (n == 0) *s++ = '?';
        else s += n;
    }
}

void utf8_print(FILE *f, const char *s)
{
    for (int n; *s; s += n ? n : 1) {
        n = utf8_shown(s);
        if (n == 0) fputc('?', f);
        else fwrite(s, 1, (size_t)n, f);
    }
}
