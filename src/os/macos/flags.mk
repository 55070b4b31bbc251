# flags.mk: of macOS.
# SPDX-License-Identifier: Apache-2.0
OS_FLAGS := -Isrc/os/macos
library = libtether$(addprefix .,$(1)).dylib
SHARE = -dynamiclib -install_name @rpath/$(SONAME)
# Apple's clang has OpenMP without a library; Homebrew has one.
LIBOMP := $(firstword $(wildcard /opt/homebrew/opt/libomp /usr/local/opt/libomp))
OS_OMP := $(if $(LIBOMP),-Xpreprocessor -fopenmp -I$(LIBOMP)/include)
OS_OMP_LIBS := $(if $(LIBOMP),-L$(LIBOMP)/lib -lomp)
