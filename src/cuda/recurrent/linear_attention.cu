/* LinearAttention by the definition (ops/linear_attention.c): a block of threads for a head of keys and 32 columns of its state,
 * which stay in shared memory for all positions. The first warp has a column a thread; the others fetch the keys, queries,
 * values and factors of the next positions meanwhile. */
#include "cuda/common/dynamic_shared.cuh"
#include "cuda/common/index.cuh"
#include "cuda/recurrent/linear_attention_parameters.h"
#include "numerics/elementary.h"
#include "ops/real.h"

#define COLUMNS SB_CUDA_LINEAR_COLUMNS

/* What a block computes. */
typedef struct linear_part {
    int64_t batch, head, first; /* first: column of the values */
} linear_part;

SB_CUDA_FUNCTION float load(const sb_cuda_linear *p, const sb_cuda_linear_array *from, const linear_part *part,
                            int64_t at, int64_t column) {
    return sb_real_load_f32((sb_dtype)p->dtype, from->data,
                            part->batch * from->steps[0] + at * from->steps[1] + column * from->steps[2]);
}

/* Number `index` of what a position's row has, in the order of sb_cuda_linear.row_floats. */
SB_CUDA_FUNCTION float fetch_one(const sb_cuda_linear *p, const linear_part *part, int64_t at, int64_t index) {
    if (index < p->width)
        return load(p, &p->key, part, at, part->head * p->width + index);
    index -= p->width;
    if (index < p->decays)
        return sb_exp_f32(load(p, &p->decay, part, at, part->head * p->decays + index));
    index -= p->decays;
    if (index < p->group * p->width)
        return load(p, &p->query, part, at, part->head * p->group * p->width + index);
    index -= p->group * p->width;
    if (index == COLUMNS)
        return p->rates == 0 ? 0 : load(p, &p->beta, part, at, p->rates > 1 ? part->head : 0);
    const int64_t column = part->first + index;
    return column < p->value_width ? load(p, &p->value, part, at, part->head * p->value_width + column) : 0;
}

/* Fetches up to a chunk of positions from `start`, by all warps but the first. */
SB_CUDA_FUNCTION void fetch(const sb_cuda_linear *p, const linear_part *part, int64_t start, int64_t positions,
                            float *rows) {
    const int64_t count = positions - start < p->chunk ? positions - start : p->chunk;
    for (int64_t index = (int64_t)threadIdx.x - COLUMNS; index < count * p->row_floats; index += blockDim.x - COLUMNS) {
        int64_t at = index, column = sb_cuda_take(&at, p->row_floats);
        rows[index] = fetch_one(p, part, start + at, column);
    }
}

/* A thread's column of the state lies COLUMNS apart. One position: `row` is what has been fetched of it. */
SB_CUDA_FUNCTION void step(const sb_cuda_linear *p, const linear_part *part, int64_t at, const float *row,
                           float *state) {
    const float *key = row, *factors = key + p->width, *query = factors + p->decays;
    const float *values = query + p->group * p->width;
    const int64_t column = part->first + threadIdx.x, factor_step = p->decays > 1 ? 1 : 0;
    float u = values[threadIdx.x];
    if (p->decays > 0 || p->rates > 0) {
        float known = 0;
        for (int64_t i = 0; i < p->width; i++) {
            float s = state[i * COLUMNS];
            if (p->decays > 0)
                s = factors[i * factor_step] * s;
            state[i * COLUMNS] = s;
            known = sb_fma_f32(key[i], s, known);
        }
        if (p->rates > 0)
            u = values[COLUMNS] * (u - known);
    }
    for (int64_t g = 0; g < p->group; g++, query += p->width) {
        float sum = 0;
        for (int64_t i = 0; i < p->width; i++) {
            float s = state[i * COLUMNS];
            if (g == 0)
                state[i * COLUMNS] = s = sb_fma_f32(key[i], u, s);
            sum = sb_fma_f32(query[i], s, sum);
        }
        if (p->output.data != NULL && column < p->value_width)
            sb_real_store_f32((sb_dtype)p->dtype, p->output.data,
                              part->batch * p->output.steps[0] + at * p->output.steps[1] +
                                  ((part->head * p->group + g) * p->value_width + column) * p->output.steps[2],
                              p->scale * sum);
    }
}

SB_CUDA_FUNCTION int64_t state_index(const sb_cuda_linear_state *state, const linear_part *part, int64_t row) {
    return part->batch * state->steps[0] + part->head * state->steps[1] + row * state->steps[2] +
           (part->first + threadIdx.x) * state->steps[3];
}

SB_CUDA_FUNCTION void begin(const sb_cuda_linear *p, const linear_part *part, float *state) {
    const bool is_there = p->past.data != NULL && part->first + threadIdx.x < p->value_width;
    for (int64_t i = 0; i < p->width; i++)
        state[i * COLUMNS] =
            is_there ? sb_real_load_f32((sb_dtype)p->past.dtype, p->past.data, state_index(&p->past, part, i)) : 0;
}

SB_CUDA_FUNCTION void end(const sb_cuda_linear *p, const linear_part *part, const float *state) {
    for (int64_t i = 0; i < p->width && part->first + threadIdx.x < p->value_width; i++)
        sb_real_store_f32((sb_dtype)p->present.dtype, p->present.data, state_index(&p->present, part, i),
                          state[i * COLUMNS]);
}

SB_CUDA_FUNCTION void run_part(const sb_cuda_linear *p, const linear_part *part, float *memory) {
    const int64_t positions = sb_cuda_used(p->used_positions, p->positions);
    const bool computes = threadIdx.x < COLUMNS;
    float *const state = memory + threadIdx.x;
    float *rows = memory + p->width * COLUMNS, *next = rows + p->chunk * p->row_floats;
    if (computes)
        begin(p, part, state);
    else
        fetch(p, part, 0, positions, rows);
    SB_CUDA_KEEP_LOOP
    for (int64_t start = 0; start < positions; start += p->chunk) {
        SB_CUDA_BARRIER();
        for (int64_t at = start; computes && at < start + p->chunk && at < positions; at++)
            step(p, part, at, rows + (at - start) * p->row_floats, state);
        if (!computes && start + p->chunk < positions)
            fetch(p, part, start + p->chunk, positions, next);
        float *const done = rows;
        rows = next;
        next = done;
    }
    if (computes && p->present.data != NULL)
        end(p, part, state);
}

SB_CUDA_FUNCTION void run_parts(const sb_cuda_linear *p, float *memory) {
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x; index < p->parts; index += gridDim.x) {
        linear_part part;
        part.batch = index;
        part.first = sb_cuda_take(&part.batch, p->tiles) * COLUMNS;
        part.head = sb_cuda_take(&part.batch, p->key_heads);
        run_part(p, &part, memory);
        SB_CUDA_BARRIER();
    }
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_linear_attention, sb_cuda_linear, p, SB_CUDA_LINEAR_THREADS, 4) {
    SB_CUDA_DYNAMIC_SHARED(memory);
    float *const shared = (float *)(void *)memory;
    run_parts(p, shared);
}

/* States and rows that shared memory has no room for. */
SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_linear_attention_large, sb_cuda_linear, p, SB_CUDA_LINEAR_THREADS, 4) {
    run_parts(p, p->memory + blockIdx.x * p->floats);
}
