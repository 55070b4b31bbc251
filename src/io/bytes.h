/* bytes.h: little-endian loads from unaligned bytes, UTF-8, safe showing.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every integer of a file is decoded here byte by byte, so alignment and the
 * host's byte order never matter. */
#ifndef TT_IO_BYTES_H
#define TT_IO_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/utf8.h"

static inline uint16_t le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
           | (uint32_t)p[3] << 24;
}
static inline uint64_t le64(const uint8_t *p)
{
    return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32;
}
static inline void put_le64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static inline bool starts(const char *s, const char *prefix)
{
    return !strncmp(s, prefix, strlen(prefix));
}
static inline bool ends(const char *s, const char *tail)
{
    const size_t n = strlen(s), m = strlen(tail);
    return n >= m && !strcmp(s + n - m, tail);
}

/* A name from a file made fit for a message: control characters replaced,
 * cut after 80 bytes. Returns buf. */
#define IO_SHOW 96
const char *io_show(char buf[IO_SHOW], const char *s, size_t n);

/* "3,580,952". Returns buf. */
const char *io_thousands(char buf[32], int64_t n);

#endif
