/* A row of a batch has the bits that it has alone: over every model of the standard.
 *
 *   batch_rows DATA LEAST [MODEL]
 *
 * At least LEAST models must have a batch, where none is named.
 *
 * The models have fixed extents, and do not say which axis is a batch. So an axis of the first
 * input (with the same axis of the other inputs of that extent, and without them) is made a symbol,
 * and five rows are put together of which one is the recorded one. That axis is a batch of an
 * output when the row comes out the same, but for rounding, whatever the other rows hold and when
 * it is alone. Then it must come out the same in every bit: a row that differs by no more than
 * rounding is what this program looks for. */
#define _GNU_SOURCE /* nftw */
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/samebit.h>

#include "base/allocation.h"
#include "base/file.h"
#include "onnx/onnx.pb-c.h"
#include "support/random.h"
#include "tensor/tensor.h"

#define MOST_VALUES 32
#define ROWS 5
/* What differs by more is another number: this much is more than any order of sums makes of f32,
 * and for the 16-bit formats less than two steps. */
#define ROUNDING 2e-2

static int models, batched, outputs_checked, violations;
static const char *wanted = "";

/* ---- a model with a symbolic axis ---- */

static Onnx__TensorShapeProto *shape_of(Onnx__ValueInfoProto *value) {
    Onnx__TypeProto *type = value->type;
    if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return NULL;
    return type->tensor_type->shape;
}

/* The extent along `axis`, or -1. */
static int64_t extent_of(Onnx__ValueInfoProto *value, size_t axis) {
    const Onnx__TensorShapeProto *shape = shape_of(value);
    if (shape == NULL || axis >= shape->n_dim ||
        shape->dim[axis]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
        return -1;
    return shape->dim[axis]->dim_value;
}

/* Forgets what the file says of a shape that now depends on the batch. */
static void open_shape(Onnx__ValueInfoProto *value) {
    Onnx__TensorShapeProto *shape = shape_of(value);
    for (size_t d = 0; shape != NULL && d < shape->n_dim; d++)
        shape->dim[d]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE__NOT_SET;
}

/* Makes axis `axis` of the inputs in `members` the symbol "batch". NULL when that is no model. */
static sb_model *load_batched(const void *bytes, size_t size, size_t axis, uint64_t members) {
    Onnx__ModelProto *proto = onnx__model_proto__unpack(NULL, size, bytes);
    if (proto == NULL)
        return NULL;
    Onnx__GraphProto *graph = proto->graph;
    for (size_t i = 0; i < graph->n_input; i++) {
        if ((members >> i & 1) == 0)
            continue;
        Onnx__TensorShapeProto__Dimension *dim = shape_of(graph->input[i])->dim[axis];
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dim->dim_param = strdup("batch");
    }
    for (size_t i = 0; i < graph->n_output; i++)
        open_shape(graph->output[i]);
    for (size_t i = 0; i < graph->n_value_info; i++)
        open_shape(graph->value_info[i]);
    size_t packed = onnx__model_proto__get_packed_size(proto);
    uint8_t *changed = malloc(packed);
    onnx__model_proto__pack(proto, changed);
    onnx__model_proto__free_unpacked(proto, NULL);
    sb_model *model = NULL;
    if (sb_model_load_memory(changed, packed, NULL, &model, NULL) != SB_OK)
        model = NULL;
    free(changed);
    return model;
}

/* ---- batches ---- */

/* One row of a tensor, as a view. */
static sb_tensor *row_of(sb_tensor *tensor, int axis, int64_t row) {
    sb_tensor *view;
    return sb_tensor_slice(tensor, axis, row, 1, 1, &view, NULL) == SB_OK ? view : NULL;
}

/* Another row of the same kind: the elements of a recorded one in another order, floats a thousand
 * times as large, so that even what they hardly touch differs by more than rounding. */
static void scramble(sb_tensor *row, random_source *source) {
    size_t size = sb_dtype_size(row->dtype);
    int64_t count = sb_tensor_elements(row);
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = random_between(source, 0, i);
        char *left = row->data + (size_t)i * size, *right = row->data + (size_t)j * size, kept[16];
        memcpy(kept, left, size);
        memcpy(left, right, size);
        memcpy(right, kept, size);
    }
    for (int64_t i = 0; row->dtype == SB_F32 && i < count; i++)
        ((float *)(void *)row->data)[i] *= 1000;
}

/* `rows` rows along `axis`, the recorded row 0 at `position` and made-up ones around it. NULL on failure. */
static sb_tensor *make_batch(sb_tensor *recorded, int axis, int64_t rows, int64_t position, random_source *source) {
    int64_t dims[SB_MAX_RANK];
    sb_tensor *batch;
    memcpy(dims, recorded->dims, sizeof dims);
    dims[axis] = rows;
    if (sb_tensor_create(recorded->dtype, recorded->rank, dims, &batch, NULL) != SB_OK)
        return NULL;
    for (int64_t r = 0; r < rows; r++) {
        sb_tensor *from = row_of(recorded, axis, r == position ? 0 : r % recorded->dims[axis]);
        sb_tensor *to = row_of(batch, axis, r), *made;
        dims[axis] = 1;
        if (sb_tensor_create(recorded->dtype, recorded->rank, dims, &made, NULL) != SB_OK)
            abort();
        sb_tensor_copy_elements(made, from);
        if (r != position)
            scramble(made, source);
        sb_tensor_copy_elements(to, made);
        sb_tensor_release(made);
        sb_tensor_release(from);
        sb_tensor_release(to);
    }
    return batch;
}

typedef struct subject {
    const char *path;
    sb_model *model;
    sb_session *session;
    int input_count, output_count, axis;
    uint64_t members;
    sb_value recorded[MOST_VALUES];
} subject;

static bool run_batch(const subject *subject, int64_t rows, int64_t position, uint64_t seed, sb_value *outputs) {
    random_source source = {seed};
    sb_value inputs[MOST_VALUES];
    for (int i = 0; i < subject->input_count; i++)
        inputs[i] =
            (subject->members >> i & 1) != 0
                ? sb_value_of_tensor(make_batch(subject->recorded[i].tensor, subject->axis, rows, position, &source))
                : sb_value_retain(subject->recorded[i]);
    sb_status status = sb_session_run(subject->session, inputs, outputs, NULL);
    for (int i = 0; i < subject->input_count; i++)
        sb_value_release(&inputs[i]);
    return status == SB_OK;
}

/* ---- outputs ---- */

/* The axis along which the outputs of one row and of ROWS differ, or -1. */
static int batch_axis(const sb_tensor *alone, const sb_tensor *all) {
    int axis = -1;
    if (alone->rank != all->rank || alone->dtype != all->dtype || all->dtype == SB_STRING)
        return -1;
    for (int d = 0; d < all->rank; d++) {
        if (alone->dims[d] == all->dims[d])
            continue;
        if (axis >= 0 || alone->dims[d] != 1 || all->dims[d] != ROWS)
            return -1;
        axis = d;
    }
    return axis;
}

/* Whether two tensors are the same numbers but for rounding. */
static bool is_close(const sb_tensor *left, const sb_tensor *right) {
    sb_comparison comparison;
    if (sb_tensor_compare(left, right, 0, ROUNDING, &comparison, NULL) != SB_OK)
        return false;
    bool inexact = left->dtype == SB_F32 || left->dtype == SB_F64 || left->dtype == SB_F16 || left->dtype == SB_BF16;
    /* Near zero a difference counts by itself: cancellation leaves rounding only. */
    if (inexact && comparison.outside != 0)
        return sb_tensor_compare(left, right, 1e-6, ROUNDING, &comparison, NULL) == SB_OK && comparison.outside == 0;
    return inexact ? true : comparison.different == 0;
}

/* Compares the row at `position` of two batches with the row alone. */
static void check_output(const subject *subject, int output, int64_t position, sb_value alone, sb_value all,
                         sb_value other) {
    if (alone.kind != SB_KIND_TENSOR || all.kind != SB_KIND_TENSOR || other.kind != SB_KIND_TENSOR)
        return;
    int axis = batch_axis(alone.tensor, all.tensor);
    if (axis < 0 || batch_axis(alone.tensor, other.tensor) != axis)
        return;
    sb_tensor *row = row_of(all.tensor, axis, position), *same = row_of(other.tensor, axis, position);
    if (is_close(row, alone.tensor) && is_close(same, alone.tensor)) {
        outputs_checked++;
        if (!sb_tensor_equal(row, alone.tensor) || !sb_tensor_equal(same, alone.tensor)) {
            violations++;
            printf("%s: output %d, batch along axis %d of the inputs: row %lld of %d differs from "
                   "the row alone\n",
                   subject->path, output, subject->axis, (long long)position, ROWS);
        }
    }
    sb_tensor_release(row);
    sb_tensor_release(same);
}

static void try_axis(const subject *subject) {
    for (int64_t position = 0; position < ROWS; position += 2) {
        sb_value alone[MOST_VALUES] = {{SB_KIND_NONE, {NULL}}}, all[MOST_VALUES] = {{SB_KIND_NONE, {NULL}}},
                 other[MOST_VALUES] = {{SB_KIND_NONE, {NULL}}};
        if (run_batch(subject, 1, 0, 1, alone) && run_batch(subject, ROWS, position, 2, all) &&
            run_batch(subject, ROWS, position, 3, other)) {
            for (int i = 0; i < subject->output_count; i++)
                check_output(subject, i, position, alone[i], all[i], other[i]);
        }
        for (int i = 0; i < subject->output_count; i++) {
            sb_value_release(&alone[i]);
            sb_value_release(&all[i]);
            sb_value_release(&other[i]);
        }
    }
}

/* ---- models ---- */

static void release_recorded(subject *subject) {
    for (int i = 0; i < subject->input_count; i++)
        sb_value_release(&subject->recorded[i]);
}

/* Reads the recorded inputs. False when one has no file, or the batch's extent is not as declared. */
static bool read_recorded(subject *subject) {
    for (int i = 0; i < subject->input_count; i++) {
        char path[1200];
        snprintf(path, sizeof path, "%.*s/test_data_set_0/input_%d.pb",
                 (int)(strrchr(subject->path, '/') - subject->path), subject->path, i);
        if (sb_onnx_value_load(path, sb_model_input(subject->model, i), &subject->recorded[i], NULL) != SB_OK)
            return false;
        sb_value value = subject->recorded[i];
        if ((subject->members >> i & 1) != 0 &&
            (value.kind != SB_KIND_TENSOR || value.tensor->dtype == SB_STRING || subject->axis >= value.tensor->rank ||
             value.tensor->dims[subject->axis] < 1))
            return false;
    }
    return true;
}

static void try_members(const char *path, const void *bytes, size_t size, int axis, uint64_t members) {
    subject subject = {.path = path, .axis = axis, .members = members};
    subject.model = load_batched(bytes, size, (size_t)axis, members);
    if (subject.model == NULL)
        return;
    subject.input_count = sb_model_input_count(subject.model);
    subject.output_count = sb_model_output_count(subject.model);
    if (subject.input_count <= MOST_VALUES && subject.output_count <= MOST_VALUES && read_recorded(&subject)) {
        /* One thread: starting more would be nearly all of the time. test_batch_rows has more. */
        sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
        options.threads = 1;
        if (sb_session_create(subject.model, &options, &subject.session, NULL) == SB_OK)
            try_axis(&subject);
        sb_session_destroy(subject.session);
    }
    release_recorded(&subject);
    sb_model_release(subject.model);
}

static void try_model(const char *path) {
    void *bytes;
    size_t size;
    if (sb_file_read(path, SIZE_MAX, &bytes, &size, NULL) != SB_OK)
        return;
    Onnx__ModelProto *proto = onnx__model_proto__unpack(NULL, size, bytes);
    int before = outputs_checked;
    size_t inputs = proto != NULL && proto->graph != NULL ? proto->graph->n_input : 0;
    for (size_t axis = 0; inputs > 0 && inputs <= MOST_VALUES && axis < 2; axis++) {
        int64_t extent = extent_of(proto->graph->input[0], axis);
        uint64_t members = 0;
        for (size_t i = 0; extent > 0 && i < inputs; i++)
            members |= (uint64_t)(extent_of(proto->graph->input[i], axis) == extent) << i;
        if (members != 0)
            try_members(path, bytes, size, (int)axis, members);
        if (members > 1)
            try_members(path, bytes, size, (int)axis, 1);
    }
    if (proto != NULL)
        onnx__model_proto__free_unpacked(proto, NULL);
    sb_free(bytes);
    models++;
    batched += outputs_checked > before;
}

static int visit(const char *path, const struct stat *about, int kind, struct FTW *where) {
    if (kind == FTW_F && strcmp(path + where->base, "model.onnx") == 0 && strstr(path, wanted) != NULL)
        try_model(path);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    wanted = argc > 3 ? argv[3] : "";
    int least = atoi(argv[2]);
    nftw(argv[1], visit, 16, FTW_PHYS);
    printf("%d models, %d have a batch: %d outputs compared, %d differ from a row alone\n", models, batched,
           outputs_checked, violations);
    /* That most models have one shows that the criterion finds them. */
    return violations != 0 || (wanted[0] == '\0' && batched < least);
}
