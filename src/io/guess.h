/* guess.h: what a file that is not the expected model probably is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_GUESS_H
#define TT_IO_GUESS_H

#include "tether/io.h"

/* "a Wan2.1-14B I2V transformer: not supported because ...", from the stored
 * names and shapes; NULL when nothing is recognised. May use buf. */
const char *guess_model(char *buf, size_t n, const tt_file *f);

#endif
