/* driver.h: the CUDA driver, loaded when someone asks for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program is linked with nothing of CUDA, and built without its headers:
 * the types and numbers of the driver's interface that are used stand here. */
#ifndef TT_CUDA_DRIVER_H
#define TT_CUDA_DRIVER_H

#include "core/context.h"

typedef int cu_result;               /* 0: success                            */
typedef int cu_device;
typedef unsigned long long cu_ptr;   /* memory of the device                  */
typedef struct cu_context *cu_context;
typedef struct cu_module *cu_module;
typedef struct cu_function *cu_function;
typedef struct cu_stream *cu_stream;

enum {                               /* attributes of a device                */
    CU_MULTIPROCESSORS = 16, CU_MAJOR = 75, CU_MINOR = 76,
    CU_SHARED_PER_BLOCK = 97,
};
enum { CU_FUNCTION_REGISTERS = 4, CU_FUNCTION_SHARED = 8 };  /* of a function */

/* X(member, name in the library, parameters) */
#define CU_CALLS(X)                                                            \
    X(init, cuInit, (unsigned flags))                                          \
    X(error_name, cuGetErrorName, (cu_result r, const char **name))            \
    X(driver_version, cuDriverGetVersion, (int *version))                      \
    X(device_get, cuDeviceGet, (cu_device *d, int i))                          \
    X(device_name, cuDeviceGetName, (char *name, int size, cu_device d))       \
    X(device_attribute, cuDeviceGetAttribute, (int *v, int which,              \
                                               cu_device d))                   \
    X(context_retain, cuDevicePrimaryCtxRetain, (cu_context *c, cu_device d))  \
    X(context_use, cuCtxSetCurrent, (cu_context c))                            \
    X(module_load, cuModuleLoadData, (cu_module *m, const void *image))        \
    X(module_function, cuModuleGetFunction, (cu_function *f, cu_module m,      \
                                             const char *name))                \
    X(function_get, cuFuncGetAttribute, (int *v, int which, cu_function f))    \
    X(function_set, cuFuncSetAttribute, (cu_function f, int which, int v))     \
    X(stream_create, cuStreamCreate, (cu_stream *s, unsigned flags))           \
    X(stream_wait, cuStreamSynchronize, (cu_stream s))                         \
    X(mem_alloc, cuMemAlloc_v2, (cu_ptr *p, size_t bytes))                     \
    X(mem_info, cuMemGetInfo_v2, (size_t *left, size_t *all))                  \
    X(mem_free, cuMemFree_v2, (cu_ptr p))                                      \
    X(put, cuMemcpyHtoDAsync_v2, (cu_ptr to, const void *from, size_t bytes,   \
                                  cu_stream s))                                \
    X(get, cuMemcpyDtoHAsync_v2, (void *to, cu_ptr from, size_t bytes,         \
                                  cu_stream s))                                \
    X(copy, cuMemcpyDtoDAsync_v2, (cu_ptr to, cu_ptr from, size_t bytes,       \
                                   cu_stream s))                               \
    X(set, cuMemsetD8Async, (cu_ptr to, unsigned char v, size_t bytes,         \
                             cu_stream s))                                     \
    X(launch, cuLaunchKernel, (cu_function f, unsigned gx, unsigned gy,        \
                               unsigned gz, unsigned bx, unsigned by,          \
                               unsigned bz, unsigned shared, cu_stream s,      \
                               void **args, void **extra))

typedef struct cu_driver {
#define CU_MEMBER(member, name, args) cu_result (*member) args;
    CU_CALLS(CU_MEMBER)
} cu_driver;

/* A compiled file of kernels, as nvcc made it. The last has no data. */
typedef struct cuda_image {
    const char *name;
    const void *data;
} cuda_image;
extern const cuda_image cuda_images[];

#endif
