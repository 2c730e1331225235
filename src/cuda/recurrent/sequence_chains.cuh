/* Chains of a time step in f32 and f64: fma in ascending k from +0, each by one thread, which has a gate row and up to four batch rows so that
 * these share what it reads of R. Neighbouring threads have neighbouring gate rows: they read R from different banks, and the same of H. */
#ifndef SB_CUDA_RECURRENT_SEQUENCE_CHAINS_CUH
#define SB_CUDA_RECURRENT_SEQUENCE_CHAINS_CUH

#include "cuda/recurrent/sequence.cuh"
#include "numerics/chain.h"

SB_CUDA_FUNCTION float chain_step(float left, float right, float sum) {
    return sb_fma_f32(left, right, sum);
}

SB_CUDA_FUNCTION double chain_step(double left, double right, double sum) {
    return sb_fma_f64(left, right, sum);
}

#if defined(__CUDACC__) && !defined(SEQUENCE_IN_MEMORY)
#define SEQUENCE_UNROLL _Pragma("unroll 4")
#else
#define SEQUENCE_UNROLL SB_CUDA_KEEP_LOOP
#endif

/* ROWS chains, whose weights are `pitch` pieces apart, and whose states `room` pieces. */
template <typename REAL, int ROWS>
SB_CUDA_FUNCTION void run_chains(const sequence_piece<REAL> *weights, int pitch, const sequence_piece<REAL> *state,
                                 int room, int count, REAL *sums) {
    const int width = PIECE / (int)sizeof(REAL), whole = count / width;
    SB_CUDA_UNROLL
    for (int r = 0; r < ROWS; r++)
        sums[r] = 0;
    SEQUENCE_UNROLL
    for (int piece = 0; piece < whole; piece++) {
        const sequence_piece<REAL> weight = weights[piece * pitch];
        SB_CUDA_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const sequence_piece<REAL> h = state[piece * room + r];
            SB_CUDA_UNROLL
            for (int i = 0; i < width; i++)
                sums[r] = chain_step(h.elements[i], weight.elements[i], sums[r]);
        }
    }
    /* Not the zeros behind the last k: they would make +0 of -0. */
    for (int i = 0; i < count - whole * width; i++) {
        SB_CUDA_UNROLL
        for (int r = 0; r < ROWS; r++)
            sums[r] = chain_step(state[whole * room + r].elements[i], weights[whole * pitch].elements[i], sums[r]);
    }
}

template <typename REAL> struct sequence_chains {
    typedef struct registers {
    } registers;

    SB_CUDA_FUNCTION void load(const sb_cuda_sequence *, const sequence_part *, registers *) {}

    template <int ROWS>
    SB_CUDA_FUNCTION void multiply_rows(const sb_cuda_sequence *p, const sequence_part *part, const REAL *state,
                                        int begin, int end) {
        const sequence_piece<REAL> *weights = shared_at<sequence_piece<REAL>>(part, p->at.weights);
        const sequence_piece<REAL> *pieces = (const sequence_piece<REAL> *)(const void *)state;
        REAL *sums = shared_at<REAL>(part, p->at.sums);
        const int lines = end - begin, chunks = (part->rows + ROWS - 1) / ROWS;
        for (int task = (int)threadIdx.x; task < lines * chunks; task += THREADS) {
            const int chunk = task / lines, line = begin + task - chunk * lines;
            REAL own[ROWS];
            run_chains<REAL, ROWS>(weights + line, p->lines, pieces + chunk * ROWS, p->room, (int)p->hidden, own);
            SB_CUDA_UNROLL
            for (int r = 0; r < ROWS; r++)
                sums[(chunk * ROWS + r) * p->sum_pitch + line] = own[r];
        }
    }

    SB_CUDA_FUNCTION void multiply(const sb_cuda_sequence *p, const sequence_part *part, const registers *,
                                   const REAL *state, int begin, int end) {
#if !defined(SEQUENCE_IN_MEMORY)
        if (p->chunk == 4)
            multiply_rows<4>(p, part, state, begin, end);
        else if (p->chunk == 2)
            multiply_rows<2>(p, part, state, begin, end);
        else
#endif
            multiply_rows<1>(p, part, state, begin, end);
    }
};

/* Chains of 16 bits in integers, where there are no tensor cores that add up as the contract does. */
template <int DTYPE> struct sequence_chains16 {
    typedef struct registers {
    } registers;

    SB_CUDA_FUNCTION void load(const sb_cuda_sequence *, const sequence_part *, registers *) {}

    SB_CUDA_FUNCTION float run_chain(const sb_cuda_sequence *p, const sequence_piece<uint16_t> *weights,
                                     const sequence_piece<uint16_t> *state) {
        const sb_chain16_format format = DTYPE == SB_F16 ? sb_chain16_format_f16() : sb_chain16_format_bf16();
        float sum = 0;
        for (int piece = 0; piece < p->pieces; piece += 2) {
            uint16_t left[SB_CHAIN16_GROUP], right[SB_CHAIN16_GROUP];
            for (int i = 0; i < 2; i++) {
                memcpy(left + 8 * i, state[(piece + i) * p->room].elements, PIECE);
                memcpy(right + 8 * i, weights[(piece + i) * p->lines].elements, PIECE);
            }
            sum = sb_chain16_step(left, right, sum, format);
        }
        return sum;
    }

    SB_CUDA_FUNCTION void multiply(const sb_cuda_sequence *p, const sequence_part *part, const registers *,
                                   const uint16_t *state, int begin, int end) {
        const sequence_piece<uint16_t> *weights = shared_at<sequence_piece<uint16_t>>(part, p->at.weights);
        const sequence_piece<uint16_t> *pieces = (const sequence_piece<uint16_t> *)(const void *)state;
        const int lines = end - begin;
        for (int task = (int)threadIdx.x; task < lines * part->rows; task += THREADS) {
            const int row = task / lines, line = begin + task - row * lines;
            shared_at<float>(part, p->at.sums)[row * p->sum_pitch + line] = run_chain(p, weights + line, pieces + row);
        }
    }
};

#endif
