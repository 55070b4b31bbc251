# install.mk: make install, and an installation that tests use.
# SPDX-License-Identifier: Apache-2.0
.PHONY: install uninstall staged check-install

# DESTDIR and PREFIX may hold blanks. F64=no leaves tether-f64 out, which is a
# second build of everything. A list of the files is in share/tether/installed,
# and uninstall removes those.
F64 ?= yes
install:   ## program, model, library, man pages under PREFIX
install: all $(SHARED) $(PUBLIC) $(if $(filter no,$(F64)),,f64)
	@$(INSTALLER) install

# An installation for tests/install, in $(B)/staged.
staged: override DESTDIR := $(B)/staged/root
staged: override PREFIX := /usr/local
staged: override F64 = $(STAGED_F64)
staged: all $(SHARED) $(PUBLIC) | $(if $(filter check-install,$(MAKECMDGOALS)),f64)
	@rm -rf $(B)/staged
	@mkdir -p $(B)/staged
	@echo '$(CC) $(if $(SAN),-fsanitize=$(SAN)) $(filter --coverage,$(CFLAGS))' \
	  > $(B)/staged/compiler
	@echo $(VERSION) > $(B)/staged/version
	@$(INSTALLER) install > /dev/null

STAGED_F64 := no
check-install: STAGED_F64 := yes
check-install: f64 staged   ## install into a folder, move it away, use it; with tether-f64
	@sh tests/install/test_install.sh $(B) > $(B)/staged/log; rc=$$?; \
	  sed 's/^install: \([0-9]\)/\1/' $(B)/staged/log; exit $$rc

uninstall:   ## remove what install brought
	@$(INSTALLER) uninstall

INSTALLER = BUILD=$(call quoted,$(B)) F64=$(F64) RUN="$(RUN)" \
  VERSION=$(VERSION) EXE=$(EXE) \
  LIBRARY="$(call library) $(SONAME) $(notdir $(SHARED))" OPENMP="$(OMP_FLAGS)" \
  DESTDIR=$(call quoted,$(DESTDIR)) PREFIX=$(call quoted,$(PREFIX)) \
  sh tools/install.sh

$(SHARED): $(call obj,$(LIB_SRC))
	$(call run,LD,$@)$(CC) $(CFLAGS_ALL) $(SHARE) $(BIND) -o $@ $^ $(LDLIBS_ALL)

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
