/* Which rows of 16 bits have kernels that keep them in registers, for the host and for devices. */
#ifndef SB_CUDA_ROWS_ROW_VECTORS_PARAMETERS_H
#define SB_CUDA_ROWS_ROW_VECTORS_PARAMETERS_H

/* Threads of a block at most. */
#define SB_CUDA_ROW_VECTOR_THREADS 256

/* X(threads of a row, groups of eight elements that each has, …), by how many elements a row can have. */
#define SB_CUDA_ROW_VECTORS(X, ...)                                                                                    \
    X(4, 1, __VA_ARGS__)                                                                                               \
    X(8, 1, __VA_ARGS__)                                                                                               \
    X(16, 1, __VA_ARGS__)                                                                                              \
    X(32, 1, __VA_ARGS__)                                                                                              \
    X(32, 2, __VA_ARGS__)                                                                                              \
    X(32, 3, __VA_ARGS__)                                                                                              \
    X(32, 4, __VA_ARGS__)                                                                                              \
    X(32, 8, __VA_ARGS__)
/* Rows that a block copies to shared memory at a time, a warp each (normalize_copied.cu). */
#define SB_CUDA_COPIED_ROWS 4
/* X(pairs of elements that each of SB_CUDA_PAIR_THREADS threads has, …), where a block takes one row (normalize_pairs.cuh). */
#define SB_CUDA_PAIR_THREADS 128
#define SB_CUDA_PAIRS(X, ...) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(8, __VA_ARGS__) X(16, __VA_ARGS__)

#endif
