# cuda.mk: the kernels of the backend cuda, for GPUs and, as tests, for the CPU.
# SPDX-License-Identifier: Apache-2.0
.PHONY: cuda-shim cuda-programs

# CUDA kernels, as nvcc makes them ...
$(B)/gen/cuda_images.h: src/ops/cuda $(CUDA_SRC)
	@mkdir -p $(@D)
	@printf 'IMAGE(%s)\n' $(basename $(notdir $(CUDA_SRC))) > $@

ifneq ($(CUDA),)
$(B)/src/ops/table.o: CFLAGS_ALL += -DTT_CUDA
$(B)/src/ops/cuda/%.o: CFLAGS_ALL += -DTT_CUDA
$(B)/src/ops/cuda/images.o: CFLAGS_ALL += -I$(B)/gen -DTT_CUDA_IMAGES='"$(B)/images"'
IMAGES := $(patsubst src/ops/cuda/%.cu,$(B)/images/%.fatbin,$(CUDA_SRC))
$(B)/src/ops/cuda/images.o: $(IMAGES) $(B)/gen/cuda_images.h
LAST := compute_$(lastword $(CUDA_ARCHS))
GENCODE := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=$(LAST),code=$(LAST)
# wgmma is there for sm_90a alone; other GPUs get kernels without a body.
$(B)/images/wgmma_% $(B)/gpu/%: GENCODE := $(patsubst \
  %=compute_90$(comma)code=sm_90,%=compute_90a$(comma)code=sm_90a,$(GENCODE))
# Another compiler makes them anew.
$(B)/images/nvcc: always
	@mkdir -p $(@D)
	@echo "$(NVCC) $(CUDA_ARCHS)" | cmp -s - $@ || echo "$(NVCC) $(CUDA_ARCHS)" > $@
.PHONY: always
$(IMAGES): $(B)/images/%.fatbin: src/ops/cuda/%.cu $(wildcard src/ops/cuda/*.h) \
    $(B)/images/nvcc $(MAKE_FILES)
	@mkdir -p $(@D)
	$(call run,NVCC,$<)$(NVCC) $(NVCC_FLAGS) $(GENCODE) -fatbin -o $@ $<

# What tools/gpu/measure.sh runs on a GPU; NVIDIA's library is linked statically.
GPU_TOOLS := $(patsubst tools/gpu/%.cu,$(B)/gpu/%,$(wildcard tools/gpu/*.cu))
$(GPU_TOOLS): $(B)/gpu/%: tools/gpu/%.cu $(wildcard src/ops/cuda/*.h) src/ops/tensor_core.h \
    $(B)/images/nvcc
	@mkdir -p $(@D)
	$(call run,NVCC,$<)$(NVCC) -O2 $(NVCC_FLAGS) $(GENCODE) -o $@ $<
endif
$(B)/check_kernels: $(call obj,tests/cuda/check_kernels.c) $(B)/tests/libcases.a $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
cuda-programs: all $(B)/check_kernels $(B)/check_bits $(B)/demo-random/config.json $(SHARED) \
    $(GPU_TOOLS)

# ... and on the CPU: a driver whose GPU is the shim, and programs with the
# backend cuda. Their objects go before the library, whose table lacks it.
SHIM_CXX := -std=c++17 $(OPT) -g -ffp-contract=off -fno-math-errno $(NATIVE) \
         -Wall -Wextra -Wshadow -fvisibility=hidden -fPIC -ftls-model=initial-exec -pthread \
         -Iinclude -Isrc -Itests/cuda \
         $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
SHIM_GPU := $(patsubst %,$(B)/shim/%.o,$(CUDA_SRC) $(sort $(wildcard tests/cuda/*.cpp)))
$(SHIM_GPU): $(B)/shim/%.o: % $(MAKE_FILES)
	@mkdir -p $(@D)
	$(call run,CXX,$<)$(CXX) $(SHIM_CXX) -MMD -MP -c -o $@ -x c++ $<
$(B)/shim/libcuda.so.1: $(SHIM_GPU)
	$(call run,LD,$@)$(CXX) $(SHIM_CXX) -shared -o $@ $^ -ldl

SHIM_HOST := $(patsubst src/%.c,$(B)/shim/src/%.o,src/ops/table.c $(wildcard src/ops/cuda/*.c))
$(SHIM_HOST): $(B)/shim/%.o: %.c $(B)/gen/cuda_images.h $(MAKE_FILES)
	@mkdir -p $(@D) $(B)/shim/images
	@for n in $(basename $(notdir $(CUDA_SRC))); do \
	  echo shim > $(B)/shim/images/$$n.fatbin; done
	$(call run,CC,$<)$(CC) $(CFLAGS_ALL) $(WARN_SOURCE) -DTT_CUDA -I$(B)/gen \
	  -DTT_CUDA_IMAGES='"$(B)/shim/images"' -MMD -MP -c -o $@ $<

SHIM_PROGRAMS := $(addprefix $(B)/shim/,tether check_kernels check_waits check_bits)
$(B)/shim/tether: LDLIBS_ALL += $(EXPORTS)
$(B)/shim/tether: $(call obj,$(CLI_SRC))
$(B)/shim/check_kernels: $(call obj,tests/cuda/check_kernels.c) $(B)/tests/libcases.a
$(B)/shim/check_waits: $(call obj,tests/cuda/check_waits.c) $(B)/tests/libcases.a
$(B)/shim/check_bits: $(call obj,$(BITS_SRC)) $(B)/tests/libcases.a
$(SHIM_PROGRAMS): $(SHIM_HOST) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o,$^) \
	  $(filter-out $(LIB),$(filter %.a,$^)) $(LIB) $(LDLIBS_ALL)
cuda-shim: $(SHIM_PROGRAMS) $(B)/shim/libcuda.so.1 $(B)/demo-random/config.json
