/* Chains of a time step in 16 bits, of groups of 16 k (numerics/chain.h): products of 16 gate rows with up to eight batch rows by the tensor
 * cores. A warp has 16 gate rows, or several times 16 one after the other; of the first it keeps the weights of the first
 * SB_CUDA_SEQUENCE_HELD groups in registers, through all steps, which spares the way to shared memory, and room there. Weights that do not
 * lie in whole pieces are all in shared memory.
 *
 * Behind the last k and the last row there are zeros, of which a step leaves a chain as it is. */
#ifndef SB_CUDA_RECURRENT_SEQUENCE_GROUPS_CUH
#define SB_CUDA_RECURRENT_SEQUENCE_GROUPS_CUH

#include "cuda/contraction/warp_products.cuh"
#include "cuda/recurrent/sequence.cuh"

#define HELD SB_CUDA_SEQUENCE_HELD

/* The right factors of two groups of 16 k, from `group` on, of eight batch rows. */
SB_CUDA_FUNCTION void fetch_state(const sb_cuda_eight *state, int room, int group, uint32_t *right) {
    const int lane = (int)(threadIdx.x % 32);
    sb_cuda_fetch_matrices<false>(right, state + (group * 2 + lane / 8) * room + lane % 8);
}

template <int HALF> struct sequence_groups {
    typedef struct registers {
        uint32_t left[HELD][4]; /* of sb_cuda_multiply_matrices */
    } registers;

    SB_CUDA_FUNCTION void load(const sb_cuda_sequence *p, const sequence_part *part, registers *held) {
        const int lane = (int)(threadIdx.x % 32), line = (int)(threadIdx.x / 32) * 16 + lane / 4;
        const uint16_t *lines[2] = {weight_line<uint16_t>(p, part, line), weight_line<uint16_t>(p, part, line + 8)};
        SB_CUDA_UNROLL
        for (int group = 0; group < HELD; group++) {
            SB_CUDA_UNROLL
            for (int i = 0; i < 4; i++) {
                const int k = group * 16 + i / 2 * 8 + lane % 4 * 2;
                const bool is_there = lines[i % 2] != NULL && k < p->hidden && p->held_pieces != 0;
                held->left[group][i] = is_there ? *(const uint32_t *)(const void *)(lines[i % 2] + k) : 0;
            }
        }
    }

    SB_CUDA_FUNCTION void multiply_held(const sb_cuda_sequence *p, const registers *held, const sb_cuda_eight *state,
                                        float *sums) {
        const int groups = p->pieces / 2;
        SB_CUDA_UNROLL
        for (int group = 0; group < HELD; group += 2) {
            uint32_t right[4];
            if (group >= groups)
                break;
            fetch_state(state, p->room, group, right);
            sb_cuda_multiply_matrices<HALF>(sums, held->left[group], right);
            sb_cuda_multiply_matrices<HALF>(sums, held->left[group + 1], right + 2);
        }
    }

    /* Groups from `first` on, of the gate rows from `line` on, out of shared memory. */
    SB_CUDA_FUNCTION void multiply_shared(const sb_cuda_sequence *p, const sb_cuda_eight *weights,
                                          const sb_cuda_eight *state, int line, int first, float *sums) {
        const int lane = (int)(threadIdx.x % 32), own = line + lane / 8 % 2 * 8 + lane % 8, groups = p->pieces / 2;
        const int pitch = line < p->held_lines ? p->held_lines : p->lines - p->held_lines;
        weights += weight_place(p, own, first * 2 + lane / 16);
        SB_CUDA_KEEP_LOOP
        for (int group = first; group < groups; group += 2, weights += 4 * pitch) {
            uint32_t right[4], left[2][4];
            const bool both = group + 1 < groups;
            fetch_state(state, p->room, group, right);
            sb_cuda_fetch_matrices<false>(left[0], weights);
            sb_cuda_fetch_matrices<false>(left[1], weights + (both ? 2 * pitch : 0));
            sb_cuda_multiply_matrices<HALF>(sums, left[0], right);
            if (both)
                sb_cuda_multiply_matrices<HALF>(sums, left[1], right + 2);
        }
    }

    /* 16 gate rows and eight batch rows. */
    SB_CUDA_FUNCTION void multiply_one(const sb_cuda_sequence *p, const sequence_part *part, const registers *held,
                                       const sb_cuda_eight *state, int product, int first_row, int begin, int end) {
        const int lane = (int)(threadIdx.x % 32);
        const bool is_held = product < SB_CUDA_SEQUENCE_WARPS && p->held_pieces != 0;
        float sums[4] = {0, 0, 0, 0};
        if (is_held)
            multiply_held(p, held, state, sums);
        multiply_shared(p, shared_at<sb_cuda_eight>(part, p->at.weights), state, product * 16, is_held ? HELD : 0,
                        sums);
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++) {
            const int line = product * 16 + lane / 4 + i / 2 * 8, row = first_row + lane % 4 * 2 + i % 2;
            if (line >= begin && line < end && row < part->rows)
                shared_at<float>(part, p->at.sums)[row * p->sum_pitch + line] = sums[i];
        }
    }

    SB_CUDA_FUNCTION void multiply(const sb_cuda_sequence *p, const sequence_part *part, const registers *held,
                                   const uint16_t *state, int begin, int end) {
        const sb_cuda_eight *pieces = (const sb_cuda_eight *)(const void *)state;
        SB_CUDA_KEEP_LOOP
        for (int product = (int)(threadIdx.x / 32); product * 16 < end; product += SB_CUDA_SEQUENCE_WARPS) {
            SB_CUDA_KEEP_LOOP
            for (int row = 0; row < part->rows && product * 16 + 16 > begin; row += SB_CUDA_SEQUENCE_COLUMNS)
                multiply_one(p, part, held, pieces + row, product, row, begin, end);
        }
    }
};

#endif
