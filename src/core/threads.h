/* threads.h: how many threads operators use, and how these wait.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Operators share their loops out to OpenMP threads. Two habits of OpenMP cost
 * more than they bring on a machine that does other things as well. Threads
 * that wait run in circles, and keep those they wait for from running. And as
 * many are started as there are CPUs, however little of these a container may
 * use. tt_ctx_init mends the second for everybody; the first is settled before
 * a program's first line, and tt_threads_sleep is what a program can do. */
#ifndef TT_CORE_THREADS_H
#define TT_CORE_THREADS_H

#include <stddef.h>

/* Let threads that wait sleep. A program calls this first in main.
 *
 * OpenMP reads OMP_WAIT_POLICY while it is loaded, and nothing can change its
 * mind later. So this sets the variable to `passive`, lets GNU's OpenMP look
 * some 50 us before it sleeps (GOMP_SPINCOUNT), and starts the program anew,
 * in the same process, with the same arguments. It returns, having done
 * nothing, where the environment already says how threads wait
 * (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME, KMP_LIBRARY) or to which
 * processors they are bound (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY,
 * KMP_AFFINITY), in a build without OpenMP, and under valgrind. Where the
 * system has no such start (os_restart), the variables are set all the same.
 * What was opened, locked or printed before is not undone: hence first in main.
 * An OMP_NUM_THREADS above 4096 becomes 4096. */
void tt_threads_sleep(void);

/* What the default number of threads is made from. */
typedef struct tt_cores {
    int asked;      /* OMP_NUM_THREADS; 0: not set                            */
    int allowed;    /* CPUs this process may run on                           */
    double quota;   /* CPUs of time its control groups grant; 0: no limit     */
    int threads;    /* the default: asked, else the least of the other two    */
} tt_cores;

/* Ask the system. Control groups of version 1 and 2 and of every level count;
 * files are read below `root` ("" is this machine).
 *   threads   the quota is rounded up, and there is at least one; one in a
 *             build without OpenMP */
tt_cores tt_cores_find(const char *root);

/* "2, the CPUs this process may run on": the default and why; returns buf. */
const char *tt_cores_reason(char *buf, size_t n, const tt_cores *c);

/* Instruction sets of this processor that matter here, separated by spaces:
 * "x86-64 sse2 avx avx2 fma avx512f". Returns buf. */
const char *tt_cpu_features(char *buf, size_t n);

#endif
