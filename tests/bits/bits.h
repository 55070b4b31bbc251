/* bits.h: what the files of check_bits share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_BITS_H
#define TT_TESTS_BITS_H

#include "validate/validate.h"

/* ---- the demo run -------------------------------------------------------- */

/* What `tether demo` computes, with the model in folder `dir`: token ids, text
 * embedding, latents and, with `pictures`, frames before and after rounding to
 * 8 bits. */
tt_status bits_demo(tt_ctx *ctx, const char *dir, bool pictures,
                    tt_st_writer *out);

/* Files of the model, relative to its folder, NULL at the end. */
extern const char *const bits_demo_files[];

#endif
