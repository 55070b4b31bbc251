/* mman.h: memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/wasm/system.h"
#define mmap os_mmap
#define munmap os_munmap
#define mprotect os_mprotect
#define madvise os_madvise
