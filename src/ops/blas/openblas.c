/* openblas.c: see openblas.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * `loaded` below is the one mutable variable of the program outside a context:
 * what it describes, a library mapped into the process, is one per process as
 * well. It is written once, under pthread_once, and only read afterwards. */
#include "ops/blas/openblas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/fpenv.h"

static struct {
    openblas lib;
    const char *problem; /* NULL: usable */
} loaded;

/* Names as packages install them (src/os has those of other systems). */
static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};

/* No threads of its own: ours call it, one tile each (blas.c). It reads the
 * variable while it is being loaded; ours is gone again afterwards. */
static void *open_without_threads(void)
{
    static const char variable[] = "OPENBLAS_NUM_THREADS";
    bool ours = !getenv(variable);
    const tt_fpenv before = tt_fpenv_get();
    void *library = NULL;
    if (ours) setenv(variable, "1", 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (ours) unsetenv(variable);
    tt_fpenv_set(before);                /* -ffast-math sets another one */
    return library;
}

/* ISO C has no conversion from void * to a function; POSIX promises that the
 * bytes are the same. */
static bool resolve(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void openblas_load(void)
{
    openblas *lib = &loaded.lib;
    void *library = open_without_threads();
    const char *gemm = sizeof(tt_real) == 8 ? "cblas_dgemm" : "cblas_sgemm";
    if (!library)
        loaded.problem = "libopenblas was not found";
    else if (!resolve(library, gemm, &lib->gemm)
             || !resolve(library, "openblas_set_num_threads",
                         &lib->set_num_threads)
             || !resolve(library, "openblas_get_config", &lib->get_config)
             || !resolve(library, "openblas_get_corename",
                         &lib->get_corename))
        loaded.problem = "the libopenblas found here lacks the CBLAS interface";
    else if (strstr(lib->get_config(), "USE64BITINT"))
        loaded.problem = "the libopenblas found here takes 64-bit integers";
}

const openblas *openblas_get(tt_ctx *ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (ctx->status) return NULL;
    pthread_once(&once, openblas_load);
    if (!loaded.problem) return &loaded.lib;
    tt_fail(ctx, TT_EUNSUPPORTED, "backend blas: %s; install the package "
            "libopenblas0 (Debian, Ubuntu) or openblas (Fedora, Arch, "
            "Homebrew), or use another backend", loaded.problem);
    return NULL;
}
