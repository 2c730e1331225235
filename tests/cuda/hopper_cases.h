/* Products by Hopper's kernels on the host, each under several schedules. Include after cmocka.h. */
#ifndef HOPPER_CASES_H
#define HOPPER_CASES_H

#include "gemm16_products.h"
#include "host_schedules.h"

/* Those that show most faults first. */
static const host_schedule hopper_schedules[] = {
    {"products late", true, false, false, false, HOST_OLDEST_FIRST, HOST_ASCENDING, 0, 1},
    {"copies late", false, true, false, false, HOST_OLDEST_FIRST, HOST_DESCENDING, 0, 2},
    {"newest first", false, false, false, true, HOST_NEWEST_FIRST, HOST_DESCENDING, 0, 3},
    {"any order", false, false, false, true, HOST_ANY_ORDER, HOST_SHUFFLED_WARPS, 0, 4},
    {"any order, early", false, false, false, true, HOST_ANY_ORDER, HOST_SHUFFLED_WARPS, 128, 5},
    {"any order, prompt copies", true, false, true, false, HOST_ANY_ORDER, HOST_SHUFFLED_WARPS, 40, 6},
    {"in order", true, true, true, false, HOST_OLDEST_FIRST, HOST_BLOCK_BY_BLOCK, 0, 7},
};
#define HOPPER_SCHEDULES (int)(sizeof hopper_schedules / sizeof hopper_schedules[0])

/* A product of which the CPU's result is in the host's C, and what was in C before. */
typedef struct hopper_case {
    product product;
    operands all;
    char *before;
} hopper_case;

static inline hopper_case make_hopper_case(setting *setting, const product *p) {
    hopper_case made = {.product = *p, .all = make_operands(setting, p)};
    made.before = malloc(made.all.c.bytes);
    assert_non_null(made.before);
    memcpy(made.before, made.all.c.storage, made.all.c.bytes);
    run_on(setting, p, &made.all, false);
    return made;
}

static inline void release_hopper_case(hopper_case *c) {
    free(c->before);
    release_operands(&c->all);
}

/* Whether the device computes the CPU's bytes under this schedule. */
static inline bool computes_the_same(setting *setting, const hopper_case *c, const host_schedule *schedule) {
    size_t where;
    const pair *out = &c->all.c;
    MUST(sb_cuda_upload(setting->staging, &setting->queue, out->memory->address, c->before, out->bytes, error));
    host_set_schedule(schedule);
    run_on(setting, &c->product, &c->all, true);
    host_set_schedule(NULL);
    return same_bytes(setting, out, &where);
}

/* Long enough for a ring of so many stages of so many tiles of 64 k to be used twice and begun again. */
static inline int64_t long_k(int stages, int boxes) {
    return 64 * (boxes * stages * 2 + boxes);
}

#endif
