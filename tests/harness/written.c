/* Cases that are written as text, in the files of tests/cases: support/case_text.h says how. Each is run as it is written;
 * where it has random floats, also with those of every distribution, in any layout. */
#include <glob.h>

#include "harness/harness.h"
#include "support/case_text.h"

static sb_tensor *written_input(harness *h, const char *text, int round) {
    sb_tensor *tensor = made_tensor(text, &h->random);
    bool random = strpbrk(text, "{%") == NULL && sb_dtype_is_float(tensor->dtype);
    if (round == 0 || !random)
        return tensor;
    sb_tensor *other = random_tensor(h, (distribution)(round - 1), tensor->dtype, tensor->rank, tensor->dims);
    sb_tensor_release(tensor);
    return other;
}

static harness_case written_case(harness *h, const made_case *made, int round) {
    harness_case test = harness_op(made->op, made->version);
    test.domain = made->domain;
    test.outputs = made->outputs;
    test.refusal = made->refusal;
    made_attributes(&test.attributes, made->attributes);
    for (int i = 0; i < MADE_INPUTS && made->inputs[i] != NULL; i++) {
        if (is_known_text(made->inputs[i]))
            test.constants |= UINT64_C(1) << i;
        add_input(&test, made->inputs[i][0] != '\0' ? written_input(h, made->inputs[i], round) : NULL);
    }
    for (int i = 0; i < made->outputs && round == 0; i++) {
        if (made->results[i] != NULL)
            expect_output(&test, i, made_tensor(made->results[i], &h->random));
    }
    return test;
}

static bool has_random_floats(const made_case *made) {
    bool found = false;
    for (int i = 0; i < MADE_INPUTS && made->inputs[i] != NULL; i++)
        found = found || (strstr(made->inputs[i], "f") != NULL && strpbrk(made->inputs[i], "{%") == NULL);
    return found;
}

static void run_written(void *context, const made_case *made) {
    harness *h = context;
    if (!made->sides)
        harness_fail("a case of %s stands before the line \"sides …\", which says which sides must have kernels",
                     made->op);
    int rounds = has_random_floats(made) && made->refusal == NULL ? 1 + DISTRIBUTIONS : 1;
    h->needs = (made->on_cpu ? HARNESS_CPU : 0u) | (made->on_cuda ? HARNESS_CUDA : 0u);
    for (int round = 0; round < rounds; round++) {
        harness_case test = written_case(h, made, round);
        harness_run(h, &test);
    }
}

static void run_file(harness *h) {
    char path[512];
    snprintf(path, sizeof path, "%s/%.*s.txt", h->cases, (int)strcspn(h->group, "."), h->group);
    read_cases(path, run_written, h);
}

bool harness_enter_files(const harness *h) {
    static harness_group groups[64];
    static char names[64][64];
    char pattern[512];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.txt", h->cases);
    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    assert_true(found.gl_pathc <= sizeof groups / sizeof groups[0]);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *file = strrchr(found.gl_pathv[i], '/') + 1;
        snprintf(names[i], sizeof names[i], "%.*s.cases", (int)strcspn(file, "."), file);
        groups[i] = (harness_group){.name = names[i], .run = run_file};
        harness_enter(&groups[i]);
    }
    globfree(&found);
    return true;
}
