/* Eight neighbours of the output of an element-wise program of 16 bits, and where its operands have them. */
#ifndef SB_CUDA_ELEMENTWISE_FIXED_GROUPS_CUH
#define SB_CUDA_ELEMENTWISE_FIXED_GROUPS_CUH

#include "cuda/common/halves.cuh"
#include "cuda/elementwise/fixed_parameters.h"

#define GROUP SB_CUDA_FIXED_GROUP
#define EACH_OF_GROUP SB_CUDA_UNROLL for (int j = 0; j < GROUP; j++)

/* A group of neighbours and the row that it begins in; where that ends within the group, the next row too. */
typedef struct fixed_group {
    uint32_t index;
    int count, left; /* elements that there are, and those of the first row */
    uint32_t outer, middle, inner;
    uint32_t next_outer, next_middle;
} fixed_group;

SB_CUDA_FUNCTION fixed_group fixed_find(const sb_cuda_fixed_box *box, uint32_t index) {
    fixed_group group = {index, GROUP, GROUP, 0, 0, 0, 0, 0};
    if (box->elements - index < GROUP)
        group.count = (int)(box->elements - index);
    if (!box->places)
        return group;
    uint32_t row = sb_cuda_divide(index, &box->inner);
    group.inner = index - row * box->inner.divisor;
    group.outer = sb_cuda_divide(row, &box->middle);
    group.middle = row - group.outer * box->middle.divisor;
    group.next_outer = group.outer;
    group.next_middle = group.middle;
    const uint32_t left = box->inner.divisor - group.inner;
    if (left < (uint32_t)group.count) {
        group.left = (int)left;
        group.next_middle++;
        if (group.next_middle == box->middle.divisor) {
            group.next_middle = 0;
            group.next_outer++;
        }
    }
    return group;
}

/* Elements that are not there are any. */
SB_CUDA_FUNCTION sb_cuda_eight fixed_load(const sb_cuda_fixed_input *input, const fixed_group *group) {
    if (input->layout == SB_CUDA_FIXED_LINEAR) {
        const char *at = input->data + (int64_t)group->index * 2;
        if (group->count == GROUP)
            return sb_cuda_load_eight(at);
        sb_cuda_eight part = {{0, 0, 0, 0}};
        EACH_OF_GROUP {
            if (j < group->count)
                part.pairs[j / 2] |= (uint32_t)((const uint16_t *)(const void *)at)[j] << 16 * (j % 2);
        }
        return part;
    }
    const char *row = input->data + group->outer * input->steps[0] + group->middle * input->steps[1];
    if (input->layout == SB_CUDA_FIXED_ROW)
        return sb_cuda_load_eight(row + (int64_t)group->inner * 2);
    const uint16_t first = *(const uint16_t *)(const void *)row;
    if (group->left == GROUP)
        return sb_cuda_eight_times(first);
    const char *next = input->data + group->next_outer * input->steps[0] + group->next_middle * input->steps[1];
    const uint16_t second = *(const uint16_t *)(const void *)next;
    sb_cuda_eight both;
    SB_CUDA_UNROLL
    for (int pair = 0; pair < GROUP / 2; pair++)
        both.pairs[pair] = (uint32_t)(2 * pair < group->left ? first : second) |
                           (uint32_t)(2 * pair + 1 < group->left ? first : second) << 16;
    return both;
}

SB_CUDA_FUNCTION void fixed_store(const sb_cuda_fixed_box *box, const fixed_group *group, sb_cuda_eight eight) {
    char *at = box->out + (int64_t)group->index * 2;
    if (group->count == GROUP) {
        sb_cuda_store_eight(at, eight);
        return;
    }
    EACH_OF_GROUP {
        if (j < group->count)
            ((uint16_t *)(void *)at)[j] = sb_cuda_of_eight(eight, j);
    }
}

#endif
