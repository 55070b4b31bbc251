# probes.mk: what this machine has, and the flags that follow from it.
# SPDX-License-Identifier: Apache-2.0

# ---- the system that the program is for ----------------------------------
# One that is not POSIX has a directory src/os/NAME (src/os/README.md): headers
# that come before those of the system, flags, and C files, each in the place of
# the file of the same name elsewhere.
TARGET := $(shell $(CC) -dumpmachine 2>/dev/null)
SYSTEM := $(or $(if $(findstring wasm,$(TARGET)),wasm), \
  $(if $(findstring mingw,$(TARGET))$(findstring windows,$(TARGET)),windows), \
  $(if $(findstring apple,$(TARGET))$(findstring macos,$(TARGET)),macos),posix)
OS_SRC := $(if $(filter-out posix,$(SYSTEM)),$(wildcard src/os/$(SYSTEM)/*.c))
EXE :=
OS_FLAGS := -pthread
OS_LIBS := -ldl
# A shared library: its name (of a version, when there is one) and its own words.
library = libtether.so$(addprefix .,$(1))
SHARE = -shared -Wl,-soname,$(SONAME)
include $(wildcard src/os/$(SYSTEM)/flags.mk)

# ---- what this machine has: found by compile tests -----------------------
HASH := \043
NOTHING := int main(void){return 0;}\n
KNOWN_CC := $(HASH)if !defined __GNUC__ || defined __TINYC__\n$(HASH)error\n$(HASH)endif\n$(NOTHING)
# try: does a C program (one line of $(1)) compile and link with flags $(2)?
try = $(shell $(if $(TMPDIR),TMPDIR=$(call quoted,$(TMPDIR));) d=$$(mktemp -d) && \
  printf '%b' '$(1)' | $(CC) -x c - -o "$$d/a" $(2) >/dev/null 2>&1 && echo yes; rm -rf "$$d")
# flag: flags $(1), if they work without a warning
flag = $(if $(call try,$(NOTHING),-Werror $(1)),$(1))

ifneq ($(BUILDING),)
  ifneq ($(call try,$(KNOWN_CC),-std=c11 -ffp-contract=off),yes)
    $(error CC=$(CC) cannot build this: gcc 10 or clang 12 or newer is needed (make deps), \
      chosen with CC=gcc or CC=clang)
  endif
endif

ifneq ($(OMP),no)
  OMP_TEST := $(HASH)include <omp.h>\nint main(void){return omp_get_max_threads()<1;}\n
  ifeq ($(call try,$(OMP_TEST),-fopenmp),yes)
    OMP_FLAGS := -fopenmp
  else ifneq ($(OS_OMP),)
    ifeq ($(call try,$(OMP_TEST),$(OS_OMP) $(OS_OMP_LIBS)),yes)
      OMP_FLAGS := $(OS_OMP)
      OS_LIBS += $(OS_OMP_LIBS)
    endif
  endif
endif

# MPFR checks the elementary functions in one test and one tool; nothing else
# is linked to it.
MPFR_TEST := $(HASH)include <mpfr.h>\nint main(void){mpfr_t x;mpfr_init2(x,64);mpfr_clear(x);}\n
ifeq ($(call try,$(MPFR_TEST),-lmpfr -lgmp),yes)
  MPFR_USERS = $(B)/tests/core/test_mathfn $(B)/tools/math_scan
endif

# AMX: the compiler must know it (gcc 11, clang 12), the system be Linux.
AMX_TEST := $(HASH)include <immintrin.h>\n$(HASH)include <sys/syscall.h>\n\
int main(void){_tile_zero(0);_tile_dpbf16ps(0,1,2);return SYS_arch_prctl<0;}\n
AMX_FLAGS := -mamx-tile -mamx-bf16 -mavx512f -mavx512bf16
ifeq ($(call try,$(AMX_TEST),$(AMX_FLAGS)),yes)
  AMX_DEFS := -DTT_HAVE_AMX
endif

# VDPBF16PS: gcc 10, clang 9.
VDP_TEST := $(HASH)include <immintrin.h>\n\
__m512 f(__m512 c,__m512i a){return _mm512_dpbf16_ps(c,(__m512bh)a,(__m512bh)a);}$(NOTHING)
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
CUDA_ARCHS ?= $(filter $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch 2>/dev/null)), \
  80 86 89 90 100 120)
NVCC_FLAGS := -std=c++17 -Iinclude -Isrc
ifneq ($(CUDA),)
  ifeq ($(NVCC),)
    $(error CUDA=1 needs nvcc of CUDA 12 or 13: install the CUDA toolkit, or NVCC=FILE)
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
    $(error MPI=1 needs $(MPICC): install libopenmpi-dev or libmpich-dev, or MPICC=FILE)
  endif
  MPI_FLAGS := $(filter -I%,$(MPI_SHOW))
  MPI_LIBS := $(filter -L% -l% -Wl$(comma)-rpath%,$(MPI_SHOW))
endif

# A plug-in sees the tt_ functions of the program that loads it. Were all names
# exported, its own functions of such names would give way to ours.
EXPORT_LIST := -Wl,--dynamic-list=src/ops/plugin.list
ifneq ($(origin EXPORTS),file)
EXPORTS := $(if $(call try,$(NOTHING),$(EXPORT_LIST)),$(EXPORT_LIST),$(call flag,-rdynamic))
endif

# Calls that a test lets fail are renamed by the linker; Apple's cannot.
WRAP := $(call try,$(NOTHING),-Wl$(comma)--wrap=malloc)

# ---- flags ---------------------------------------------------------------
# No -ffast-math, no -march=native, and contraction off: a fused multiply-add
# is written fma where it is meant (src/ops/README.md). On s390x -std=c11
# alone makes gcc compute float expressions in double; core/context.c refuses
# to be compiled where that is so.
EXCESS := $(call flag,-fexcess-precision=fast)
# Objects fit into the program, the static and the shared library: public names
# are those of include/tether (api.h), calls between them bind at link time.
PIC   := $(or $(call flag,-fPIC -fno-semantic-interposition),$(call flag,-fPIC))
BIND  := -Wl,-Bsymbolic-functions
BIND  := $(if $(call try,$(NOTHING),$(BIND)),$(BIND))
WARN  := -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes \
         -Wstrict-prototypes -Wvla -Wundef -Wpointer-arith
# What is in src is also held to -Wconversion, where int64_t fits into size_t.
WARN_SOURCE := $(if $(findstring linux,$(filter x86_64%,$(TARGET))),-Wconversion \
               -Wno-sign-conversion)
# Files come from strangers: an overflow ends the program (stack protector,
# FORTIFY), and the tables of addresses are read-only (RELRO, now). Kernels read
# no files and are left out. Sanitizers look closer by themselves.
ifeq ($(SAN)$(filter -O0,$(OPT)),)
HARDEN := $(call flag,-fstack-protector-strong) \
  $(call flag,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
HARDEN_LINK := $(call flag,-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now)
endif
CFLAGS_ALL := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 $(OPT) -g $(HARDEN) \
         -ffp-contract=off -fno-math-errno \
         $(EXCESS) $(WARN) -fvisibility=hidden $(PIC) $(OS_FLAGS) -Iinclude -Isrc \
         $(OMP_FLAGS) $(AMX_DEFS) \
         $(if $(filter double,$(REAL)),-DTT_REAL_DOUBLE) \
         $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
         $(CFLAGS)
LDLIBS_ALL := $(HARDEN_LINK) $(OS_LIBS) -lm $(MPI_LIBS) $(LDLIBS)

# Builds that differ in flags have folders of their own.
EXTRA := $(strip $(wordlist 2,99,$(CC)) $(CFLAGS) $(LDLIBS))
FLAVOUR := $(notdir $(firstword $(CC)))$(subst $() ,,$(OPT))
FLAVOUR := $(FLAVOUR)$(if $(OMP_FLAGS),,-noomp)$(if $(SAN),-$(subst $(comma),-,$(SAN)))
EXTRA := $(if $(EXTRA),$(shell printf '%s' $(call quoted,$(EXTRA)) | cksum))
FLAVOUR := $(FLAVOUR)$(if $(EXTRA),-$(firstword $(EXTRA)))
FLAVOUR := $(FLAVOUR)$(if $(CUDA),-cuda)$(if $(MPI),-$(notdir $(firstword $(MPICC))))
FLAVOUR := $(FLAVOUR)$(if $(filter double,$(REAL)),-double)
override B := build/$(FLAVOUR)
