/* Where products of 16-bit matrices are computed. See <invar/gemm.h>. */
#ifndef IV_GEMM_ENGINE_H
#define IV_GEMM_ENGINE_H

#include <invar/gemm.h>

#include "base/workers.h"
#include "cpu/chain16.h"
#include "cuda/device.h"

/* What a device needs for its products: src/cuda/gemm/gemm.h. */
typedef struct iv_gemm_device iv_gemm_device;

/* Scratch of the threads of a CPU engine: src/gemm/cpu.h. */
typedef struct iv_gemm_scratch iv_gemm_scratch;

/* One thread at a time. */
struct iv_engine {
    iv_chain chain;
    uint64_t number; /* of all engines that the process ever made, from 1: what row maps know their
                        engine by */

    iv_cuda_device *cuda;         /* one reference; NULL on the CPU */
    iv_gemm_device *device_state; /* NULL on the CPU */

    iv_isa isa; /* on the CPU, resolved, with the rest; not read on a device */
    iv_workers *workers;
    const iv_chain16_kernels *chain16;
    iv_gemm_scratch *scratch;
};

#endif
