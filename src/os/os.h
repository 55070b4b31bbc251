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
 * them; -1: unknown. `meminfo` takes the place of Linux's; NULL: that one. */
int64_t os_memory_available(const char *meminfo);
/* Bytes beyond them; 0: none, or unknown. */
int64_t os_swap_free(void);
/* Bytes that control groups still grant; INT64_MAX: they set no limit. Files
 * are read below `root`, "" is this machine. */
int64_t os_memory_granted(const char *root);
/* Bytes that this process holds or has mapped, and its threads; 0: unknown. */
typedef struct os_held {
    int64_t anonymous, file, mapped;
    int threads;
} os_held;
os_held os_memory_held(void);
/* Its anonymous bytes, counted page by page where the system does. */
int64_t os_memory_anonymous(void);

/* "AMD EPYC 9R14"; "" where the system says no name. */
void os_cpu_name(char *buf, size_t n);
/* CPUs of time that control groups of every level grant, version 1 and 2; 0: no
 * limit. Files are read below `root`, "" is this machine. */
double os_cpu_quota(const char *root);

/* Start this program anew, in the same process, with the same arguments.
 * Returns where the system has no way to do so. */
void os_restart(void);

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

/* In a child: be in a group of its own and, where the system can say so, end
 * when the process ends that started it. */
void os_end_with_parent(void);

#endif
