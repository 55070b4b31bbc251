/* fcntl.h: files, opened by their names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <fcntl.h>
#include "os/wasm/system.h"
#define open os_open
#define fcntl os_fcntl
