#include "runtime/program_constants.h"

#include "base/allocation.h"
#include "runtime/program_elements.h"

/* ---- which there are ---- */

static void destroy(const sb_program *program, sb_program_constants *constants) {
    for (size_t v = 0; constants->tensors != NULL && v < program->graph->value_count; v++)
        sb_tensor_release(constants->tensors[v]);
    sb_free(constants->tensors);
    sb_free(constants->gaps);
    sb_free(constants);
}

static sb_status constants_on(sb_program *program, const void *device, sb_program_constants **constants,
                              sb_error *error) {
    for (sb_program_constants *known = program->constants; known != NULL; known = known->next) {
        if (known->device == device) {
            *constants = known;
            return SB_OK;
        }
    }
    size_t values = program->graph->value_count;
    sb_program_constants *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    *fresh = (sb_program_constants){device, sb_allocate_array(values, sizeof(sb_tensor *)),
                                    sb_allocate_array(values, sizeof(bool)), program->constants};
    if (fresh->tensors == NULL || fresh->gaps == NULL) {
        destroy(program, fresh);
        return sb_fail_memory(error, values * sizeof(sb_tensor *));
    }
    program->constants = *constants = fresh;
    return SB_OK;
}

void sb_constants_destroy(sb_program *program) {
    while (program->constants != NULL) {
        sb_program_constants *next = program->constants->next;
        destroy(program, program->constants);
        program->constants = next;
    }
}

/* ---- how they lie ---- */

/* How a tensor of a constant's dtype and extents lies in memory. */
typedef struct place {
    int64_t strides[SB_MAX_RANK];
    int64_t elements; /* from the first to the last, and the gap behind it */
} place;

/* The dimensions from the one that takes the largest steps to that with the smallest; false unless the elements fill their memory
 * in that order. */
static bool find_order(const sb_tensor *tensor, int *order) {
    int64_t step = 1;
    for (int d = 0; d < tensor->rank; d++) {
        int at = d;
        for (; at > 0 && tensor->strides[order[at - 1]] < tensor->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->dims[order[i]] != 1 && tensor->strides[order[i]] != step)
            return false;
        step *= tensor->dims[order[i]];
    }
    return true;
}

/* Elements of a row of a tensor that fills its memory: of the dimension along which neighbours are side by side. */
static int64_t row_of(const sb_tensor *tensor) {
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->dims[d] != 1 && tensor->strides[d] == 1)
            return tensor->dims[d];
    }
    return 1;
}

/* Elements from one row to the next. */
static int64_t pitch_of(const sb_tensor *tensor, int64_t row, bool gaps) {
    int64_t unit = gaps && row < sb_tensor_elements(tensor) ? 16 / (int64_t)sb_dtype_size(tensor->dtype) : 1;
    return (row + unit - 1) / unit * unit;
}

/* Where its elements are if memory, which it fills, is cut into rows of `row` elements, `pitch` apart; false where a dimension
 * goes from within a row to the next. */
static bool spread(const sb_tensor *tensor, int64_t row, int64_t pitch, place *place) {
    place->elements = sb_tensor_elements(tensor) / row * pitch;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t step = tensor->strides[d];
        bool within = tensor->dims[d] == 1 || row == pitch || step * tensor->dims[d] <= row;
        if (!within && step % row != 0)
            return false;
        place->strides[d] = within ? step : step / row * pitch;
    }
    return true;
}

/* ---- putting them there ---- */

/* On the device with the strides that it has here: a weight that is another one's transpose, as those of checkpoints are, is not
 * turned around, which takes the host long and few rows badly. */
static sb_status upload_in_order(sb_queue *queue, sb_tensor *host, const int *order, sb_tensor **constant,
                                 sb_error *error) {
    sb_tensor *straight, *there = NULL;
    int back[SB_MAX_RANK];
    for (int d = 0; d < host->rank; d++)
        back[order[d]] = d;
    SB_TRY(sb_tensor_transpose(host, order, &straight, error));
    sb_status status = sb_queue_to_device(queue, straight, &there, error);
    if (status == SB_OK)
        status = sb_tensor_transpose(there, back, constant, error);
    sb_tensor_release(straight);
    sb_tensor_release(there);
    return status;
}

/* The elements on the host as they are to lie on the device, zeros between: as one row, and with the constant's extents. */
static sb_status spread_out(const sb_tensor *host, const place *place, sb_tensor **memory, sb_error *error) {
    sb_tensor *view;
    SB_TRY(sb_tensor_create(host->dtype, 1, &place->elements, memory, error));
    sb_status status = sb_tensor_over((*memory)->storage, (*memory)->data, host->dtype, host->rank, host->dims,
                                      place->strides, &view, error);
    if (status == SB_OK) {
        sb_tensor_copy_elements(view, host);
        sb_tensor_release(view);
        return SB_OK;
    }
    sb_tensor_release(*memory);
    return status;
}

static sb_status upload_with_gaps(sb_queue *queue, const sb_tensor *host, const place *place, sb_tensor **constant,
                                  sb_error *error) {
    sb_tensor *memory, *there = NULL;
    SB_TRY(spread_out(host, place, &memory, error));
    sb_status status = sb_queue_to_device(queue, memory, &there, error);
    if (status == SB_OK)
        status = sb_tensor_over(there->storage, there->data, host->dtype, host->rank, host->dims, place->strides,
                                constant, error);
    sb_tensor_release(memory);
    sb_tensor_release(there);
    return status;
}

static sb_status upload_packed(sb_queue *queue, sb_tensor *host, bool gaps, sb_tensor **constant, sb_error *error) {
    int order[SB_MAX_RANK];
    place place;
    int64_t row = row_of(host), pitch = pitch_of(host, row, gaps);
    if (pitch != row && spread(host, row, pitch, &place))
        return upload_with_gaps(queue, host, &place, constant, error);
    find_order(host, order);
    return upload_in_order(queue, host, order, constant, error);
}

/* One that does not fill its memory is put there row-major. */
static sb_status upload_loose(sb_queue *queue, sb_tensor *host, bool gaps, sb_tensor **constant, sb_error *error) {
    sb_tensor *packed;
    if (!gaps || sb_tensor_elements(host) == 0)
        return sb_queue_to_device(queue, host, constant, error);
    SB_TRY(sb_tensor_contiguous(host, &packed, error));
    sb_status status = upload_packed(queue, packed, gaps, constant, error);
    sb_tensor_release(packed);
    return status;
}

/* Whether the constant's memory on the device is its own, not another one's, whose rows may be others. */
static bool lies_alone(const sb_tensor *there, const place *alone) {
    for (int d = 0; d < there->rank; d++) {
        if (there->dims[d] != 1 && there->strides[d] != alone->strides[d])
            return false;
    }
    return true;
}

/* The same elements on the device, where another constant has them there already, as an embedding has those of a head that is its
 * transpose, and how they lie there; else NULL. */
static sb_tensor *find_same(const sb_program *program, const sb_program_constants *constants, const sb_tensor *host,
                            place *here) {
    int64_t elements = sb_tensor_elements(host);
    for (size_t v = 0; v < program->graph->value_count; v++) {
        const sb_tensor *other = constants->tensors[v] != NULL ? program->graph->values[v].fact.constant : NULL;
        int order[SB_MAX_RANK];
        place alone;
        if (other == NULL || other->data != host->data || other->dtype != host->dtype ||
            sb_tensor_elements(other) != elements || !find_order(other, order))
            continue;
        int64_t row = row_of(other), pitch = pitch_of(other, row, constants->gaps[v]);
        if (spread(other, row, pitch, &alone) && lies_alone(constants->tensors[v], &alone) &&
            spread(host, row, pitch, here))
            return constants->tensors[v];
    }
    return NULL;
}

/* Waits, since sessions with other queues use it from now on. */
static sb_status upload(const sb_program *program, const sb_program_constants *constants, sb_value_id value,
                        sb_queue *queue, sb_tensor **constant, sb_error *error) {
    sb_tensor *host = program->graph->values[value].fact.constant, *tensor = NULL;
    int order[SB_MAX_RANK];
    place place;
    bool fills = sb_tensor_elements(host) > 0 && find_order(host, order), gaps = constants->gaps[value];
    const sb_tensor *same = fills ? find_same(program, constants, host, &place) : NULL;
    if (same != NULL)
        return sb_tensor_over(same->storage, same->data, host->dtype, host->rank, host->dims, place.strides, constant,
                              error);
    SB_TRY(fills ? upload_packed(queue, host, gaps, &tensor, error) : upload_loose(queue, host, gaps, &tensor, error));
    sb_status status = sb_queue_wait(queue, error);
    if (status == SB_OK)
        *constant = tensor;
    else
        sb_tensor_release(tensor);
    return status;
}

sb_status sb_constant_on(sb_program *program, sb_value_id value, sb_queue *queue, sb_tensor **constant,
                         sb_error *error) {
    sb_program_constants *constants;
    SB_TRY(constants_on(program, queue->device, &constants, error));
    if (constants->tensors[value] == NULL) {
        SB_TRY(sb_elements_bring_back(program, value, error));
        SB_TRY(upload(program, constants, value, queue, &constants->tensors[value], error));
    }
    *constant = constants->tensors[value];
    return SB_OK;
}

sb_status sb_program_constant(sb_program *program, sb_value_id value, sb_queue *queue, sb_tensor **constant,
                              sb_error *error) {
    pthread_mutex_lock(&program->lock);
    sb_status status = sb_constant_on(program, value, queue, constant, error);
    if (status == SB_OK)
        *constant = sb_tensor_retain(*constant);
    pthread_mutex_unlock(&program->lock);
    return status;
}

/* ---- gaps ---- */

/* What is there stays as it is: recordings know its address. */
static void leave_gaps(const sb_program *program, sb_program_constants *constants, const sb_tensor *host) {
    for (size_t v = 0; v < program->graph->value_count; v++) {
        const sb_tensor *other = program->graph->values[v].fact.constant;
        if (other != NULL && other->data == host->data && constants->tensors[v] == NULL)
            constants->gaps[v] = true;
    }
}

sb_status sb_constants_leave_gaps(sb_program *program, const sb_kernel *kernel, const sb_kernel_query *query,
                                  sb_error *error) {
    const sb_node *node = query->node;
    for (int i = 0; i < node->input_count; i++) {
        sb_value_id value = node->inputs[i];
        const sb_tensor *host = value != SB_NO_VALUE ? program->graph->values[value].fact.constant : NULL;
        sb_program_constants *constants;
        if (host == NULL || !kernel->wants_gaps(query, i))
            continue;
        SB_TRY(constants_on(program, query->queue->device, &constants, error));
        leave_gaps(program, constants, host);
    }
    return SB_OK;
}
