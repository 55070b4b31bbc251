/* available.c: what Linux says of its memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "os/os.h"

int64_t os_memory_available(const char *meminfo)
{
    FILE *f = fopen(meminfo ? meminfo : "/proc/meminfo", "r");
    long long kb = -1;
    char line[256];
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", &kb) == 1) break;
    if (f) fclose(f);
    return kb < 0 ? -1 : 1024 * (int64_t)kb;
}
