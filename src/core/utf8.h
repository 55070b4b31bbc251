/* utf8.h: UTF-8, strictly.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Well-formed is what Unicode table 3-7 says: no overlong forms, no surrogates,
 * nothing above U+10FFFF. */
#ifndef TT_CORE_UTF8_H
#define TT_CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>

/* Length of the well-formed sequence at the start of s[0..n), 0 when there is
 * none; *cp its code point. */
int utf8_decode(uint32_t *cp, const unsigned char *s, size_t n);
/* Bytes written to out (1..4); cp is a valid code point. */
int utf8_encode(unsigned char *out, uint32_t cp);
/* Offset of the first malformed byte, n when there is none. */
size_t utf8_check(const unsigned char *s, size_t n);
/* Length of the well-formed sequence at s, which ends with a NUL; 0 when it is
 * malformed, 1 at the NUL. */
int utf8_length(const char *s);
/* Does s begin with a character that turns the direction of what follows
 * (U+202A to U+202E, U+2066 to U+2069)? A name can look like another by it. */
bool utf8_turns(const char *s);
/* utf8_length, but 0 also for what utf8_turns tells, and for a control
 * character (C0, DEL, C1): what must not reach a terminal. */
int utf8_shown(const char *s);
/* Make a string fit for a terminal: every byte of what utf8_shown does not let
 * through becomes '?'. The other one prints it so. */
void utf8_plain(char *s);
void utf8_print(FILE *f, const char *s);

#endif
