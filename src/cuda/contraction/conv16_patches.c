/* Convolutions of 16 bits whose windows neither overlap nor leave anything out in between, such as the first layer of a vision
 * transformer: 3 channels of 16 x 16 pixels have no groups of 16 channels for the copy engine to bring, but each element of the input
 * belongs to one window, so that a copy puts the windows side by side, as rows of a matrix product. */
#include <string.h>

#include "cuda/contraction/conv16_internal.h"

/* Chains that are shorter are multiplied as quickly as they are copied. */
#define LEAST_K 32

bool sb_cuda_conv16_are_patches(const sb_cuda_conv *conv) {
    const sb_conv_extents *extents = &conv->extents;
    bool are = extents->groups == 1 && extents->taps > 1 && conv->k >= LEAST_K &&
               2 + 2 * extents->axes <= SB_MAX_RANK &&
               (extents->group_inputs % 16 != 0 || extents->group_inputs % 64 == 0);
    for (int i = 0; i < extents->axes && are; i++) {
        const sb_window_axis *axis = &extents->axis[i];
        are = axis->begin == 0 && axis->dilation == 1 && axis->stride == axis->kernel &&
              axis->out * axis->stride <= axis->in;
    }
    return are;
}

/* Both tensors as sample, position of the output, position in the window, channel: which is the order of the chain. */
static void fill_views(const sb_cuda_conv *conv, int64_t line, void *memory, sb_tensor *from, sb_tensor *to) {
    const sb_conv_extents *extents = &conv->extents;
    const sb_tensor *x = conv->x;
    const int axes = extents->axes, channel = 1 + 2 * axes;
    int64_t place = line, tap = extents->group_inputs;
    memcpy(from, x, sizeof *from);
    from->rank = channel + 1;
    from->dims[0] = x->dims[0];
    from->strides[0] = x->strides[0];
    from->dims[channel] = extents->group_inputs;
    from->strides[channel] = x->strides[1];
    memcpy(to, from, sizeof *to);
    to->data = memory;
    to->strides[channel] = 1;
    for (int i = axes - 1; i >= 0; i--) {
        const sb_window_axis *axis = &extents->axis[i];
        from->dims[1 + i] = to->dims[1 + i] = axis->out;
        from->strides[1 + i] = x->strides[2 + i] * axis->stride;
        from->dims[1 + axes + i] = to->dims[1 + axes + i] = axis->kernel;
        from->strides[1 + axes + i] = x->strides[2 + i];
        to->strides[1 + i] = place;
        to->strides[1 + axes + i] = tap;
        place *= axis->out;
        tap *= axis->kernel;
    }
    to->strides[0] = place;
}

sb_status sb_cuda_conv16_cut(sb_call *call, const sb_cuda_conv *conv, sb_cuda_conv16_columns *columns) {
    const int64_t line = (conv->k + 7) / 8 * 8, positions = conv->extents.positions;
    sb_tensor from, to;
    size_t bytes;
    void *memory;
    if (__builtin_mul_overflow((size_t)(conv->extents.batch * positions), (size_t)line * sizeof(uint16_t), &bytes))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the size of the windows side by side overflows");
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    fill_views(conv, line, memory, &from, &to);
    *columns = (sb_cuda_conv16_columns){.data = memory, .channel = 1, .position = line, .sample = positions * line};
    return sb_call_copy(call, &to, &from);
}
