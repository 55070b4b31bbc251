# kernels.mk: flags of single files.
# SPDX-License-Identifier: Apache-2.0

# What the shim of CUDA is built for.
NATIVE := $(if $(call try,$(NOTHING),-march=native),-march=native)
$(B)/src/%.o: CFLAGS_ALL += $(WARN_SOURCE)
# stb_image computes with what a file says: overflow must at least wrap.
$(B)/src/io/picture.o: CFLAGS_ALL += -fwrapv
# Kernels: one instruction set per file, chosen at run time. None of these flags
# may change a value (no fast-math, contraction stays off).
KERNEL_FLAGS := $(if $(filter -O2 -O3,$(OPT)),-O3) -fno-trapping-math \
  $(if $(HARDEN),-fno-stack-protector -U_FORTIFY_SOURCE)
$(B)/src/ops/machine.o $(B)/src/core/widen.o $(B)/src/ops/exact/product.o: \
    CFLAGS_ALL += $(KERNEL_FLAGS)
$(B)/src/ops/exact/kernels_%.o: CFLAGS_ALL += $(KERNEL_FLAGS)
# To instrument the kernels takes minutes, and what fuzz targets look for is not
# in them; check-san has them instrumented.
ifneq ($(findstring fuzzer,$(SAN)),)
    $(B)/src/ops/exact/kernels_%.o: CFLAGS_ALL += -fno-sanitize=all
endif
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
$(B)/src/ops/exact/kernels_avx2.o $(B)/src/ops/exact/kernels_bf16_avx2.o \
$(B)/src/ops/exact/kernels_tc_avx2.o: \
    CFLAGS_ALL += -mavx2 -mfma
$(B)/src/ops/exact/kernels_avx512.o $(B)/src/ops/exact/kernels_bf16_avx512.o \
$(B)/src/ops/exact/kernels_tc_avx512.o \
$(B)/src/ops/exact/kernels_vdp_avx512bf16.o $(B)/src/ops/exact/kernels_vdp_peak.o \
$(B)/src/ops/exact/kernels_bf16_amx.o $(B)/src/ops/exact/kernels_bf16_amx_model.o: \
    CFLAGS_ALL += -mavx512f -mavx512dq \
    -mavx512vl -mavx512bw -mfma -mprefer-vector-width=512
$(B)/src/ops/exact/kernels_vdp_avx512bf16.o \
$(B)/src/ops/exact/kernels_vdp_peak.o: CFLAGS_ALL += $(VDP_FLAGS)
$(B)/src/ops/exact/kernels_bf16_amx.o: \
    CFLAGS_ALL += $(if $(findstring AMX,$(AMX_DEFS)),$(AMX_FLAGS))
endif

$(B)/src/ops/exact/kernels_neon.o $(B)/src/os/wasm/wasm.o: CFLAGS_ALL += $(OS_NEON)

# The headers of an MPI are not held to our warnings.
$(B)/src/team/%.o $(B)/src/cli/main.o $(B)/tests/team/%.o: CFLAGS_ALL += $(if $(MPI),-DTT_MPI)
$(B)/src/team/mpi.o: CFLAGS_ALL += $(patsubst -I%,-isystem %,$(MPI_FLAGS))
