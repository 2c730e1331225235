#include "cuda/compute.h"

#include <stdio.h>
#include <string.h>

#include "cuda/kernels/parameters.h"
#include "tensor/walk.h"

_Static_assert(IV_CUDA_RANK == IV_MAX_RANK, "a box has as many dimensions as a tensor");

#define THREADS 256
#define PER_BLOCK (THREADS * IV_CUDA_GROUP) /* elements of a box */
/* Enough blocks for every multiprocessor to be full of threads (2048 each) four times over; threads
 * take more elements where there are more. */
#define BLOCKS_PER_MULTIPROCESSOR 32

static bool is_empty(const iv_tensor *tensor) {
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->dims[d] == 0)
            return true;
    }
    return false;
}

iv_cuda_range iv_cuda_tensor_range(const iv_tensor *tensor, bool written) {
    int64_t size = (int64_t)iv_dtype_size(tensor->dtype), least = 0, most = 0;
    if (is_empty(tensor))
        return (iv_cuda_range){0, 0, written};
    for (int d = 0; d < tensor->rank; d++) {
        int64_t reach = (tensor->dims[d] - 1) * tensor->strides[d] * size;
        least += reach < 0 ? reach : 0;
        most += reach > 0 ? reach : 0;
    }
    return (iv_cuda_range){.address = (CUdeviceptr)((intptr_t)tensor->data + least),
                           .bytes = (size_t)(most - least + size),
                           .written = written};
}

unsigned iv_cuda_queue_blocks(const iv_cuda_queue *queue, int64_t wanted) {
    int64_t most = (int64_t)queue->stream->device->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    return (unsigned)(wanted < most ? wanted : most);
}

/* ---- boxes ---- */

/* Whether groups of an operand's neighbours start at multiples of their size (16 bytes are enough
 * for the larger ones). */
static bool is_whole(const iv_walk *walk, int operand, int64_t size) {
    int last = walk->rank - 1;
    int64_t bytes = IV_CUDA_GROUP * size < 16 ? IV_CUDA_GROUP * size : 16;
    bool whole = walk->steps[operand][last] == size && (intptr_t)walk->data[operand] % bytes == 0;
    for (int d = 0; d < last; d++)
        whole = whole && walk->steps[operand][d] % bytes == 0;
    return whole;
}

void iv_cuda_box_of_walk(iv_cuda_box *box, const iv_walk *walk, const iv_tensor *const *operands) {
    int last = walk->rank - 1;
    *box =
        (iv_cuda_box){.elements = walk->elements, .rank = walk->rank, .operands = walk->operands};
    memcpy(box->dims, walk->dims, (size_t)walk->rank * sizeof box->dims[0]);
    for (int d = 0; d < walk->rank && walk->elements > 0; d++) {
        if (walk->elements <= INT32_MAX)
            box->divisors[d] = iv_cuda_divisor_of((uint32_t)walk->dims[d]);
        else
            box->inverses[d] = 1.0 / (double)walk->dims[d];
    }
    box->rows = walk->rank == 1 || walk->dims[last] % IV_CUDA_GROUP == 0;
    for (int i = 0; i < walk->operands; i++) {
        memcpy(box->steps[i], walk->steps[i], (size_t)walk->rank * sizeof box->steps[i][0]);
        box->data[i] = walk->data[i];
        box->whole[i] = box->rows && is_whole(walk, i, (int64_t)iv_dtype_size(operands[i]->dtype));
    }
}

/* A thread takes a group at once. */
static iv_status launch_over_elements(const iv_cuda_queue *queue, int step,
                                      const iv_cuda_kernel *kernel, const void *parameters,
                                      int64_t elements, int range_count,
                                      const iv_cuda_range *ranges, iv_error *error) {
    iv_cuda_task task = {
        .kind = IV_CUDA_KERNEL,
        .step = step,
        .kernel = {.kernel = kernel,
                   .grid = {iv_cuda_queue_blocks(queue, (elements + PER_BLOCK - 1) / PER_BLOCK), 1, 1},
                   .block = {THREADS, 1, 1},
                   .parameters = parameters,
                   .range_count = range_count,
                   .ranges = ranges},
    };
    return iv_cuda_launch(queue, &task, error);
}

/* ---- copies ---- */

iv_status iv_cuda_find_copy(iv_cuda_device *device, iv_dtype dtype, const iv_cuda_kernel **kernel,
                            iv_error *error) {
    char name[32];
    if (dtype == IV_STRING)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "text is not kept on devices");
    snprintf(name, sizeof name, "iv_cuda_copy_%d", 8 * (int)iv_dtype_size(dtype));
    return iv_cuda_kernel_find(device, "copy", name, sizeof(iv_cuda_box), kernel, error);
}

/* Whether both operands are one packed run. */
static bool is_one_run(const iv_walk *walk, size_t size) {
    return walk->rank == 1 && walk->steps[0][0] == (int64_t)size &&
           walk->steps[1][0] == (int64_t)size;
}

/* The dimension along which the source is contiguous, if it is long enough for tiles and not the
 * target's last; -1 else. */
static int transposed_dimension(const iv_walk *walk, int64_t size) {
    int last = walk->rank - 1;
    if (walk->steps[0][last] != size || walk->dims[last] < IV_CUDA_TILE / 2)
        return -1;
    for (int d = 0; d < last; d++) {
        if (walk->steps[1][d] == size && walk->dims[d] >= IV_CUDA_TILE / 2)
            return d;
    }
    return -1;
}

static iv_status launch_transposition(const iv_cuda_queue *queue, int step, const iv_walk *walk,
                                      int dimension, const iv_tensor *to, const iv_tensor *from,
                                      iv_error *error) {
    int last = walk->rank - 1;
    const iv_tensor *operands[2] = {to, from};
    iv_cuda_transposition parameters = {.rows = walk->dims[dimension],
                                        .columns = walk->dims[last],
                                        .to_step = walk->steps[0][dimension],
                                        .from_step = walk->steps[1][last]};
    /* The matrices' first elements: the walk without the two dimensions. */
    iv_walk batch = {.operands = 2, .elements = 1, .data = {walk->data[0], walk->data[1]}};
    for (int d = 0; d < last; d++) {
        if (d == dimension)
            continue;
        batch.dims[batch.rank] = walk->dims[d];
        batch.elements *= walk->dims[d];
        for (int i = 0; i < 2; i++)
            batch.steps[i][batch.rank] = walk->steps[i][d];
        batch.rank++;
    }
    if (batch.rank == 0)
        batch.dims[batch.rank++] = 1;
    iv_cuda_box_of_walk(&parameters.batch, &batch, operands);
    parameters.row_tiles = (parameters.rows + IV_CUDA_TILE - 1) / IV_CUDA_TILE;
    parameters.column_tiles = (parameters.columns + IV_CUDA_TILE - 1) / IV_CUDA_TILE;
    parameters.tiles = batch.elements * parameters.row_tiles * parameters.column_tiles;
    char name[32];
    snprintf(name, sizeof name, "iv_cuda_transpose_%d", 8 * (int)iv_dtype_size(to->dtype));
    const iv_cuda_kernel *kernel;
    IV_TRY(iv_cuda_kernel_find(queue->stream->device, "transpose", name, sizeof parameters, &kernel,
                               error));
    iv_cuda_range ranges[] = {iv_cuda_tensor_range(to, true), iv_cuda_tensor_range(from, false)};
    iv_cuda_task task = {.kind = IV_CUDA_KERNEL,
                         .step = step,
                         .kernel = {.kernel = kernel,
                                    .grid = {iv_cuda_queue_blocks(queue, parameters.tiles), 1, 1},
                                    .block = {THREADS, 1, 1},
                                    .parameters = &parameters,
                                    .range_count = 2,
                                    .ranges = ranges}};
    return iv_cuda_launch(queue, &task, error);
}

iv_status iv_cuda_launch_copy(const iv_cuda_queue *queue, int step, const iv_cuda_kernel *kernel,
                              const iv_tensor *to, const iv_tensor *from, iv_error *error) {
    if (is_empty(to))
        return IV_OK;
    iv_walk walk;
    size_t size = iv_dtype_size(to->dtype);
    const iv_tensor *operands[2] = {to, from};
    iv_walk_start(&walk, to->rank, to->dims, 2, operands);
    if (is_one_run(&walk, size)) {
        iv_cuda_task task = {.kind = IV_CUDA_COPY_ON_DEVICE,
                             .step = step,
                             .copy = {.to = (CUdeviceptr)(uintptr_t)to->data,
                                      .from = (CUdeviceptr)(uintptr_t)from->data,
                                      .bytes = (size_t)walk.elements * size}};
        return iv_cuda_launch(queue, &task, error);
    }
    int dimension = transposed_dimension(&walk, (int64_t)size);
    if (dimension >= 0)
        return launch_transposition(queue, step, &walk, dimension, to, from, error);
    iv_cuda_box box;
    iv_cuda_box_of_walk(&box, &walk, operands);
    iv_cuda_range ranges[] = {iv_cuda_tensor_range(to, true), iv_cuda_tensor_range(from, false)};
    return launch_over_elements(queue, step, kernel, &box, box.elements, 2, ranges, error);
}

/* ---- element-wise operators ---- */

/* Which source has the kernels for a dtype. */
static const char *elementwise_module(int inputs, iv_dtype dtype) {
    switch (dtype) {
    case IV_F16:
        return inputs == 1 ? "unary_f16" : "binary_float";
    case IV_BF16:
        return inputs == 1 ? "unary_bf16" : "binary_float";
    case IV_F32:
        return inputs == 1 ? "unary_f32" : "binary_float";
    case IV_F64:
        return inputs == 1 ? "unary_f64" : "binary_float";
    default:
        return "elementwise_integer";
    }
}

/* A module without the kernel means that the operator does not exist for the type. */
static iv_status find_or_refuse(iv_cuda_device *device, const char *module, const char *name,
                                size_t parameter_bytes, const char *what, iv_dtype dtype,
                                const iv_cuda_kernel **kernel, iv_error *error) {
    iv_status status = iv_cuda_kernel_find(device, module, name, parameter_bytes, kernel, error);
    if (status != IV_ERROR_INTERNAL)
        return status;
    return iv_fail(error, IV_ERROR_UNSUPPORTED, "no GPU kernel for %s of %s", what,
                   iv_dtype_name(dtype));
}

iv_status iv_cuda_find_elementwise(iv_cuda_device *device, const char *op, int inputs,
                                   iv_dtype dtype, const iv_cuda_kernel **kernel, iv_error *error) {
    char name[64];
    snprintf(name, sizeof name, "iv_cuda_%s_%s_%s", inputs == 1 ? "unary" : "binary", op,
             iv_dtype_name(dtype));
    return find_or_refuse(device, elementwise_module(inputs, dtype), name,
                          sizeof(iv_cuda_elementwise), op, dtype, kernel, error);
}

iv_status iv_cuda_launch_elementwise(const iv_cuda_queue *queue, int step,
                                     const iv_cuda_kernel *kernel,
                                     const iv_cuda_elementwise_options *options,
                                     const iv_tensor *out, int inputs,
                                     const iv_tensor *const *tensors, iv_error *error) {
    if (is_empty(out))
        return IV_OK;
    const iv_tensor *operands[IV_CUDA_OPERANDS] = {out};
    iv_cuda_range ranges[IV_CUDA_OPERANDS + 1] = {iv_cuda_tensor_range(out, true)};
    int range_count = 1 + inputs;
    for (int i = 0; i < inputs; i++) {
        operands[1 + i] = tensors[i];
        ranges[1 + i] = iv_cuda_tensor_range(tensors[i], false);
    }
    if (options->fault != 0)
        ranges[range_count++] = (iv_cuda_range){options->fault, sizeof(uint32_t), true};
    iv_walk walk;
    iv_walk_start(&walk, out->rank, out->dims, 1 + inputs, operands);
    iv_cuda_elementwise parameters = {
        .a = options->a,
        .b = options->b,
        .fault = (uint32_t *)(uintptr_t)options->fault,
    };
    iv_cuda_box_of_walk(&parameters.box, &walk, operands);
    return launch_over_elements(queue, step, kernel, &parameters, walk.elements, range_count,
                                ranges, error);
}
