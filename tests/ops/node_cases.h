/* What the tests of single nodes share: tensors of any strides with awkward values, attributes. */
#ifndef SB_TESTS_NODE_CASES_H
#define SB_TESTS_NODE_CASES_H

#include "ops/float_cases.h"
#include "ops/node_runner.h"
#include "ops/real.h"

/* A tensor of these extents with random elements, whose dimensions lie in memory in a random order
 * and direction, with gaps. */
static inline sb_tensor *random_tensor(random_source *source, distribution kind, sb_dtype dtype, int rank,
                                       const int64_t *dims) {
    int order[SB_MAX_RANK], back[SB_MAX_RANK];
    int64_t memory[SB_MAX_RANK], step[SB_MAX_RANK];
    bool plain = random_between(source, 0, 2) == 0;
    for (int i = 0; i < rank; i++) {
        int j = plain ? i : (int)random_between(source, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < rank; i++) {
        step[i] = plain || random_between(source, 0, 3) != 0 ? 1 : 2;
        memory[i] = dims[order[i]] * step[i];
        back[order[i]] = i;
    }
    sb_tensor *tensor = NULL, *view = NULL;
    assert_int_equal(sb_tensor_create(dtype, rank, memory, &tensor, NULL), SB_OK);
    fill_random(source, kind, tensor);
    for (int i = 0; i < rank; i++) {
        int64_t count = dims[order[i]];
        bool backward = !plain && count > 0 && random_between(source, 0, 5) == 0;
        int64_t start = backward ? (count - 1) * step[i] : 0;
        assert_int_equal(sb_tensor_slice(tensor, i, start, count, backward ? -step[i] : step[i], &view, NULL), SB_OK);
        sb_tensor_release(tensor);
        tensor = view;
    }
    assert_int_equal(sb_tensor_transpose(tensor, back, &view, NULL), SB_OK);
    sb_tensor_release(tensor);
    return view;
}

static inline void add_int(node_runner *runner, const char *name, int64_t value) {
    assert_int_equal(sb_attributes_add_ints(&runner->attributes, name, true, 1, &value, NULL), SB_OK);
}

static inline void add_ints(node_runner *runner, const char *name, int64_t count, const int64_t *values) {
    assert_int_equal(sb_attributes_add_ints(&runner->attributes, name, false, count, values, NULL), SB_OK);
}

static inline void add_float(node_runner *runner, const char *name, float value) {
    assert_int_equal(sb_attributes_add_floats(&runner->attributes, name, true, 1, &value, NULL), SB_OK);
}

static inline void add_text(node_runner *runner, const char *name, const char *value) {
    sb_string text = {value, strlen(value)};
    assert_int_equal(sb_attributes_add_strings(&runner->attributes, name, true, 1, &text, NULL), SB_OK);
}

static inline void release_outputs(sb_value *outputs) {
    for (int i = 0; i < NODE_OUTPUTS; i++)
        sb_value_release(&outputs[i]);
}

#endif
