#include "cuda/rows/rows.h"

#include <string.h>

#include "cuda/rows/row_vectors_parameters.h"
#include "rules/axes.h"

/* Adds a dimension to a list. One of extent 1 adds nothing, and one that continues the dimension
 * before it in every operand is one with it. A list of none is one dimension of extent 1. */
static void add_dimension(int32_t *rank, int64_t *dims, int64_t (*steps)[SB_CUDA_RANK], int64_t dim,
                          const int64_t *step) {
    int last = *rank - 1;
    if (dim == 1)
        return;
    bool continues = true;
    for (int i = 0; i < SB_CUDA_ROW_OPERANDS; i++)
        continues = continues && steps[i][last] == step[i] * dim;
    if (dims[last] == 1)
        dims[last] = dim;
    else if (continues)
        dims[last] *= dim;
    else {
        dims[++last] = dim;
        ++*rank;
    }
    for (int i = 0; i < SB_CUDA_ROW_OPERANDS; i++)
        steps[i][last] = step[i];
}

void sb_cuda_rows_fill(sb_cuda_rows *rows, int rank, const int64_t *dims, uint32_t inner,
                       const sb_tensor *const *tensors) {
    *rows = (sb_cuda_rows){
        .count = 1, .length = 1, .outer_rank = 1, .inner_rank = 1, .outer_dims = {1}, .inner_dims = {1}, .team = 32};
    for (int i = 0; i < SB_CUDA_ROW_OPERANDS; i++)
        rows->data[i] = tensors[i] != NULL ? tensors[i]->data : NULL;
    for (int d = 0; d < rank; d++) {
        int64_t step[SB_CUDA_ROW_OPERANDS] = {0};
        for (int i = 0; i < SB_CUDA_ROW_OPERANDS; i++) {
            if (tensors[i] != NULL)
                step[i] = tensors[i]->strides[d] * (int64_t)sb_dtype_size(tensors[i]->dtype);
        }
        if ((inner >> d & 1) != 0) {
            rows->length *= dims[d];
            add_dimension(&rows->inner_rank, rows->inner_dims, rows->inner_steps, dims[d], step);
        } else {
            rows->count *= dims[d];
            add_dimension(&rows->outer_rank, rows->outer_dims, rows->outer_steps, dims[d], step);
        }
    }
}

void sb_cuda_rows_bound(sb_cuda_rows *rows, sb_cuda_work *work, const sb_call *call, int input, uint32_t inner) {
    const sb_tensor *tensor = sb_call_input(call, input);
    int64_t places[2] = {1, 1}; /* of the outer and inner dimensions up to here */
    for (int d = 0; d < tensor->rank; d++) {
        bool in_row = (inner >> d & 1) != 0;
        int64_t before = places[in_row];
        places[in_row] *= tensor->dims[d];
        if (before != 1)
            continue;
        const int64_t *used = sb_cuda_work_used(work, call, input, d);
        int64_t step = tensor->dims[d] != 0 ? (in_row ? rows->length : rows->count) / tensor->dims[d] : 0;
        if (used != NULL && in_row) {
            rows->used_length = used;
            rows->length_step = step;
        } else if (used != NULL) {
            rows->used_count = used;
            rows->count_step = step;
        }
    }
}

bool sb_cuda_rows_bounded(const sb_kernel_query *query, int input, int axis) {
    const sb_fact *fact = query->inputs[0];
    int aligned = fact->rank - query->inputs[input]->rank + axis;
    for (int d = 0; d < aligned; d++) {
        int64_t extent;
        sb_axis_rule rule = {0};
        sb_error error;
        sb_status status = sb_axes_of(query->node, query->inputs, query->outputs, 0, d, &rule, &error);
        if (status == SB_ERROR_OUT_OF_MEMORY && query->exhausted != NULL)
            *query->exhausted = true;
        bool one = sb_dim_is_constant(fact->dims[d], &extent) && extent == 1;
        if (status != SB_OK || (rule.kind != SB_AXIS_INDEPENDENT && !one))
            return false;
    }
    return true;
}

void sb_cuda_rows_reduced(const sb_tensor *packed, int rank, const int64_t *dims, uint32_t gone, sb_tensor *view) {
    int64_t stride = 1;
    memcpy(view, packed, sizeof *view);
    view->rank = rank;
    for (int d = rank - 1; d >= 0; d--) {
        bool reduced = (gone >> d & 1) != 0;
        view->dims[d] = reduced ? 1 : dims[d];
        view->strides[d] = reduced ? 0 : stride;
        stride *= view->dims[d] > 0 ? view->dims[d] : 1;
    }
}

sb_status sb_cuda_rows_broadcast(const sb_call *call, int index, const sb_tensor *tensor, int rank, const int64_t *dims,
                                 sb_tensor *view) {
    int missing = rank - tensor->rank;
    bool fits = missing >= 0;
    memcpy(view, tensor, sizeof *view);
    view->rank = rank;
    for (int d = 0; d < rank && fits; d++) {
        int64_t extent = d < missing ? 1 : tensor->dims[d - missing];
        fits = extent == 1 || extent == dims[d];
        view->dims[d] = extent;
        view->strides[d] = extent == 1 ? 0 : tensor->strides[d - missing];
    }
    if (fits)
        return SB_OK;
    char given[SB_DIMS_TEXT_BYTES], shape[SB_DIMS_TEXT_BYTES];
    return sb_call_fail(call, SB_ERROR_SHAPE, "input %d of shape %s does not broadcast to %s", index,
                        sb_dims_text(tensor->rank, tensor->dims, given), sb_dims_text(rank, dims, shape));
}

bool sb_cuda_rows_are_short(const sb_cuda_rows *rows) {
    return rows->length <= SB_CUDA_TEAM_LENGTH;
}

/* Whether an operand's rows, of elements of `size` bytes, are accesses of 16 bytes; those of factors are one row. */
static bool is_row_vector(const sb_cuda_rows *rows, int64_t size, int operand) {
    bool factor = operand == SB_CUDA_ROW_SCALE || operand == SB_CUDA_ROW_BIAS;
    bool whole = (intptr_t)rows->data[operand] % 16 == 0 && rows->inner_steps[operand][0] == size;
    for (int d = 0; d < rows->outer_rank; d++) {
        int64_t step = rows->outer_steps[operand][d];
        whole = whole && (factor ? step == 0 : step % 16 == 0);
    }
    return whole;
}

bool sb_cuda_rows_are_vectors(const sb_cuda_rows *rows, sb_dtype dtype) {
    return (dtype == SB_F16 || dtype == SB_BF16) && rows->inner_rank == 1 && rows->length % 8 == 0 &&
           is_row_vector(rows, 2, SB_CUDA_ROW_IN);
}

bool sb_cuda_rows_take_vectors(const sb_cuda_rows *rows, sb_dtype dtype) {
    bool fits =
        (dtype == SB_F16 || dtype == SB_BF16 || dtype == SB_F32) && rows->inner_rank == 1 && rows->length % 8 == 0;
    for (int i = 0; i < SB_CUDA_ROW_OPERANDS; i++)
        fits = fits &&
               (rows->data[i] == NULL ? i != SB_CUDA_ROW_OUT : is_row_vector(rows, (int64_t)sb_dtype_size(dtype), i));
    return fits;
}

bool sb_cuda_rows_vector(const sb_cuda_rows *rows, sb_dtype dtype, sb_cuda_row_vector *vector) {
#define ENTRY(team, groups, unused) {team, groups},
    static const sb_cuda_row_vector vectors[] = {SB_CUDA_ROW_VECTORS(ENTRY, )};
#undef ENTRY
    bool fits = sb_cuda_rows_take_vectors(rows, dtype);
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0] && fits; i++) {
        *vector = vectors[i];
        if (rows->length <= 8 * (int64_t)vector->team * vector->groups)
            return true;
    }
    return false;
}

void sb_cuda_rows_grid_vector(const sb_call *call, const sb_cuda_rows *rows, sb_cuda_row_vector vector,
                              sb_cuda_work *work) {
    int64_t multiprocessors = sb_cuda_call_device(call)->multiprocessors, team = vector.team;
    unsigned threads = SB_CUDA_ROW_VECTOR_THREADS;
    /* Four blocks for each multiprocessor, rather than full ones. */
    while (threads > 64 && rows->count * team / threads < 4 * multiprocessors)
        threads /= 2;
    int64_t per_block = threads / team;
    work->threads = threads;
    work->blocks = sb_cuda_call_blocks(call, (rows->count + per_block - 1) / per_block);
}

void sb_cuda_rows_grid_short(const sb_call *call, sb_cuda_rows *rows, sb_cuda_work *work) {
    int64_t multiprocessors = sb_cuda_call_device(call)->multiprocessors;
    unsigned team = 1, threads = 256;
    while (team < 32 && (int64_t)team * SB_CUDA_TEAM_LANES < rows->length)
        team *= 2;
    rows->team = (int32_t)team;
    /* Few rows are spread over the multiprocessors rather than packed into full blocks. */
    while (threads > 32 && rows->count * team / threads < multiprocessors)
        threads /= 2;
    int64_t per_block = threads / team;
    work->threads = threads;
    work->blocks = sb_cuda_call_blocks(call, (rows->count + per_block - 1) / per_block);
}

void sb_cuda_rows_grid_long(const sb_call *call, const sb_cuda_rows *rows, int64_t items, sb_cuda_work *work) {
    int64_t multiprocessors = sb_cuda_call_device(call)->multiprocessors;
    unsigned waves = 1;
    int64_t length = items > rows->count ? SB_CUDA_WAVE : rows->length;
    while (waves < SB_CUDA_WAVES && length > (int64_t)waves * 4096 && items * waves < 4 * multiprocessors)
        waves *= 2;
    work->threads = SB_CUDA_WAVE * waves;
    work->blocks = sb_cuda_call_blocks(call, items);
}
