/* 16-bit products of few rows, in tiles of 16 to 64 columns by 8 to 32 rows: gemm16_skinny.cuh. The numbers are once more in
 * cuda/gemm/hopper.c. */
#include "cuda/kernels/gemm16_hopper_tile.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_16x8_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 1
#define IV_GEMM_N 8
#define IV_GEMM_SHARES 1
#define IV_GEMM_BOXES 8
#define IV_GEMM_STAGES 9
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_16x8_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 1
#define IV_GEMM_N 8
#define IV_GEMM_SHARES 1
#define IV_GEMM_BOXES 8
#define IV_GEMM_STAGES 9
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_32x8_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 2
#define IV_GEMM_N 8
#define IV_GEMM_SHARES 1
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 11
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_32x8_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 2
#define IV_GEMM_N 8
#define IV_GEMM_SHARES 1
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 11
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_64x8_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 4
#define IV_GEMM_N 8
#define IV_GEMM_SHARES 1
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 6
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_64x8_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 4
#define IV_GEMM_N 8
#define IV_GEMM_SHARES 1
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 6
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_16x16_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 1
#define IV_GEMM_N 16
#define IV_GEMM_SHARES 2
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 13
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_16x16_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 1
#define IV_GEMM_N 16
#define IV_GEMM_SHARES 2
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 13
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_32x16_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 2
#define IV_GEMM_N 16
#define IV_GEMM_SHARES 2
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 9
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_32x16_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 2
#define IV_GEMM_N 16
#define IV_GEMM_SHARES 2
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 9
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_64x16_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 4
#define IV_GEMM_N 16
#define IV_GEMM_SHARES 1
#define IV_GEMM_BOXES 2
#define IV_GEMM_STAGES 10
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_64x16_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 4
#define IV_GEMM_N 16
#define IV_GEMM_SHARES 1
#define IV_GEMM_BOXES 2
#define IV_GEMM_STAGES 10
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_16x32_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 1
#define IV_GEMM_N 32
#define IV_GEMM_SHARES 4
#define IV_GEMM_BOXES 2
#define IV_GEMM_STAGES 18
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_16x32_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 1
#define IV_GEMM_N 32
#define IV_GEMM_SHARES 4
#define IV_GEMM_BOXES 2
#define IV_GEMM_STAGES 18
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_32x32_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 2
#define IV_GEMM_N 32
#define IV_GEMM_SHARES 2
#define IV_GEMM_BOXES 2
#define IV_GEMM_STAGES 13
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_32x32_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 2
#define IV_GEMM_N 32
#define IV_GEMM_SHARES 2
#define IV_GEMM_BOXES 2
#define IV_GEMM_STAGES 13
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_64x32_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_ROWS 4
#define IV_GEMM_N 32
#define IV_GEMM_SHARES 2
#define IV_GEMM_BOXES 2
#define IV_GEMM_STAGES 8
#include "cuda/kernels/gemm16_skinny.cuh"

#define IV_GEMM_NAME iv_gemm16_skinny_64x32_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_ROWS 4
#define IV_GEMM_N 32
#define IV_GEMM_SHARES 2
#define IV_GEMM_BOXES 2
#define IV_GEMM_STAGES 8
#include "cuda/kernels/gemm16_skinny.cuh"
