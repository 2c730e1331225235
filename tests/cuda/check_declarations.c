/* Samebit's declarations of the CUDA driver against NVIDIA's: compiled, never run, where a toolkit is
 * there. Numbers, signatures and layouts have to agree. */
#include <cuda.h>

#include <stddef.h>

#if CUDA_VERSION >= 12000
#include <cudaTypedefs.h>

#define SB_CUDA_CONSTANT(name, value) _Static_assert((int)(name) == (value), #name);
#include "cuda/driver/driver_constants.h"

/* The names of types in the table of calls are NVIDIA's here. */
#define SB_CUDA_CALL(name, version, arguments)                                                                         \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v##version, CUresult(*) arguments), #name);
#include "cuda/driver/driver_calls.h"

#define SB_CUDA_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define SB_CUDA_LAYOUT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member);
#include "cuda/driver/driver_layouts.h"
#endif
