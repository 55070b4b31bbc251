/* resource.h: the peak in KiB, as elsewhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <sys/resource.h>
#ifndef TT_OS_MACOS_RESOURCE_H
#define TT_OS_MACOS_RESOURCE_H
static inline int os_getrusage(int who, struct rusage *u)
{
    const int status = getrusage(who, u);
    u->ru_maxrss /= 1024;
    return status;
}
#define getrusage os_getrusage
#endif
