/* child.c: supervisor.c of this system starts none.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/os.h"
