/* Attention and PagedAttention of random extents, lengths, masks and pages, with weights from all alike to few that are not +0,
 * and values among which there are infinities, NaN, zeros, and numbers whose weighted sums underflow to zeros of both signs. */
#include <math.h>

#include "cuda/host_schedules.h"
#include "harness/harness.h"
#include "ops/real.h"

static const sb_dtype types[] = {SB_F32, SB_BF16, SB_F16};
#define TYPES (int)(sizeof types / sizeof types[0])

/* The largest score is about this: 100 makes most weights +0. */
static const float spreads[] = {0.5f, 4, 30, 100, 2000};
#define SPREADS (int)(sizeof spreads / sizeof spreads[0])

/* What values are. */
typedef enum value_kind { EVEN, VANISHING, ANYTHING, VALUE_KINDS } value_kind;

static int64_t pick(harness *h, int64_t low, int64_t high) {
    return random_between(&h->random, low, high);
}

/* Sizes around what blocks, splits, groups and tiles end at. */
static int64_t pick_keys(harness *h) {
    static const int64_t edges[] = {1, 15, 16, 17, 64, 127, 128, 129, 500, 512, 513, 640, 1023, 1025, 1600};
    return pick(h, 0, 2) == 0 ? pick(h, 1, 700) : edges[pick(h, 0, 14)];
}

static int64_t pick_width(harness *h) {
    static const int64_t edges[] = {1, 7, 8, 16, 17, 32, 40, 64, 65, 80, 96, 128, 136};
    return edges[pick(h, 0, 12)];
}

static void fill_evenly(harness *h, const sb_tensor *tensor, float largest) {
    int64_t count = (int64_t)(tensor->storage->bytes / sb_dtype_size(tensor->dtype));
    for (int64_t i = 0; i < count; i++)
        sb_real_store_f32(tensor->dtype, tensor->storage->data, i,
                          (float)((double)(int32_t)random_bits(&h->random) * 0x1p-31) * largest);
}

/* Numbers from -largest to largest, in any layout. */
static sb_tensor *even_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims, float largest) {
    sb_tensor *tensor = number_tensor(h, dtype, rank, dims, false);
    fill_evenly(h, tensor, largest);
    return tensor;
}

static void fill_values(harness *h, const sb_tensor *tensor, value_kind kind) {
    const sb_dtype dtype = tensor->dtype;
    int64_t count = (int64_t)(tensor->storage->bytes / sb_dtype_size(dtype));
    fill_evenly(h, tensor, dtype == SB_F16 ? 8 : 1e4f);
    for (int64_t i = 0; i < count && kind != EVEN; i++) {
        static const float rare[] = {INFINITY, -INFINITY, NAN, 3e38f};
        int64_t dice = pick(h, 0, 200);
        float value = dtype == SB_F16 ? 0x1p-24f : 0x1p-133f;
        value = dtype == SB_F32 ? 0x1p-149f : value;
        if (kind == VANISHING)
            sb_real_store_f32(dtype, tensor->storage->data, i, dice == 0 ? 0 : dice % 2 == 0 ? value : -value);
        else if (dice < 3)
            sb_real_store_f32(dtype, tensor->storage->data, i, rare[pick(h, 0, 3)]);
    }
}

static sb_tensor *value_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims, value_kind kind) {
    sb_tensor *tensor = number_tensor(h, dtype, rank, dims, false);
    fill_values(h, tensor, kind);
    return tensor;
}

/* True or false, or numbers of which some are -inf; whole rows and runs of keys, or one by one. */
static sb_tensor *mask_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims) {
    sb_tensor *tensor = any_tensor(h, dtype, rank, dims);
    int64_t count = (int64_t)(tensor->storage->bytes / sb_dtype_size(dtype)), run = pick(h, 0, 2) == 0 ? 1 : 40;
    bool is_open = true;
    for (int64_t i = 0; i < count; i++) {
        if (pick(h, 1, run) == 1)
            is_open = pick(h, 0, 2) != 0;
        if (dtype == SB_BOOL)
            ((char *)tensor->storage->data)[i] = is_open;
        else
            sb_real_store_f32(dtype, tensor->storage->data, i, is_open ? (float)pick(h, -64, 64) / 16 : -INFINITY);
    }
    return tensor;
}

static sb_tensor *list_tensor(int rank, const int64_t *dims) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_create(SB_S64, rank, dims, &tensor, error));
    return tensor;
}

static void set_rules(harness *h, harness_case *test, bool is_paged) {
    if (pick(h, 0, 2) == 0)
        set_int(test, "left_window_size", pick(h, 0, 300));
    if (pick(h, 0, 3) == 0)
        set_float(test, "softcap", (float)pick(h, 1, 40) / 2);
    if (pick(h, 0, 3) == 0)
        set_float(test, "scale", pick(h, 0, 3) == 0 ? 0x1p-22f : (float)pick(h, -2, 16) / 8);
    if (!is_paged && pick(h, 0, 4) == 0)
        set_int(test, "right_window_size", pick(h, 0, 20));
    if (!is_paged && pick(h, 0, 2) != 0)
        set_int(test, "is_causal", 1);
}

/* Numbers whose products over a width sum to about `spread`. */
static float factor_of(float spread, int64_t width) {
    return sqrtf(spread / sqrtf((float)width));
}

HARNESS_GROUP(attention, extents, HARNESS_CPU) {
    for (int i = 0; i < 150; i++) {
        harness_choose_attention(h,
                                 i / (TYPES * SPREADS) % 2 == 0 ? SB_CUDA_ATTENTION_QUICKEST : SB_CUDA_ATTENTION_TILES);
        const sb_dtype dtype = types[i % TYPES];
        const float spread = spreads[i / TYPES % SPREADS];
        const int64_t batch = pick(h, 1, 2), group = pick(h, 1, 5), key_heads = pick(h, 1, 2), width = pick_width(h);
        const int64_t queries = pick(h, 0, 2) == 0 ? pick(h, 2, 90) : 1, value_width = pick_width(h);
        const int64_t past = pick(h, 0, 1) == 0 ? 0 : pick_keys(h), fresh = pick(h, 0, 1) == 0 ? queries : pick_keys(h);
        const int64_t keys = past + fresh, kept = past > 0 ? 0 : pick(h, 0, 2);
        const value_kind kind = (value_kind)pick(h, 0, VALUE_KINDS - 1);
        const float factor = factor_of(spread, width);
        harness_case test = harness_op("Attention", 25);
        add_input(&test, even_tensor(h, dtype, 4, (int64_t[]){batch, key_heads * group, queries, width}, factor));
        add_input(&test, even_tensor(h, dtype, 4, (int64_t[]){batch, key_heads, fresh, width}, factor));
        add_input(&test, value_tensor(h, dtype, 4, (int64_t[]){batch, key_heads, fresh, value_width}, kind));
        const int64_t mask_dims[] = {pick(h, 0, 1) == 0 ? 1 : batch, pick(h, 0, 1) == 0 ? 1 : key_heads * group,
                                     queries, pick(h, 0, 2) == 0 ? pick(h, 1, keys) : keys};
        add_input(&test,
                  pick(h, 0, 1) == 0 ? NULL : mask_tensor(h, pick(h, 0, 1) == 0 ? SB_BOOL : dtype, 4, mask_dims));
        if (past > 0) {
            add_input(&test, even_tensor(h, dtype, 4, (int64_t[]){batch, key_heads, past, width}, factor));
            add_input(&test, value_tensor(h, dtype, 4, (int64_t[]){batch, key_heads, past, value_width}, kind));
            test.outputs = 3;
        } else if (kept == 0) {
            sb_tensor *lengths = list_tensor(1, &batch);
            for (int64_t b = 0; b < batch; b++)
                ((int64_t *)(void *)lengths->data)[b] = pick(h, -1, keys + 1);
            add_input(&test, NULL);
            add_input(&test, NULL);
            add_input(&test, lengths);
        }
        set_rules(h, &test, false);
        harness_run(h, &test);
    }
    harness_choose_attention(h, SB_CUDA_ATTENTION_QUICKEST);
}

HARNESS_GROUP(attention, pages, HARNESS_CPU) {
    for (int i = 0; i < 90; i++) {
        const sb_dtype dtype = types[i % TYPES];
        const float spread = spreads[i / TYPES % SPREADS];
        const int64_t group = pick(h, 1, 5), key_heads = pick(h, 1, 2), width = pick_width(h),
                      sequences = pick(h, 1, 4);
        const int64_t rows = pick(h, 0, 2) == 0 ? pick(h, 1, 40) : 16, columns = pick(h, 1, 60), pages = pick(h, 1, 50);
        const int64_t queries = pick(h, 1, 60), value_width = pick_width(h);
        const value_kind kind = (value_kind)pick(h, 0, VALUE_KINDS - 1);
        const float factor = factor_of(spread, width);
        sb_tensor *lengths = list_tensor(1, &sequences), *begins = list_tensor(1, &sequences);
        sb_tensor *table = list_tensor(2, (int64_t[]){sequences, columns});
        for (int64_t s = 0; s < sequences; s++) {
            ((int64_t *)(void *)lengths->data)[s] = pick(h, -1, rows * columns + 3);
            ((int64_t *)(void *)begins->data)[s] = pick(h, 0, 5) == 0 ? pick(h, -2, queries) : s * queries / sequences;
        }
        for (int64_t p = 0; p < sequences * columns; p++)
            ((int64_t *)(void *)table->data)[p] = pick(h, -1, pages);
        harness_case test = harness_op("PagedAttention", 1);
        test.domain = "samebit";
        add_input(&test, even_tensor(h, dtype, 3, (int64_t[]){1, queries, key_heads * group * width}, factor));
        add_input(&test, even_tensor(h, dtype, 3, (int64_t[]){pages, rows, key_heads * width}, factor));
        add_input(&test, value_tensor(h, dtype, 3, (int64_t[]){pages, rows, key_heads * value_width}, kind));
        add_input(&test, lengths);
        add_input(&test, begins);
        add_input(&test, table);
        set_int(&test, "q_num_heads", key_heads * group);
        set_int(&test, "kv_num_heads", key_heads);
        set_rules(h, &test, true);
        harness_run(h, &test);
    }
}

/* Few rows over many splits, which threads then share out and fold. */
HARNESS_GROUP(attention, splits, HARNESS_CPU) {
    for (int i = 0; i < 30; i++) {
        const sb_dtype dtype = types[i % TYPES];
        const int64_t heads = pick(h, 1, 3), width = pick(h, 1, 24), queries = pick(h, 1, 3),
                      keys = pick(h, 1540, 4000);
        const float factor = factor_of(spreads[i / TYPES % 3], width);
        harness_case test = harness_op("Attention", 25);
        add_input(&test, even_tensor(h, dtype, 4, (int64_t[]){1, heads, queries, width}, factor));
        add_input(&test, even_tensor(h, dtype, 4, (int64_t[]){1, 1, keys, width}, factor));
        add_input(&test, value_tensor(h, dtype, 4, (int64_t[]){1, 1, keys, pick_width(h)}, EVEN));
        harness_run(h, &test);
    }
}

/* ---- rows by warpgroups ---- */

/* A tensor of these dims, heads before rows or the other way round, cut from a larger one: what the copy engine takes. What lies around
 * it is NaN, which nobody may look at. */
static sb_tensor *cut_tensor(harness *h, sb_dtype dtype, const int64_t dims[4]) {
    const bool has_rows_first = pick(h, 0, 1) == 0;
    int64_t whole[4], begin[4];
    int order[] = {0, 1, 2, 3};
    for (int d = 0; d < 4; d++) {
        begin[d] = d == 0 ? 0 : d == 3 ? 8 * pick(h, 0, 1) : pick(h, 0, 2);
        order[d] = has_rows_first && d % 3 != 0 ? 3 - d : d;
    }
    for (int d = 0; d < 4; d++)
        whole[order[d]] = dims[d] + begin[d] + (d == 3 ? 8 * pick(h, 0, 1) : d == 0 ? 0 : pick(h, 0, 2));
    sb_tensor *tensor = NULL, *view = NULL;
    MUST(sb_tensor_create(dtype, 4, whole, &tensor, error));
    memset(tensor->storage->data, 0xff, tensor->storage->bytes);
    MUST(sb_tensor_transpose(tensor, order, &view, error));
    sb_tensor_release(tensor);
    for (int d = 0; d < 4; d++) {
        tensor = view;
        MUST(sb_tensor_slice(tensor, d, begin[d], dims[d], 1, &view, error));
        sb_tensor_release(tensor);
    }
    return view;
}

/* The elements of `packed`, which it releases, in one of those. */
static sb_tensor *cut_copy(harness *h, sb_tensor *packed) {
    sb_tensor *tensor = cut_tensor(h, packed->dtype, packed->dims);
    sb_tensor *contiguous = NULL;
    MUST(sb_tensor_contiguous(packed, &contiguous, error));
    const int64_t *dims = tensor->dims, *strides = tensor->strides;
    int64_t from = 0;
    for (int64_t b = 0; b < dims[0]; b++)
        for (int64_t i = 0; i < dims[1]; i++)
            for (int64_t j = 0; j < dims[2]; j++, from += dims[3])
                memcpy((uint16_t *)(void *)tensor->data + b * strides[0] + i * strides[1] + j * strides[2],
                       (const uint16_t *)(const void *)contiguous->data + from, (size_t)dims[3] * 2);
    sb_tensor_release(contiguous);
    sb_tensor_release(packed);
    return tensor;
}

typedef struct extents16 {
    sb_dtype dtype;
    int64_t batch, group, key_heads, queries, keys, width, value_width;
} extents16;

static extents16 pick_extents16(harness *h, int number) {
    static const int64_t groups[] = {1, 1, 2, 3, 4, 5, 7, 8, 30},
                         widths[] = {8, 16, 64, 64, 72, 80, 128, 128, 200, 256},
                         edges[] = {1, 17, 127, 128, 129, 256, 300, 511, 512, 513, 640, 1024, 1030};
    extents16 e = {number % 2 == 0 ? SB_BF16 : SB_F16, pick(h, 1, 2), groups[pick(h, 0, 8)], pick(h, 1, 3), 0, 0, 0, 0};
    e.width = widths[pick(h, 0, 9)];
    e.value_width = pick(h, 0, 1) == 0 ? e.width : widths[pick(h, 0, 9)];
    e.queries = (pick(h, 0, 2) == 0 ? pick(h, 17, 300) : edges[pick(h, 0, 6)]) / e.group + 17 / e.group + 1;
    e.keys = pick(h, 0, 2) == 0 ? pick(h, 1, 1100) : edges[pick(h, 0, 12)];
    /* A case has a dozen runs of a pipeline on the host: fewer heads where they are many and long, then fewer keys. */
    const int64_t rows = e.group * e.queries, most = 60000;
    while (e.batch * e.key_heads > 1 && e.batch * e.key_heads * rows * e.keys > most) {
        e.key_heads -= e.batch == 1;
        e.batch = 1;
    }
    e.keys = rows * e.keys > most ? most / rows : e.keys;
    return e;
}

/* Queries, keys and values, whose spread is as in the other groups. */
static void add_inputs16(harness *h, harness_case *test, const extents16 *e, float spread, value_kind kind) {
    const float factor = factor_of(spread, e->width);
    const int64_t queries[] = {e->batch, e->key_heads * e->group, e->queries, e->width};
    const int64_t keys[] = {e->batch, e->key_heads, e->keys, e->width};
    const int64_t values[] = {e->batch, e->key_heads, e->keys, e->value_width};
    sb_tensor *q = cut_copy(h, even_tensor(h, e->dtype, 4, queries, factor));
    sb_tensor *k = cut_copy(h, even_tensor(h, e->dtype, 4, keys, factor));
    /* Now and then a score is NaN, infinite, or so low that its exponent is not told apart. */
    static const float rare[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 0x1p-133f, -0.0f};
    for (int i = 0; i < 3 && pick(h, 0, 3) == 0; i++) {
        sb_tensor *of = pick(h, 0, 1) == 0 ? q : k;
        const int64_t at = pick(h, 0, e->batch - 1) * of->strides[0] + pick(h, 0, of->dims[1] - 1) * of->strides[1] +
                           pick(h, 0, of->dims[2] - 1) * of->strides[2] + pick(h, 0, e->width - 1);
        sb_real_store_f32(e->dtype, of->data, at, rare[pick(h, 0, 6)]);
    }
    add_input(test, q);
    add_input(test, k);
    add_input(test, cut_copy(h, value_tensor(h, e->dtype, 4, values, kind)));
}

static void set_rules16(harness *h, harness_case *test, const extents16 *e) {
    if (pick(h, 0, 1) == 0) {
        sb_tensor *lengths = list_tensor(1, &e->batch);
        for (int64_t b = 0; b < e->batch; b++)
            ((int64_t *)(void *)lengths->data)[b] = pick(h, 0, 3) == 0 ? pick(h, -1, e->keys + 1) : e->keys;
        for (int i = 0; i < 3; i++) /* neither a mask nor a past */
            add_input(test, NULL);
        add_input(test, lengths);
    }
    if (pick(h, 0, 2) == 0)
        set_int(test, "left_window_size", pick(h, 0, 600));
    if (pick(h, 0, 4) == 0)
        set_int(test, "right_window_size", pick(h, 0, 200));
    if (pick(h, 0, 3) == 0)
        set_float(test, "scale", (float)pick(h, 0, 24) / 8 + 0x1p-6f);
    if (pick(h, 0, 2) != 0)
        set_int(test, "is_causal", 1);
}

/* Cases of that kind, each of which has to be computed by kernels with this in their names. */
static void run_chosen16(harness *h, sb_cuda_attention_choice choice, const char *kernels,
                         extents16 (*pick_extents)(harness *h, int number)) {
    harness_choose_attention(h, choice);
    const int64_t before = h->ran;
    for (int i = 0; i < 36; i++) {
        const extents16 e = pick_extents(h, i);
        harness_case test = harness_op("Attention", 25);
        add_inputs16(h, &test, &e, spreads[i / 2 % SPREADS], (value_kind)pick(h, 0, VALUE_KINDS - 1));
        set_rules16(h, &test, &e);
        harness_run(h, &test);
        const char *kernel = host_last_rings().kernel;
        if (h->ran != before && h->device != NULL && h->driver == NULL &&
            (kernel == NULL || strstr(kernel, kernels) == NULL))
            harness_fail("a case before %s was not computed by %s", h->name, kernels);
    }
    harness_choose_attention(h, SB_CUDA_ATTENTION_QUICKEST);
}

/* Tiles of 128 rows, several of which each block of threads has, as there are four. */
HARNESS_GROUP(attention, warpgroups, HARNESS_CPU | HARNESS_CUDA) {
    run_chosen16(h, SB_CUDA_ATTENTION_WARPGROUPS, "attention16_prefill", pick_extents16);
}

/* ---- few rows by clusters ---- */

/* Up to 8 rows that share keys, of one split and of several, up to more than steps are worked out for at once. */
static extents16 pick_few16(harness *h, int number) {
    static const int64_t widths[] = {8, 16, 40, 64, 64, 72, 96, 120, 128, 128},
                         edges[] = {1, 16, 31, 32, 33, 127, 128, 129, 300, 511, 512, 513, 1024, 1025, 1300};
    extents16 e = {number % 2 == 0 ? SB_BF16 : SB_F16, pick(h, 1, 3), pick(h, 1, 8), pick(h, 1, 3), 1, 0, 0, 0};
    e.width = widths[pick(h, 0, 9)];
    e.value_width = pick(h, 0, 1) == 0 ? e.width : widths[pick(h, 0, 9)];
    e.queries = pick(h, 0, 2) == 0 ? pick(h, 1, 8 / e.group) : 1;
    e.keys = pick(h, 0, 2) == 0 ? pick(h, 1, 2600) : edges[pick(h, 0, 14)];
    if (number % 12 == 5) { /* more splits than are folded at once, and little of each */
        e = (extents16){e.dtype, 1, 1, 1, 1, pick(h, 128, 131) * 512 + pick(h, -3, 3), 8, 8};
    }
    return e;
}

HARNESS_GROUP(attention, few, HARNESS_CPU | HARNESS_CUDA) {
    run_chosen16(h, SB_CUDA_ATTENTION_CLUSTERS, "attention16_few", pick_few16);
}

/* ---- few rows by TMA ---- */

/* A tile of 8 rows and several; heads of up to 256; what splits, blocks of keys and what is fetched at once end at. */
static extents16 pick_streamed16(harness *h, int number) {
    static const int64_t widths[] = {8, 16, 40, 64, 64, 72, 96, 128, 128, 200, 256, 256};
    extents16 e = pick_few16(h, number);
    if (number % 12 != 5) {
        e.width = widths[pick(h, 0, 11)];
        e.value_width = pick(h, 0, 1) == 0 ? e.width : widths[pick(h, 0, 11)];
        e.keys = pick(h, 0, 2) == 0 ? e.keys : (int64_t)1 << pick(h, 3, 11) | pick(h, 0, 17);
    }
    if (number % 5 == 0)
        e.queries = pick(h, 1, 20 / e.group);
    return e;
}

HARNESS_GROUP(attention, streams, HARNESS_CPU | HARNESS_CUDA) {
    run_chosen16(h, SB_CUDA_ATTENTION_STREAMS, "attention16_stream", pick_streamed16);
}
