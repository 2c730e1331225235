#include "cuda/common/compute.h"

#include <stdio.h>
#include <string.h>

#include "cuda/common/parameters.h"
#include "cuda/elementwise/integer_operations.h"
#include "tensor/walk.h"

_Static_assert(SB_CUDA_RANK == SB_MAX_RANK, "a box has as many dimensions as a tensor");

#define THREADS 256
#define PER_BLOCK (THREADS * SB_CUDA_GROUP) /* elements of a box */
/* Enough blocks for every multiprocessor to be full of threads (2048 each) four times over; threads
 * take more elements where there are more. */
#define BLOCKS_PER_MULTIPROCESSOR 32

static bool is_empty(const sb_tensor *tensor) {
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->dims[d] == 0)
            return true;
    }
    return false;
}

sb_cuda_range sb_cuda_tensor_range(const sb_tensor *tensor, bool written) {
    int64_t size = (int64_t)sb_dtype_size(tensor->dtype), least = 0, most = 0;
    if (is_empty(tensor))
        return (sb_cuda_range){0, 0, written};
    for (int d = 0; d < tensor->rank; d++) {
        int64_t reach = (tensor->dims[d] - 1) * tensor->strides[d] * size;
        least += reach < 0 ? reach : 0;
        most += reach > 0 ? reach : 0;
    }
    return (sb_cuda_range){.address = (CUdeviceptr)((intptr_t)tensor->data + least),
                           .bytes = (size_t)(most - least + size),
                           .written = written};
}

unsigned sb_cuda_queue_blocks(const sb_cuda_queue *queue, int64_t wanted) {
    int64_t most = (int64_t)queue->stream->device->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    return (unsigned)(wanted < most ? wanted : most);
}

/* ---- boxes ---- */

/* Whether groups of an operand's neighbours start at multiples of their size (16 bytes are enough
 * for the larger ones). */
static bool is_whole(const sb_walk *walk, int operand, int64_t size) {
    int last = walk->rank - 1;
    int64_t bytes = SB_CUDA_GROUP * size < 16 ? SB_CUDA_GROUP * size : 16;
    bool whole = walk->steps[operand][last] == size && (intptr_t)walk->data[operand] % bytes == 0;
    for (int d = 0; d < last; d++)
        whole = whole && walk->steps[operand][d] % bytes == 0;
    return whole;
}

/* What kernels divide by. */
static void fill_divisors(sb_cuda_box *box) {
    for (int d = 0; d < box->rank && box->elements > 0; d++) {
        if (box->elements <= INT32_MAX)
            box->divisors[d] = sb_cuda_divisor_of((uint32_t)box->dims[d]);
        else
            box->inverses[d] = 1.0 / (double)box->dims[d];
    }
}

void sb_cuda_box_of_walk(sb_cuda_box *box, const sb_walk *walk, const sb_tensor *const *operands) {
    int last = walk->rank - 1;
    *box = (sb_cuda_box){.elements = walk->elements, .rank = walk->rank, .operands = walk->operands};
    memcpy(box->dims, walk->dims, (size_t)walk->rank * sizeof box->dims[0]);
    fill_divisors(box);
    box->rows = walk->rank == 1 || walk->dims[last] % SB_CUDA_GROUP == 0;
    for (int i = 0; i < walk->operands; i++) {
        memcpy(box->steps[i], walk->steps[i], (size_t)walk->rank * sizeof box->steps[i][0]);
        box->data[i] = walk->data[i];
        box->whole[i] = box->rows && is_whole(walk, i, (int64_t)sb_dtype_size(operands[i]->dtype));
    }
}

#define WIDE 8

int64_t sb_cuda_box_widen(sb_cuda_box *box, int64_t size) {
    int last = box->rank - 1;
    /* Groups of elements of 4 bytes are accesses of 16 bytes already. */
    bool wide = size < 4 && box->elements > 0 && box->dims[last] * size % (SB_CUDA_GROUP * WIDE) == 0;
    for (int i = 0; i < box->operands; i++) {
        wide = wide && box->steps[i][last] == size && (intptr_t)box->data[i] % 16 == 0;
        for (int d = 0; d < last; d++)
            wide = wide && box->steps[i][d] % 16 == 0;
    }
    if (!wide)
        return size;
    box->dims[last] = box->dims[last] * size / WIDE;
    box->elements = box->elements * size / WIDE;
    box->rows = 1;
    for (int i = 0; i < box->operands; i++) {
        box->steps[i][last] = WIDE;
        box->whole[i] = 1;
    }
    fill_divisors(box);
    return WIDE;
}

/* A thread takes a group at once. */
static sb_status launch_over_elements(const sb_cuda_queue *queue, int step, const sb_cuda_kernel *kernel,
                                      const void *parameters, int64_t elements, int range_count,
                                      const sb_cuda_range *ranges, sb_error *error) {
    sb_cuda_task task = {
        .kind = SB_CUDA_KERNEL,
        .step = step,
        .kernel = {.kernel = kernel,
                   .grid = {sb_cuda_queue_blocks(queue, (elements + PER_BLOCK - 1) / PER_BLOCK), 1, 1},
                   .block = {THREADS, 1, 1},
                   .parameters = parameters,
                   .range_count = range_count,
                   .ranges = ranges},
    };
    return sb_cuda_launch(queue, &task, error);
}

/* ---- copies ---- */

sb_status sb_cuda_find_copy(sb_cuda_device *device, sb_dtype dtype, const sb_cuda_kernel **kernel, sb_error *error) {
    char name[32];
    if (dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "text is not kept on devices");
    snprintf(name, sizeof name, "sb_cuda_copy_%d", 8 * (int)sb_dtype_size(dtype));
    return sb_cuda_kernel_find(device, "copy", name, sizeof(sb_cuda_box), kernel, error);
}

/* Whether both operands are one packed run. */
static bool is_one_run(const sb_walk *walk, size_t size) {
    return walk->rank == 1 && walk->steps[0][0] == (int64_t)size && walk->steps[1][0] == (int64_t)size;
}

/* The dimension along which the source is contiguous, if it is long enough for tiles and not the
 * target's last; -1 else. */
static int transposed_dimension(const sb_walk *walk, int64_t size) {
    int last = walk->rank - 1;
    if (walk->steps[0][last] != size || walk->dims[last] < SB_CUDA_TILE / 2)
        return -1;
    for (int d = 0; d < last; d++) {
        if (walk->steps[1][d] == size && walk->dims[d] >= SB_CUDA_TILE / 2)
            return d;
    }
    return -1;
}

static sb_status launch_transposition(const sb_cuda_queue *queue, int step, const sb_walk *walk, int dimension,
                                      const sb_tensor *to, const sb_tensor *from, sb_error *error) {
    int last = walk->rank - 1;
    const sb_tensor *operands[2] = {to, from};
    sb_cuda_transposition parameters = {.rows = walk->dims[dimension],
                                        .columns = walk->dims[last],
                                        .to_step = walk->steps[0][dimension],
                                        .from_step = walk->steps[1][last]};
    /* The matrices' first elements: the walk without the two dimensions. */
    sb_walk batch = {.operands = 2, .elements = 1, .data = {walk->data[0], walk->data[1]}};
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
    sb_cuda_box_of_walk(&parameters.batch, &batch, operands);
    parameters.row_tiles = (parameters.rows + SB_CUDA_TILE - 1) / SB_CUDA_TILE;
    parameters.column_tiles = (parameters.columns + SB_CUDA_TILE - 1) / SB_CUDA_TILE;
    parameters.tiles = batch.elements * parameters.row_tiles * parameters.column_tiles;
    char name[32];
    snprintf(name, sizeof name, "sb_cuda_transpose_%d", 8 * (int)sb_dtype_size(to->dtype));
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_cuda_kernel_find(queue->stream->device, "transpose", name, sizeof parameters, &kernel, error));
    sb_cuda_range ranges[] = {sb_cuda_tensor_range(to, true), sb_cuda_tensor_range(from, false)};
    sb_cuda_task task = {.kind = SB_CUDA_KERNEL,
                         .step = step,
                         .kernel = {.kernel = kernel,
                                    .grid = {sb_cuda_queue_blocks(queue, parameters.tiles), 1, 1},
                                    .block = {THREADS, 1, 1},
                                    .parameters = &parameters,
                                    .range_count = 2,
                                    .ranges = ranges}};
    return sb_cuda_launch(queue, &task, error);
}

sb_status sb_cuda_launch_copy(const sb_cuda_queue *queue, int step, const sb_cuda_kernel *kernel, const sb_tensor *to,
                              const sb_tensor *from, sb_error *error) {
    if (is_empty(to))
        return SB_OK;
    sb_walk walk;
    size_t size = sb_dtype_size(to->dtype);
    const sb_tensor *operands[2] = {to, from};
    sb_walk_start(&walk, to->rank, to->dims, 2, operands);
    if (is_one_run(&walk, size)) {
        sb_cuda_task task = {.kind = SB_CUDA_COPY_ON_DEVICE,
                             .step = step,
                             .copy = {.to = (CUdeviceptr)(uintptr_t)to->data,
                                      .from = (CUdeviceptr)(uintptr_t)from->data,
                                      .bytes = (size_t)walk.elements * size}};
        return sb_cuda_launch(queue, &task, error);
    }
    int dimension = transposed_dimension(&walk, (int64_t)size);
    if (dimension >= 0)
        return launch_transposition(queue, step, &walk, dimension, to, from, error);
    sb_cuda_box box;
    sb_cuda_box_of_walk(&box, &walk, operands);
    if (sb_cuda_box_widen(&box, (int64_t)size) != (int64_t)size)
        SB_TRY(sb_cuda_kernel_find(queue->stream->device, "copy", "sb_cuda_copy_64", sizeof box, &kernel, error));
    sb_cuda_range ranges[] = {sb_cuda_tensor_range(to, true), sb_cuda_tensor_range(from, false)};
    return launch_over_elements(queue, step, kernel, &box, box.elements, 2, ranges, error);
}

/* ---- element-wise operators ---- */

#define KIND_UNARY(op) {#op, "unary"},
#define KIND_BINARY(op) {#op, "binary"},
#define KIND_COMPARISON(op) {#op, "comparison"},

/* The operators of integers, by their numbers, and which of a type's kernels has them. */
static const struct {
    const char *name, *kernel;
} integer_ops[] = {SB_CUDA_INTEGER_UNARY_OPS(KIND_UNARY) SB_CUDA_INTEGER_BINARY_OPS(KIND_BINARY)
                       SB_CUDA_INTEGER_COMPARISON_OPS(KIND_COMPARISON)};
_Static_assert(sizeof integer_ops / sizeof integer_ops[0] == SB_CUDA_INTEGER_OPS, "one entry for each number");

#define CASE(op, unused) case SB_CUDA_INTEGER_##op:
static bool has_operator(int op, sb_dtype dtype) {
    switch (op) {
        SB_UNARY_SIGNED(CASE, )
        return dtype >= SB_S8 && dtype <= SB_S64;
    default:
        return true;
    }
}

static sb_status find_integer(sb_cuda_device *device, const char *op, sb_dtype dtype, sb_cuda_operation *operation,
                              sb_error *error) {
    char name[64];
    for (int i = 0; i < SB_CUDA_INTEGER_OPS; i++) {
        if (strcmp(integer_ops[i].name, op) != 0 || !has_operator(i, dtype))
            continue;
        snprintf(name, sizeof name, "sb_cuda_%s_integer_%s", integer_ops[i].kernel, sb_dtype_name(dtype));
        operation->op = i;
        return sb_cuda_kernel_find(device, "elementwise_integer", name, sizeof(sb_cuda_elementwise), &operation->kernel,
                                   error);
    }
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "no GPU kernel for %s of %s", op, sb_dtype_name(dtype));
}

/* Which source has the kernels for a dtype. */
static const char *elementwise_module(int inputs, sb_dtype dtype) {
    switch (dtype) {
    case SB_F16:
        return inputs == 1 ? "unary_f16" : "binary_float";
    case SB_BF16:
        return inputs == 1 ? "unary_bf16" : "binary_float";
    case SB_F32:
        return inputs == 1 ? "unary_f32" : "binary_float";
    case SB_F64:
        return inputs == 1 ? "unary_f64" : "binary_float";
    default:
        return "elementwise_integer";
    }
}

/* A module without the kernel means that the operator does not exist for the type. */
static sb_status find_or_refuse(sb_cuda_device *device, const char *module, const char *name, size_t parameter_bytes,
                                const char *what, sb_dtype dtype, const sb_cuda_kernel **kernel, sb_error *error) {
    sb_status status = sb_cuda_kernel_find(device, module, name, parameter_bytes, kernel, error);
    if (status != SB_ERROR_INTERNAL)
        return status;
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "no GPU kernel for %s of %s", what, sb_dtype_name(dtype));
}

sb_status sb_cuda_find_elementwise(sb_cuda_device *device, const char *op, int inputs, sb_dtype dtype,
                                   sb_cuda_operation *operation, sb_error *error) {
    char name[64];
    if (sb_dtype_is_integer(dtype))
        return find_integer(device, op, dtype, operation, error);
    operation->op = 0;
    snprintf(name, sizeof name, "sb_cuda_%s_%s_%s", inputs == 1 ? "unary" : "binary", op, sb_dtype_name(dtype));
    return find_or_refuse(device, elementwise_module(inputs, dtype), name, sizeof(sb_cuda_elementwise), op, dtype,
                          &operation->kernel, error);
}

sb_status sb_cuda_launch_elementwise(const sb_cuda_queue *queue, int step, const sb_cuda_operation *operation,
                                     const sb_cuda_elementwise_options *options, const sb_tensor *out, int inputs,
                                     const sb_tensor *const *tensors, sb_error *error) {
    if (is_empty(out))
        return SB_OK;
    const sb_tensor *operands[SB_CUDA_OPERANDS] = {out};
    sb_cuda_range ranges[SB_CUDA_OPERANDS + 1] = {sb_cuda_tensor_range(out, true)};
    int range_count = 1 + inputs;
    for (int i = 0; i < inputs; i++) {
        operands[1 + i] = tensors[i];
        ranges[1 + i] = sb_cuda_tensor_range(tensors[i], false);
    }
    if (options->fault != NULL)
        ranges[range_count++] = (sb_cuda_range){(CUdeviceptr)(uintptr_t)options->fault, sizeof(uint32_t), true};
    sb_walk walk;
    sb_walk_start(&walk, out->rank, out->dims, 1 + inputs, operands);
    sb_cuda_elementwise parameters = {
        .a = options->a,
        .b = options->b,
        .fault = options->fault,
        .op = operation->op,
    };
    sb_cuda_box_of_walk(&parameters.box, &walk, operands);
    return launch_over_elements(queue, step, operation->kernel, &parameters, walk.elements, range_count, ranges, error);
}
