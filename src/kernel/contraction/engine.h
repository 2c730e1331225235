/* Where products of 16-bit matrices are computed. See <samebit/gemm.h>. */
#ifndef SB_KERNEL_CONTRACTION_ENGINE_H
#define SB_KERNEL_CONTRACTION_ENGINE_H

#include <samebit/gemm.h>

#include "base/workers.h"
#include "cpu/contraction/chain16.h"
#include "cuda/driver/device.h"

/* What a device needs for its products: src/cuda/contraction/gemm16.h. */
typedef struct sb_gemm_device sb_gemm_device;

/* Workspace of the threads of a CPU engine: src/cpu/contraction/gemm16.h. */
typedef struct sb_gemm_workspace sb_gemm_workspace;

/* One thread at a time. */
struct sb_engine {
    uint64_t number; /* of all engines that the process ever made, from 1: what row maps know their
                        engine by */

    sb_cuda_device *cuda;         /* one reference; NULL on the CPU */
    sb_gemm_device *device_state; /* NULL on the CPU */

    sb_isa isa; /* on the CPU, resolved, with the rest; not read on a device */
    sb_workers *workers;
    const sb_chain16_kernels *chain16;
    sb_gemm_workspace *workspace;
};

#endif
