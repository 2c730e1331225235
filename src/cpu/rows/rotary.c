/* RotaryEmbedding: tokens on all workers, whose rows of the tables are widened once for all of their heads. */
#include "cpu/rows/rotary.h"

#include <string.h>

#include "cpu/list.h"
#include "ops/convert_loops.h"

static bool supports_rotary(const sb_kernel_query *query, char *why) {
    return true;
}

/* Elements of a head, of which more go by the definition. */
#define MOST_HEAD 512

typedef struct turning {
    const sb_rotary *rotary;
    sb_rotary_turn *turn;
    sb_walk_row *widen, *round; /* to f32 and back, with any steps; of f32 they copy */
} turning;

/* `count` elements that lie `step` apart, side by side in f32. */
static void load(const turning *work, const char *from, int64_t step, int64_t count, float *to) {
    const int64_t size = (int64_t)sb_dtype_size(work->rotary->y->dtype);
    work->widen(NULL, count, (char *const[]){(char *)to, (char *)(uintptr_t)from},
                (const int64_t[]){(int64_t)sizeof(float), step * size});
}

static void turn_head(const turning *work, const char *x, char *y, const float *cosines, const float *sines) {
    const sb_rotary *rotary = work->rotary;
    const int64_t size = (int64_t)sb_dtype_size(rotary->y->dtype), rotated = 2 * rotary->half;
    const bool is_plain = rotary->y->dtype == SB_F32 && rotary->x_steps[3] == 1 && rotary->y_steps[3] == 1;
    float from[MOST_HEAD], to[MOST_HEAD];
    if (is_plain) {
        work->turn(rotary->interleaved, rotary->half, cosines, sines, (const float *)(const void *)x,
                   (float *)(void *)y);
    } else {
        load(work, x, rotary->x_steps[3], rotated, from);
        work->turn(rotary->interleaved, rotary->half, cosines, sines, from, to);
        work->round(NULL, rotated, (char *const[]){y, (char *)to},
                    (const int64_t[]){rotary->y_steps[3] * size, (int64_t)sizeof(float)});
    }
    for (int64_t i = rotated; i < rotary->head_size; i++)
        memcpy(y + i * rotary->y_steps[3] * size, x + i * rotary->x_steps[3] * size, (size_t)size);
}

static void turn_token(const turning *work, int64_t batch, int64_t token) {
    const sb_rotary *rotary = work->rotary;
    const int64_t size = (int64_t)sb_dtype_size(rotary->y->dtype);
    const sb_tensor *tables[] = {rotary->cosines, rotary->sines};
    float rows[2][MOST_HEAD / 2];
    for (int i = 0; i < 2; i++)
        load(work, sb_rotary_row(rotary, tables[i], batch, token), tables[i]->strides[tables[i]->rank - 1],
             rotary->half, rows[i]);
    for (int64_t head = 0; head < rotary->heads; head++) {
        int64_t from = batch * rotary->x_steps[0] + token * rotary->x_steps[1] + head * rotary->x_steps[2];
        int64_t to = batch * rotary->y_steps[0] + token * rotary->y_steps[1] + head * rotary->y_steps[2];
        turn_head(work, rotary->x->data + from * size, rotary->y->data + to * size, rows[0], rows[1]);
    }
}

static void turn_tokens(void *context, int64_t begin, int64_t end) {
    const turning *work = context;
    if (work->rotary->head_size > MOST_HEAD) {
        sb_rotary_tokens(work->rotary, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        turn_token(work, i / work->rotary->tokens, i % work->rotary->tokens);
}

static sb_rotary_turn *turn_of(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_rotary_turn_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_rotary_turn_avx2;
#endif
    (void)isa;
    return sb_rotary_turn_scalar;
}

void sb_cpu_rotary_run(const sb_call *call, const sb_rotary *rotary) {
    int64_t tokens = rotary->batch * rotary->tokens, width = rotary->heads * rotary->head_size;
    turning work = {rotary, turn_of(call->isa), sb_convert_loop_for(call->isa, SB_F32, rotary->y->dtype),
                    sb_convert_loop_for(call->isa, rotary->y->dtype, SB_F32)};
    if (tokens == 0 || width == 0)
        return;
    /* A piece is worth starting a thread from some ten thousand elements on. */
    sb_workers_run(call->workers, tokens, width < 16384 ? 16384 / width : 1, turn_tokens, &work);
}

static sb_status launch_rotary(sb_call *call) {
    sb_tensor *y;
    sb_rotary rotary;
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(sb_rotary_describe(call, y, &rotary));
    SB_TRY(sb_rotary_check(call, &rotary));
    sb_cpu_rotary_run(call, &rotary);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_rotary[] = {
    {.op = "RotaryEmbedding", .name = "rotary", .supports = supports_rotary, .launch = launch_rotary},
    {0},
};
