#include "cuda/attention/attention16_maps.h"

#include "cuda/contraction/gemm16.h"
#include "ops/attention_values.h"

int64_t sb_attention16_widest(const sb_attention_work *work) {
    return work->width > work->value_width ? work->width : work->value_width;
}

int sb_attention16_width(const sb_attention_work *work) {
    const int64_t widest = sb_attention16_widest(work);
    return widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
}

int64_t sb_attention16_key_samples(const sb_attention_work *work) {
    return work->pages.table != NULL ? work->pages.pages : work->batch;
}

int64_t sb_attention16_key_rows(const sb_attention_work *work) {
    return work->pages.table != NULL ? work->pages.rows : work->keys;
}

const char *sb_attention16_refuses_copies(const sb_attention_work *work) {
    if (work->past > 0)
        return "keys of the past lie by themselves";
    if (work->mask.data != NULL)
        return "there is a mask";
    if (work->cap != 0 || !sb_attention_is_moderate(work->scale))
        return "scores are capped, or their scale is not from 2^-20 to 2^20";
    return NULL;
}

bool sb_attention16_has_steps(const sb_cuda_attention_array *array, int64_t batch, int64_t heads, int64_t rows) {
    return (batch == 1 || sb_gemm16_is_step(array->batch)) && (heads == 1 || sb_gemm16_is_step(array->head)) &&
           (rows == 1 || sb_gemm16_is_step(array->row));
}

int32_t sb_attention16_held(int64_t bound) {
    return bound < INT32_MAX ? (int32_t)bound : INT32_MAX;
}

sb_status sb_attention16_map_heads(sb_cuda_device *device, sb_dtype dtype, const sb_cuda_attention_array *array,
                                   const int64_t extents[4], int heads, int rows, sb_tensor_map *map, sb_error *error) {
    const sb_tensor_boxes boxes = {4,
                                   array->data,
                                   {extents[0], extents[1], extents[2], extents[3]},
                                   {1, array->head, array->row, array->batch},
                                   {64, heads, rows, 1}};
    return sb_tensor_map_encode(device, dtype, &boxes, map, error);
}

sb_status sb_attention16_map_rows(sb_cuda_device *device, sb_dtype dtype, const sb_cuda_attention_array *array,
                                  const int64_t extents[4], int rows, sb_tensor_map *map, sb_error *error) {
    const sb_tensor_boxes boxes = {4,
                                   array->data,
                                   {extents[0], extents[2], extents[1], extents[3]},
                                   {1, array->row, array->head, array->batch},
                                   {64, rows, 1, 1}};
    return sb_tensor_map_encode(device, dtype, &boxes, map, error);
}

sb_status sb_attention16_map_slices(sb_cuda_device *device, sb_dtype dtype, const sb_cuda_attention_array *array,
                                    const int64_t extents[4], int rows, sb_tensor_map *map, int *slices,
                                    sb_error *error) {
    const bool is_whole = extents[0] % 64 == 0;
    const int64_t together = is_whole ? extents[0] / 64 : 1;
    const sb_tensor_boxes boxes = {5,
                                   array->data,
                                   {is_whole ? 64 : extents[0], extents[2], together, extents[1], extents[3]},
                                   {1, array->row, 64, array->head, array->batch},
                                   {64, rows, (int)together, 1, 1}};
    *slices = is_whole ? 1 : (int)((extents[0] + 63) / 64);
    return sb_tensor_map_encode(device, dtype, &boxes, map, error);
}
