# dist.mk: what people install: the source, programs that need nothing else, a wheel.
# SPDX-License-Identifier: Apache-2.0
.PHONY: dist dist-source wheel wheel-stage program-stage check-dist

# Without debugging information no folder's name is in a program, so that two
# builds in two folders have the same bytes.
RELEASED = $(MAKE) --no-print-directory CFLAGS=-g0 LDLIBS=$(call quoted,-s $(1))

# NAME is of the archive of a static program. zig (of PyPI) brings musl for AArch64,
# and no OpenMP: those programs run on one core.
ZIG ?= python3 -m ziglang cc -target
STATIC = linux-$(firstword $(subst -, ,$(TARGET)))
dist:   ## build/dist: source, a wheel, static programs
	@rm -rf build/dist
	+@$(MAKE) --no-print-directory dist-source wheel dist-static
	+@sh tools/dist.sh $(call quoted,$(MAKE) --no-print-directory) $(call quoted,$(ZIG))
	@case '$(GIT_NOW)' in *-dirty) echo "  note: made of files that were not committed" ;; esac
	@ls -l build/dist | awk 'NR > 1 { printf "  %9d  %s\n", $$5, $$NF }'

.PHONY: dist-static
dist-static:
	+@$(call RELEASED,-static) NAME=$(STATIC) program-stage

dist-source:   ## build/dist: the source as an archive, which needs no git
	@mkdir -p build/dist
	@python3 tools/dist.py source build/dist

# In a wheel libgomp is part of the programs; that of a library cannot be, so that
# it runs on one thread.
wheel:   ## build/dist: programs, library and demo model, for `pip install FILE`
	+@$(call RELEASED,) OMP=no shared
	+@$(call RELEASED,$(if $(OMP_FLAGS),-Wl$(comma)--as-needed -l:libgomp.a)) \
	  LIBRARY=$$($(call RELEASED,) OMP=no -s build-folder)/$(notdir $(SHARED)) wheel-stage

.PHONY: shared
shared: $(SHARED)

wheel-stage program-stage: override DESTDIR := $(B)/stage
wheel-stage program-stage: override PREFIX :=
program-stage: override F64 := no
wheel-stage program-stage: $(B)/tether$(EXE)
	+@$(if $(filter no,$(F64)),:,$(MAKE) --no-print-directory REAL=double tether-program)
	@rm -rf $(B)/stage
	@$(INSTALLER) program > /dev/null
	@mkdir -p build/dist
	@python3 tools/dist.py $(if $(LIBRARY),wheel $(B)/stage "$(LIBRARY)" build/dist, \
	  program $(B)/stage build/dist/tether-$(VERSION)-$(NAME))

check-dist:   ## build from the archive elsewhere: equal bytes? Does the wheel work?
	@sh tests/install/dist.sh $(B)
