# programs.mk: programs of tests and tools, and the revision that all of them name.
# SPDX-License-Identifier: Apache-2.0
.PHONY: test-some

# The same program, whose calls for memory and files can fail.
$(B)/tether-faults: LDLIBS_ALL += $(EXPORTS) \
  $(patsubst %,-Wl$(comma)--wrap=%,$(shell cat tests/faults/calls.txt))
$(B)/tether-faults: $(call obj,$(CLI_SRC) tests/faults/wrap.c) $(LIB) tests/faults/calls.txt
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o %.a,$^) $(LDLIBS_ALL)

# ... and on the guard device, for `make test-guard`.
GUARDED := tt_ctx_init_$(if $(filter double,$(REAL)),f64,f32) tt_ops_use
$(B)/tether-guard: LDLIBS_ALL += $(EXPORTS) $(patsubst %,-Wl$(comma)--wrap=%,$(GUARDED))
$(B)/tether-guard: $(call obj,$(CLI_SRC) tests/guarded.c tests/guard.c) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/run_case: $(call obj,$(CASE_SRC)) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/check_bits$(EXE): $(call obj,$(BITS_SRC)) $(B)/tests/libcases.a $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

# What test programs share: the harness, and the handlers of run_case.
$(B)/tests/libcases.a: $(call obj,tests/harness.c tests/cases.c tests/guard.c \
  $(filter-out %/main.c,$(CASE_SRC)))
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

$(TESTS): $(B)/tests/%$(EXE): $(B)/tests/%.o $(B)/tests/libcases.a $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o,$^) $(filter-out %.o,$^) \
	  $(LDLIBS_ALL)

# The functions of src/golden, which need nothing of the library, but for the
# file that a test includes.
GOLDEN_OBJ := $(filter-out %/main.o,$(call obj,$(wildcard src/golden/*.c)))
$(B)/tests/golden/test_cases: $(GOLDEN_OBJ)
$(B)/tests/golden/test_transformer: $(filter-out %/transformer.o,$(GOLDEN_OBJ))
$(B)/tests/golden/test_vae: $(filter-out %/vae.o,$(GOLDEN_OBJ))

# Its ranks are threads that call the command.
$(B)/tests/cli/test_during: $(filter-out %/main.o,$(call obj,$(CLI_SRC)))

# A plug-in calls functions of the program that loads it.
$(B)/tests/validate/test_mutation $(B)/tests/validate/test_plugin: LDLIBS_ALL += $(EXPORTS)
$(MUTANTS): $(wildcard tests/validate/mutants*.[ch]) src/core/fma.c tests/fpenv.h $(MAKE_FILES) \
    $(wildcard include/tether/*.h) $(if $(OS_PLUGIN),$(B)/tether$(EXE))
	@mkdir -p $(@D)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -fvisibility=default -I. -shared -o $@ $(filter %.c,$^) \
	  $(OS_PLUGIN) -lm

$(FUZZERS): $(B)/fuzz/%: $(B)/tests/fuzz/%.o \
    $(call obj,tests/fuzz/driver.c tests/fuzz/common.c) $(LIB)
	@mkdir -p $(@D)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(LIBFUZZERS): $(B)/libfuzzer/%: $(B)/tests/fuzz/%.o $(call obj,tests/fuzz/common.c) $(LIB)
	@mkdir -p $(@D)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(LDLIBS_ALL)

$(TOOLS): $(B)/tools/%$(EXE): $(B)/tools/%.o $(call obj,$(wildcard tools/lib/*.c)) $(LIB)
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o,$^) $(filter-out %.o,$^) \
	  $(LDLIBS_ALL)

# It measures the chunk that `tether bench pass` measures.
$(B)/tools/bench_chunk$(EXE): $(B)/src/cli/bench/steady.o

$(MPFR_USERS): LDLIBS_ALL += -lmpfr -lgmp
$(MPFR_USERS:=.o): CFLAGS_ALL += -DTT_HAVE_MPFR

# Programs of a cross build run after RUN; those that start programs of ours
# (cli, fuzz, some of validate) cannot. ONLY chooses by parts of names, as
# the results show them: validate/dump.
ONLY ?= core/ ops/ io/ cache/ dit/ text/
SOME := $(foreach t,$(TESTS),$(if $(strip \
  $(foreach w,$(ONLY),$(findstring $(w),$(subst test_,,$(t:$(B)/%=%))))),$(t)))
SOME_NEED := $(if $(filter $(B)/tests/cli/% $(B)/tests/validate/%,$(SOME)),all $(MUTANTS)) \
             $(if $(filter $(B)/tests/fuzz/%,$(SOME)),$(FUZZERS)) \
             $(if $(filter $(B)/tests/faults/%,$(SOME)),$(if $(WRAP),$(B)/tether-faults))
test-some:   ## the tests of ONLY="core/ io/ ...", after RUN=qemu-s390x-static, say
test-some: $(SOME) $(if $(RUN),,all $(SOME_NEED))
	@RUN="$(RUN)" ONLY="$(ONLY)" sh tests/run.sh $(B)

# Of this folder's own repository: a tarball may lie in another one.
GIT_NOW := $(shell cd "$$(dirname $(call quoted,$(realpath Makefile)))" && \
  top=$$(git rev-parse --show-cdup 2>/dev/null) && [ -z "$$top" ] && \
  git describe --always --dirty 2>/dev/null || echo unknown)
REVISION := $(B)/gen/revision
BUILT_REV := $(shell cat $(call quoted,$(REVISION)) 2>/dev/null)
GIT_REV := $(or $(filter-out unknown,$(GIT_NOW)),$(BUILT_REV),unknown)

# After a commit, and where files of git were changed, it is made again, and what
# links it; where git says nothing it stays what it was.
ifneq ($(BUILT_REV),$(GIT_REV))
.PHONY: $(REVISION)
endif
$(REVISION):
	@mkdir -p $(@D) && rm -f $@
	@printf '%s\n' '$(GIT_REV)' > $@
$(B)/src/core/version.o: $(REVISION)
$(B)/src/core/version.o: CFLAGS_ALL += -DTT_GIT_REV='"$(GIT_REV)"'
