/* guess.h: what a file that is not the expected model probably is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_GUESS_H
#define TT_IO_GUESS_H

#include "io/io.h"

/* "a Wan2.1-14B I2V transformer: not supported because ...", from the stored
 * names and shapes; NULL when nothing is recognised. May use buf. */
const char *guess_model(char *buf, size_t n, const tt_file *f);

/* The same from what a model is bound from, where the names fit and others are
 * there too (additions to Wan's transformer) or one is missing (another T5). */
const char *guess_weights(char *buf, size_t n, const tt_weights *w);

#endif
