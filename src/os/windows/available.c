/* available.c: what Windows says of its memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/windows/private.h"

#include "os/os.h"

int64_t os_memory_available(const char *meminfo)
{
    MEMORYSTATUSEX m = {.dwLength = sizeof m};
    (void)meminfo;
    return GlobalMemoryStatusEx(&m) ? (int64_t)m.ullAvailPhys : -1;
}
