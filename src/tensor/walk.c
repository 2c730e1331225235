#include "tensor/walk.h"

/* Stride 0 stands for an extent that is repeated, and for an extent of 1, whose stride is meaningless. */
static int64_t broadcast_step(const sb_tensor *tensor, int rank, int dimension) {
    int from = dimension - (rank - tensor->rank);
    if (from < 0 || tensor->dims[from] == 1)
        return 0;
    return tensor->strides[from] * (int64_t)sb_dtype_size(tensor->dtype);
}

static void swap_dimensions(sb_walk *walk, int first, int second) {
    int64_t dim = walk->dims[first];
    walk->dims[first] = walk->dims[second];
    walk->dims[second] = dim;
    for (int i = 0; i < walk->operands; i++) {
        int64_t step = walk->steps[i][first];
        walk->steps[i][first] = walk->steps[i][second];
        walk->steps[i][second] = step;
    }
}

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

/* Whether dimension `outer` should lie inside `inner`: decided by the first operand whose steps differ, and that one is
 * usually the output, so that writes are sequential. */
static bool out_of_order(const sb_walk *walk, int outer, int inner) {
    for (int i = 0; i < walk->operands; i++) {
        int64_t outside = magnitude(walk->steps[i][outer]), inside = magnitude(walk->steps[i][inner]);
        if (outside == 0 || inside == 0 || outside == inside)
            continue;
        return outside < inside;
    }
    return false;
}

static void order(sb_walk *walk) {
    for (int i = 1; i < walk->rank; i++) {
        for (int j = i; j > 0 && out_of_order(walk, j - 1, j); j--)
            swap_dimensions(walk, j - 1, j);
    }
}

static bool mergeable(const sb_walk *walk, int outer, int inner) {
    for (int i = 0; i < walk->operands; i++) {
        if (walk->steps[i][outer] != walk->steps[i][inner] * walk->dims[inner])
            return false;
    }
    return true;
}

static void merge(sb_walk *walk) {
    int kept = 0;
    for (int d = 1; d < walk->rank; d++) {
        if (mergeable(walk, kept, d)) {
            walk->dims[kept] *= walk->dims[d];
        } else {
            kept++;
            walk->dims[kept] = walk->dims[d];
        }
        for (int i = 0; i < walk->operands; i++)
            walk->steps[i][kept] = walk->steps[i][d];
    }
    walk->rank = kept + 1;
}

static void start(sb_walk *walk, int rank, const int64_t *dims, int operands, const sb_tensor *const *tensors,
                  bool keep_order) {
    walk->rank = 0;
    walk->operands = operands;
    walk->elements = 1;
    for (int i = 0; i < operands; i++)
        walk->data[i] = tensors[i]->data;
    for (int d = 0; d < rank; d++) {
        walk->elements *= dims[d];
        if (dims[d] == 1)
            continue;
        walk->dims[walk->rank] = dims[d];
        for (int i = 0; i < operands; i++)
            walk->steps[i][walk->rank] = broadcast_step(tensors[i], rank, d);
        walk->rank++;
    }
    if (walk->rank == 0) {
        walk->rank = 1;
        walk->dims[0] = 1;
        for (int i = 0; i < operands; i++)
            walk->steps[i][0] = (int64_t)sb_dtype_size(tensors[i]->dtype);
        return;
    }
    if (!keep_order)
        order(walk);
    merge(walk);
}

void sb_walk_start(sb_walk *walk, int rank, const int64_t *dims, int operands, const sb_tensor *const *tensors) {
    start(walk, rank, dims, operands, tensors, false);
}

void sb_walk_start_ordered(sb_walk *walk, int rank, const int64_t *dims, int operands,
                           const sb_tensor *const *tensors) {
    start(walk, rank, dims, operands, tensors, true);
}

void sb_walk_run(const sb_walk *walk, sb_walk_row *row, void *context) {
    sb_walk_run_range(walk, 0, walk->elements, row, context);
}

void sb_walk_run_range(const sb_walk *walk, int64_t begin, int64_t end, sb_walk_row *row, void *context) {
    if (begin >= end)
        return;
    int last = walk->rank - 1;
    int64_t index[SB_MAX_RANK], steps[SB_WALK_OPERANDS];
    char *data[SB_WALK_OPERANDS];
    for (int i = 0; i < walk->operands; i++) {
        data[i] = walk->data[i];
        steps[i] = walk->steps[i][last];
    }
    int64_t rest = begin;
    for (int d = last; d >= 0; d--) {
        index[d] = rest % walk->dims[d];
        rest /= walk->dims[d];
        for (int i = 0; i < walk->operands; i++)
            data[i] += index[d] * walk->steps[i][d];
    }
    int64_t left = end - begin;
    for (;;) {
        int64_t count = walk->dims[last] - index[last];
        if (count > left)
            count = left;
        row(context, count, data, steps);
        left -= count;
        if (left == 0)
            return;
        /* The row is done: go back to its start, then carry into the outer dimensions. */
        for (int i = 0; i < walk->operands; i++)
            data[i] -= index[last] * walk->steps[i][last];
        index[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            index[d]++;
            for (int i = 0; i < walk->operands; i++)
                data[i] += walk->steps[i][d];
            if (index[d] < walk->dims[d])
                break;
            for (int i = 0; i < walk->operands; i++)
                data[i] -= walk->dims[d] * walk->steps[i][d];
            index[d] = 0;
        }
    }
}
