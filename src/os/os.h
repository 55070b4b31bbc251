/* os.h: what differs among systems that have POSIX (src/os/README.md).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OS_OS_H
#define TT_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes that programs can have without swapping, clean pages of files among
 * them; -1: unknown. `meminfo` is /proc/meminfo where there is one. */
int64_t os_memory_available(const char *meminfo);

/* The file of this program, links followed, in buf [n]; false: unknown, and
 * buf is "". */
bool os_program_path(char *buf, size_t n);

/* In the name of a file that the user gives: slashes as all code here looks for
 * them. */
void os_slashes(char *path);

/* Is there such a program on PATH? */
bool os_has_program(const char *name);
/* Start the program argv[0] of PATH in a process group of its own. *ours is our
 * end of its standard input, which takes send(), or, with `reads`, of its
 * standard output; its messages go to the descriptor `said`. 0, or an errno;
 * *pid and *ours may then have to be ended all the same. */
int os_start(const char *const *argv, bool reads, int said, pid_t *pid,
             int *ours);

#endif
