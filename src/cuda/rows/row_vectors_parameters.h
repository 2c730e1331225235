/* Which rows of 16 bits have kernels that keep them in registers, for the host and for devices. */
#ifndef SB_CUDA_ROWS_ROW_VECTORS_PARAMETERS_H
#define SB_CUDA_ROWS_ROW_VECTORS_PARAMETERS_H

/* Threads of a block at most. */
#define SB_CUDA_ROW_VECTOR_THREADS 256

/* X(threads of a row, groups of eight elements that each has, …), by how many elements a row can have: up to 1,024, and up to 2,048. */
#define SB_CUDA_SHORT_ROW_VECTORS(X, ...)                                                                              \
    X(4, 1, __VA_ARGS__)                                                                                               \
    X(8, 1, __VA_ARGS__)                                                                                               \
    X(16, 1, __VA_ARGS__)                                                                                              \
    X(32, 1, __VA_ARGS__)                                                                                              \
    X(32, 2, __VA_ARGS__)                                                                                              \
    X(32, 3, __VA_ARGS__)                                                                                              \
    X(32, 4, __VA_ARGS__)
#define SB_CUDA_ROW_VECTORS(X, ...) SB_CUDA_SHORT_ROW_VECTORS(X, __VA_ARGS__) X(32, 8, __VA_ARGS__)
/* Rows that a block copies to shared memory at a time, a warp each (normalize_copied.cu). */
#define SB_CUDA_COPIED_ROWS 4
/* X(lanes of 256 that a thread has, elements that a lane has, …), where a block takes one row (normalize_row.cuh): by how many elements a row
 * can have, for each number of lanes. */
#define SB_CUDA_BLOCK_ROWS(X, ...)                                                                                     \
    X(1, 3, __VA_ARGS__)                                                                                               \
    X(1, 4, __VA_ARGS__)                                                                                               \
    X(1, 8, __VA_ARGS__)                                                                                               \
    X(1, 16, __VA_ARGS__)                                                                                              \
    X(2, 8, __VA_ARGS__)                                                                                               \
    X(2, 16, __VA_ARGS__)

#endif
