/* bytes.c: safe showing of names and sizes from files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/bytes.h"

#include <stdio.h>
#include <string.h>

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

const char *io_thousands(char buf[32], int64_t n)
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    char *to = buf;
    for (int i = 0; i < len; i++) {
        if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return buf;
}
