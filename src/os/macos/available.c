/* available.c: what macOS says of its memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mach/mach.h>
#include <unistd.h>

#include "os/os.h"

int64_t os_memory_available(const char *meminfo)
{
    vm_statistics64_data_t s;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    (void)meminfo;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64,
                          (host_info64_t)&s, &n) != KERN_SUCCESS)
        return -1;
    return ((int64_t)s.free_count + s.inactive_count + s.purgeable_count)
         * sysconf(_SC_PAGESIZE);
}
