/* What tests of the public builder share. Include after cmocka.h. */
#ifndef SB_TESTS_BUILDING_H
#define SB_TESTS_BUILDING_H

#include <string.h>

#include <samebit/builder.h>
#include <samebit/samebit.h>

#include "support/must.h"

/* An f32 tensor of the open graph; an extent of -1 is "batch". */
static inline sb_value_description described(const char *name, sb_dtype dtype, int rank, const int64_t *dims) {
    static const char *const texts[] = {"batch", "batch", "batch", "batch"};
    return (sb_value_description){
        .name = name, .kind = SB_KIND_TENSOR, .dtype = dtype, .rank = rank, .dims = dims, .dim_texts = texts};
}

static inline sb_status add_input(sb_builder *builder, const char *name, int rank, const int64_t *dims,
                                  sb_builder_value *value, sb_error *error) {
    sb_value_description description = described(name, SB_F32, rank, dims);
    return sb_builder_input(builder, &description, value, error);
}

static inline sb_status add_constant(sb_builder *builder, const char *name, sb_dtype dtype, int rank,
                                     const int64_t *dims, const void *data, sb_builder_value *value, sb_error *error) {
    sb_tensor *tensor;
    sb_status status = sb_tensor_from_data(dtype, rank, dims, data, &tensor, error);
    if (status != SB_OK)
        return status;
    status = sb_builder_constant(builder, name, tensor, value, error);
    sb_tensor_release(tensor);
    return status;
}

static inline sb_status add_binary(sb_builder *builder, const char *op, sb_builder_value left, sb_builder_value right,
                                   sb_builder_value *value, sb_error *error) {
    return sb_builder_op(builder, op, 2, (sb_builder_value[]){left, right}, 0, NULL, value, error);
}

#endif
