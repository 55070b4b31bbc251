/* pthread.h: threads, of which no process is copied.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <pthread.h>
#undef pthread_atfork
#define pthread_atfork(a, b, c) ((void)(a), (void)(b), (void)(c), 0)
