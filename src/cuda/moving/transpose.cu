/* Copies whose source is contiguous along another dimension than the target: by tiles in shared
 * memory, so that both sides are touched in runs. */
#include "cuda/common/box.cuh"

#define TILE SB_CUDA_TILE

/* A block takes a tile at a time: it reads along the rows' dimension, where the source is
 * contiguous, and writes along the columns'. A column more keeps the threads that read down a tile
 * in different banks. */
#define TRANSPOSE(bits, type)                                                                                          \
    SB_CUDA_BLOCK_KERNEL(sb_cuda_transpose_##bits, sb_cuda_transposition, p) {                                         \
        SB_CUDA_SHARED type tile[TILE][TILE + 1];                                                                      \
        int lane = (int)threadIdx.x % TILE, first = (int)threadIdx.x / TILE;                                           \
        int step = (int)blockDim.x / TILE;                                                                             \
        for (int64_t number = blockIdx.x; number < p->tiles; number += gridDim.x) {                                    \
            int64_t batch = number / (p->row_tiles * p->column_tiles), offsets[2];                                     \
            int64_t inside = number - batch * p->row_tiles * p->column_tiles;                                          \
            int64_t row = inside / p->column_tiles * TILE;                                                             \
            int64_t column = inside % p->column_tiles * TILE;                                                          \
            sb_cuda_place(&p->batch, batch, 2, offsets);                                                               \
            const char *from = p->batch.data[1] + offsets[1];                                                          \
            char *to = p->batch.data[0] + offsets[0];                                                                  \
            for (int c = first; c < TILE; c += step) {                                                                 \
                if (row + lane < p->rows && column + c < p->columns)                                                   \
                    tile[c][lane] = SB_CUDA_CONST_ELEMENT(                                                             \
                        type, from, (row + lane) * (int64_t)sizeof(type) + (column + c) * p->from_step);               \
            }                                                                                                          \
            SB_CUDA_BARRIER();                                                                                         \
            for (int r = first; r < TILE; r += step) {                                                                 \
                if (row + r < p->rows && column + lane < p->columns)                                                   \
                    SB_CUDA_ELEMENT(type, to, (row + r) * p->to_step + (column + lane) * (int64_t)sizeof(type)) =      \
                        tile[lane][r];                                                                                 \
            }                                                                                                          \
            SB_CUDA_BARRIER();                                                                                         \
        }                                                                                                              \
    }
TRANSPOSE(8, uint8_t)
TRANSPOSE(16, uint16_t)
TRANSPOSE(32, uint32_t)
TRANSPOSE(64, uint64_t)
