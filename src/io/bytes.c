/* bytes.c: safe showing of names from files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/bytes.h"

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
