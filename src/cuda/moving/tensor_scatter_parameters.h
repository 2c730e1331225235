/* The struct that the kernels of tensor_scatter.cu take. */
#ifndef SB_CUDA_MOVING_TENSOR_SCATTER_PARAMETERS_H
#define SB_CUDA_MOVING_TENSOR_SCATTER_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/pages.h"

/* Elements of the update, by their steps and those of the output, in bytes. Dimension 0 is the batch. */
typedef struct sb_cuda_tensor_scatter {
    int64_t elements;
    int64_t rows; /* of the cache, along `axis` */
    int32_t rank, axis, circular;
    int64_t dims[SB_CUDA_RANK], from_steps[SB_CUDA_RANK], to_steps[SB_CUDA_RANK];
    int64_t start_step;
    const char *starts; /* NULL: the first row */
    const int64_t *used_batch, *used_rows, *used_count;
    uint32_t *fault;
    const char *from;
    char *out;
} sb_cuda_tensor_scatter;

/* PagedScatter: elements of the new rows, of which each has `width`. Steps are in bytes. */
typedef struct sb_cuda_paged_scatter {
    sb_pages pages;
    int64_t elements, width;
    int64_t start_step, from_row, from_column, to_page, to_row, to_column;
    const char *starts;
    uint32_t *fault;
    const char *from;
    char *out;
} sb_cuda_paged_scatter;

#endif
