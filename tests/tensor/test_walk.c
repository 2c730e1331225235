/* Walks against naive loops over indices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/failing.h"
#include "tensor/random_view.h"
#include "tensor/walk.h"

static int no_leak(void **state) {
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

/* What a walk visited: the addresses of all operands, element by element. */
typedef struct visits {
    int operands;
    int64_t count;
    char *seen[MODEL_ELEMENTS][SB_WALK_OPERANDS];
} visits;

static void note(void *context, int64_t count, char *const *data, const int64_t *steps) {
    visits *log = context;
    assert_true(count > 0);
    for (int64_t i = 0; i < count; i++) {
        assert_true(log->count < MODEL_ELEMENTS);
        for (int j = 0; j < log->operands; j++)
            log->seen[log->count][j] = data[j] + i * steps[j];
        log->count++;
    }
}

static char *address_of(const sb_tensor *tensor, int rank, const int64_t *index) {
    char *address = tensor->data;
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->dims[d] != 1)
            address += index[d + rank - tensor->rank] * tensor->strides[d] * (int64_t)sb_dtype_size(tensor->dtype);
    }
    return address;
}

static int compare_visits(const void *left, const void *right) {
    return memcmp(left, right, sizeof(char *[SB_WALK_OPERANDS]));
}

/* Tensors whose extents are those of `dims`, some of them 1, or missing in front. */
static sb_tensor *random_operand(random_source *source, int rank, const int64_t *dims) {
    static model plan;
    static const sb_dtype dtypes[] = {SB_U8, SB_F16, SB_F32, SB_S64, SB_STRING};
    int64_t own[SB_MAX_RANK], stored[SB_MAX_RANK];
    int missing = random_between(source, 0, 3) == 0 ? (int)random_between(source, 0, rank) : 0;
    int permutation[SB_MAX_RANK];
    for (int i = 0; i < rank - missing; i++) {
        own[i] = random_between(source, 0, 3) == 0 ? 1 : dims[i + missing];
        int j = (int)random_between(source, 0, i);
        permutation[i] = permutation[j];
        permutation[j] = i;
    }
    /* Stored in another order of dimensions, so that the view has the wanted extents with unordered strides. */
    for (int i = 0; i < rank - missing; i++)
        stored[permutation[i]] = own[i];
    sb_tensor *tensor = model_start(dtypes[random_between(source, 0, 4)], rank - missing, stored, &plan);
    sb_tensor *view = NULL;
    assert_int_equal(sb_tensor_transpose(tensor, permutation, &view, NULL), SB_OK);
    sb_tensor_release(tensor);
    for (int i = 0; i < rank - missing; i++) {
        if (random_between(source, 0, 3) != 0 || own[i] == 0)
            continue;
        sb_tensor *reversed = NULL;
        assert_int_equal(sb_tensor_slice(view, i, own[i] - 1, own[i], -1, &reversed, NULL), SB_OK);
        sb_tensor_release(view);
        view = reversed;
    }
    return view;
}

static void check_walk(random_source *source, bool ordered) {
    static visits log, expected;
    int64_t dims[SB_MAX_RANK], index[SB_MAX_RANK];
    int rank = model_random_shape(source, random_between(source, 1, 30) * random_between(source, 1, 12), dims);
    if (rank > 0 && random_between(source, 0, 19) == 0)
        dims[random_between(source, 0, rank - 1)] = 0;
    int operands = (int)random_between(source, 1, SB_WALK_OPERANDS);
    sb_tensor *tensors[SB_WALK_OPERANDS];
    for (int i = 0; i < operands; i++)
        tensors[i] = random_operand(source, rank, dims);
    sb_walk walk;
    (ordered ? sb_walk_start_ordered : sb_walk_start)(&walk, rank, dims, operands, (const sb_tensor *const *)tensors);
    memset(&log, 0, sizeof log);
    memset(&expected, 0, sizeof expected);
    log.operands = expected.operands = operands;
    expected.count = model_count(rank, dims);
    for (int64_t i = 0; i < expected.count; i++) {
        model_unravel(rank, dims, i, index);
        for (int j = 0; j < operands; j++)
            expected.seen[i][j] = address_of(tensors[j], rank, index);
    }
    assert_int_equal(walk.elements, expected.count);

    /* In one go, then in pieces, whose order must be that of the whole. */
    sb_walk_run(&walk, note, &log);
    assert_int_equal(log.count, expected.count);
    static visits pieces;
    memset(&pieces, 0, sizeof pieces);
    pieces.operands = operands;
    for (int64_t begin = 0; begin < expected.count;) {
        int64_t end = begin + random_between(source, 0, 1 + expected.count / 3);
        end = end < expected.count ? end : expected.count;
        sb_walk_run_range(&walk, begin, end, note, &pieces);
        begin = end;
    }
    assert_memory_equal(&pieces, &log, sizeof log);
    if (!ordered) {
        qsort(log.seen, (size_t)log.count, sizeof *log.seen, compare_visits);
        qsort(expected.seen, (size_t)log.count, sizeof *log.seen, compare_visits);
    }
    assert_memory_equal(&log, &expected, sizeof log);
    for (int i = 0; i < operands; i++)
        sb_tensor_release(tensors[i]);
}

static void test_unordered(void **state) {
    random_source source = {3};
    for (int round = 0; round < 1500; round++)
        check_walk(&source, false);
}

static void test_ordered(void **state) {
    random_source source = {4};
    for (int round = 0; round < 1500; round++)
        check_walk(&source, true);
}

static void count_rows(void *context, int64_t count, char *const *data, const int64_t *steps) {
    ++*(int *)context;
}

/* Contiguous operands, and operands transposed alike, come as one row. */
static void test_merging(void **state) {
    static model plan;
    static const int64_t dims[] = {2, 3, 1, 4};
    sb_tensor *left = model_start(SB_F32, 4, dims, &plan);
    sb_tensor *right = model_start(SB_S64, 4, dims, &plan);
    sb_tensor *transposed[2] = {NULL};
    sb_walk walk;
    int rows = 0;
    sb_walk_start_ordered(&walk, 4, dims, 2, (const sb_tensor *const[]){left, right});
    sb_walk_run(&walk, count_rows, &rows);
    assert_int_equal(rows, 1);
    static const int permutation[] = {3, 2, 0, 1};
    assert_int_equal(sb_tensor_transpose(left, permutation, &transposed[0], NULL), SB_OK);
    assert_int_equal(sb_tensor_transpose(right, permutation, &transposed[1], NULL), SB_OK);
    rows = 0;
    sb_walk_start(&walk, 4, transposed[0]->dims, 2, (const sb_tensor *const *)transposed);
    sb_walk_run(&walk, count_rows, &rows);
    assert_int_equal(rows, 1);
    sb_tensor_release(transposed[0]);
    sb_tensor_release(transposed[1]);
    sb_tensor_release(left);
    sb_tensor_release(right);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_unordered, no_leak),
        cmocka_unit_test_teardown(test_ordered, no_leak),
        cmocka_unit_test_teardown(test_merging, no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
