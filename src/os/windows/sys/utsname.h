/* utsname.h: the name of the system.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/windows/system.h"
