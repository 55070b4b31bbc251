/* names.h: what tensors are called, in Wan's words.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_NAMES_H
#define TT_IO_NAMES_H

#include "io/io.h"

typedef enum names_layout {
    NAMES_UNKNOWN, NAMES_WAN, NAMES_DIFFUSERS, NAMES_HF, NAMES_LLAMA
} names_layout;

typedef struct names_map {
    tt_model_kind kind;
    names_layout layout;
    int resnets;  /* Diffusers VAE: residual blocks per decoder stage */
} names_map;

/* Remove wrapper decorations everywhere and known prefixes in front, in
 * place. False: the tensor belongs to another model of the same file (an
 * all-in-one checkpoint) and is not of this kind. */
bool names_strip(char *name, tt_model_kind kind);

/* Recognise the naming of n stripped names for `kind`. NAMES_UNKNOWN: these
 * are not the weights of such a model. */
names_map names_detect(const char *const *name, int64_t n,
                       tt_model_kind kind);

/* Bytes that names_to_wan may need beyond strlen(in). */
#define NAMES_CAPACITY 64
/* The Wan name of a stripped name, into out; unknown names are copied. */
void names_to_wan(char *out, const char *in, const names_map *map);

/* The way back: Diffusers' name of a Wan name, Hugging Face's for the text
 * encoder, into out (NAMES_CAPACITY). */
void names_from_wan(char *out, const char *in, tt_model_kind kind);

/* Why a tensor of this (Wan) name or shape means that the file must be
 * refused, as the end of a sentence; NULL when it does not. */
const char *names_refusal(const char *name, const tt_tensor *t,
                          tt_model_kind kind);

const char *names_layout_text(names_layout l);
const char *names_kind_text(tt_model_kind kind); /* "diffusion transformer" */

#endif
