#include "ops/row_pieces.h"

#include <stdint.h>

/* 3 buffers of at most 2 KiB: they, and what the rows read, stay in the first-level cache. */
#define PIECE 256

#define COPY_AS(type)                                                                                                  \
    for (int64_t i = 0; i < count; i++)                                                                                \
    *(type *)(void *)(to + i * to_step) = *(const type *)(const void *)(from + i * from_step)

static void copy_elements(int size, int64_t count, char *to, int64_t to_step, const char *from, int64_t from_step) {
    switch (size) {
    case 1:
        COPY_AS(uint8_t);
        break;
    case 2:
        COPY_AS(uint16_t);
        break;
    case 4:
        COPY_AS(uint32_t);
        break;
    default:
        COPY_AS(uint64_t);
        break;
    }
}

static void move_elements(sb_walk_row *convert, int size, int64_t count, char *to, int64_t to_step, char *from,
                          int64_t from_step) {
    if (convert == NULL)
        copy_elements(size, count, to, to_step, from, from_step);
    else
        convert(NULL, count, (char *const[]){to, from}, (const int64_t[]){to_step, from_step});
}

/* Whether operand k lies as the loop wants it, so that the loop can have it where it is. */
static bool is_dense(const sb_row_pieces *how, int k, const int64_t *steps) {
    return k == 0 ? how->store == NULL && steps[0] == how->out_size : how->load == NULL && steps[k] == how->in_size;
}

void sb_run_pieces(const sb_row_pieces *how, int64_t count, char *const *data, const int64_t *steps) {
    _Alignas(64) char memory[3][PIECE * sizeof(uint64_t)];
    char *pieces[3] = {memory[0], memory[1], memory[2]};
    const int64_t dense_steps[3] = {how->out_size, how->in_size, how->in_size};
    bool dense[3] = {false};
    for (int k = 0; k <= how->inputs; k++)
        dense[k] = is_dense(how, k, steps);
    for (int64_t start = 0; start < count; start += PIECE) {
        int64_t size = count - start < PIECE ? count - start : PIECE;
        for (int k = 0; k <= how->inputs; k++) {
            if (dense[k])
                pieces[k] = data[k] + start * steps[k];
            /* A repeated element is in its buffer already. */
            else if (k > 0 && (start == 0 || steps[k] != 0))
                move_elements(how->load, how->in_size, size, pieces[k], how->in_size, data[k] + start * steps[k],
                              steps[k]);
        }
        how->dense(how->context, size, pieces, dense_steps);
        if (!dense[0])
            move_elements(how->store, how->out_size, size, data[0] + start * steps[0], steps[0], pieces[0],
                          how->out_size);
    }
}
