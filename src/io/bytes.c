/* bytes.c: UTF-8 validation and safe showing of names from files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/bytes.h"

#include <string.h>

/* Bytes of the well-formed sequence at s, 0 when malformed (Unicode, table
 * 3-7). */
static size_t utf8_length(const uint8_t *s, size_t n)
{
    uint8_t c = s[0], lo = 0x80, hi = 0xBF;
    size_t more;
    if (c < 0x80) return 1;
    if (c < 0xC2 || c > 0xF4) return 0;
    if (c < 0xE0) more = 1;
    else if (c < 0xF0) more = 2;
    else more = 3;
    if (c == 0xE0) lo = 0xA0; /* overlong */
    if (c == 0xED) hi = 0x9F; /* surrogates */
    if (c == 0xF0) lo = 0x90; /* overlong */
    if (c == 0xF4) hi = 0x8F; /* above 10FFFF */
    if (n < more + 1) return 0;
    if (s[1] < lo || s[1] > hi) return 0;
    for (size_t i = 2; i <= more; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    return more + 1;
}

size_t io_utf8_bad(const uint8_t *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        size_t k = utf8_length(s + i, n - i);
        if (k == 0) return i;
        i += k;
    }
    return n;
}

const char *io_show(char buf[IO_SHOW], const char *s, size_t n)
{
    size_t m = n > 80 ? 80 : n;
    while (m < n && m > 0 && ((uint8_t)s[m] & 0xC0) == 0x80) m--;
    for (size_t i = 0; i < m; i++) {
        uint8_t c = (uint8_t)s[i];
        buf[i] = c < 0x20 || c == 0x7F ? '?' : s[i];
    }
    strcpy(buf + m, m < n ? "..." : "");
    return buf;
}
