/* sha256_blocks.h: the compression function of SHA-256.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_SHA256_BLOCKS_H
#define TT_IO_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* h moves on by n blocks of 64 bytes, by instructions of the CPU where it has
 * them. */
void sha256_blocks(uint32_t h[8], const uint8_t *p, size_t n);
/* The same in plain C. */
void sha256_blocks_plain(uint32_t h[8], const uint8_t *p, size_t n);

#endif
