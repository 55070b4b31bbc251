# flags.mk: of WebAssembly, which `zig cc -target wasm32-wasi` compiles for.
# SPDX-License-Identifier: Apache-2.0
# 1 MiB of stack, as the threads of other systems have at least. Libraries are
# not loaded, so that nothing is exported.
OS_FLAGS := -Isrc/os/wasm -msimd128 -DTT_OS_NEON \
  -Wno-gnu-statement-expression-from-macro-expansion -Wno-deprecated-declarations
OS_LIBS  := -Wl,--stack,1048576 -s
# The relaxed multiply-add may round twice (os_fuses). A compiler that knows it
# takes it for any fused one, so that files which are not asked must not.
OS_NEON  := -mrelaxed-simd -DTT_FUSED_NEON
