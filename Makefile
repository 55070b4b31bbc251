# tether: `make help` lists the targets. What machines have is found by tools/make/probes.mk; rare
# checks, installation, CUDA and flags of single files are in the other files there.
# SPDX-License-Identifier: Apache-2.0

# Builds go to ./build, or, with B=FOLDER or make -f PATH/Makefile, elsewhere.

quoted = '$(subst ','\'',$(1))'

# ---- a build elsewhere ---------------------------------------------------
# FOLDER gets links to the modules of the source and a build/ of its own. All
# paths are the same there, with blanks in FOLDER too, and `make` works in it.
SOURCE := $(shell \
  cd "$$(dirname $(call quoted,$(subst ^,,$(subst ^ ,,^$(MAKEFILE_LIST)))))" && pwd -P)
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
	  $(if $(DRY),[ -e "$$folder/Makefile" ] || \
	    { folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT; }; )\
	  SOURCE=$(call quoted,$(SOURCE)) \
	    sh $(call quoted,$(SOURCE)/tools/elsewhere.sh) "$$folder" && \
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

MAKE_FILES := Makefile $(sort $(wildcard tools/make/*.mk))
include tools/make/probes.mk

# $(call run,CC,what): what stands before a command; one short line shows it.
run = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),$(if $(V),,@),@echo '  $(1)	$(2)' && )

LIB_SRC  := $(sort $(OS_SRC) $(filter-out $(addprefix %/,$(notdir $(OS_SRC))), \
              $(wildcard src/core/*.c src/ops/*.c \
              $(filter-out $(if $(CUDA),,src/ops/cuda/%),$(wildcard src/ops/*/*.c)) src/io/*.c \
              $(filter-out $(if $(MPI),,src/team/mpi.c),$(wildcard src/team/*.c)) \
              src/cache/*.c src/cache/*/*.c src/dit/*.c src/vae/*.c src/text/*.c src/rollout/*.c \
              src/analyze/*.c src/run/*.c src/validate/*.c src/validate/*/*.c src/os/posix/*.c)))
CLI_SRC  := $(sort $(wildcard src/cli/*.c src/cli/*/*.c))
TEST_SRC := $(sort $(wildcard tests/*/test_*.c))
CASE_SRC := $(sort $(wildcard tests/run_case/*.c))
BITS_SRC := $(sort $(wildcard tests/bits/*.c))
TOOL_SRC := $(sort $(wildcard tools/*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
obj = $(patsubst %.c,$(B)/%.o,$(1))

LIB   := $(B)/libtether.a
TESTS := $(patsubst tests/%.c,$(B)/tests/%$(EXE),$(TEST_SRC))
MUTANTS := $(B)/tests/validate/mutants.so
TOOLS := $(patsubst tools/%.c,$(B)/tools/%$(EXE),$(TOOL_SRC))
# fuzz_NAME reads files and standard input; libfuzz_NAME is libFuzzer's.
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_SRC))
LIBFUZZERS := $(patsubst tests/fuzz/%.c,$(B)/libfuzzer/%,$(FUZZ_SRC))

# What `make install` brings with it: the same objects as a shared library,
# and as a static one that has no global names but the public ones.
VERSION := $(shell sed -n 's/^.define TT_VERSION "\(.*\)"/\1/p' include/tether/version.h)
SONAME  := $(call library,$(firstword $(subst ., ,$(VERSION))))
SHARED  := $(B)/$(call library,$(VERSION))
PUBLIC  := $(B)/public/libtether.a
OBJCOPY := $(shell $(CC) -print-prog-name=objcopy)

# ---- targets -------------------------------------------------------------
.PHONY: all tests test check test-some tools demo deps help clean config f64 tether-program \
  build-folder
all: config $(B)/tether$(EXE) tools   ## build the program and the tools
	@ln -sfn $(FLAVOUR)/tether build/tether

NO_OMP := "note: no OpenMP ($(CC) -fopenmp does not work): operators run on one core."
NO_OMP += "'make deps' installs it, libomp-dev for clang."
config:
	@$(if $(OMP_FLAGS)$(filter no,$(OMP)),:,echo $(NO_OMP))

tests:   ## build the tests and build/run_case
tests: all $(if $(WRAP),$(B)/tether-faults) $(B)/run_case $(B)/check_bits$(EXE) $(TESTS) $(FUZZERS) $(MUTANTS)
	@ln -sfn $(FLAVOUR)/run_case build/run_case

test:   ## build and run every test; the last line counts them
test: tests staged $(B)/demo-random/config.json
	@sh tests/run.sh $(B)

check: test   ## the same as test

tools: $(TOOLS)

# Where this build is, for scripts.
build-folder:
	@echo $(B)

f64:   ## build/tether-f64, the same program in float64, for tether validate
	@$(MAKE) --no-print-directory REAL=double tether-program
	@ln -sfn $(notdir $(B))-double/tether build/tether-f64

tether-program: $(B)/tether$(EXE)

# The small model: the trained one when it ships, else random weights of the
# same shapes, written in a blink.
DEMO_MODEL := $(if $(wildcard ref_data/demo/config.json),ref_data/demo,build/demo-model)
demo: all   ## prompt to picture with the small built-in model, in build/demo/
	@test -f $(DEMO_MODEL)/config.json || \
	  $(B)/tools/make_checkpoint --preset demo $(DEMO_MODEL) >/dev/null
	@$(B)/tether demo -m $(DEMO_MODEL) -o build/demo

deps:   ## install compiler, OpenMP, OpenBLAS, ffmpeg by package name
	@CC="$(CC)" sh tools/deps.sh

clean:   ## remove build/
	rm -rf build

help:   ## this list
	@echo "tether: make [target] [CC=clang] [OPT=-O3] [REAL=double] [SAN=address,undefined]"
	@echo "        [OMP=no] [V=1] [B=FOLDER]"
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{sub(/ .*/,"",$$1); printf "  make %-14s %s\n", $$1, $$2}' \
	  $(MAKE_FILES)

include tools/make/checks.mk tools/make/install.mk tools/make/programs.mk
include tools/make/web.mk tools/make/windows.mk tools/make/dist.mk

# ---- rules ---------------------------------------------------------------
$(LIB): $(call obj,$(LIB_SRC))
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

# A plug-in of `tether validate` calls the tt_ functions of the program.
$(B)/tether$(EXE): LDLIBS_ALL += $(EXPORTS)
$(B)/tether$(EXE): $(call obj,$(CLI_SRC)) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

include tools/make/kernels.mk tools/make/cuda.mk tools/make/viewer.mk

# The list of cache policies is that of their files.
POLICIES := $(sort $(wildcard src/cache/policies/*.c))
$(B)/gen/cache_policies.h: src/cache/policies $(POLICIES)
	@mkdir -p $(@D)
	@printf 'POLICY(%s)\n' $(basename $(notdir $(POLICIES))) > $@
$(B)/src/cache/policy.o: $(B)/gen/cache_policies.h
$(B)/src/cache/policy.o: CFLAGS_ALL += -I$(B)/gen

$(B)/tests/%.o: CFLAGS_ALL += -I.

$(B)/%.o: %.c $(MAKE_FILES)
	@mkdir -p $(@D)
	$(call run,CC,$<)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.SECONDARY:
endif

