/* socket.h: the pipe to ffmpeg.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/windows/system.h"
#define MSG_DONTWAIT 0
#define MSG_NOSIGNAL 0
ssize_t send(int fd, const void *p, size_t n, int flags);
