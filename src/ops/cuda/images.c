/* images.c: the kernels as nvcc made them, inside the program.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * cuda_images.h has a line IMAGE(NAME) for every src/ops/cuda/NAME.cu; the
 * compiled file is TT_CUDA_IMAGES/NAME.fatbin. */
#include "ops/cuda/driver.h"

#define IMAGE(name)                                                            \
    __asm__(".pushsection .rodata\n.balign 64\n.globl cuda_image_" #name "\n"  \
            ".hidden cuda_image_" #name "\ncuda_image_" #name ":\n"            \
            ".incbin \"" TT_CUDA_IMAGES "/" #name ".fatbin\"\n.popsection");   \
    extern const char cuda_image_##name[]                                      \
        __attribute__((visibility("hidden")));
#include "cuda_images.h"
#undef IMAGE

const cuda_image cuda_images[] = {
#define IMAGE(name) {#name ".cu", cuda_image_##name},
#include "cuda_images.h"
    {0},
};
