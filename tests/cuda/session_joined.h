/* What tests of kernels that are one in graphs that are built have in common: awkward numbers, and how many kernels a run takes. */
#ifndef SESSION_JOINED_H
#define SESSION_JOINED_H

#include "session_models.h"

/* f16 or bf16 of both signs, from 4 down to 2^-8; with `odd`, one in so many is no number, infinite, subnormal, a zero or so large that sums
 * overflow. 0: none. */
static inline sb_tensor *random_halves(sb_dtype dtype, int rank, const int64_t *dims, uint64_t seed, int odd) {
    static const uint16_t bf16[] = {0x7fc0, 0xff80, 0x7f80, 0x0001, 0x8000, 0x0000, 0xffff, 0x7f7f, 0x7e80, 0xfe80};
    static const uint16_t f16[] = {0x7e00, 0xfc00, 0x7c00, 0x0001, 0x8000, 0x0000, 0xffff, 0x7bff, 0x7bff, 0xfbff};
    sb_tensor *tensor = random_tensor(dtype, rank, dims, seed);
    random_source source = {seed};
    uint16_t *data = sb_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++) {
        const uint16_t sign = (uint16_t)(random_between(&source, 0, 1) << 15);
        data[i] = dtype == SB_BF16 ? (uint16_t)(sign | random_between(&source, 119 << 7, (129 << 7) - 1))
                                   : (uint16_t)(sign | random_between(&source, 7 << 10, (17 << 10) - 1));
        if (odd > 0 && random_between(&source, 0, odd - 1) == 0)
            data[i] = (dtype == SB_BF16 ? bf16 : f16)[random_between(&source, 0, 9)];
    }
    return tensor;
}

/* Runs that are compared with the CPU's: how many, of what, and the inputs of each. */
typedef struct joined_runs {
    int runs, inputs, outputs;
    void (*make_inputs)(sb_tensor **inputs, uint64_t run);
} joined_runs;

/* Kernels of the last run, which replays what has been recorded. */
static inline int64_t kernels_of(const setting *s, sb_graph_mode mode, const joined_runs *of) {
    sb_session *session = open_session(s, mode, false, NULL);
    int64_t kernels = 0;
    for (int i = 0; i < of->runs; i++) {
        sb_device_counters before, after;
        sb_tensor *inputs[MOST_VALUES];
        of->make_inputs(inputs, (uint64_t)i);
        sb_device_count(s->device, &before);
        run_both(session, s->cpu, s->device, of->inputs, inputs, of->outputs);
        sb_device_count(s->device, &after);
        kernels = after.kernels - before.kernels;
        release_all(inputs, of->inputs);
    }
    sb_session_destroy(session);
    return kernels;
}

/* Compares all runs in graphs that are captured and built, of which the latter have `joined` kernels less. */
static inline void check_joined(sb_model *(*make)(bool passes), const joined_runs *of, int joined) {
    setting s = start(make, true);
    const int64_t captured = kernels_of(&s, SB_GRAPHS_CAPTURE, of), built = kernels_of(&s, SB_GRAPHS_BUILD, of);
    assert_int_equal(captured - built, joined);
    finish(&s);
}

#endif
