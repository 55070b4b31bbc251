/* fnmatch.h: patterns of names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/windows/system.h"
