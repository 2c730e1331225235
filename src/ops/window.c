#include "ops/window.h"

#include <string.h>

static sb_status read_auto_pad(const sb_node *node, sb_auto_pad *auto_pad, sb_error *error) {
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const char *text;
    SB_TRY(sb_node_string(node, "auto_pad", "NOTSET", &text, error));
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) == 0 || (i == 0 && text[0] == '\0')) {
            *auto_pad = (sb_auto_pad)i;
            return SB_OK;
        }
    }
    return sb_fail(error, SB_ERROR_INVALID_MODEL,
                   "node %s (%s): auto_pad is \"%.40s\"; it is NOTSET, SAME_UPPER, SAME_LOWER or VALID", node->name,
                   node->op->name, text);
}

/* Reads a list of `per_axis` numbers per axis, at least `least` each; leaves `values` when absent. */
static sb_status read_list(const sb_node *node, const char *name, int per_axis, int64_t least, int *axes,
                           int64_t *values, bool *present, sb_error *error) {
    int64_t count;
    const int64_t *list;
    SB_TRY(sb_node_ints(node, name, &count, &list, error));
    *present = count != 0;
    if (count == 0)
        return SB_OK;
    if (count % per_axis != 0 || count / per_axis > SB_WINDOW_AXES || (*axes != -1 && count / per_axis != *axes))
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): %s has %lld numbers, which does not fit the other attributes", node->name,
                       node->op->name, name, (long long)count);
    *axes = (int)(count / per_axis);
    for (int64_t i = 0; i < count; i++) {
        if (list[i] < least || list[i] > INT32_MAX)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): %s holds %lld; it must be %lld to 2147483647",
                           node->name, node->op->name, name, (long long)list[i], (long long)least);
        values[i] = list[i];
    }
    return SB_OK;
}

sb_status sb_window_read(const sb_node *node, sb_window *window, sb_error *error) {
    int64_t pads[2 * SB_WINDOW_AXES] = {0}, ceil_mode;
    bool present;
    *window = (sb_window){.axes = -1};
    for (int i = 0; i < SB_WINDOW_AXES; i++)
        window->kernel[i] = window->strides[i] = window->dilations[i] = 1;
    SB_TRY(read_auto_pad(node, &window->auto_pad, error));
    SB_TRY(sb_node_int(node, "ceil_mode", 0, &ceil_mode, error));
    window->ceil_mode = ceil_mode != 0;
    SB_TRY(read_list(node, "kernel_shape", 1, 1, &window->axes, window->kernel, &window->has_kernel, error));
    SB_TRY(read_list(node, "strides", 1, 1, &window->axes, window->strides, &present, error));
    SB_TRY(read_list(node, "dilations", 1, 1, &window->axes, window->dilations, &present, error));
    SB_TRY(read_list(node, "pads", 2, 0, &window->axes, pads, &present, error));
    for (int i = 0; i < window->axes && window->auto_pad == SB_PAD_EXPLICIT; i++) {
        window->begin[i] = pads[i];
        window->end[i] = pads[window->axes + i];
    }
    return SB_OK;
}

sb_status sb_window_check_axes(const sb_infer *infer, const sb_window *window, int axes) {
    if (axes < 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "input 0 has rank %d; a batch, channels and at least one spatial axis "
                             "are expected",
                             axes + 2);
    if (window->axes != -1 && window->axes != axes)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the attributes speak of %d spatial axes, input 0 has %d",
                             window->axes, axes);
    return SB_OK;
}

sb_status sb_window_extent(const sb_infer *infer, const sb_window *window, int axis, sb_dim in, sb_dim kernel,
                           sb_dim *out) {
    sb_scope *scope = infer->scope;
    sb_dim one = sb_dim_constant(scope, 1);
    sb_dim stride = sb_dim_constant(scope, window->strides[axis]);
    if (window->auto_pad == SB_PAD_SAME_UPPER || window->auto_pad == SB_PAD_SAME_LOWER) {
        *out = sb_dim_ceiling_divide(scope, in, stride);
        return SB_OK;
    }
    sb_dim reach =
        sb_dim_multiply(scope, sb_dim_subtract(scope, kernel, one), sb_dim_constant(scope, window->dilations[axis]));
    sb_dim padded = sb_dim_add(scope, in, sb_dim_constant(scope, window->begin[axis] + window->end[axis]));
    sb_dim room = sb_dim_subtract(scope, padded, sb_dim_add(scope, reach, one));
    if (window->ceil_mode) {
        /* A last window that would start beyond the input and its first padding is left out. */
        sb_dim all = sb_dim_add(scope, sb_dim_ceiling_divide(scope, room, stride), one);
        sb_dim starts = sb_dim_add(scope, in, sb_dim_constant(scope, window->begin[axis]));
        *out = sb_dim_minimum(scope, all, sb_dim_ceiling_divide(scope, starts, stride));
    } else {
        *out = sb_dim_add(scope, sb_dim_floor_divide(scope, room, stride), one);
    }
    int64_t extent;
    if (sb_dim_is_constant(*out, &extent) && extent < 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "the window does not fit into spatial axis %d of input 0, padding "
                             "included",
                             axis);
    return SB_OK;
}

sb_window_axis sb_window_resolve(const sb_window *window, int axis, int64_t in, int64_t kernel, int64_t out) {
    sb_window_axis resolved = {.in = in,
                               .out = out,
                               .kernel = kernel,
                               .stride = window->strides[axis],
                               .dilation = window->dilations[axis],
                               .begin = window->begin[axis],
                               .end = window->end[axis]};
    if (window->auto_pad == SB_PAD_SAME_UPPER || window->auto_pad == SB_PAD_SAME_LOWER) {
        /* Out is ceil(in / stride), so the last window starts inside the input: no overflow. */
        int64_t missing = out > 0 ? (out - 1) * resolved.stride - in + (kernel - 1) * resolved.dilation + 1 : 0;
        missing = missing > 0 ? missing : 0;
        bool upper = window->auto_pad == SB_PAD_SAME_UPPER;
        resolved.begin = upper ? missing / 2 : missing - missing / 2;
        resolved.end = missing - resolved.begin;
    }
    return resolved;
}

bool sb_window_next(int axes, int64_t *index, const int64_t *extents) {
    for (int d = axes - 1; d >= 0; d--) {
        if (++index[d] < extents[d])
            return true;
        index[d] = 0;
    }
    return false;
}
