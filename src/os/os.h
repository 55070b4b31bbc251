/* os.h: what differs among systems that have POSIX (src/os/README.md).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OS_OS_H
#define TT_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that programs can have without swapping, clean pages of files among
 * them; -1: unknown. `meminfo` is /proc/meminfo where there is one. */
int64_t os_memory_available(const char *meminfo);

/* The file of this program, links followed, in buf [n]; false: unknown, and
 * buf is "". */
bool os_program_path(char *buf, size_t n);

#endif
