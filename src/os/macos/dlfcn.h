/* dlfcn.h: OpenBLAS by the names that Homebrew gives it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <dlfcn.h>
#ifndef TT_OS_MACOS_DLFCN_H
#define TT_OS_MACOS_DLFCN_H
#include <string.h>
static inline void *os_dlopen(const char *path, int how)
{
    static const char *const names[] = {
        "libopenblas.0.dylib", "libopenblas.dylib",
        "/opt/homebrew/opt/openblas/lib/libopenblas.dylib",
        "/usr/local/opt/openblas/lib/libopenblas.dylib"};
    void *library = dlopen(path, how);
    for (int i = 0; i < 4 && !library && !strcmp(path, "libopenblas.so"); i++)
        library = dlopen(names[i], how);
    return library;
}
#define dlopen os_dlopen
#endif
