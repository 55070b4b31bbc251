/* stdio.h: standard input and output.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <stdio.h>
#include "os/wasm/system.h"
#define tmpfile() (errno = ENOSYS, (FILE *)NULL)
