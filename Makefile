# tether: one Makefile. `make help` lists the targets.
# SPDX-License-Identifier: Apache-2.0

# Builds go to ./build, or, with B=FOLDER or make -f PATH/Makefile, elsewhere.

quoted = '$(subst ','\'',$(1))'

# ---- a build elsewhere ---------------------------------------------------
# FOLDER gets links to the rooms of the source and a build/ of its own. All
# paths are the same there, with blanks in FOLDER too, and `make` works in it.
SOURCE := $(shell cd "$$(dirname $(call quoted,$(subst ^,,$(subst ^ ,,^$(MAKEFILE_LIST)))))" && pwd -P)
ifeq ($(origin B),command line)
  ELSEWHERE := $(B)
endif
ifneq ($(SOURCE),$(realpath .))
  ELSEWHERE := $(or $(ELSEWHERE),.)
endif
ifneq ($(ELSEWHERE),)
.PHONY: elsewhere $(MAKECMDGOALS)
$(or $(MAKECMDGOALS),all): elsewhere ;@:
# make -n makes nothing in a FOLDER without links: it shows what it would do in
# a passing one.
DRY := $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
elsewhere:
	+@folder=$(call quoted,$(ELSEWHERE)); \
	  $(if $(DRY),[ -e "$$folder/Makefile" ] || { folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT; }; )\
	  SOURCE=$(call quoted,$(SOURCE)) sh $(call quoted,$(SOURCE)/tools/elsewhere.sh) "$$folder" && \
	  $(MAKE) --no-print-directory -C "$$folder" -f Makefile B= $(MAKECMDGOALS)
else

# ---- what you may set ---------------------------------------------------
CC      ?= cc
OPT     ?= -O2
REAL    ?= float#  float | double (a double build checks algorithms, not speed)
OMP     ?= auto#   auto | no
V       ?=#        V=1 shows whole commands
SAN     ?=#        e.g. SAN=address,undefined
CUDA    ?=#        1: with the backend cuda; its kernels need nvcc, of CUDA 12 or 13
MPI     ?=#        1: `mpirun tether generate`; MPICC=mpicc.mpich chooses one
PREFIX  ?= /usr/local
DESTDIR ?=

ifeq ($(origin CC),default)
CC := $(shell command -v gcc >/dev/null 2>&1 && echo gcc || echo cc)
endif

comma := ,

# ---- what would stop every build, said once ------------------------------
BUILDING := $(filter-out help clean deps uninstall,$(or $(MAKECMDGOALS),all))
ifneq ($(TMPDIR),)
  ifneq ($(shell test -d "$$TMPDIR" && test -w "$$TMPDIR" && echo yes),yes)
    $(info note: TMPDIR=$(TMPDIR) is no folder that can be written: /tmp is used)
    export TMPDIR := /tmp
  endif
endif
ifneq ($(BUILDING),)
  ifneq ($(shell { test -w build || { test ! -e build && test -w .; }; } && echo yes),yes)
    $(error $(SOURCE) cannot be written: build elsewhere with make B=FOLDER)
  endif
endif

# ---- what this machine has: found by compile tests -----------------------
KNOWN_CC := \043if !defined __GNUC__ || defined __TINYC__\n\043error\n\043endif\nint main(void){return 0;}\n
# try: does a C program (one line of $(1)) compile and link with flags $(2)?
try = $(shell $(if $(TMPDIR),TMPDIR=$(call quoted,$(TMPDIR));) printf '%b' '$(1)' | $(CC) -x c - -o /dev/null $(2) >/dev/null 2>&1 && echo yes)
# flag: flags $(1), if they work without a warning
flag = $(if $(call try,int main(void){return 0;}\n,-Werror $(1)),$(1))

ifneq ($(BUILDING),)
  ifneq ($(call try,$(KNOWN_CC),-std=c11 -ffp-contract=off),yes)
    $(error CC=$(CC) cannot build this: gcc 10 or clang 12 or newer is needed (make deps), chosen with CC=gcc or CC=clang)
  endif
endif

ifneq ($(OMP),no)
  ifeq ($(call try,\043include <omp.h>\nint main(void){return omp_get_max_threads()<1;}\n,-fopenmp),yes)
    OMP_FLAGS := -fopenmp
  endif
endif

# MPFR judges the elementary functions in one test and one tool; nothing else
# is linked to it.
MPFR_TEST := \043include <mpfr.h>\nint main(void){mpfr_t x;mpfr_init2(x,64);mpfr_clear(x);return 0;}\n
ifeq ($(call try,$(MPFR_TEST),-lmpfr -lgmp),yes)
  MPFR_USERS = $(B)/tests/core/test_mathfn $(B)/tools/math_scan
endif

# oneDNN is held against in one tool.
DNNL_TEST := \043include <oneapi/dnnl/dnnl.h>\nint main(void){return !dnnl_version();}\n
ifeq ($(call try,$(DNNL_TEST),-ldnnl),yes)
  DNNL_USERS = $(B)/tools/bench_onednn
endif

# AMX: the compiler must know it (gcc 11, clang 12), the system be Linux.
AMX_TEST := \043include <immintrin.h>\n\043include <sys/syscall.h>\nint main(void){_tile_zero(0);_tile_dpbf16ps(0,1,2);return SYS_arch_prctl<0;}\n
AMX_FLAGS := -mamx-tile -mamx-bf16 -mavx512f -mavx512bf16
ifeq ($(call try,$(AMX_TEST),$(AMX_FLAGS)),yes)
  AMX_DEFS := -DTT_HAVE_AMX
endif

# VDPBF16PS: gcc 10, clang 9.
VDP_TEST := \043include <immintrin.h>\n__m512 f(__m512 c,__m512i a){return _mm512_dpbf16_ps(c,(__m512bh)a,(__m512bh)a);}int main(void){return 0;}\n
VDP_FLAGS := -mavx512f -mavx512bf16
ifeq ($(call try,$(VDP_TEST),$(VDP_FLAGS)),yes)
  AMX_DEFS += -DTT_HAVE_AVX512BF16
endif

# The backend cuda. Its driver is loaded when it is used: nothing is linked.
CUDA_SRC   := $(sort $(wildcard src/ops/cuda/*.cu))
# NVCC=/usr/local/cuda-12.4/bin/nvcc chooses one
NVCC       ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
# Compiled for those that nvcc knows (100 and 120: since 12.8); the last one as
# PTX for newer GPUs.
CUDA_ARCHS ?= $(filter $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch 2>/dev/null)),80 86 89 90 100 120)
NVCC_FLAGS := -std=c++17 -Iinclude -Isrc
ifneq ($(CUDA),)
  ifeq ($(NVCC),)
    $(error CUDA=1 needs nvcc of CUDA 12 or 13: install the CUDA toolkit, or name it with NVCC=FILE)
  endif
endif
# C++ is needed for the kernels on the CPU alone.
ifeq ($(origin CXX),default)
  CXX := $(if $(findstring clang,$(CC)),clang++,g++)
endif

# MPI: the flags that its compiler would add, of Open MPI or MPICH.
MPICC ?= mpicc
ifneq ($(MPI),)
  MPI_SHOW := $(shell $(MPICC) -show 2>/dev/null)
  ifeq ($(MPI_SHOW),)
    $(error MPI=1 needs $(MPICC): install libopenmpi-dev or libmpich-dev, or name it with MPICC=FILE)
  endif
  MPI_FLAGS := $(filter -I%,$(MPI_SHOW))
  MPI_LIBS := $(filter -L% -l% -Wl$(comma)-rpath%,$(MPI_SHOW))
endif

# A plug-in sees the tt_ functions of the program that loads it. Were all names
# exported, its own functions of such names would give way to ours.
EXPORT_LIST := -Wl,--dynamic-list=src/ops/plugin.list
EXPORTS := $(if $(call try,int main(void){return 0;}\n,$(EXPORT_LIST)),$(EXPORT_LIST),-rdynamic)

# ---- flags ---------------------------------------------------------------
# No -ffast-math, no -march=native, and contraction off: a fused multiply-add
# is written fma where it is meant (src/ops/README.md). On s390x -std=c11
# alone makes gcc compute float expressions in double; core/context.c refuses
# to be compiled where that is so.
EXCESS := $(if $(call try,int main(void){return 0;}\n,-Werror -fexcess-precision=fast),-fexcess-precision=fast)
# Objects fit into the program, the static and the shared library: public names
# are those of include/tether (api.h), calls between them bind at link time.
PIC   := -fPIC $(if $(call try,int main(void){return 0;}\n,-Werror -fPIC -fno-semantic-interposition),-fno-semantic-interposition)
BIND  := $(if $(call try,int main(void){return 0;}\n,-Wl$(comma)-Bsymbolic-functions),-Wl$(comma)-Bsymbolic-functions)
WARN  := -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes \
         -Wstrict-prototypes -Wvla -Wundef -Wpointer-arith
# What is in src is also held to -Wconversion.
WARN_SOURCE := -Wconversion -Wno-sign-conversion
# Files come from strangers: an overflow ends the program (stack protector,
# FORTIFY), and the tables of addresses are read-only (RELRO, now). Kernels read
# no files and are left out. Sanitizers look closer by themselves.
ifeq ($(SAN)$(filter -O0,$(OPT)),)
HARDEN := $(call flag,-fstack-protector-strong) $(call flag,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
HARDEN_LINK := $(call flag,-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now)
endif
CFLAGS_ALL := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 $(OPT) -g $(HARDEN) \
         -ffp-contract=off -fno-math-errno \
         $(EXCESS) $(WARN) -fvisibility=hidden $(PIC) -Iinclude -Isrc -pthread $(OMP_FLAGS) $(AMX_DEFS) \
         $(if $(filter double,$(REAL)),-DTT_REAL_DOUBLE) \
         $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
         $(CFLAGS)
LDLIBS_ALL := $(HARDEN_LINK) -ldl -lm $(MPI_LIBS) $(LDLIBS)

# Builds that differ in flags have folders of their own.
EXTRA := $(strip $(wordlist 2,99,$(CC)) $(CFLAGS) $(LDLIBS))
FLAVOUR := $(notdir $(firstword $(CC)))$(subst $() ,,$(OPT))$(if $(OMP_FLAGS),,-noomp)$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(EXTRA),-$(firstword $(shell printf '%s' '$(subst ','\'',$(EXTRA))' | cksum)))$(if $(CUDA),-cuda)$(if $(MPI),-$(notdir $(firstword $(MPICC))))$(if $(filter double,$(REAL)),-double)
override B := build/$(FLAVOUR)

# $(call run,CC,what): what stands before a command; one short line shows it.
run = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),$(if $(V),,@),@echo '  $(1)	$(2)' && )

LIB_SRC  := $(sort $(wildcard src/core/*.c src/ops/*.c \
              $(filter-out $(if $(CUDA),,src/ops/cuda/%),$(wildcard src/ops/*/*.c)) src/io/*.c \
              $(filter-out $(if $(MPI),,src/team/mpi.c),$(wildcard src/team/*.c)) \
              src/cache/*.c src/cache/*/*.c src/dit/*.c src/vae/*.c src/text/*.c src/rollout/*.c \
              src/analyze/*.c src/run/*.c src/validate/*.c src/validate/*/*.c))
CLI_SRC  := $(sort $(wildcard src/cli/*.c src/cli/*/*.c))
TEST_SRC := $(sort $(wildcard tests/*/test_*.c))
CASE_SRC := $(sort $(wildcard tests/run_case/*.c))
BITS_SRC := $(sort $(wildcard tests/bits/*.c))
TOOL_SRC := $(sort $(wildcard tools/*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
obj = $(patsubst %.c,$(B)/%.o,$(1))

LIB   := $(B)/libtether.a
# What `make install` brings beside it: the same objects as a shared library,
# and as a static one that has no global names but the public ones.
VERSION := $(shell sed -n 's/^.define TT_VERSION "\(.*\)"/\1/p' include/tether/version.h)
SONAME  := libtether.so.$(firstword $(subst ., ,$(VERSION)))
SHARED  := $(B)/libtether.so.$(VERSION)
PUBLIC  := $(B)/public/libtether.a
OBJCOPY := $(shell $(CC) -print-prog-name=objcopy)
TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
MUTANTS := $(B)/tests/validate/mutants.so
TOOLS := $(patsubst tools/%.c,$(B)/tools/%,$(TOOL_SRC))
# fuzz_NAME reads files and standard input; libfuzz_NAME is libFuzzer's.
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_SRC))
LIBFUZZERS := $(patsubst tests/fuzz/%.c,$(B)/libfuzzer/%,$(FUZZ_SRC))

# Of this folder's own repository: a tarball may lie in another one.
GIT_NOW := $(shell cd "$$(dirname $(call quoted,$(realpath Makefile)))" && top=$$(git rev-parse --show-cdup 2>/dev/null) && [ -z "$$top" ] && git describe --always --dirty 2>/dev/null || echo unknown)
REVISION := $(B)/gen/revision
BUILT_REV := $(shell cat $(call quoted,$(REVISION)) 2>/dev/null)
GIT_REV := $(or $(filter-out unknown,$(GIT_NOW)),$(BUILT_REV),unknown)

# ---- targets -------------------------------------------------------------
.PHONY: check-san check-static coverage check-faults faults-programs check-disk check-kill check-ranks check-ranks-faults build-folder check-vdp all tests test check test-some mutation check-device test-guard check-cuda check-cuda-faults check-sass cuda-shim cuda-programs check-bits bits-programs check-bits-all fuzz libfuzzers tools figures demo deps help clean install uninstall staged check-install config f64 tether-program
all: config $(B)/tether tools   ## build the program and the tools
	@ln -sfn $(FLAVOUR)/tether build/tether

config:
	@$(if $(OMP_FLAGS)$(filter no,$(OMP)),:,echo "note: no OpenMP ($(CC) -fopenmp does not work): operators run on one core. 'make deps' installs it, libomp-dev for clang.")

tests: all $(B)/tether-faults $(B)/run_case $(B)/check_bits $(TESTS) $(FUZZERS) $(MUTANTS)   ## build the tests and build/run_case
	@ln -sfn $(FLAVOUR)/run_case build/run_case

test: tests staged $(B)/demo-random/config.json   ## build and run every test; the last line counts them
	@sh tests/run.sh $(B)

check: test   ## the same as test

# Programs of a cross build run after RUN; those that start programs of ours
# (cli, fuzz, some of validate) cannot. ONLY chooses by parts of names, as
# the results show them: validate/dump.
ONLY ?= core/ ops/ io/ cache/ dit/ text/
SOME := $(foreach t,$(TESTS),$(if $(strip $(foreach w,$(ONLY),$(findstring $(w),$(subst test_,,$(t:$(B)/%=%))))),$(t)))
SOME_NEED := $(if $(filter $(B)/tests/cli/% $(B)/tests/validate/%,$(SOME)),all $(MUTANTS)) \
             $(if $(filter $(B)/tests/fuzz/%,$(SOME)),$(FUZZERS)) \
             $(if $(filter $(B)/tests/faults/%,$(SOME)),$(B)/tether-faults)
test-some: $(SOME) $(if $(RUN),,all $(SOME_NEED))   ## the tests of ONLY="core/ io/ ...", after RUN=qemu-s390x-static, say
	@RUN="$(RUN)" ONLY="$(ONLY)" sh tests/run.sh $(B)

# Planted faults that validation must find, and the table of them.
mutation: tests   ## plant every fault, 100 seeds without one: ref_data/mutation.md
	@$(B)/tests/validate/test_mutation --all ref_data/mutation.md

# The same of whole models: one file of src changed at a time, found from dumps.
.PHONY: mutation-models
mutation-models: tests   ## plant mistakes of models, TABLE=file of what is said of them
	@CC="$(CC)" CFLAGS="$(CFLAGS_ALL)" LIBS="$(LDLIBS_ALL) $(EXPORTS)" \
	  sh tests/validate/models.sh $(B) $(or $(TABLE),build/models.tsv) $(or $(WAY),generate) $(ONLY_MODELS)

tools: $(TOOLS)

# FIGURES chooses: policies retention demo, and what takes longer (the header of
# tools/figures.sh).
FIGURES ?=
figures: all   ## compute the figures of the pages again, compare them
	@sh tools/figures.sh $(B) $(FIGURES)

# Does a room of the model touch a value of a device (include/tether/device.h)?
check-device: $(B)/gen/cache_policies.h   ## does clang find that a room of the model touches a value?
	@CLANG="$(CLANG)" sh tests/core/test_device.sh $(B)

test-guard: tests $(B)/tether-guard $(B)/demo-random/config.json   ## the tests on memory that only operators can reach
	@sh tests/guard.sh $(B)

# Both MPIs where they are installed, on this machine.
check-ranks: all   ## `mpirun tether generate` on 1 to 4 ranks: one process's bits?
	@sh tests/team/check.sh $(B)

# As root, with `ip`; says so where it cannot.
.PHONY: check-ranks-hosts
check-ranks-hosts: all   ## three hosts, as network namespaces: one process's bits, and a cable that is cut
	@sh tests/team/hosts.sh $(B)

# RANK_KILLS of them, drawn from RANK_SEED.
RANK_KILLS ?= 100
RANK_SEED  ?= 1
.PHONY: check-long check-ranks-kill
check-ranks-kill: all   ## kill ranks at 100 random moments: do other numbers of ranks go on to the same bytes?
	@sh tests/team/kill.sh $(B) $(RANK_KILLS) $(RANK_SEED)

# RANK_FAULTS of all kinds: kills, hangs, NaN, full disks, cut cables.
RANK_FAULTS ?= 100
.PHONY: check-ranks-random
check-ranks-random: all   ## 100 random faults of ranks, of five kinds: does one sentence name the rank, and do others go on?
	@sh tests/team/kill.sh $(B) $(RANK_FAULTS) $(RANK_SEED) "kill stop nan full cut"

check-ranks-faults: tests   ## plant faults in what ranks do; are all of them found?
	@CC="$(CC)" FLAGS="$(OMP_FLAGS)" LIBS="$(LDLIBS_ALL)" sh tests/team/plant.sh $(B)

# Where this build is, for scripts.
build-folder:
	@echo $(B)

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
	@CXX="$(CXX)" sh tests/cuda/plant.sh $(B) tests/cuda/faults.md $(call quoted,$(ROWS))

check-sass:   ## what nvcc makes of the CUDA kernels: registers, spills, inner loops
	@CC="$(CC)" sh tests/cuda/sass.sh "$(NVCC)" "$(CUDA_ARCHS)" "$(NVCC_FLAGS)"

check-bits: $(B)/check_bits $(B)/demo-random/config.json   ## is every output, bit by bit, the stored one?
	@$(RUN) $(B)/check_bits --demo $(B)/demo-random $(BITS)

bits-programs: $(B)/check_bits $(B)/demo-random/config.json
	@echo "check_bits is in $(B)"

check-bits-all:   ## the same for every compiler, option and CPU that can be had here
	@BITS="$(BITS)" sh tests/bits/check_all.sh $(ROWS)

$(B)/demo-random/config.json: $(B)/tools/make_checkpoint
	@$(RUN) $< --preset demo $(@D) 2>/dev/null
	@touch $@

check-vdp: $(B)/tests/ops/test_vdp_unit   ## is class vdp this CPU's VDPBF16PS? 10^9 products, a minute
	@$< 1e9

# Every policy, both main classes, one thread and two; KILLS chooses how many.
KILLS ?= 300
# No option of the engine's: any C11 compiler, no other folder.
.PHONY: golden check-golden
golden: build/golden   ## build/golden: src/golden, the whole model in plain C
build/golden: $(wildcard src/golden/*.[ch])
	@mkdir -p build
	$(call run,CC,$@)$(CC) -std=c11 -O2 src/golden/*.c -lm -o $@

check-golden: all $(B)/tests/golden/test_cases   ## has src/golden the bits of the engine, by every compiler that can be had here?
	@$(B)/tests/golden/test_cases
	@sh tests/golden/test_golden.sh $(B) all

check-kill: all $(B)/tests/cli/test_checkpoint   ## kill runs at 300 random moments: do all go on to the same bytes?
	@TT_KILLS=$(KILLS) $(B)/tests/cli/test_checkpoint

# LATENTS=960 for shorter runs, LIMIT=3 (percent) beside other programs.
check-long: all   ## do 3,000 latents cost what the first ones cost, under every policy with a window?
	@LIMIT=$(or $(LIMIT),1) sh tools/long_runs.sh $(B) $(or $(LATENTS),3000)

# Every call for memory or a file fails once (tests/faults); FAULTS=10: every
# tenth, ROWS="decode embed": these commands, PART=2/4: a quarter of their calls.
# The program without sanitizers then goes on with what is left: half the time.
FAULTS ?= all
PART   ?=
check-faults: $(B)/tether   ## let the n-th call for memory or a file fail, for every n, under the sanitizers
	@RESUMER="$(CURDIR)/$<" $(MAKE) --no-print-directory SAN=address,undefined OMP=no OPT=-O2 faults-programs

faults-programs: $(B)/tether-faults $(B)/tests/faults/test_faults
	@FAULTS=$(FAULTS) ROWS="$(ROWS)" PART=$(PART) $(B)/tests/faults/test_faults

check-disk: all $(B)/tests/faults/test_disk   ## fill small disks with what every command writes; ROWS chooses commands
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

f64:   ## build/tether-f64, the same program in float64, for tether validate
	@$(MAKE) --no-print-directory REAL=double tether-program
	@ln -sfn $(notdir $(B))-double/tether build/tether-f64

tether-program: $(B)/tether

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

# The small model: the trained one when it ships, else random weights of the
# same shapes, written in a blink.
DEMO_MODEL := $(if $(wildcard ref_data/demo/config.json),ref_data/demo,build/demo-model)
demo: all   ## prompt to picture with the small built-in model, in build/demo/
	@test -f $(DEMO_MODEL)/config.json || \
	  $(B)/tools/make_checkpoint --preset demo $(DEMO_MODEL) >/dev/null
	@$(B)/tether demo -m $(DEMO_MODEL) -o build/demo

deps:   ## install compiler, OpenMP, OpenBLAS, ffmpeg by package name
	@CC="$(CC)" sh tools/deps.sh

# DESTDIR and PREFIX may hold blanks. F64=no leaves tether-f64 out, which is a
# second build of everything. A list of the files is in share/tether/installed,
# and uninstall removes those.
F64 ?= yes
install: all $(SHARED) $(PUBLIC) $(if $(filter no,$(F64)),,f64)   ## program, model, library, man pages under PREFIX
	@$(INSTALLER) install

# An installation for tests/install, in $(B)/staged.
staged: override DESTDIR := $(B)/staged/root
staged: override PREFIX := /usr/local
staged: override F64 = $(STAGED_F64)
staged: all $(SHARED) $(PUBLIC) | $(if $(filter check-install,$(MAKECMDGOALS)),f64)
	@rm -rf $(B)/staged
	@mkdir -p $(B)/staged
	@echo '$(CC) $(if $(SAN),-fsanitize=$(SAN)) $(filter --coverage,$(CFLAGS))' > $(B)/staged/compiler
	@echo $(VERSION) > $(B)/staged/version
	@$(INSTALLER) install > /dev/null

STAGED_F64 := no
check-install: STAGED_F64 := yes
check-install: f64 staged   ## install into a folder, move it away, use it; with tether-f64
	@sh tests/install/test_install.sh $(B) > $(B)/staged/log; rc=$$?; \
	  sed 's/^install: \([0-9]\)/\1/' $(B)/staged/log; exit $$rc

# PYTHON: one that has numpy, torch, diffusers, transformers and accelerate.
PYTHON ?= python3
WITH_PYTHON = command -v "$(PYTHON)" > /dev/null || { \
  echo "SKIP python/torch: $(PYTHON) is not installed"; \
  echo "python/torch: 0 passed, 0 failed, 1 skipped"; exit 0; }; \
  TETHER=$(B)/tether TETHER_LIB=$(SHARED) PYTHONDONTWRITEBYTECODE=1; \
  export TETHER TETHER_LIB PYTHONDONTWRITEBYTECODE;
.PHONY: check-python check-python-wide
check-python: all $(SHARED) f64 $(B)/demo-random/config.json   ## diffusers' and transformers' models against ours, with PYTHON
	@PYTHON="$(PYTHON)" sh tests/python/test_tether.sh $(B)
	@$(WITH_PYTHON) $(PYTHON) tests/python/check_torch.py $(B)/demo-random

# The widths of the published files: one layer of umT5-XXL and of the 1.3B
# transformer, all of the VAE's decoder. Its pictures are smaller, since it takes
# longest.
WIDE := $(B)/wide-random
check-python-wide: all $(SHARED) f64 $(B)/demo-random/config.json   ## the same at real width, a layer of each transformer
	@$(WITH_PYTHON) mkdir -p $(WIDE)/google/umt5-xxl && \
	  cp $(B)/demo-random/google/umt5-xxl/spiece.model $(WIDE)/google/umt5-xxl && \
	  $(B)/tools/make_checkpoint --layers 1 --text-len 32 --t5-layers 1 --t5-vocab 640 \
	  --dit $(WIDE)/diffusion_pytorch_model.safetensors --config $(WIDE)/config.json \
	  --t5 $(WIDE)/models_t5_umt5-xxl-enc-bf16.safetensors \
	  --vae $(WIDE)/Wan2.1_VAE.safetensors > /dev/null 2>&1 && \
	  for part in wide wide-vae; do \
	  $(PYTHON) tests/python/check_torch.py $(WIDE) $$part || exit 1; done

# The dial of every row; some minutes.
.PHONY: thresholds
thresholds: tests   ## the smallest fault that is found, per operator: src/validate/thresholds.md
	@$(B)/tests/validate/test_thresholds --all src/validate/thresholds.md

uninstall:   ## remove what install brought
	@$(INSTALLER) uninstall

INSTALLER = BUILD=$(call quoted,$(B)) F64=$(F64) RUN="$(RUN)" \
  VERSION=$(VERSION) SONAME=$(SONAME) OPENMP="$(OMP_FLAGS)" \
  DESTDIR=$(call quoted,$(DESTDIR)) PREFIX=$(call quoted,$(PREFIX)) \
  sh tools/install.sh

clean:   ## remove build/
	rm -rf build

help:   ## this list
	@echo "tether: make [target] [CC=clang] [OPT=-O3] [REAL=double] [SAN=address,undefined] [OMP=no] [V=1] [B=FOLDER]"
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{sub(/ .*/,"",$$1); printf "  make %-14s %s\n", $$1, $$2}' Makefile

# ---- rules ---------------------------------------------------------------
$(LIB): $(call obj,$(LIB_SRC))
	@rm -f $@
	$(call run,AR,$@)ar rcs $@ $^

$(SHARED): $(call obj,$(LIB_SRC))
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -shared -Wl,-soname,$(SONAME) $(BIND) -o $@ $^ $(LDLIBS_ALL)

# One object, in which what is hidden is local; the plain library where there is
# no objcopy.
$(PUBLIC): $(LIB)
	@mkdir -p $(@D)
	@rm -f $@
	$(call run,AR,$@)if command -v $(OBJCOPY) >/dev/null 2>&1; then \
	  $(CC) -r -nostdlib -o $(@D)/tether.o $(call obj,$(LIB_SRC)) && \
	  $(OBJCOPY) --localize-hidden $(@D)/tether.o && \
	  ar rcs $@ $(@D)/tether.o; \
	else cp $(LIB) $@; fi

# A plug-in of `tether validate` calls the tt_ functions of the program.
$(B)/tether: LDLIBS_ALL += $(EXPORTS)
$(B)/tether: $(call obj,$(CLI_SRC)) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

# The same program, whose calls for memory and files can fail.
$(B)/tether-faults: LDLIBS_ALL += $(EXPORTS) $(patsubst %,-Wl$(comma)--wrap=%,$(shell cat tests/faults/calls.txt))
$(B)/tether-faults: $(call obj,$(CLI_SRC) tests/faults/wrap.c) $(LIB) tests/faults/calls.txt
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o %.a,$^) $(LDLIBS_ALL)

# ... and on the guard device, for `make test-guard`.
GUARDED := tt_ctx_init_$(if $(filter double,$(REAL)),f64,f32) tt_ops_use
$(B)/tether-guard: LDLIBS_ALL += $(EXPORTS) $(patsubst %,-Wl$(comma)--wrap=%,$(GUARDED))
$(B)/tether-guard: $(call obj,$(CLI_SRC) tests/guarded.c tests/guard.c) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/run_case: $(call obj,$(CASE_SRC)) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/check_bits: $(call obj,$(BITS_SRC)) $(B)/tests/libcases.a $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

# What test programs share: the harness, and the handlers of run_case.
$(B)/tests/libcases.a: $(call obj,tests/harness.c tests/cases.c tests/guard.c $(filter-out %/main.c,$(CASE_SRC)))
	@rm -f $@
	$(call run,AR,$@)ar rcs $@ $^

$(TESTS): $(B)/tests/%: $(B)/tests/%.o $(B)/tests/libcases.a $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o,$^) $(filter-out %.o,$^) $(LDLIBS_ALL)

# The functions of src/golden, which need nothing of the library.
$(B)/tests/golden/test_cases: $(filter-out %/main.o,$(call obj,$(wildcard src/golden/*.c)))

# Its ranks are threads that call the command.
$(B)/tests/cli/test_during: $(filter-out %/main.o,$(call obj,$(CLI_SRC)))

# A plug-in calls functions of the program that loads it.
$(B)/tests/validate/test_mutation $(B)/tests/validate/test_plugin: LDLIBS_ALL += $(EXPORTS)
$(MUTANTS): $(wildcard tests/validate/mutants*.[ch]) src/core/fma.c tests/fpenv.h Makefile $(wildcard include/tether/*.h)
	@mkdir -p $(@D)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -fvisibility=default -I. -shared -o $@ $(filter %.c,$^) -lm

$(FUZZERS): $(B)/fuzz/%: $(B)/tests/fuzz/%.o $(call obj,tests/fuzz/driver.c tests/fuzz/common.c) $(LIB)
	@mkdir -p $(@D)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(LIBFUZZERS): $(B)/libfuzzer/%: $(B)/tests/fuzz/%.o $(call obj,tests/fuzz/common.c) $(LIB)
	@mkdir -p $(@D)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(LDLIBS_ALL)

$(TOOLS): $(B)/tools/%: $(B)/tools/%.o $(call obj,$(wildcard tools/lib/*.c)) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o,$^) $(filter-out %.o,$^) $(LDLIBS_ALL)

# It measures the chunk that `tether bench pass` measures.
$(B)/tools/bench_chunk: $(B)/src/cli/bench/steady.o

$(MPFR_USERS): LDLIBS_ALL += -lmpfr -lgmp
$(MPFR_USERS:=.o): CFLAGS_ALL += -DTT_HAVE_MPFR
$(DNNL_USERS): LDLIBS_ALL += -ldnnl
$(DNNL_USERS:=.o): CFLAGS_ALL += -DTT_HAVE_DNNL
# The other side of a comparison gets what its builder's CPU has.
NATIVE := $(if $(call try,int main(void){return 0;}\n,-march=native),-march=native)
$(B)/tools/bench_attention.o: CFLAGS_ALL += -O3 $(NATIVE)
$(B)/src/%.o: WARN += $(WARN_SOURCE)
# stb_image computes with what a file says: overflow must at least wrap.
$(B)/src/io/picture.o: CFLAGS_ALL += -fwrapv
# Kernels: one instruction set per file, chosen at run time. None of these flags
# may change a value (no fast-math, contraction stays off).
KERNEL_FLAGS := $(if $(filter -O2 -O3,$(OPT)),-O3) -fno-trapping-math $(if $(HARDEN),-fno-stack-protector -U_FORTIFY_SOURCE)
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
$(B)/src/ops/exact/kernels_bf16_amx.o: CFLAGS_ALL += $(if $(findstring AMX,$(AMX_DEFS)),$(AMX_FLAGS))
endif

# The headers of an MPI are not held to our warnings.
$(B)/src/team/%.o $(B)/src/cli/main.o $(B)/tests/team/%.o: CFLAGS_ALL += $(if $(MPI),-DTT_MPI)
$(B)/src/team/mpi.o: CFLAGS_ALL += $(patsubst -I%,-isystem %,$(MPI_FLAGS))

# CUDA kernels, as nvcc makes them ...
$(B)/gen/cuda_images.h: src/ops/cuda $(CUDA_SRC)
	@mkdir -p $(@D)
	@printf 'IMAGE(%s)\n' $(basename $(notdir $(CUDA_SRC))) > $@

ifneq ($(CUDA),)
$(B)/src/ops/table.o $(B)/src/ops/room.o: CFLAGS_ALL += -DTT_CUDA
$(B)/src/ops/cuda/%.o: CFLAGS_ALL += -DTT_CUDA
$(B)/src/ops/cuda/images.o: CFLAGS_ALL += -I$(B)/gen -DTT_CUDA_IMAGES='"$(B)/images"'
IMAGES := $(patsubst src/ops/cuda/%.cu,$(B)/images/%.fatbin,$(CUDA_SRC))
$(B)/src/ops/cuda/images.o: $(IMAGES) $(B)/gen/cuda_images.h
LAST := compute_$(lastword $(CUDA_ARCHS))
GENCODE := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) -gencode arch=$(LAST),code=$(LAST)
# wgmma is there for sm_90a alone; other GPUs get kernels without a body.
$(B)/images/wgmma_% $(B)/gpu/%: GENCODE := $(patsubst %=compute_90$(comma)code=sm_90,%=compute_90a$(comma)code=sm_90a,$(GENCODE))
# Another compiler makes them anew.
$(B)/images/nvcc: always
	@mkdir -p $(@D)
	@echo "$(NVCC) $(CUDA_ARCHS)" | cmp -s - $@ || echo "$(NVCC) $(CUDA_ARCHS)" > $@
.PHONY: always
$(IMAGES): $(B)/images/%.fatbin: src/ops/cuda/%.cu $(wildcard src/ops/cuda/*.h) $(B)/images/nvcc Makefile
	@mkdir -p $(@D)
	$(call run,NVCC,$<)$(NVCC) $(NVCC_FLAGS) $(GENCODE) -fatbin -o $@ $<

# What tools/gpu/measure.sh runs on a GPU; NVIDIA's library is linked statically.
GPU_TOOLS := $(patsubst tools/gpu/%.cu,$(B)/gpu/%,$(wildcard tools/gpu/*.cu))
$(GPU_TOOLS): $(B)/gpu/%: tools/gpu/%.cu $(wildcard src/ops/cuda/*.h) src/ops/tensor_core.h $(B)/images/nvcc
	@mkdir -p $(@D)
	$(call run,NVCC,$<)$(NVCC) -O2 $(NVCC_FLAGS) $(GENCODE) -o $@ $<
endif
$(B)/check_kernels: $(call obj,tests/cuda/check_kernels.c) $(B)/tests/libcases.a $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
cuda-programs: all $(B)/check_kernels $(B)/check_bits $(B)/demo-random/config.json $(SHARED) $(GPU_TOOLS)

# ... and on the CPU: a driver whose GPU is the shim, and programs with the
# backend cuda. Their objects go before the library, whose table lacks it.
SHIM_CXX := -std=c++17 $(OPT) -g -ffp-contract=off -fno-math-errno $(NATIVE) \
         -Wall -Wextra -Wshadow -fvisibility=hidden -fPIC -ftls-model=initial-exec -pthread -Iinclude -Isrc -Itests/cuda \
         $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
SHIM_GPU := $(patsubst %,$(B)/shim/%.o,$(CUDA_SRC) $(sort $(wildcard tests/cuda/*.cpp)))
$(SHIM_GPU): $(B)/shim/%.o: % Makefile
	@mkdir -p $(@D)
	$(call run,CXX,$<)$(CXX) $(SHIM_CXX) -MMD -MP -c -o $@ -x c++ $<
$(B)/shim/libcuda.so.1: $(SHIM_GPU)
	$(call run,LD,$@)$(CXX) $(SHIM_CXX) -shared -o $@ $^ -ldl

SHIM_HOST := $(patsubst src/%.c,$(B)/shim/src/%.o,src/ops/table.c src/ops/room.c $(wildcard src/ops/cuda/*.c))
$(SHIM_HOST): $(B)/shim/%.o: %.c $(B)/gen/cuda_images.h Makefile
	@mkdir -p $(@D) $(B)/shim/images
	@for n in $(basename $(notdir $(CUDA_SRC))); do echo shim > $(B)/shim/images/$$n.fatbin; done
	$(call run,CC,$<)$(CC) $(CFLAGS_ALL) $(WARN_SOURCE) -DTT_CUDA -I$(B)/gen -DTT_CUDA_IMAGES='"$(B)/shim/images"' -MMD -MP -c -o $@ $<

SHIM_PROGRAMS := $(addprefix $(B)/shim/,tether check_kernels check_waits check_bits)
$(B)/shim/tether: LDLIBS_ALL += $(EXPORTS)
$(B)/shim/tether: $(call obj,$(CLI_SRC))
$(B)/shim/check_kernels: $(call obj,tests/cuda/check_kernels.c) $(B)/tests/libcases.a
$(B)/shim/check_waits: $(call obj,tests/cuda/check_waits.c) $(B)/tests/libcases.a
$(B)/shim/check_bits: $(call obj,$(BITS_SRC)) $(B)/tests/libcases.a
$(SHIM_PROGRAMS): $(SHIM_HOST) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o,$^) $(filter-out $(LIB),$(filter %.a,$^)) $(LIB) $(LDLIBS_ALL)
cuda-shim: $(SHIM_PROGRAMS) $(B)/shim/libcuda.so.1 $(B)/demo-random/config.json

# The list of cache policies is that of their files.
POLICIES := $(sort $(wildcard src/cache/policies/*.c))
$(B)/gen/cache_policies.h: src/cache/policies $(POLICIES)
	@mkdir -p $(@D)
	@printf 'POLICY(%s)\n' $(basename $(notdir $(POLICIES))) > $@
$(B)/src/cache/policy.o: $(B)/gen/cache_policies.h
$(B)/src/cache/policy.o: CFLAGS_ALL += -I$(B)/gen

# Behind a commit, and where files of git were changed, it is made again, and what
# links it; where git says nothing it stays what it was.
ifneq ($(BUILT_REV),$(GIT_REV))
.PHONY: $(REVISION)
endif
$(REVISION):
	@mkdir -p $(@D) && rm -f $@
	@printf '%s\n' '$(GIT_REV)' > $@
$(B)/src/core/version.o: $(REVISION)
$(B)/src/core/version.o: CFLAGS_ALL += -DTT_GIT_REV='"$(GIT_REV)"'
$(B)/tests/%.o: CFLAGS_ALL += -I.

$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call run,CC,$<)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.SECONDARY:
endif
