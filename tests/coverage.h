/* coverage.h: what a build that counts its lines includes first.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * _exit leaves no counters: a child of a test that ends so, or a program
 * after a second signal, would count as not run. No header is included here:
 * files have names of their own that unistd.h has too. */
#ifndef TESTS_COVERAGE_H
#define TESTS_COVERAGE_H

void __gcov_dump(void);
_Noreturn void _Exit(int status);

static inline _Noreturn void counted_exit(int status)
{
    __gcov_dump();
    _Exit(status);
}

#define _exit counted_exit

#endif
