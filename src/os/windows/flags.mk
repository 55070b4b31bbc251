# flags.mk: of Windows, by mingw-w64's gcc or `zig cc -target x86_64-windows-gnu`.
# SPDX-License-Identifier: Apache-2.0
# main comes from wmain (windows.c), for arguments in UTF-8. gcc does not align
# the stack for 32 bytes, so that vectors must be moved as if they were not
# aligned; and it takes the C library's formats for those of the system.
EXE := .exe
OS_FLAGS = -Isrc/os/windows -D__USE_MINGW_ANSI_STDIO=1 -D_POSIX_THREAD_SAFE_FUNCTIONS \
  -pthread $(call flag,-Wa$(comma)-muse-unaligned-vector-move) -Wno-format
OS_LIBS  = -static -municode $(call flag,-Wl$(comma)--no-insert-timestamp) -Wl,--stack,8388608
# A plug-in finds the functions of tether.exe in this library.
OS_PLUGIN = $(B)/libtether.dll.a -static
EXPORTS = $(call flag,-Wl$(comma)--export-all-symbols) -Wl,--out-implib,$(B)/libtether.dll.a \
  $(call flag,-Wl$(comma)--exclude-libs$(comma)libssp.a:libgomp.a:libwinpthread.a:libpthread.a)
