# windows.mk: the program for Windows, tried under wine.
# SPDX-License-Identifier: Apache-2.0

# A compiler for Windows: mingw-w64's with POSIX threads, or WINDOWS_CC="..."
WINDOWS_CC ?= x86_64-w64-mingw32-gcc-posix
WINDOWS = $(MAKE) --no-print-directory CC=$(call quoted,$(WINDOWS_CC))
# Test programs that it runs; tests/windows/not_run.txt says which not, and why.
WINDOWS_TESTS := $(filter-out $(patsubst %,tests/%.c,$(subst /,/test_,$(shell \
  sed -n $(if $(TIME),-e '/: time: /d') -e 's/^\([a-z0-9_]*\/[a-z0-9_]*\): .*/\1/p' \
  tests/windows/not_run.txt))), \
  $(wildcard $(patsubst %,tests/%/test_*.c,core io ops cache dit vae text rollout run)))

.PHONY: check-windows windows-programs
windows-programs: $(B)/tether$(EXE) $(B)/check_bits$(EXE) $(B)/tests/validate/mutants.so \
  $(patsubst %.c,$(B)/%$(EXE),$(WINDOWS_TESTS))

check-windows: all $(B)/demo-random/config.json   ## the program for Windows, under wine
	@if command -v $(firstword $(WINDOWS_CC)) >/dev/null 2>&1 && sh tests/windows/wine.sh; then \
	  $(MAKE) --no-print-directory $(B)/tests/cli/test_demo $(B)/tests/cli/test_inputs && \
	  $(WINDOWS) windows-programs && TIME=$(TIME) WINDOWS_CC=$(call quoted,$(WINDOWS_CC)) \
	    sh tests/windows/check.sh $(B) "$$($(WINDOWS) -s build-folder)"; \
	else \
	  echo "SKIP check-windows: $(firstword $(WINDOWS_CC)) or wine64 is not installed:" \
	    "gcc-mingw-w64-x86-64-posix, wine64"; \
	  echo "0 passed, 0 failed, 1 skipped"; fi
