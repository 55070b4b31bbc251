/* signal.h: no signals.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/wasm/system.h"
#define sigaction os_sigaction
#define signal os_signal
#define kill(pid, number) ((void)(pid), (void)(number), -1)
