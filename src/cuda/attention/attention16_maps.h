/* Queries, keys and values of 16 bits as the copy engine brings them: heads of up to 64 elements at a time. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_MAPS_H
#define SB_CUDA_ATTENTION_ATTENTION16_MAPS_H

#include "cuda/attention/attention.h"
#include "cuda/contraction/tensor_map.h"

/** The wider one of a head's keys and values; and for how wide heads a kernel computes it: 64, 128 or 256. */
int64_t sb_attention16_widest(const sb_attention_work *work);
int sb_attention16_width(const sb_attention_work *work);

/** How keys lie, as the copy engine counts them: in so many samples of so many rows, or where there are pages in as many of those. */
int64_t sb_attention16_key_samples(const sb_attention_work *work);
int64_t sb_attention16_key_rows(const sb_attention_work *work);

/** Why kernels that the copy engine feeds cannot compute what tensor cores can (attention16.c), whatever the steps of arrays, in words of
 * static storage; NULL: they can. */
const char *sb_attention16_refuses_copies(const sb_attention_work *work);
/** Whether the copy engine takes the steps of an array that has so many samples (or pages), heads and rows. */
bool sb_attention16_has_steps(const sb_cuda_attention_array *array, int64_t batch, int64_t heads, int64_t rows);

/** A bound of a window, -1 for none, in 32 bits: further than any key is from any query is as good as INT32_MAX. */
int32_t sb_attention16_held(int64_t bound);

/** A map of the dimensions width, heads, rows, samples, whose extents are given in that order, that brings `heads` and `rows` at once.
 * Errors: as sb_tensor_map_encode. */
sb_status sb_attention16_map_heads(sb_cuda_device *device, sb_dtype dtype, const sb_cuda_attention_array *array,
                                   const int64_t extents[4], int heads, int rows, sb_tensor_map *map, sb_error *error);
/** The same of one head alone, with the dimensions width, rows, heads, samples; the extents' order is as above. */
sb_status sb_attention16_map_rows(sb_cuda_device *device, sb_dtype dtype, const sb_cuda_attention_array *array,
                                  const int64_t extents[4], int rows, sb_tensor_map *map, sb_error *error);
/** The same with the dimensions 64 elements, rows, 64s of the width, heads, samples, which brings all of the width at once, where that is a
 * multiple of 64; else width, rows, 1, heads, samples, which brings 64 elements. *slices: what has to be brought of a row, one behind
 * the other. */
sb_status sb_attention16_map_slices(sb_cuda_device *device, sb_dtype dtype, const sb_cuda_attention_array *array,
                                    const int64_t extents[4], int rows, sb_tensor_map *map, int *slices,
                                    sb_error *error);

#endif
