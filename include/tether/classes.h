/* classes.h: the table of arithmetic classes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A class says what the numbers of a run are: how linear layers and the two
 * products of attention sum. With the inputs it determines the bits of a run.
 * Everything that knows classes reads this table: --class and its help, saved
 * runs, manifests, validation, both backends, tests.
 *
 * How to add one: a row here, and src/ops/golden/NAME.c with the functions
 * golden_NAME_linear, golden_NAME_attention and the struct golden_NAME
 * (src/ops/golden/golden.h).
 *
 *     X(name, NAME, kernels, saved, summary, machines)
 * kernels    whose functions the backend `exact` calls: `exact` where
 *            src/ops/exact has exact_NAME_linear and exact_NAME_attention, else
 *            `golden`
 * saved      the name in saved runs, manifests and dumps: its first name, or
 *            NAME.N where the definition changed, of version N. In a file NAME
 *            alone is version 1 then, whose bits this program does not have
 * summary    one line of --help
 * machines   whose bits they are */
#ifndef TETHER_CLASSES_H
#define TETHER_CLASSES_H

#define TT_CLASSES(X)                                                          \
    X(f32, F32, exact, "f32",                                                  \
      "float32 throughout (default)", "every CPU")                             \
    X(amx, AMX, exact, "bf16",                                                 \
      "products of bf16 numbers as Intel's AMX sums them",                     \
      "CPUs with AMX (Sapphire Rapids and later Xeons)")                       \
    X(vdp, VDP, exact, "vdp",                                                  \
      "products of bf16 numbers as the instruction VDPBF16PS sums them",       \
      "CPUs with AVX512_BF16 (Zen 4 and 5, Cooper Lake, Sapphire Rapids)")     \
    X(sm80, SM80, exact, "sm80.2",                                             \
      "products of bf16 numbers as Ampere's tensor cores sum them",            \
      "GPUs of compute capability 8.x (A100, RTX 30 and 40)")                  \
    X(sm90, SM90, exact, "sm90.2",                                             \
      "products of bf16 numbers as Hopper's tensor cores sum them",            \
      "GPUs of compute capability 9.0 to 12.0 (H100, B200, RTX 50)")

#endif
