/* shows.h: is there a picture in a video that may not be complete?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_SHOWS_H
#define TT_IO_SHOWS_H

#include <stdbool.h>

/* Does `path` (y4m, mp4 or mov in fragments, mkv, webm, gif, by its ending)
 * hold a first picture, whole? Of an mp4 that is its first fragment. False as
 * well for a file that cannot be read, or is of another kind. */
bool shows_picture(const char *path);

#endif
