/* dlfcn.h: libraries, of which there are none.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/wasm/system.h"
#define dlopen os_dlopen
#define dlsym os_dlsym
#define dlclose os_dlclose
#define dlerror os_dlerror
