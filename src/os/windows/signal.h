/* signal.h: Ctrl-C.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <signal.h>
#include "os/windows/system.h"
#undef signal
#define signal os_signal
