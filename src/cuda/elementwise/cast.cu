/* Cast: a kernel for each type of the result, which learns the source's type when it runs. The small types share two
 * kernels, floats and integers. */
#include "cuda/elementwise/convert.cuh"

#define CAST(to, to_type)                                                                                              \
    SB_CUDA_DEFINE_FROM_ANY(to, to_type)                                                                               \
    SB_CUDA_KERNEL(sb_cuda_cast_##to, sb_cuda_cast, p) {                                                               \
        SB_CUDA_EACH_GROUP(number, &p->box) {                                                                          \
            sb_cuda_group group;                                                                                       \
            uint64_t bits[SB_CUDA_GROUP];                                                                              \
            to_type result[SB_CUDA_GROUP] = {0};                                                                       \
            sb_cuda_group_find(&p->box, number, 2, &group);                                                            \
            sb_cuda_load_bits(&p->box, &group, 1, p->from.size, bits);                                                 \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                                         \
                to_type value = sb_cuda_##to##_from_any(p->from.type, bits[0]);                                        \
                SB_CUDA_GROUP_TURN(uint64_t, bits, bits[0]);                                                           \
                SB_CUDA_GROUP_TURN(to_type, result, value);                                                            \
            }                                                                                                          \
            SB_CUDA_GROUP_STORE(to_type, &p->box, &group, 0, result);                                                  \
        }                                                                                                              \
    }
CAST(b8, uint8_t)
CAST(u8, uint8_t)
CAST(u16, uint16_t)
CAST(u32, uint32_t)
CAST(u64, uint64_t)
CAST(s8, int8_t)
CAST(s16, int16_t)
CAST(s32, int32_t)
CAST(s64, int64_t)
CAST(f16, uint16_t)
CAST(bf16, uint16_t)
CAST(f32, float)
CAST(f64, double)

#define CAST_SMALL(name, by, by_type, expression)                                                                      \
    SB_CUDA_DEFINE_FROM_ANY(by, by_type)                                                                               \
    SB_CUDA_KERNEL(sb_cuda_cast_##name, sb_cuda_cast, p) {                                                             \
        SB_CUDA_EACH_GROUP(number, &p->box) {                                                                          \
            sb_cuda_group group;                                                                                       \
            uint64_t bits[SB_CUDA_GROUP];                                                                              \
            uint8_t result[SB_CUDA_GROUP] = {0};                                                                       \
            sb_cuda_group_find(&p->box, number, 2, &group);                                                            \
            sb_cuda_load_bits(&p->box, &group, 1, p->from.size, bits);                                                 \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                                         \
                by_type value = sb_cuda_##by##_from_any(p->from.type, bits[0]);                                        \
                SB_CUDA_GROUP_TURN(uint64_t, bits, bits[0]);                                                           \
                SB_CUDA_GROUP_TURN(uint8_t, result, expression);                                                       \
            }                                                                                                          \
            SB_CUDA_GROUP_STORE(uint8_t, &p->box, &group, 0, result);                                                  \
        }                                                                                                              \
    }
CAST_SMALL(small_float, odd, float, sb_cuda_small_from_f32(p->to.type, value, p->saturate, p->round))

SB_CUDA_FUNCTION uint8_t low_bits(int type, int8_t value) {
    bool two = type == SB_CUDA_TYPE_s2 || type == SB_CUDA_TYPE_u2;
    return (uint8_t)(value & (two ? 3 : 15));
}
CAST_SMALL(small_integer, low, int8_t, low_bits(p->to.type, value))
