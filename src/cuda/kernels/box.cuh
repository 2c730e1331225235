/* Finding the elements of a box. */
#ifndef IV_CUDA_KERNELS_BOX_CUH
#define IV_CUDA_KERNELS_BOX_CUH

#include "cuda/kernels/kernel.cuh"
#include "cuda/kernels/parameters.h"
#include "cuda/kernels/words.cuh"

/* Where element `index` of the box lies in its first `operands` operands, in bytes from the first
 * element of each. Boxes of fewer than 2^31 elements, which is nearly all, do without division, for
 * which devices have no instruction. */
IV_CUDA_FUNCTION void iv_cuda_place(const iv_cuda_box *box, int64_t index, int operands,
                                    int64_t *offsets) {
    IV_CUDA_UNROLL
    for (int i = 0; i < operands; i++)
        offsets[i] = 0;
    if (box->elements <= INT32_MAX) {
        uint32_t rest = (uint32_t)index;
        IV_CUDA_KEEP_LOOP
        for (int d = box->rank - 1; d > 0; d--) {
            uint32_t quotient = iv_cuda_divide(rest, &box->divisors[d]);
            uint32_t at = rest - quotient * box->divisors[d].divisor;
            IV_CUDA_UNROLL
            for (int i = 0; i < operands; i++)
                offsets[i] += at * box->steps[i][d];
            rest = quotient;
        }
        IV_CUDA_UNROLL
        for (int i = 0; i < operands; i++)
            offsets[i] += rest * box->steps[i][0];
        return;
    }
    IV_CUDA_KEEP_LOOP
    for (int d = box->rank - 1; d >= 0; d--) {
        int64_t quotient =
            d > 0 ? iv_cuda_divide_large(index, box->dims[d], box->inverses[d]) : 0;
        int64_t at = index - quotient * box->dims[d];
        IV_CUDA_UNROLL
        for (int i = 0; i < operands; i++)
            offsets[i] += at * box->steps[i][d];
        index = quotient;
    }
}

/* The same for one operand alone. */
IV_CUDA_FUNCTION void iv_cuda_place_one(const iv_cuda_box *box, int64_t index, int operand,
                                        int64_t *offset) {
    const int64_t *steps = box->steps[operand];
    *offset = 0;
    IV_CUDA_KEEP_LOOP
    for (int d = box->rank - 1; d > 0; d--) {
        int64_t quotient = box->elements <= INT32_MAX
                               ? iv_cuda_divide((uint32_t)index, &box->divisors[d])
                               : iv_cuda_divide_large(index, box->dims[d], box->inverses[d]);
        *offset += (index - quotient * box->dims[d]) * steps[d];
        index = quotient;
    }
    *offset += index * steps[0];
}

/* A group of neighbours: IV_CUDA_GROUP elements in the box's order. */
typedef struct iv_cuda_group {
    int64_t index; /* of the first */
    int count;     /* how many of them there are; missing ones stand for the last */
    int64_t offsets[IV_CUDA_OPERANDS]; /* of the first */
} iv_cuda_group;

#define IV_CUDA_EACH_GROUP(number, box)                                                            \
    IV_CUDA_EACH(number, ((box)->elements + IV_CUDA_GROUP - 1) / IV_CUDA_GROUP)

/* Finds group `number` in the first `operands` operands. */
IV_CUDA_FUNCTION void iv_cuda_group_find(const iv_cuda_box *box, int64_t number, int operands,
                                         iv_cuda_group *group) {
    int64_t left = box->elements - number * IV_CUDA_GROUP;
    group->index = number * IV_CUDA_GROUP;
    group->count = left < IV_CUDA_GROUP ? (int)left : IV_CUDA_GROUP;
    iv_cuda_place(box, group->index, operands, group->offsets);
}

/* Where element `j` of the group lies in an operand, if it is not the first one. */
IV_CUDA_FUNCTION int64_t iv_cuda_group_offset(const iv_cuda_box *box, const iv_cuda_group *group,
                                              int operand, int j) {
    int64_t offset;
    int at = j < group->count ? j : group->count - 1;
    if (box->rows)
        return group->offsets[operand] + at * box->steps[operand][box->rank - 1];
    iv_cuda_place_one(box, group->index + at, operand, &offset);
    return offset;
}

/* The group's elements of an operand, to or from an array of IV_CUDA_GROUP of `type`. */
#define IV_CUDA_GROUP_LOAD(type, box, group, operand, values)                                      \
    do {                                                                                           \
        const char *first_ = (box)->data[operand];                                                 \
        if ((box)->whole[operand] && (group)->count == IV_CUDA_GROUP) {                            \
            iv_cuda_load_four(first_ + (group)->offsets[operand], sizeof(type), values);           \
        } else if ((box)->rows) {                                                                  \
            IV_CUDA_UNROLL                                                                         \
            for (int j_ = 0; j_ < IV_CUDA_GROUP; j_++)                                             \
                values[j_] = IV_CUDA_CONST_ELEMENT(                                                \
                    type, first_, iv_cuda_group_offset(box, group, operand, j_));                  \
        } else {                                                                                   \
            IV_CUDA_KEEP_LOOP                                                                      \
            for (int turn_ = 0; turn_ < IV_CUDA_GROUP; turn_++)                                    \
                IV_CUDA_GROUP_TURN(                                                                \
                    type, values,                                                                  \
                    IV_CUDA_CONST_ELEMENT(type, first_,                                            \
                                          iv_cuda_group_offset(box, group, operand, turn_)));      \
        }                                                                                          \
    } while (0)
#define IV_CUDA_GROUP_STORE(type, box, group, operand, values)                                     \
    do {                                                                                           \
        char *first_ = (box)->data[operand];                                                       \
        if ((box)->whole[operand] && (group)->count == IV_CUDA_GROUP) {                            \
            iv_cuda_store_four(first_ + (group)->offsets[operand], sizeof(type), values);          \
        } else {                                                                                   \
            IV_CUDA_KEEP_LOOP                                                                      \
            for (int turn_ = 0; turn_ < (group)->count; turn_++) {                                 \
                IV_CUDA_ELEMENT(type, first_,                                                      \
                                iv_cuda_group_offset(box, group, operand, turn_)) = values[0];     \
                IV_CUDA_GROUP_TURN(type, values, values[0]);                                       \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Leaves out element 0 of an array and appends `last`. What takes hundreds of instructions is there
 * once and takes the group's elements one by one, turning the arrays around, which keeps them in
 * registers. */
#define IV_CUDA_GROUP_TURN(type, values, last)                                                     \
    do {                                                                                           \
        type last_ = last;                                                                         \
        IV_CUDA_UNROLL                                                                             \
        for (int j_ = 0; j_ + 1 < IV_CUDA_GROUP; j_++)                                             \
            values[j_] = values[j_ + 1];                                                           \
        values[IV_CUDA_GROUP - 1] = last_;                                                         \
    } while (0)

#endif
