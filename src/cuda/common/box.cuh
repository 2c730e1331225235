/* Finding the elements of a box. */
#ifndef SB_CUDA_COMMON_BOX_CUH
#define SB_CUDA_COMMON_BOX_CUH

#include "cuda/common/kernel.cuh"
#include "cuda/common/parameters.h"
#include "cuda/common/words.cuh"

/* Where element `index` of the box lies in its first `operands` operands, in bytes from the first
 * element of each. Boxes of fewer than 2^31 elements, which is nearly all, do without division, for
 * which devices have no instruction. */
SB_CUDA_FUNCTION void sb_cuda_place(const sb_cuda_box *box, int64_t index, int operands, int64_t *offsets) {
    SB_CUDA_UNROLL
    for (int i = 0; i < operands; i++)
        offsets[i] = 0;
    if (box->elements <= INT32_MAX) {
        uint32_t rest = (uint32_t)index;
        SB_CUDA_KEEP_LOOP
        for (int d = box->rank - 1; d > 0; d--) {
            uint32_t quotient = sb_cuda_divide(rest, &box->divisors[d]);
            uint32_t at = rest - quotient * box->divisors[d].divisor;
            SB_CUDA_UNROLL
            for (int i = 0; i < operands; i++)
                offsets[i] += at * box->steps[i][d];
            rest = quotient;
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < operands; i++)
            offsets[i] += rest * box->steps[i][0];
        return;
    }
    SB_CUDA_KEEP_LOOP
    for (int d = box->rank - 1; d >= 0; d--) {
        int64_t quotient = d > 0 ? sb_cuda_divide_large(index, box->dims[d], box->inverses[d]) : 0;
        int64_t at = index - quotient * box->dims[d];
        SB_CUDA_UNROLL
        for (int i = 0; i < operands; i++)
            offsets[i] += at * box->steps[i][d];
        index = quotient;
    }
}

/* The same for one operand alone. */
SB_CUDA_FUNCTION void sb_cuda_place_one(const sb_cuda_box *box, int64_t index, int operand, int64_t *offset) {
    const int64_t *steps = box->steps[operand];
    *offset = 0;
    SB_CUDA_KEEP_LOOP
    for (int d = box->rank - 1; d > 0; d--) {
        int64_t quotient = box->elements <= INT32_MAX ? sb_cuda_divide((uint32_t)index, &box->divisors[d])
                                                      : sb_cuda_divide_large(index, box->dims[d], box->inverses[d]);
        *offset += (index - quotient * box->dims[d]) * steps[d];
        index = quotient;
    }
    *offset += index * steps[0];
}

/* A group of neighbours: SB_CUDA_GROUP elements in the box's order. */
typedef struct sb_cuda_group {
    int64_t index;                     /* of the first */
    int count;                         /* how many of them there are; missing ones stand for the last */
    int64_t offsets[SB_CUDA_OPERANDS]; /* of the first */
} sb_cuda_group;

#define SB_CUDA_EACH_GROUP(number, box) SB_CUDA_EACH(number, ((box)->elements + SB_CUDA_GROUP - 1) / SB_CUDA_GROUP)

/* Finds group `number` in the first `operands` operands. */
SB_CUDA_FUNCTION void sb_cuda_group_find(const sb_cuda_box *box, int64_t number, int operands, sb_cuda_group *group) {
    int64_t left = box->elements - number * SB_CUDA_GROUP;
    group->index = number * SB_CUDA_GROUP;
    group->count = left < SB_CUDA_GROUP ? (int)left : SB_CUDA_GROUP;
    sb_cuda_place(box, group->index, operands, group->offsets);
}

/* Where element `j` of the group lies in an operand, if it is not the first one. */
SB_CUDA_FUNCTION int64_t sb_cuda_group_offset(const sb_cuda_box *box, const sb_cuda_group *group, int operand, int j) {
    int64_t offset;
    int at = j < group->count ? j : group->count - 1;
    if (box->rows)
        return group->offsets[operand] + at * box->steps[operand][box->rank - 1];
    sb_cuda_place_one(box, group->index + at, operand, &offset);
    return offset;
}

/* The group's elements of an operand, to or from an array of SB_CUDA_GROUP of `type`. */
#define SB_CUDA_GROUP_LOAD(type, box, group, operand, values)                                                          \
    do {                                                                                                               \
        const char *first_ = (box)->data[operand];                                                                     \
        if ((box)->whole[operand] && (group)->count == SB_CUDA_GROUP) {                                                \
            sb_cuda_load_four(first_ + (group)->offsets[operand], sizeof(type), values);                               \
        } else if ((box)->rows) {                                                                                      \
            SB_CUDA_UNROLL                                                                                             \
            for (int j_ = 0; j_ < SB_CUDA_GROUP; j_++)                                                                 \
                values[j_] = SB_CUDA_CONST_ELEMENT(type, first_, sb_cuda_group_offset(box, group, operand, j_));       \
        } else {                                                                                                       \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int turn_ = 0; turn_ < SB_CUDA_GROUP; turn_++)                                                        \
                SB_CUDA_GROUP_TURN(                                                                                    \
                    type, values,                                                                                      \
                    SB_CUDA_CONST_ELEMENT(type, first_, sb_cuda_group_offset(box, group, operand, turn_)));            \
        }                                                                                                              \
    } while (0)
#define SB_CUDA_GROUP_STORE(type, box, group, operand, values)                                                         \
    SB_CUDA_GROUP_STORE_AT(type, box, group, operand, 0, values)
/* The same `shift` bytes further on. */
#define SB_CUDA_GROUP_STORE_AT(type, box, group, operand, shift, values)                                               \
    do {                                                                                                               \
        char *first_ = (box)->data[operand] + (shift);                                                                 \
        if ((box)->whole[operand] && (group)->count == SB_CUDA_GROUP) {                                                \
            sb_cuda_store_four(first_ + (group)->offsets[operand], sizeof(type), values);                              \
        } else {                                                                                                       \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int turn_ = 0; turn_ < (group)->count; turn_++) {                                                     \
                SB_CUDA_ELEMENT(type, first_, sb_cuda_group_offset(box, group, operand, turn_)) = values[0];           \
                SB_CUDA_GROUP_TURN(type, values, values[0]);                                                           \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* Leaves out element 0 of an array and appends `last`. What takes hundreds of instructions is there once and takes the
 * group's elements one by one, turning the arrays around, which keeps them in registers. */
#define SB_CUDA_GROUP_TURN(type, values, last)                                                                         \
    do {                                                                                                               \
        type last_ = last;                                                                                             \
        SB_CUDA_UNROLL                                                                                                 \
        for (int j_ = 0; j_ + 1 < SB_CUDA_GROUP; j_++)                                                                 \
            values[j_] = values[j_ + 1];                                                                               \
        values[SB_CUDA_GROUP - 1] = last_;                                                                             \
    } while (0)

#endif
