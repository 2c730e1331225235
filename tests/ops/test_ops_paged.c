/* Pages change no bit: each row of PagedAttention is that of Attention over its own sequence, whose keys lie side by side, and
 * what PagedScatter has put on pages is where PagedAttention looks. */
#include "ops/definition_cases.h"

#include "ops/number.h"
#include "ops/pages.h"
#include "support/must.h"

enum {
    SEQUENCES = 3,
    HEADS = 4,
    KEY_HEADS = 2,
    WIDTH = 20,
    VALUE_WIDTH = 12,
    ROWS_OF_PAGE = 16,
    PAGES = 60,
    COLUMNS = 40
};

static const sb_dtype dtypes[] = {SB_BF16, SB_F16, SB_F32, SB_F64};
static const int64_t lengths[SEQUENCES] = {600, 17, 131}, new_rows[SEQUENCES] = {3, 17, 1};

static sb_tensor *random_floats(random_source *source, sb_dtype dtype, int64_t rows, int64_t width) {
    const int64_t dims[] = {1, rows, width};
    sb_tensor *tensor;
    MUST(sb_tensor_create(dtype, 3, dims, &tensor, error));
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        sb_number_store(dtype, tensor->data, i, (double)random_between(source, -3000, 3000) / 1000.0);
    return tensor;
}

static sb_tensor *list(int rank, const int64_t *dims, const int64_t *numbers) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, rank, dims, numbers, &tensor, error));
    return tensor;
}

/* An operator on `count` inputs, whose references it takes; its only output. */
static sb_tensor *run(const char *domain, const char *op, int count, sb_tensor *const *inputs, int64_t window) {
    sb_value output = {0};
    node_runner runner = {
        .op = op, .domain = domain, .version = domain != NULL ? 1 : 25, .input_count = count, .output_count = 1};
    for (int i = 0; i < count; i++)
        runner.inputs[i] = inputs[i];
    if (strcmp(op, "PagedScatter") != 0) {
        add_int(&runner, "q_num_heads", HEADS);
        add_int(&runner, "kv_num_heads", KEY_HEADS);
        if (window >= 0)
            add_int(&runner, "left_window_size", window);
    }
    if (strcmp(op, "Attention") == 0)
        add_int(&runner, "is_causal", 1);
    node_must_run(&runner, SB_ISA_BEST, &output);
    node_clear(&runner);
    return output.tensor;
}

/* The rule for whose a row is, in the words of ops/pages.h: the last sequence that begins at it or before, but for the first. */
static sb_pages_place plain_place(const int64_t *begins, int64_t sequences, int64_t rows, int64_t row) {
    sb_pages_place place = {0, row, 0};
    int64_t next = row;
    for (int64_t s = 1; s < sequences; s++) {
        if (begins[s] <= row)
            place = (sb_pages_place){s, row - (begins[s] > 0 ? begins[s] : 0), 0};
    }
    for (bool same = true; next < rows && same; next += same) {
        for (int64_t s = place.sequence + 1; s < sequences; s++)
            same = same && begins[s] > next;
    }
    place.left = next - row;
    return place;
}

/* Halving finds what looking at all sequences does, with begins that ascend, some the same, below 0 and behind all rows. */
static void test_places(void **state) {
    (void)state;
    random_source source = {11};
    for (int round = 0; round < 3000; round++) {
        int64_t begins[40], sequences = random_between(&source, 1, 40), rows = random_between(&source, 1, 60);
        int64_t begin = random_between(&source, -3, 2);
        for (int64_t s = 0; s < sequences; s++) {
            begin += s > 0 ? random_between(&source, 0, 1 + round % 4) : 0;
            begins[s] = s == 0 && round % 5 == 0 ? rows : begin; /* the first one's is not looked at */
        }
        sb_pages pages = {.begins = (const char *)begins,
                          .begins_step = 1,
                          .sequences = sequences,
                          .new_rows = rows,
                          .ascends = true};
        for (int64_t row = 0; row < rows; row++) {
            for (int halving = 0; halving < 2; halving++) {
                pages.ascends = halving == 1;
                sb_pages_place found = sb_pages_of_row(&pages, row), wanted = plain_place(begins, sequences, rows, row);
                assert_int_equal(found.sequence, wanted.sequence);
                assert_int_equal(found.before, wanted.before);
                assert_int_equal(found.left, wanted.left);
            }
        }
    }
}

/* A cache full of NaN. */
static sb_tensor *empty_cache(sb_dtype dtype, int64_t width) {
    const int64_t dims[] = {PAGES, ROWS_OF_PAGE, width};
    sb_tensor *cache;
    MUST(sb_tensor_create(dtype, 3, dims, &cache, error));
    for (int64_t i = 0; i < sb_tensor_elements(cache); i++)
        sb_number_store(dtype, cache->data, i, (double)NAN);
    return cache;
}

/* Pages of all sequences, none twice, in an order that nobody has chosen. */
static void deal(random_source *source, int64_t table[SEQUENCES * COLUMNS]) {
    int64_t pages[PAGES], left = PAGES;
    for (int64_t i = 0; i < PAGES; i++)
        pages[i] = i;
    for (int64_t s = 0; s < SEQUENCES; s++) {
        for (int64_t c = 0; c < COLUMNS; c++) {
            bool used = c * ROWS_OF_PAGE < lengths[s];
            int64_t at = used ? random_between(source, 0, (int)left - 1) : 0;
            table[s * COLUMNS + c] = used ? pages[at] : -5;
            pages[at] = used ? pages[--left] : pages[at];
        }
    }
}

/* The keys of all sequences, `all[s]` [1, lengths[s], width], put into a cache in two steps: what was there before, and the new. */
static sb_tensor *fill(sb_dtype dtype, sb_tensor *const *all, int64_t width, const int64_t *table) {
    const int64_t one[] = {SEQUENCES}, two[] = {SEQUENCES, COLUMNS};
    sb_tensor *cache = empty_cache(dtype, width);
    for (int step = 0; step < 2; step++) {
        int64_t starts[SEQUENCES], begins[SEQUENCES], rows = 0;
        for (int s = 0; s < SEQUENCES; s++) {
            int64_t before = lengths[s] - new_rows[s];
            starts[s] = step == 0 ? 0 : before;
            begins[s] = rows;
            rows += step == 0 ? before : new_rows[s];
        }
        const int64_t dims[] = {1, rows, width};
        sb_tensor *update;
        MUST(sb_tensor_create(dtype, 3, dims, &update, error));
        size_t row = (size_t)width * sb_dtype_size(dtype);
        for (int s = 0; s < SEQUENCES; s++)
            memcpy(update->data + (size_t)begins[s] * row, all[s]->data + (size_t)starts[s] * row,
                   (size_t)((s + 1 < SEQUENCES ? begins[s + 1] : rows) - begins[s]) * row);
        sb_tensor *inputs[] = {cache, update, list(1, one, starts), list(1, one, begins), list(2, two, table)};
        cache = run("samebit", "PagedScatter", 5, inputs, -1);
    }
    return cache;
}

static void check(sb_dtype dtype, int64_t window, uint64_t seed) {
    random_source source = {seed};
    const int64_t one[] = {SEQUENCES}, two[] = {SEQUENCES, COLUMNS}, single[] = {1};
    int64_t table[SEQUENCES * COLUMNS], begins[SEQUENCES], rows = 0;
    sb_tensor *k[SEQUENCES], *v[SEQUENCES], *part, *y;
    deal(&source, table);
    for (int s = 0; s < SEQUENCES; s++) {
        k[s] = random_floats(&source, dtype, lengths[s], KEY_HEADS * WIDTH);
        v[s] = random_floats(&source, dtype, lengths[s], KEY_HEADS * VALUE_WIDTH);
        begins[s] = rows;
        rows += new_rows[s];
    }
    sb_tensor *q = random_floats(&source, dtype, rows, HEADS * WIDTH);
    sb_tensor *paged[] = {sb_tensor_retain(q),
                          fill(dtype, k, KEY_HEADS * WIDTH, table),
                          fill(dtype, v, KEY_HEADS * VALUE_WIDTH, table),
                          list(1, one, lengths),
                          list(1, one, begins),
                          list(2, two, table)};
    y = run("samebit", "PagedAttention", 6, paged, window);
    for (int s = 0; s < SEQUENCES; s++) {
        sb_tensor *mine, *alone, *found;
        MUST(sb_tensor_slice(q, 1, begins[s], new_rows[s], 1, &part, error));
        mine = part;
        sb_tensor *inputs[] = {mine, k[s], v[s], NULL, NULL, NULL, list(1, single, &lengths[s])};
        alone = run(NULL, "Attention", 7, inputs, window);
        MUST(sb_tensor_slice(y, 1, begins[s], new_rows[s], 1, &found, error));
        if (!sb_tensor_equal(alone, found))
            fail_msg("sequence %d in %s, window %lld: another row than alone", s, sb_dtype_name(dtype),
                     (long long)window);
        sb_tensor_release(alone);
        sb_tensor_release(found);
    }
    sb_tensor_release(q);
    sb_tensor_release(y);
}

static void test_alone(void **state) {
    (void)state;
    for (int d = 0; d < 4; d++) {
        check(dtypes[d], -1, 1 + (uint64_t)d);
        check(dtypes[d], 130, 9 + (uint64_t)d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone), cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
