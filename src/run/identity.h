/* identity.h: two runs compared by what they are made from.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_RUN_IDENTITY_H
#define TT_RUN_IDENTITY_H

#include "io/io.h"
#include "vae/vae.h"

/* The first thing that differs between two lines of identity_make, in words:
 * "seed 1 there, 2 here". */
void identity_difference(char *buf, size_t n, const char *theirs,
                         const char *ours);

/* Add what tells these weights from others; NULL: nothing. */
void identity_weights(tt_sha256 *s, const tt_weights *w);
/* The same of a VAE, with the latent statistics of its config.json. */
void identity_vae(tt_sha256 *s, const tt_vae *v);

#endif
