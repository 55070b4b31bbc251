/* tensor_core.cu: the kernels of tensor_core.h for nvcc.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/tensor_core.h"
