/* stdlib.h: names of files that are made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <stdlib.h>
#include "os/wasm/system.h"
#define realpath os_realpath
#define mkstemp os_mkstemp
#define mkdtemp os_mkdtemp
