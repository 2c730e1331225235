/* RNN, GRU and LSTM: a block, or a cluster of blocks, takes some batch rows of one direction through all time steps in one launch.
 *
 * Each block of a cluster has a part of the state elements. R's rows for them stay in its shared memory (and registers: PRODUCTS), and so do
 * the states: all of H, since chains go over all of it, and its own part of C. A step is
 *
 *     chains of the block's gate rows and batch rows     by PRODUCTS, which leaves them in shared memory
 *     barrier
 *     gates: one of an element a thread
 *     barrier
 *     cells: an element a thread
 *     barrier; the new H goes to the other blocks of the cluster; the cluster's barrier
 *
 * and where a GRU resets before it multiplies, its candidate's chains come once r * H has gone to all blocks. H before and after a step lie
 * apart, so a block that is ahead writes where no one reads: whoever reads H of a step has not come to the barrier at its end.
 *
 * Where a cluster has no room for R there is a launch for each step, or two where r * H has to be whole first, of as many blocks as the device takes,
 * and the states go through memory: for a launch they are what they are for a whole sequence.
 *
 * Products with W are there before (recurrent_products.c). Those of the next step are fetched once this step's have been read. */
#ifndef SB_CUDA_RECURRENT_SEQUENCE_CUH
#define SB_CUDA_RECURRENT_SEQUENCE_CUH

#include "cuda/common/asynchronous.cuh"
#include "cuda/common/words.cuh"
#if defined(SEQUENCE_CLUSTERS)
#include "cuda/contraction/cluster.cuh"
#endif
#include "cuda/recurrent/cells.cuh"
#include "cuda/recurrent/sequence_parameters.h"

/* Copies to a block's memory: SEQUENCE_IN_MEMORY is for blocks that have memory of the device in place of shared memory. */
#if defined(SEQUENCE_IN_MEMORY)
#define COPY_4(to, from) (*(uint32_t *)(void *)(to) = *(const uint32_t *)(const void *)(from))
#define COPY_16(to, from) (*(sb_cuda_words4 *)(void *)(to) = *(const sb_cuda_words4 *)(const void *)(from))
#else
#define COPY_4(to, from) sb_cuda_copy_4((float *)(void *)(to), (const float *)(const void *)(from))
#define COPY_16(to, from) sb_cuda_copy_16((float *)(void *)(to), (const float *)(const void *)(from))
#endif

#define THREADS SB_CUDA_SEQUENCE_THREADS
#define PIECE SB_CUDA_SEQUENCE_PIECE

/* What a block computes. */
typedef struct sequence_part {
    int rank;                    /* among the blocks that share batch rows */
    int direction, first, count; /* its state elements */
    int rows;                    /* batch rows, of which the first is `row` */
    int64_t row;
    unsigned char *memory;
} sequence_part;

/* Sixteen bytes of elements that lie behind each other along k. */
template <typename STORED> struct sequence_piece {
    STORED elements[PIECE / sizeof(STORED)] __attribute__((aligned(PIECE)));
};

template <typename TYPE> SB_CUDA_FUNCTION TYPE *shared_at(const sequence_part *part, int64_t place) {
    return (TYPE *)(void *)(part->memory + place);
}

/* The place of element k of a batch row among the elements of a state. */
template <typename STORED> SB_CUDA_FUNCTION int state_place(const sb_cuda_sequence *p, int row, int k) {
    const int width = PIECE / (int)sizeof(STORED);
    return (k / width * p->room + row) * width + k % width;
}

/* The place of a piece of R; not of one in registers. */
SB_CUDA_FUNCTION int weight_place(const sb_cuda_sequence *p, int line, int piece) {
    if (line < p->held_lines)
        return (piece - p->held_pieces) * p->held_lines + line;
    return p->held_lines * (p->pieces - p->held_pieces) + piece * (p->lines - p->held_lines) + line - p->held_lines;
}

SB_CUDA_FUNCTION bool resets_first(const sb_cuda_sequence *p) {
    return p->params.kind == SB_RECURRENT_GRU && !p->params.linear_before_reset;
}

/* A state element of a batch row, number `index` of [row][own]; -1 as the row where there is none. */
typedef struct sequence_place {
    int row, element;
} sequence_place;

SB_CUDA_FUNCTION sequence_place find_place(const sb_cuda_sequence *p, const sequence_part *part, int index) {
    sequence_place place;
    place.row = (int)sb_cuda_divide((uint32_t)index, &p->own_divisor);
    place.element = index - place.row * p->own;
    if (place.row >= part->rows || place.element >= part->count)
        place.row = -1;
    return place;
}

/* ---- before the first step ---- */

/* Where a gate row of the block's begins in R; NULL behind the last one. */
template <typename STORED>
SB_CUDA_FUNCTION const STORED *weight_line(const sb_cuda_sequence *p, const sequence_part *part, int line) {
    if (line >= p->params.gates * part->count)
        return NULL;
    const int gate = line / part->count;
    const int64_t row = gate * p->hidden + part->first + line - gate * part->count;
    return (const STORED *)(const void *)p->r + part->direction * p->r_direction + row * p->r_line;
}

/* A piece of R, of which what lies behind the last row or the last k is zeros. */
template <typename STORED>
SB_CUDA_FUNCTION void copy_piece(const sb_cuda_sequence *p, const STORED *line, int piece, sequence_piece<STORED> *to) {
    const int width = PIECE / (int)sizeof(STORED);
    if (p->whole && line != NULL && piece * width < p->hidden) {
        COPY_16(to, line + piece * width);
        return;
    }
    sequence_piece<STORED> made;
    SB_CUDA_UNROLL
    for (int i = 0; i < width; i++)
        made.elements[i] = line != NULL && piece * width + i < p->hidden ? line[(piece * width + i) * p->r_k] : 0;
    *to = made;
}

/* The launch's gate rows: from the candidate's on, all, or those before it. */
SB_CUDA_FUNCTION int first_line(const sb_cuda_sequence *p, const sequence_part *part) {
    return p->phase == SB_CUDA_SEQUENCE_FROM_RESET ? 2 * part->count : 0;
}

SB_CUDA_FUNCTION int end_line(const sb_cuda_sequence *p, const sequence_part *part) {
    return p->phase == SB_CUDA_SEQUENCE_TO_RESET ? 2 * part->count : p->params.gates * part->count;
}

/* A warp fetches four pieces of eight gate rows: 64 neighbouring bytes of each, that go to different banks. */
template <typename STORED> SB_CUDA_FUNCTION void load_weights(const sb_cuda_sequence *p, const sequence_part *part) {
    const int begin = first_line(p, part), end = end_line(p, part);
    sequence_piece<STORED> *weights = shared_at<sequence_piece<STORED>>(part, p->at.weights);
    const int lane = (int)(threadIdx.x % 32), fours = (p->pieces + 3) / 4, eights = (p->lines + 7) / 8;
    SB_CUDA_KEEP_LOOP
    for (int turn = (int)(threadIdx.x / 32); turn < fours * eights; turn += SB_CUDA_SEQUENCE_WARPS) {
        const int line = turn / fours * 8 + lane / 4, piece = turn % fours * 4 + lane % 4;
        const bool wanted = line >= begin && (line < end || line >= p->params.gates * part->count);
        if (wanted && line < p->lines && piece < p->pieces && (line >= p->held_lines || piece >= p->held_pieces))
            copy_piece(p, weight_line<STORED>(p, part, line), piece, weights + weight_place(p, line, piece));
    }
}

/* All of the rows' H of some memory, and zeros behind it; from NULL zeros. */
template <typename STORED>
SB_CUDA_FUNCTION void load_state(const sb_cuda_sequence *p, const sequence_part *part, const STORED *from,
                                 int64_t batch_stride, int64_t stride, STORED *state) {
    const int elements = (int)(p->at.state_bytes / (int64_t)sizeof(STORED)) / p->room;
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < elements * p->room; i += THREADS) {
        const int row = i / elements, k = i - row * elements;
        const bool is_there = from != NULL && row < part->rows && k < p->hidden;
        state[state_place<STORED>(p, row, k)] = is_there ? from[(part->row + row) * batch_stride + k * stride] : 0;
    }
}

template <typename STORED> SB_CUDA_FUNCTION void load_h(const sb_cuda_sequence *p, const sequence_part *part) {
    const STORED *h = (const STORED *)(const void *)p->initial_h;
    const STORED *reset = (const STORED *)(const void *)p->reset;
    if (p->at.next != p->at.state)
        load_state<STORED>(p, part, NULL, 0, 0, shared_at<STORED>(part, p->at.next));
    load_state(p, part, h != NULL ? h + part->direction * p->h_direction : NULL, p->h_batch, p->h_stride,
               shared_at<STORED>(part, p->at.state));
    if (!resets_first(p))
        return;
    const bool is_known = p->phase == SB_CUDA_SEQUENCE_FROM_RESET;
    load_state(p, part, is_known ? reset + part->direction * p->batch * p->hidden : NULL, p->hidden, 1,
               shared_at<STORED>(part, p->at.reset));
}

template <int DTYPE> SB_CUDA_FUNCTION void load_c(const sb_cuda_sequence *p, const sequence_part *part) {
    typedef typename recurrent_element<DTYPE>::stored stored;
    typename recurrent_element<DTYPE>::real *c = shared_at<typename recurrent_element<DTYPE>::real>(part, p->at.c);
    const stored *from = (const stored *)(const void *)p->initial_c;
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < part->rows * p->own; i += THREADS) {
        const sequence_place place = find_place(p, part, i);
        if (place.row < 0)
            continue;
        const int64_t at = part->direction * p->c_direction + (part->row + place.row) * p->c_batch +
                           (part->first + place.element) * p->c_stride;
        c[i] = from != NULL ? recurrent_element<DTYPE>::load(from[at]) : 0;
    }
}

template <int DTYPE> SB_CUDA_FUNCTION void load_biases(const sb_cuda_sequence *p, const sequence_part *part) {
    typedef typename recurrent_element<DTYPE>::stored stored;
    typedef typename recurrent_element<DTYPE>::real real;
    real *bias = shared_at<real>(part, p->at.bias), *r_bias = bias + p->lines;
    const stored *from = (const stored *)(const void *)p->b + part->direction * p->b_direction;
    SB_CUDA_KEEP_LOOP
    for (int line = (int)threadIdx.x; line < p->params.gates * part->count; line += THREADS) {
        const int gate = line / part->count;
        const int64_t row = gate * p->hidden + part->first + line - gate * part->count;
        const real own = recurrent_element<DTYPE>::load(from[row * p->b_stride]);
        const real other = recurrent_element<DTYPE>::load(from[(p->rows + row) * p->b_stride]);
        const bool apart = gate == 2 && p->params.kind == SB_RECURRENT_GRU && p->params.linear_before_reset;
        bias[line] = apart ? own : own + other;
        r_bias[line] = other;
    }
}

/* The time steps of each batch row: a wrong number is a fault, and counts as none. */
SB_CUDA_FUNCTION void load_lengths(const sb_cuda_sequence *p, const sequence_part *part) {
    int32_t *lengths = shared_at<int32_t>(part, p->at.lengths);
    SB_CUDA_KEEP_LOOP
    for (int row = (int)threadIdx.x; row < part->rows; row += THREADS) {
        int32_t length = (int32_t)p->steps;
        if (p->lengths != NULL)
            length = p->lengths[(part->row + row) * p->length_stride];
        if (length < 0 || length > p->steps) {
            *p->fault = SB_FAULT_INDEX;
            length = 0;
        }
        lengths[row] = length;
    }
}

/* ---- a step ---- */

/* The time of a row's step; -1: past the end of its sequence, where the state stays and Y is +0. */
SB_CUDA_FUNCTION int time_of(const sb_cuda_sequence *p, const sequence_part *part, int row, int step) {
    const int length = shared_at<int32_t>(part, p->at.lengths)[row];
    if (step >= length)
        return -1;
    return part->direction == 1 || p->params.backward ? length - 1 - step : step;
}

/* Begins to fetch x W of a step. */
template <typename REAL>
SB_CUDA_FUNCTION void fetch_xw(const sb_cuda_sequence *p, const sequence_part *part, int step) {
    const REAL *from = (const REAL *)(const void *)p->xw + part->direction * p->xw_direction + part->first;
    const int count = p->tile * p->own;
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < p->params.gates * count && step < p->end_step; i += THREADS) {
        const int number = (int)sb_cuda_divide((uint32_t)i, &p->gate_divisor);
        const sequence_place place = find_place(p, part, i - number * count);
        const int time = place.row >= 0 ? time_of(p, part, place.row, step) : -1;
        if (time < 0)
            continue;
        const REAL *own =
            from + time * p->xw_step + (part->row + place.row) * p->xw_batch + number * p->hidden + place.element;
        char *to = (char *)(shared_at<REAL>(part, p->at.xw) + i);
        SB_CUDA_UNROLL
        for (int bytes = 0; bytes < (int)sizeof(REAL); bytes += 4)
            COPY_4(to + bytes, (const char *)own + bytes);
    }
    SB_CUDA_COPIES_END();
}

template <typename REAL>
SB_CUDA_FUNCTION recurrent_cell<REAL> find_cell(const sb_cuda_sequence *p, const sequence_part *part,
                                                sequence_place place) {
    const REAL *bias = shared_at<REAL>(part, p->at.bias) + place.element;
    recurrent_cell<REAL> cell;
    cell.xw = shared_at<REAL>(part, p->at.xw) + place.row * p->own + place.element;
    cell.xw_step = p->tile * p->own;
    cell.gates = shared_at<REAL>(part, p->at.sums) + place.row * p->sum_pitch + place.element;
    cell.step = part->count;
    cell.bias = p->b != NULL ? bias : NULL;
    cell.r_bias = p->b != NULL ? bias + p->lines + 2 * part->count : NULL;
    cell.peepholes = NULL;
    return cell;
}

template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION void load_peepholes(const sb_cuda_sequence *p, const sequence_part *part, int element,
                                     REAL *peepholes) {
    typedef typename recurrent_element<DTYPE>::stored stored;
    const stored *from = (const stored *)(const void *)p->p + part->direction * p->p_direction;
    SB_CUDA_UNROLL
    for (int i = 0; i < 3; i++)
        peepholes[i] = recurrent_element<DTYPE>::load(from[(i * p->hidden + part->first + element) * p->p_stride]);
}

/* The gates of all elements, each by a thread of its own: what takes long in a step is a way from one exponential to the next. */
template <int DTYPE>
SB_CUDA_FUNCTION void activate_gates(const sb_cuda_sequence *p, const sequence_part *part, int step) {
    typedef typename recurrent_element<DTYPE>::real real;
    const int count = p->tile * p->own;
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < gates_ahead(&p->params) * count; i += THREADS) {
        const int number = (int)sb_cuda_divide((uint32_t)i, &p->gate_divisor), at = i - number * count;
        const sequence_place place = find_place(p, part, at);
        if (place.row < 0 || time_of(p, part, place.row, step) < 0)
            continue;
        recurrent_cell<real> cell = find_cell<real>(p, part, place);
        real peepholes[3], c = 0;
        if (p->p != NULL) {
            load_peepholes<DTYPE>(p, part, place.element, peepholes);
            cell.peepholes = peepholes;
            c = shared_at<real>(part, p->at.c)[at];
        }
        cell.gates[number * cell.step] =
            gate_value(&p->params, p->params.activations[part->direction], &cell, number, c);
    }
}

/* The element's new H. */
template <int DTYPE, typename REAL>
SB_CUDA_FUNCTION REAL new_h(const sb_cuda_sequence *p, const sequence_part *part, sequence_place place, REAL h) {
    const sb_activation *activations = p->params.activations[part->direction];
    recurrent_cell<REAL> cell = find_cell<REAL>(p, part, place);
    if (p->params.kind == SB_RECURRENT_RNN)
        return rnn_cell<DTYPE>(&cell);
    if (p->params.kind == SB_RECURRENT_GRU)
        return gru_cell<DTYPE>(&p->params, activations, &cell, h);
    REAL peepholes[3], *c = shared_at<REAL>(part, p->at.c) + place.row * p->own + place.element, own = *c;
    if (p->p != NULL) {
        load_peepholes<DTYPE>(p, part, place.element, peepholes);
        cell.peepholes = peepholes;
    }
    h = lstm_cell<DTYPE>(&p->params, activations, &cell, &own);
    *c = own;
    return h;
}

/* The place of an element among those of all directions and batch rows. */
SB_CUDA_FUNCTION int64_t state_index(const sb_cuda_sequence *p, const sequence_part *part, sequence_place place) {
    return (part->direction * p->batch + part->row + place.row) * p->hidden + part->first + place.element;
}

/* r * H of the block's elements. */
template <int DTYPE>
SB_CUDA_FUNCTION void reset_cells(const sb_cuda_sequence *p, const sequence_part *part, int step,
                                  const typename recurrent_element<DTYPE>::stored *state) {
    typedef typename recurrent_element<DTYPE>::stored stored;
    typedef typename recurrent_element<DTYPE>::real real;
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < part->rows * p->own; i += THREADS) {
        const sequence_place place = find_place(p, part, i);
        if (place.row < 0 || time_of(p, part, place.row, step) < 0)
            continue;
        const int own = state_place<stored>(p, place.row, part->first + place.element);
        const recurrent_cell<real> cell = find_cell<real>(p, part, place);
        const stored reset =
            recurrent_element<DTYPE>::store(gru_reset_cell<DTYPE>(&cell, recurrent_element<DTYPE>::load(state[own])));
        const int64_t at = state_index(p, part, place);
        if (p->phase == SB_CUDA_SEQUENCE_TO_RESET) {
            ((stored *)(void *)p->reset)[at] = reset;
            ((real *)(void *)p->z)[at] = cell.gates[GRU_Z];
        } else {
            shared_at<stored>(part, p->at.reset)[own] = reset;
        }
    }
}

/* Each thread its own cells' z. */
template <typename REAL> SB_CUDA_FUNCTION void load_z(const sb_cuda_sequence *p, const sequence_part *part) {
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < part->rows * p->own; i += THREADS) {
        const sequence_place place = find_place(p, part, i);
        if (place.row >= 0)
            find_cell<REAL>(p, part, place).gates[GRU_Z] =
                ((const REAL *)(const void *)p->z)[state_index(p, part, place)];
    }
}

/* The block's part of the new H, which is Y. */
template <int DTYPE>
SB_CUDA_FUNCTION void cells(const sb_cuda_sequence *p, const sequence_part *part, int step,
                            const typename recurrent_element<DTYPE>::stored *state,
                            typename recurrent_element<DTYPE>::stored *next) {
    typedef typename recurrent_element<DTYPE>::stored stored;
    typedef typename recurrent_element<DTYPE>::real real;
    stored *y = (stored *)(void *)p->y;
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < part->rows * p->own; i += THREADS) {
        const sequence_place place = find_place(p, part, i);
        if (place.row < 0)
            continue;
        const int own = state_place<stored>(p, place.row, part->first + place.element);
        const int time = time_of(p, part, place.row, step);
        stored h = state[own];
        if (time >= 0)
            h = recurrent_element<DTYPE>::store(new_h<DTYPE, real>(p, part, place, recurrent_element<DTYPE>::load(h)));
        next[own] = h;
        if (y != NULL)
            y[(time >= 0 ? time : step) * p->y_step + part->direction * p->y_direction +
              (part->row + place.row) * p->y_batch + part->first + place.element] = time >= 0 ? h : 0;
    }
}

/* ---- clusters ---- */

/* Gives what the block has written of a state to the other blocks of its cluster, once all of it is there. They see it behind the
 * cluster's barrier, which comes next. */
template <int CLUSTER>
SB_CUDA_FUNCTION void share(const sb_cuda_sequence *p, const sequence_part *part, void *state, int width) {
    SB_CUDA_BARRIER();
#if defined(SEQUENCE_CLUSTERS)
    const int pieces = (part->count + width - 1) / width, words = pieces * part->rows * PIECE / 8;
    const uint64_t *own = (const uint64_t *)state + part->first / width * p->room * PIECE / 8;
    for (int word = (int)threadIdx.x; word < words; word += THREADS) {
        const int piece = word / (part->rows * PIECE / 8);
        const uint64_t *from = own + word + piece * (p->room - part->rows) * PIECE / 8;
        const uint64_t value = *from;
        SB_CUDA_UNROLL
        for (int other = 1; other < CLUSTER; other++)
            sb_cluster_store_long(sb_shared_address(from), (uint32_t)((part->rank + other) % CLUSTER), value);
    }
#endif
}

template <int CLUSTER> SB_CUDA_FUNCTION void meet_cluster() {
#if defined(SEQUENCE_CLUSTERS)
    if (CLUSTER > 1)
        sb_cluster_sync();
#endif
}

/* ---- all of them ---- */

template <int DTYPE>
SB_CUDA_FUNCTION void store_states(const sb_cuda_sequence *p, const sequence_part *part,
                                   const typename recurrent_element<DTYPE>::stored *state) {
    typedef typename recurrent_element<DTYPE>::stored stored;
    typedef typename recurrent_element<DTYPE>::real real;
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < part->rows * p->own; i += THREADS) {
        const sequence_place place = find_place(p, part, i);
        const int k = part->first + place.element;
        if (place.row < 0)
            continue;
        const int64_t at = part->direction * p->state_direction + (part->row + place.row) * p->state_batch + k;
        if (p->y_h != NULL)
            ((stored *)(void *)p->y_h)[at] = state[state_place<stored>(p, place.row, k)];
        if (p->y_c != NULL)
            ((stored *)(void *)p->y_c)[at] = recurrent_element<DTYPE>::store(shared_at<real>(part, p->at.c)[i]);
    }
}

SB_CUDA_FUNCTION sequence_part find_part(const sb_cuda_sequence *p, unsigned char *memory) {
    const int64_t index = blockIdx.x / (unsigned)p->parts;
    sequence_part part;
    part.rank = (int)(blockIdx.x % (unsigned)p->parts);
    part.direction = (int)(index / p->row_tiles);
    part.row = (index - part.direction * p->row_tiles) * p->tile;
    part.rows = (int)(p->batch - part.row < p->tile ? p->batch - part.row : p->tile);
    part.first = part.rank * p->own;
    const int64_t left = p->hidden - part.first;
    part.count = (int)(left < 0 ? 0 : left < p->own ? left : p->own);
    part.memory = memory;
    return part;
}

template <int DTYPE, int CLUSTER>
SB_CUDA_FUNCTION void begin_sequence(const sb_cuda_sequence *p, const sequence_part *part) {
    typedef typename recurrent_element<DTYPE>::stored stored;
    load_weights<stored>(p, part);
    load_h<stored>(p, part);
    load_lengths(p, part);
    if (p->params.kind == SB_RECURRENT_LSTM)
        load_c<DTYPE>(p, part);
    if (p->b != NULL)
        load_biases<DTYPE>(p, part);
    SB_CUDA_BARRIER();
    fetch_xw<typename recurrent_element<DTYPE>::real>(p, part, (int)p->first_step);
    SB_CUDA_COPIES_WAIT(0);
    SB_CUDA_BARRIER();
    meet_cluster<CLUSTER>();
}

/* PRODUCTS: `load` keeps some of R in registers, and `multiply` leaves the chains of gate rows [begin, end), with that state, in the sums. */
template <int DTYPE, int CLUSTER, class PRODUCTS>
SB_CUDA_FUNCTION void run_sequence(const sb_cuda_sequence *p, unsigned char *memory) {
    typedef typename recurrent_element<DTYPE>::stored stored;
    typedef typename recurrent_element<DTYPE>::real real;
    const sequence_part part = find_part(p, memory);
    stored *state = shared_at<stored>(&part, p->at.state), *next = shared_at<stored>(&part, p->at.next);
    stored *reset = shared_at<stored>(&part, p->at.reset);
    const int width = PIECE / (int)sizeof(stored), lines = p->params.gates * part.count;
    const int ahead = resets_first(p) ? 2 * part.count : lines;
    typename PRODUCTS::registers held;
    PRODUCTS::load(p, &part, &held);
    begin_sequence<DTYPE, CLUSTER>(p, &part);
    SB_CUDA_KEEP_LOOP
    for (int step = (int)p->first_step; step < p->end_step; step++) {
        if (p->phase != SB_CUDA_SEQUENCE_FROM_RESET)
            PRODUCTS::multiply(p, &part, &held, state, 0, ahead);
        SB_CUDA_COPIES_WAIT(0);
        SB_CUDA_BARRIER();
        if (p->phase != SB_CUDA_SEQUENCE_FROM_RESET) {
            activate_gates<DTYPE>(p, &part, step);
            SB_CUDA_BARRIER();
        }
        if (resets_first(p)) {
            if (p->phase == SB_CUDA_SEQUENCE_FROM_RESET)
                load_z<real>(p, &part);
            else
                reset_cells<DTYPE>(p, &part, step, state);
            if (p->phase == SB_CUDA_SEQUENCE_TO_RESET)
                return;
            share<CLUSTER>(p, &part, reset, width);
            meet_cluster<CLUSTER>();
            PRODUCTS::multiply(p, &part, &held, reset, ahead, lines);
            SB_CUDA_BARRIER();
        }
        cells<DTYPE>(p, &part, step, state, next);
        share<CLUSTER>(p, &part, next, width);
        fetch_xw<real>(p, &part, step + 1);
        meet_cluster<CLUSTER>();
        stored *const done = state;
        state = next;
        next = done;
    }
    store_states<DTYPE>(p, &part, state);
}

#endif
