/* spawn.h: other programs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/windows/system.h"
#undef environ
#define environ os_environ
