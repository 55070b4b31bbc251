/* driver.c: one GPU: opened, its memory, its kernels started.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * `gpu` below is one per process, as the driver's own state is. It is made
 * under pthread_once; only its list of blocks and what launches asked for
 * change later, under a lock.
 * All work goes through one stream, in the order in which it was asked for;
 * tt_get alone waits. */
#include "ops/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/cuda.h"
#include "core/fpenv.h"

#define LEAST_MAJOR 8        /* cp.async came with compute capability 8.0     */

/* Memory of the device that an arena has. */
typedef struct block {
    struct block *next;
    char *at;
    size_t bytes;
} block;

static struct {
    cu_driver call;
    cu_context context;
    cu_stream stream;
    cu_function kernel[CUDA_KERNEL_COUNT];
    int shared[CUDA_KERNEL_COUNT];  /* bytes a launch may ask for             */
    int shared_most, multiprocessors, major, minor, version;
    bool wgmma;                     /* its kernels are used                   */
    char name[128];
    char problem[400];              /* "": usable                             */
    pthread_mutex_t lock;
    block *blocks;
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- opening ------------------------------------------------------------- */

static bool problem(const char *what, cu_result r, const char *advice)
{
    const char *name = NULL;
    if (r && gpu.call.error_name) gpu.call.error_name(r, &name);
    snprintf(gpu.problem, sizeof gpu.problem, "%s%s%s%s; %s", what,
             name ? " (" : "", name ? name : "", name ? ")" : "", advice);
    return false;
}

/* ISO C has no conversion from void * to a function; POSIX promises that the
 * bytes are the same. */
static bool driver_resolve(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool load_driver(void)
{
    static const char advice[] = "install the NVIDIA driver of the GPU, or use "
                                 "another backend";
    const tt_fpenv before = tt_fpenv_get();
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    tt_fpenv_set(before);
    if (!library)
        return problem("the CUDA driver libcuda.so.1 was not found", 0, advice);
#define CU_RESOLVE(member, name, args)                                         \
    && driver_resolve(library, #name, &gpu.call.member)
    if (!(true CU_CALLS(CU_RESOLVE)))
        return problem("the libcuda.so.1 found here lacks functions of "
                       "CUDA 11", 0, advice);
    return true;
}

static bool open_device(void)
{
    cu_device d = 0;
    cu_result r = gpu.call.init(0);
    if (!r) r = gpu.call.device_get(&d, 0);
    if (r)
        return problem("the CUDA driver finds no GPU", r, "see what nvidia-smi "
                       "says, or use another backend");
    gpu.call.driver_version(&gpu.version);
    gpu.call.device_name(gpu.name, (int)sizeof gpu.name, d);
    gpu.call.device_attribute(&gpu.major, CU_MAJOR, d);
    gpu.call.device_attribute(&gpu.minor, CU_MINOR, d);
    gpu.call.device_attribute(&gpu.shared_most, CU_SHARED_PER_BLOCK, d);
    gpu.call.device_attribute(&gpu.multiprocessors, CU_MULTIPROCESSORS, d);
    if (gpu.major < LEAST_MAJOR) {
        char what[200];
        snprintf(what, sizeof what, "%s has compute capability %d.%d, and %d.0 "
                 "is the least", gpu.name, gpu.major, gpu.minor, LEAST_MAJOR);
        return problem(what, 0, "use another GPU (CUDA_VISIBLE_DEVICES) or "
                       "another backend");
    }
    r = gpu.call.context_retain(&gpu.context, d);
    if (!r) r = gpu.call.context_use(gpu.context);
    if (!r) r = gpu.call.stream_create(&gpu.stream, 1 /* not the 0th */);
    if (r) return problem("the GPU cannot be used", r, "see what nvidia-smi "
                          "says, or use another backend");
    return true;
}

static bool find_kernel(int i, const char *name)
{
    static cu_module modules[16];
    for (int m = 0; cuda_images[m].data; m++) {
        TT_ASSERT(m < (int)(sizeof modules / sizeof *modules));
        cu_result r = 0;
        if (!modules[m])
            r = gpu.call.module_load(&modules[m], cuda_images[m].data);
        if (r) {
            char what[200];
            snprintf(what, sizeof what, "kernels of %s cannot be loaded on %s "
                     "with driver %d.%d", cuda_images[m].name, gpu.name,
                     gpu.version / 1000, gpu.version % 1000 / 10);
            return problem(what, r, "update the driver");
        }
        if (!gpu.call.module_function(&gpu.kernel[i], modules[m], name))
            return true;
    }
    char what[100];
    snprintf(what, sizeof what, "this program lacks the kernel %s", name);
    return problem(what, 0, "build it again with make CUDA=1");
}

/* wgmma is there on sm_90, where its kernels are compiled for that: in code for
 * other GPUs, which a driver can translate, they have no body and next to no
 * registers. */
static bool choose_products(void)
{
    static const cuda_kernel kernels[] = {CUDA_wgmma_linear,
                                          CUDA_wgmma_linear_gelu,
                                          CUDA_wgmma_conv_96,
                                          CUDA_wgmma_conv_192,
                                          CUDA_wgmma_attention};
    const char *way = getenv("TT_CUDA_PRODUCTS");
    if (way && strcmp(way, "mma") && strcmp(way, "wgmma")) {
        char what[100];
        snprintf(what, sizeof what, "TT_CUDA_PRODUCTS is '%.40s'", way);
        return problem(what, 0, "say mma or wgmma");
    }
    gpu.wgmma = gpu.major == 9 && gpu.minor == 0 && !(way && way[0] == 'm');
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        int registers = 0;
        gpu.call.function_get(&registers, CU_FUNCTION_REGISTERS,
                              gpu.kernel[kernels[i]]);
        gpu.wgmma = gpu.wgmma && registers > 32;
    }
    return true;
}

static void driver_load(void)
{
    static const char *const names[] = {
#define CUDA_NAME(name) #name,
        CUDA_KERNELS(CUDA_NAME)
    };
    if (!load_driver() || !open_device()) return;
    for (int i = 0; i < CUDA_KERNEL_COUNT; i++)
        if (!find_kernel(i, names[i])) return;
    choose_products();
}

static const tt_device cuda_device;

/* Tensor cores compute in the class of their generation alone. */
static tt_status check_class(tt_ctx *ctx, tt_class cls)
{
    const tt_class own = gpu.major < 9 ? TT_CLASS_SM80 : TT_CLASS_SM90;
    if (cls == TT_CLASS_F32 || cls == own) return TT_OK;
    return tt_fail(ctx, TT_EUNSUPPORTED, "backend cuda: the tensor cores of %s "
                   "(compute capability %d.%d) compute in class %s, not in %s; "
                   "ask for class %s or f32, or another backend", gpu.name,
                   gpu.major, gpu.minor, tt_class_name(own), tt_class_name(cls),
                   tt_class_name(own));
}

tt_status cuda_open(tt_ctx *ctx, const tt_ops *ops)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (ctx->status) return ctx->status;
    pthread_once(&once, driver_load);
    if (gpu.problem[0])
        return tt_fail(ctx, TT_EUNSUPPORTED, "backend cuda: %s", gpu.problem);
    if (ops) TT_TRY(check_class(ctx, ops->cls));
    ctx->device = &cuda_device;
    return TT_OK;
}

const char *cuda_library(tt_ctx *ctx, char *text, size_t size)
{
    if (cuda_open(ctx, NULL)) return NULL;
    snprintf(text, size, "%s (sm_%d%d), CUDA driver %d.%d", gpu.name, gpu.major,
             gpu.minor, gpu.version / 1000, gpu.version % 1000 / 10);
    return text;
}

int64_t cuda_shared_most(void)
{
    return gpu.shared_most;
}

int64_t cuda_multiprocessors(void)
{
    return gpu.multiprocessors;
}

bool cuda_wgmma(void)
{
    return gpu.wgmma;
}

/* ---- failures ------------------------------------------------------------ */

static void driver_check(tt_ctx *ctx, cu_result r, const char *what)
{
    const char *name = "an unknown error";
    if (!r) return;
    gpu.call.error_name(r, &name);
    tt_fail(ctx, TT_EIO, "backend cuda: %s failed on %s with %s; "
            "compute-sanitizer and nvidia-smi may say more", what, gpu.name,
            name);
}

/* The driver's context belongs to a thread, ours to whoever calls. */
static bool ready(tt_ctx *ctx)
{
    if (ctx->status) return false;
    driver_check(ctx, gpu.call.context_use(gpu.context), "cuCtxSetCurrent");
    return !ctx->status;
}

void cuda_wait(tt_ctx *ctx)
{
    if (ready(ctx))
        driver_check(ctx, gpu.call.stream_wait(gpu.stream),
                     "the work before a wait");
}

/* ---- memory -------------------------------------------------------------- */

static cu_ptr device_address(const void *p)
{
    return (cu_ptr)(uintptr_t)p;
}

static void *cuda_alloc(const tt_device *d, size_t bytes)
{
    cu_ptr p = 0;
    (void)d;
    block *b = malloc(sizeof *b);
    if (!b || gpu.call.context_use(gpu.context) ||
        gpu.call.mem_alloc(&p, bytes)) {
        free(b);
        return NULL;
    }
    pthread_mutex_lock(&gpu.lock);
    *b = (block){gpu.blocks, (char *)(uintptr_t)p, bytes};
    gpu.blocks = b;
    pthread_mutex_unlock(&gpu.lock);
    return b->at;
}

static void cuda_free(const tt_device *d, void *at, size_t bytes)
{
    (void)d;
    (void)bytes;
    pthread_mutex_lock(&gpu.lock);
    block **p = &gpu.blocks;
    while (*p && (*p)->at != at) p = &(*p)->next;
    block *gone = *p;
    if (gone) *p = gone->next;
    pthread_mutex_unlock(&gpu.lock);
    free(gone);
    if (!gpu.call.context_use(gpu.context))
        gpu.call.mem_free(device_address(at));
}

bool cuda_holds(const void *p)
{
    pthread_mutex_lock(&gpu.lock);
    const block *b = gpu.blocks;
    while (b && (size_t)((uintptr_t)p - (uintptr_t)b->at) >= b->bytes)
        b = b->next;
    pthread_mutex_unlock(&gpu.lock);
    return b != NULL;
}

/* A few words go as arguments of a kernel: a launch, and no transfer. */
static void put_words(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    uint32_t word[FEW_WORDS];
    cuda_words_args a = {.to = to, .n = (int64_t)(bytes / sizeof *word)};
    memcpy(word, from, bytes);
    for (int64_t i = 0; i < a.n; i++) a.word[i] = word[i];
    cuda_launch(ctx, CUDA_words, (cuda_grid){1, 1, FEW_WORDS, 0}, &a);
}

static void driver_put(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    if (bytes <= FEW_WORDS * 4 && bytes % 4 == 0 && (uintptr_t)to % 4 == 0) {
        put_words(ctx, to, from, bytes);
        return;
    }
    driver_check(ctx, gpu.call.put(device_address(to), from, bytes, gpu.stream),
                 "a copy to the GPU");
}

static void driver_get(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    driver_check(ctx, gpu.call.get(to, device_address(from), bytes, gpu.stream),
                 "a copy from the GPU");
    cuda_wait(ctx);
}

/* A copy on the device is of ranges apart; others go through a third place. */
static void copy_there(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    const uintptr_t t = (uintptr_t)to, f = (uintptr_t)from;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    if ((t > f ? t - f : f - t) < bytes) {
        tt_real *third = tt_values(ctx, (int64_t)(bytes / sizeof *third + 1));
        if (third) copy_there(ctx, third, from, bytes);
        from = third;
    }
    if (!ctx->status)
        driver_check(ctx, gpu.call.copy(device_address(to),
                                        device_address(from), bytes,
                                        gpu.stream), "a copy on the GPU");
    tt_arena_reset(&ctx->scratch, mark);
}

/* The verbs of a model name the right sides. Tests of single operators may have
 * values in host memory: so where they are is looked at. */
static void cuda_move(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    if (!bytes || !ready(ctx)) return;
    const bool to_there = cuda_holds(to), from_there = cuda_holds(from);
    if (to_there && from_there) copy_there(ctx, to, from, bytes);
    else if (to_there) driver_put(ctx, to, from, bytes);
    else if (from_there) driver_get(ctx, to, from, bytes);
    else memmove(to, from, bytes);
}

static void cuda_zero(tt_ctx *ctx, void *to, size_t bytes)
{
    if (!bytes || !ready(ctx)) return;
    if (cuda_holds(to))
        driver_check(ctx, gpu.call.set(device_address(to), 0, bytes,
                                       gpu.stream), "zeros on the GPU");
    else memset(to, 0, bytes);
}

static int64_t cuda_free_memory(const tt_device *d)
{
    size_t left = 0, all = 0;
    (void)d;
    if (gpu.call.context_use(gpu.context) || gpu.call.mem_info(&left, &all))
        return 0;
    return (int64_t)left;
}

static const tt_device cuda_device = {
    .name = "cuda", .alloc = cuda_alloc, .free = cuda_free, .put = cuda_move,
    .get = cuda_move, .copy = cuda_move, .zero = cuda_zero,
    .free_memory = cuda_free_memory, .locate = cuda_locate, .pick = cuda_pick,
    .narrow = cuda_narrow,
};

/* ---- what stays on the GPU ----------------------------------------------- */

#define KEPT 16              /* tables of angles, lists of positions          */

typedef struct kept {
    size_t bytes;
    void *copy, *there;      /* here and on the GPU                           */
    int64_t used;            /* the count of calls when it was asked for last */
} kept;

static struct {
    pthread_mutex_t lock;
    kept of[KEPT];
    int64_t calls;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The entry of these bytes; else the one that no one asked for longest. */
static kept *kept_of(const void *host, size_t bytes)
{
    kept *oldest = registry.of;
    for (kept *k = registry.of; k < registry.of + KEPT; k++) {
        if (k->bytes == bytes && !memcmp(k->copy, host, bytes)) return k;
        if (k->used < oldest->used) oldest = k;
    }
    return oldest;
}

static void empty(kept *k)
{
    if (k->there) cuda_free(&cuda_device, k->there, k->bytes);
    free(k->copy);
    *k = (kept){0};
}

/* The bytes at `host` in this entry, here and there. */
static void driver_refill(tt_ctx *ctx, kept *k, const void *host, size_t bytes)
{
    if (k->bytes != bytes) {
        empty(k);
        k->copy = malloc(bytes);
        k->there = cuda_alloc(&cuda_device, bytes);
        k->bytes = bytes;
    }
    if (k->copy && k->there) {
        memcpy(k->copy, host, bytes);
        driver_put(ctx, k->there, host, bytes);
        return;
    }
    empty(k);
    tt_fail(ctx, TT_ENOMEM, "out of memory: a table of %.1f MB on %s",
            (double)bytes / 1e6, gpu.name);
}

const void *cuda_keep(tt_ctx *ctx, const void *host, size_t bytes)
{
    if (!bytes || !ready(ctx)) return NULL;
    pthread_mutex_lock(&registry.lock);
    kept *k = kept_of(host, bytes);
    if (k->bytes != bytes || memcmp(k->copy, host, bytes))
        driver_refill(ctx, k, host, bytes);
    k->used = ++registry.calls;
    const void *there = k->there;
    pthread_mutex_unlock(&registry.lock);
    return there;
}

/* ---- kernels ------------------------------------------------------------- */

#define SHARED_FREE 49152    /* a block may have so much without asking       */

static void ask_for_shared(tt_ctx *ctx, cuda_kernel k, int bytes)
{
    if (bytes <= SHARED_FREE) return;
    pthread_mutex_lock(&gpu.lock);
    if (bytes > gpu.shared[k]) {
        driver_check(ctx, gpu.call.function_set(gpu.kernel[k],
                                                CU_FUNCTION_SHARED, bytes),
                     "asking for shared memory");
        gpu.shared[k] = bytes;
    }
    pthread_mutex_unlock(&gpu.lock);
}

void cuda_launch(tt_ctx *ctx, cuda_kernel k, cuda_grid g, const void *args)
{
    void *list[] = {(void *)(uintptr_t)args};
    if (g.x == 0 || g.y == 0 || !ready(ctx)) return;
    ask_for_shared(ctx, k, (int)g.shared);
    driver_check(ctx, gpu.call.launch(gpu.kernel[k], (unsigned)g.x,
                                      (unsigned)g.y, 1, (unsigned)g.threads, 1,
                                      1, (unsigned)g.shared, gpu.stream, list,
                                      NULL), "starting a kernel");
}
