/* spawn.h: no other programs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/wasm/system.h"
int posix_spawn(pid_t *pid, const char *path, const void *actions,
                const void *attributes, char *const *argv, char *const *env);
