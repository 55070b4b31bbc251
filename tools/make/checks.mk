# checks.mk: what is run now and then: faults, ranks, GPUs, bits, fuzzers, other programs.
# SPDX-License-Identifier: Apache-2.0
.PHONY: check-san check-static coverage check-faults faults-programs check-disk check-kill \
  check-ranks check-ranks-faults check-vdp mutation check-device test-guard check-cuda \
  check-cuda-faults check-sass check-bits check-links bits-programs check-bits-all fuzz libfuzzers figures

# Planted faults that validation must find, and the table of them.
mutation: tests   ## plant every fault, 100 seeds without one: the table in build/
	@$(B)/tests/validate/test_mutation --all $(B)/mutation.md

# The same of whole models: one file of src changed at a time, found from dumps.
.PHONY: mutation-models
mutation-models: tests   ## plant mistakes of models, TABLE=file of what is said of them
	@CC="$(CC)" CFLAGS="$(CFLAGS_ALL)" LIBS="$(LDLIBS_ALL) $(EXPORTS)" \
	  sh tests/validate/models.sh $(B) \
  $(or $(TABLE),build/models.tsv) $(or $(WAY),generate) $(ONLY_MODELS)

# FIGURES chooses: policies retention demo, and what takes longer (the header of
# tools/figures.sh).
FIGURES ?=
figures: all   ## compute the figures of the pages again, compare them
	@sh tools/figures.sh $(B) $(FIGURES)

# Does a room of the model touch a value of a device (src/core/device.h)?
check-device:   ## does clang find that a room of the model touches a value?
check-device: $(B)/gen/cache_policies.h
	@CLANG="$(CLANG)" sh tests/core/test_device.sh $(B)

test-guard:   ## the tests on memory that only operators can reach
test-guard: tests $(B)/tether-guard $(B)/demo-random/config.json
	@sh tests/guard.sh $(B)

# Both MPIs where they are installed, on this machine.
check-ranks: all   ## `mpirun tether generate` on 1 to 4 ranks: one process's bits?
	@sh tests/team/check.sh $(B)

# As root, with `ip`; says so where it cannot.
.PHONY: check-ranks-hosts
check-ranks-hosts:   ## three hosts, as network namespaces: one process's bits, and a cut cable
check-ranks-hosts: all
	@sh tests/team/hosts.sh $(B)

# RANK_KILLS of them, drawn from RANK_SEED.
RANK_KILLS ?= 100
RANK_SEED  ?= 1
.PHONY: check-long check-ranks-kill
check-ranks-kill:   ## kill ranks at 100 random moments: do other numbers make the same bytes?
check-ranks-kill: all
	@sh tests/team/kill.sh $(B) $(RANK_KILLS) $(RANK_SEED)

# RANK_FAULTS of all kinds: kills, hangs, NaN, full disks, cut cables.
RANK_FAULTS ?= 100
.PHONY: check-ranks-random
check-ranks-random:   ## 100 random faults of ranks: does one sentence name the rank?
check-ranks-random: all
	@sh tests/team/kill.sh $(B) $(RANK_FAULTS) $(RANK_SEED) "kill stop nan full cut"

check-ranks-faults: tests   ## plant faults in what ranks do; are all of them found?
	@CC="$(CC)" FLAGS="$(OMP_FLAGS)" LIBS="$(LDLIBS_ALL)" sh tests/team/plant.sh $(B)

# The bits of this build against ref_data/bits.txt. RUN goes before every
# program of ours, for cross builds: make CC=aarch64-linux-gnu-gcc LDLIBS=-static
# RUN=qemu-aarch64-static check-bits. BITS are options of check_bits; ROWS chooses
# lines of the table of check-bits-all by words of their titles.
RUN  ?=
BITS ?=
ROWS ?=
# EXTENT=all: every digest of ref_data, 20 minutes of one core.
EXTENT ?=
check-cuda:   ## the CUDA kernels on the CPU, thread by thread: golden's bits?
	@if ! command -v $(firstword $(CXX)) >/dev/null 2>&1; then \
	  echo "SKIP check-cuda: $(CXX) is not installed; a C++ compiler runs the kernels"; \
	  echo "0 passed, 0 failed, 1 skipped"; \
	else $(MAKE) --no-print-directory cuda-shim && sh tests/cuda/check.sh $(B) $(EXTENT); fi

check-cuda-faults:   ## plant faults in the CUDA kernels; are all of them found?
	@$(MAKE) --no-print-directory cuda-shim
	@CXX="$(CXX)" sh tests/cuda/plant.sh $(B) $(B)/faults.md $(call quoted,$(ROWS))

check-sass:   ## what nvcc makes of the CUDA kernels: registers, spills, inner loops
	@CC="$(CC)" sh tests/cuda/sass.sh "$(NVCC)" "$(CUDA_ARCHS)" "$(NVCC_FLAGS)"

check-bits:   ## is every output, bit by bit, the stored one?
check-bits: $(B)/check_bits $(B)/demo-random/config.json
	@$(RUN) $(B)/check_bits --demo $(B)/demo-random $(BITS)

bits-programs: $(B)/check_bits$(EXE) $(B)/demo-random/config.json
	@echo "check_bits is in $(B)"

check-bits-all:   ## the same for every compiler, option and CPU that can be had here
	@BITS="$(BITS)" sh tests/bits/check_all.sh $(ROWS)

$(B)/demo-random/config.json: $(B)/tools/make_checkpoint$(EXE)
	@$(RUN) $< --preset demo $(@D) 2>/dev/null
	@touch $@

# Systems that no machine here has: the program and the library are compiled and
# linked, and nothing is run. Needs zig of PyPI, whose -O0 adds what -O1 does not.
LINKS ?= aarch64-macos x86_64-macos x86_64-freebsd
check-links:   ## do program and library link for macOS and FreeBSD? Nothing is run
	+@sh tests/bits/links.sh $(call quoted,$(MAKE) --no-print-directory) $(call quoted,$(ZIG)) $(LINKS)

check-vdp:   ## is class vdp this CPU's VDPBF16PS? 10^9 products, a minute
check-vdp: $(B)/tests/ops/test_vdp_unit
	@$< 1e9

# Every policy, both main classes, one thread and two; KILLS chooses how many.
KILLS ?= 300
# No option of the engine's: any C11 compiler, no other folder.
.PHONY: golden check-golden
golden: build/golden   ## build/golden: src/golden, the whole model in plain C
build/golden: $(wildcard src/golden/*.[ch])
	@mkdir -p build
	$(call run,CC,$@)$(CC) -std=c11 -O2 src/golden/*.c -lm -o $@

GOLDEN_TESTS := $(patsubst %,$(B)/tests/golden/test_%,cases transformer vae)
check-golden: all $(GOLDEN_TESTS)   ## has src/golden the engine's bits, by every compiler here?
	@$(B)/tests/golden/test_cases
	@$(B)/tests/golden/test_transformer
	@$(B)/tests/golden/test_vae wide
	@sh tests/golden/test_golden.sh $(B) all

check-kill:   ## kill runs at 300 random moments: do all go on to the same bytes?
check-kill: all $(B)/tests/cli/test_checkpoint
	@TT_KILLS=$(KILLS) $(B)/tests/cli/test_checkpoint

# LATENTS=960 for shorter runs, LIMIT=3 (percent) while others run.
check-long:   ## do 3,000 latents cost what the first ones cost, under every policy with a window?
check-long: all
	@LIMIT=$(or $(LIMIT),1) sh tools/long_runs.sh $(B) $(or $(LATENTS),3000)

# Every call for memory or a file fails once (tests/faults); FAULTS=10: every
# tenth, ROWS="decode embed": these commands, PART=2/4: a quarter of their calls.
# The program without sanitizers then goes on with what is left: half the time.
FAULTS ?= all
PART   ?=
check-faults:   ## let the n-th call for memory or a file fail, for every n, under the sanitizers
check-faults: $(B)/tether
	@RESUMER="$(CURDIR)/$<" $(MAKE) --no-print-directory SAN=address,undefined OMP=no OPT=-O2 \
	  faults-programs

faults-programs: $(B)/tether-faults $(B)/tests/faults/test_faults
	@FAULTS=$(FAULTS) ROWS="$(ROWS)" PART=$(PART) $(B)/tests/faults/test_faults

check-disk:   ## fill small disks with what every command writes; ROWS chooses commands
check-disk: all $(B)/tests/faults/test_disk
	@DISK=1 ROWS="$(ROWS)" $(B)/tests/faults/test_disk

# ROWS="clang thread" chooses a row, ONLY="io/ text/" the tests.
check-san:   ## the tests under the sanitizers of gcc and clang, a sample under valgrind
	@ONLY='$(if $(filter file,$(origin ONLY)),,$(ONLY))' sh tests/san.sh $(ROWS)

# ROWS chooses: gcc, clang-tidy, cppcheck; FILES: parts of paths.
FILES ?=
check-static:   ## what gcc -fanalyzer, clang-tidy and cppcheck say of src and tools
	@FILES='$(FILES)' sh tests/static/check.sh $(ROWS)

# From zero; ROWS=faults adds a row (tests/coverage.sh) to what was counted,
# ONLY="io/ text/" takes these of the row tests.
coverage:   ## how much of src do the tests run? the ten files with the least
	@ONLY='$(if $(filter file,$(origin ONLY)),,$(ONLY))' sh tests/coverage.sh $(ROWS)

# The dial of every row; some minutes.
.PHONY: thresholds
thresholds: tests   ## the smallest fault that is found, per operator: tests/validate/thresholds.txt
	@$(B)/tests/validate/test_thresholds --all tests/validate/thresholds.txt

# Needs clang with its libFuzzer and sanitizers. Corpora and findings stay in
# build/fuzz; FUZZ="zip gguf" chooses targets.
SECONDS ?= 60
FUZZ_FLAVOUR := CC=clang SAN=address,undefined,fuzzer-no-link OPT=-O1 OMP=no
fuzz:   ## run every fuzz target for SECONDS=60 each
	@$(MAKE) --no-print-directory $(FUZZ_FLAVOUR) libfuzzers
	@sh tests/fuzz/run.sh build/fuzz $(SECONDS) $(FUZZ)

libfuzzers: $(LIBFUZZERS)
	@mkdir -p build/fuzz
	@cp $(LIBFUZZERS) build/fuzz/

# PYTHON: one that has numpy, torch, diffusers, transformers and accelerate.
PYTHON ?= python3
WITH_PYTHON = command -v "$(PYTHON)" > /dev/null || { \
  echo "SKIP python/torch: $(PYTHON) is not installed"; \
  echo "python/torch: 0 passed, 0 failed, 1 skipped"; exit 0; }; \
  TETHER=$(B)/tether TETHER_LIB=$(SHARED) PYTHONDONTWRITEBYTECODE=1; \
  export TETHER TETHER_LIB PYTHONDONTWRITEBYTECODE;
.PHONY: check-python check-python-wide
check-python:   ## diffusers' and transformers' models against ours, with PYTHON
check-python: all $(SHARED) f64 $(B)/demo-random/config.json
	@PYTHON="$(PYTHON)" sh tests/python/test_tether.sh $(B)
	@$(WITH_PYTHON) $(PYTHON) tests/python/check_torch.py $(B)/demo-random

# The widths of the published files: one layer of umT5-XXL and of the 1.3B
# transformer, all of the VAE's decoder. Its pictures are smaller, since it takes
# longest.
WIDE := $(B)/wide-random
check-python-wide:   ## the same at real width, a layer of each transformer
check-python-wide: all $(SHARED) f64 $(B)/demo-random/config.json
	@$(WITH_PYTHON) mkdir -p $(WIDE)/google/umt5-xxl && \
	  cp $(B)/demo-random/google/umt5-xxl/spiece.model $(WIDE)/google/umt5-xxl && \
	  $(B)/tools/make_checkpoint --layers 1 --text-len 32 --t5-layers 1 --t5-vocab 640 \
	  --dit $(WIDE)/diffusion_pytorch_model.safetensors --config $(WIDE)/config.json \
	  --t5 $(WIDE)/models_t5_umt5-xxl-enc-bf16.safetensors \
	  --vae $(WIDE)/Wan2.1_VAE.safetensors > /dev/null 2>&1 && \
	  for part in wide wide-vae; do \
	  $(PYTHON) tests/python/check_torch.py $(WIDE) $$part || exit 1; done

# PYTHON: one that has numpy and mlx (pip install "mlx[cpu]" numpy).
.PHONY: check-mlx
check-mlx:   ## a port to MLX against ours, with PYTHON
check-mlx: all f64
	@command -v "$(PYTHON)" > /dev/null || { echo "SKIP python/mlx: not run: no $(PYTHON)"; \
	  echo "0 passed, 0 failed, 1 skipped"; exit 0; }; \
	  TETHER=$(B)/tether PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/python/check_mlx.py
