/* driver.cpp: the CUDA driver's interface over the shim: a libcuda.so.1 whose
 * GPU is the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program's host side runs unchanged: it loads this library where it would
 * load NVIDIA's. Kernels are found by their names. Memory of the device begins
 * as NaN, and behind the end of each block lies a page that nobody may touch.
 * A launch fails when an argument points to memory that is not the device's.
 *
 * TT_SHIM_GPU     80, 86 or 90: compute capability, shared memory of a block,
 *                 steps of the tensor cores
 * TT_SHIM_ORDER   forward, reverse or random: shim.h
 * TT_SHIM_COUNT   a file that gets a line of counts at the end */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <map>
#include <mutex>
#include <string>

#include "shim.h"

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, FAILED = 719 };

struct function {
    const shim_kernel *kernel;
    std::string name;
};

std::mutex lock;
std::map<uintptr_t, size_t> blocks;
std::map<std::string, function> functions;

struct counts {
    long launches, puts, gets, waits, allocs, put_bytes, get_bytes, words,
        copies;
    ~counts()
    {
        const char *name = getenv("TT_SHIM_COUNT");
        FILE *f = name ? fopen(name, "a") : nullptr;
        if (!f) return;
        fprintf(f, "%ld launches, %ld puts of %ld bytes, %ld gets of %ld bytes,"
                " %ld waits, %ld allocations, %ld puts of few words, %ld "
                "copies\n", launches, puts, put_bytes, gets, get_bytes, waits,
                allocs, words, copies);
        fclose(f);
    }
} count;

/* ---- blocks that end where a page begins that nobody may touch ----------- */

const size_t PAGE = 4096, ALIGN = 16;

size_t whole(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

void *fenced(size_t bytes)
{
    const size_t used = whole(bytes, PAGE);
    char *p = static_cast<char *>(mmap(nullptr, used + PAGE,
                                       PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (p == MAP_FAILED) return nullptr;
    mprotect(p + used, PAGE, PROT_NONE);
    memset(p, 0xff, used);              /* NaN, in front of the block too */
    return p + used - whole(bytes, ALIGN);
}

void give_back(uintptr_t p, size_t bytes)
{
    const size_t used = whole(bytes, PAGE);
    munmap(reinterpret_cast<void *>(p + whole(bytes, ALIGN) - used),
           used + PAGE);
}

/* Is [p, p + bytes) memory of the device? */
bool holds(uintptr_t p, size_t bytes)
{
    auto b = blocks.upper_bound(p);
    if (b == blocks.begin()) return false;
    --b;
    return p - b->first <= b->second && bytes <= b->second - (p - b->first);
}

/* Words that look like addresses of this process: args.h promises that no
 * number does. */
bool pointers_are_ours(const void *args, size_t bytes)
{
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, static_cast<const char *>(args) + i, 8);
        if (word >> 32 && !(word >> 47) && !holds((uintptr_t)word, 0))
            return false;
    }
    return true;
}

}  // namespace

/* For check_waits.c: waits, and what the host gave, as a transfer or among the
 * arguments of a kernel. */
extern "C" __attribute__((visibility("default"))) long shim_waits()
{
    return count.waits;
}

extern "C" __attribute__((visibility("default"))) long shim_given()
{
    return count.puts + count.words;
}

extern "C" __attribute__((visibility("default"))) long shim_transfers()
{
    return count.puts;
}

API cuInit(unsigned) { return OK; }

API cuGetErrorName(int r, const char **name)
{
    *name = r == INVALID ? "CUDA_ERROR_INVALID_VALUE"
            : r == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : r == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND"
            : r == FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : nullptr;
    return OK;
}

API cuDriverGetVersion(int *version)
{
    *version = 13000;
    return OK;
}

API cuDeviceGet(int *device, int)
{
    *device = 0;
    return OK;
}

API cuDeviceGetName(char *name, int size, int)
{
    snprintf(name, (size_t)size, "shim");
    return OK;
}

API cuDeviceGetAttribute(int *v, int which, int)
{
    const int gpu = shim_gpu();
    const int shared = gpu == 80 ? 166912 : gpu < 90 ? 101376 : 232448;
    *v = which == 97 ? shared : which == 75 ? gpu / 10
         : which == 76 ? gpu % 10 : which == 16 ? 3 : 0;
    return OK;
}

API cuDevicePrimaryCtxRetain(void **c, int)
{
    *c = &count;
    return OK;
}

API cuCtxSetCurrent(void *c) { return c == &count ? OK : INVALID; }

API cuModuleLoadData(void **m, const void *)
{
    *m = &functions;
    return OK;
}

API cuModuleGetFunction(void **f, void *, const char *name)
{
    const std::string symbol = std::string("shim_") + name;
    Dl_info self;                       /* this library, loaded locally */
    if (!dladdr(reinterpret_cast<void *>(cuInit), &self)) return NOT_FOUND;
    void *own = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    void *kernel = own ? dlsym(own, symbol.c_str()) : nullptr;
    if (!kernel) return NOT_FOUND;
    std::lock_guard<std::mutex> hold(lock);
    functions[name] = {static_cast<const shim_kernel *>(kernel), name};
    *f = &functions[name];
    return OK;
}

/* Registers: as many as a kernel with a body has. */
API cuFuncGetAttribute(int *v, int which, void *)
{
    *v = 64;
    return which == 4 ? OK : INVALID;
}

API cuFuncSetAttribute(void *, int which, int bytes)
{
    int most = 0;
    cuDeviceGetAttribute(&most, 97, 0);
    return which == 8 && bytes <= most ? OK : INVALID;
}

API cuStreamCreate(void **s, unsigned)
{
    *s = &lock;
    return OK;
}

API cuStreamSynchronize(void *)
{
    count.waits++;
    return OK;
}

API cuMemAlloc_v2(unsigned long long *p, size_t bytes)
{
    void *m = bytes ? fenced(bytes) : nullptr;
    if (!m) return NO_MEMORY;
    std::lock_guard<std::mutex> hold(lock);
    blocks[(uintptr_t)m] = bytes;
    count.allocs++;
    *p = (uintptr_t)m;
    return OK;
}

/* TT_SHIM_ROOM bytes, or room for all that the tests do. */
API cuMemGetInfo_v2(size_t *left, size_t *all)
{
    const char *room = getenv("TT_SHIM_ROOM");
    *left = *all = room ? (size_t)atoll(room) : (size_t)8 << 30;
    return OK;
}

API cuMemFree_v2(unsigned long long p)
{
    std::lock_guard<std::mutex> hold(lock);
    auto b = blocks.find((uintptr_t)p);
    if (b == blocks.end()) return INVALID;
    give_back(b->first, b->second);
    blocks.erase(b);
    return OK;
}

API cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes,
                         void *)
{
    std::lock_guard<std::mutex> hold(lock);
    if (!holds((uintptr_t)to, bytes) || holds((uintptr_t)from, 1))
        return INVALID;
    memcpy(reinterpret_cast<void *>(to), from, bytes);
    count.puts++;
    count.put_bytes += (long)bytes;
    return OK;
}

API cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes,
                         void *)
{
    std::lock_guard<std::mutex> hold(lock);
    if (!holds((uintptr_t)from, bytes) || holds((uintptr_t)to, 1))
        return INVALID;
    memcpy(to, reinterpret_cast<void *>(from), bytes);
    count.gets++;
    count.get_bytes += (long)bytes;
    return OK;
}

API cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from,
                         size_t bytes, void *)
{
    std::lock_guard<std::mutex> hold(lock);
    const unsigned long long apart = to > from ? to - from : from - to;
    if (!holds((uintptr_t)to, bytes) || !holds((uintptr_t)from, bytes) ||
        apart < bytes)
        return INVALID;
    count.copies++;
    memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    return OK;
}

API cuMemsetD8Async(unsigned long long to, unsigned char v, size_t bytes,
                    void *)
{
    std::lock_guard<std::mutex> hold(lock);
    if (!holds((uintptr_t)to, bytes)) return INVALID;
    memset(reinterpret_cast<void *>(to), v, bytes);
    return OK;
}

API cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, void *,
                   void **args, void **)
{
    std::lock_guard<std::mutex> hold(lock);
    const function *k = static_cast<const function *>(f);
    if (!pointers_are_ours(args[0], k->kernel->bytes)) {
        printf("FAIL shim: %s is given memory of the host\n", k->name.c_str());
        return FAILED;
    }
    count.launches++;
    count.words += k->name == "words";
    shim_run(k->kernel, k->name.c_str(), dim3(gx, gy, gz), dim3(bx, by, bz),
             shared, args[0]);
    return OK;
}
