#include "ops/window.h"

#include <string.h>

static iv_status read_auto_pad(const iv_node *node, iv_auto_pad *auto_pad, iv_error *error) {
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const char *text;
    IV_TRY(iv_node_string(node, "auto_pad", "NOTSET", &text, error));
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) == 0 || (i == 0 && text[0] == '\0')) {
            *auto_pad = (iv_auto_pad)i;
            return IV_OK;
        }
    }
    return iv_fail(
        error, IV_ERROR_INVALID_MODEL,
        "node %s (%s): auto_pad is \"%.40s\"; it is NOTSET, SAME_UPPER, SAME_LOWER or VALID",
        node->name, node->op->name, text);
}

/* Reads a list of `per_axis` numbers per axis, at least `least` each; leaves `values` when absent.
 */
static iv_status read_list(const iv_node *node, const char *name, int per_axis, int64_t least,
                           int *axes, int64_t *values, bool *present, iv_error *error) {
    int64_t count;
    const int64_t *list;
    IV_TRY(iv_node_ints(node, name, &count, &list, error));
    *present = count != 0;
    if (count == 0)
        return IV_OK;
    if (count % per_axis != 0 || count / per_axis > IV_WINDOW_AXES ||
        (*axes != -1 && count / per_axis != *axes))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (%s): %s has %lld numbers, which does not fit the other attributes",
                       node->name, node->op->name, name, (long long)count);
    *axes = (int)(count / per_axis);
    for (int64_t i = 0; i < count; i++) {
        if (list[i] < least || list[i] > INT32_MAX)
            return iv_fail(error, IV_ERROR_INVALID_MODEL,
                           "node %s (%s): %s holds %lld; it must be %lld to 2147483647", node->name,
                           node->op->name, name, (long long)list[i], (long long)least);
        values[i] = list[i];
    }
    return IV_OK;
}

iv_status iv_window_read(const iv_node *node, iv_window *window, iv_error *error) {
    int64_t pads[2 * IV_WINDOW_AXES] = {0}, ceil_mode;
    bool present;
    *window = (iv_window){.axes = -1};
    for (int i = 0; i < IV_WINDOW_AXES; i++)
        window->kernel[i] = window->strides[i] = window->dilations[i] = 1;
    IV_TRY(read_auto_pad(node, &window->auto_pad, error));
    IV_TRY(iv_node_int(node, "ceil_mode", 0, &ceil_mode, error));
    window->ceil_mode = ceil_mode != 0;
    IV_TRY(read_list(node, "kernel_shape", 1, 1, &window->axes, window->kernel, &window->has_kernel,
                     error));
    IV_TRY(read_list(node, "strides", 1, 1, &window->axes, window->strides, &present, error));
    IV_TRY(read_list(node, "dilations", 1, 1, &window->axes, window->dilations, &present, error));
    IV_TRY(read_list(node, "pads", 2, 0, &window->axes, pads, &present, error));
    for (int i = 0; i < window->axes && window->auto_pad == IV_PAD_EXPLICIT; i++) {
        window->begin[i] = pads[i];
        window->end[i] = pads[window->axes + i];
    }
    return IV_OK;
}

iv_status iv_window_check_axes(const iv_infer *infer, const iv_window *window, int axes) {
    if (axes < 1)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "input 0 has rank %d; a batch, channels and at least one spatial axis "
                             "are expected",
                             axes + 2);
    if (window->axes != -1 && window->axes != axes)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "the attributes speak of %d spatial axes, input 0 has %d",
                             window->axes, axes);
    return IV_OK;
}

iv_status iv_window_extent(const iv_infer *infer, const iv_window *window, int axis, iv_dim in,
                           iv_dim kernel, iv_dim *out) {
    iv_scope *scope = infer->scope;
    iv_dim one = iv_dim_constant(scope, 1);
    iv_dim stride = iv_dim_constant(scope, window->strides[axis]);
    if (window->auto_pad == IV_PAD_SAME_UPPER || window->auto_pad == IV_PAD_SAME_LOWER) {
        *out = iv_dim_ceiling_divide(scope, in, stride);
        return IV_OK;
    }
    iv_dim reach = iv_dim_multiply(scope, iv_dim_subtract(scope, kernel, one),
                                   iv_dim_constant(scope, window->dilations[axis]));
    iv_dim padded =
        iv_dim_add(scope, in, iv_dim_constant(scope, window->begin[axis] + window->end[axis]));
    iv_dim room = iv_dim_subtract(scope, padded, iv_dim_add(scope, reach, one));
    if (window->ceil_mode) {
        /* A last window that would start beyond the input and its first padding is left out. */
        iv_dim all = iv_dim_add(scope, iv_dim_ceiling_divide(scope, room, stride), one);
        iv_dim starts = iv_dim_add(scope, in, iv_dim_constant(scope, window->begin[axis]));
        *out = iv_dim_minimum(scope, all, iv_dim_ceiling_divide(scope, starts, stride));
    } else {
        *out = iv_dim_add(scope, iv_dim_floor_divide(scope, room, stride), one);
    }
    int64_t extent;
    if (iv_dim_is_constant(*out, &extent) && extent < 0)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "the window does not fit into spatial axis %d of input 0, padding "
                             "included",
                             axis);
    return IV_OK;
}

iv_window_axis iv_window_resolve(const iv_window *window, int axis, int64_t in, int64_t kernel,
                                 int64_t out) {
    iv_window_axis resolved = {.in = in,
                               .out = out,
                               .kernel = kernel,
                               .stride = window->strides[axis],
                               .dilation = window->dilations[axis],
                               .begin = window->begin[axis],
                               .end = window->end[axis]};
    if (window->auto_pad == IV_PAD_SAME_UPPER || window->auto_pad == IV_PAD_SAME_LOWER) {
        /* Out is ceil(in / stride), so the last window starts inside the input: no overflow. */
        int64_t missing =
            out > 0 ? (out - 1) * resolved.stride - in + (kernel - 1) * resolved.dilation + 1 : 0;
        missing = missing > 0 ? missing : 0;
        bool upper = window->auto_pad == IV_PAD_SAME_UPPER;
        resolved.begin = upper ? missing / 2 : missing - missing / 2;
        resolved.end = missing - resolved.begin;
    }
    return resolved;
}

bool iv_window_next(int axes, int64_t *index, const int64_t *extents) {
    for (int d = axes - 1; d >= 0; d--) {
        if (++index[d] < extents[d])
            return true;
        index[d] = 0;
    }
    return false;
}
