/* PagedAttention over sequences of which each has rows, keys and pages of its own: prompts beside single tokens, pages in any order,
 * NaN on all that no row may see. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/host_schedules.h"
#include "harness/harness.h"
#include "ops/number.h"

enum { MOST_SEQUENCES = 70 };

typedef struct sequence {
    int64_t length, rows;
} sequence;

/* Odd things, a bit each. */
enum {
    SHARED = 1,        /* sequences begin with each other's pages */
    BEGINS_ASTRAY = 2, /* begins in no order, some outside */
    WILD = 4,          /* infinities, NaN and far numbers among what is seen */
    ASTRAY = 8,        /* lengths below 0 and above the room */
    GAPS = 16,         /* lines between the pages */
    REPEATED = 32,     /* one page behind the other of a sequence is the same */
    IN_ORDER = 64      /* pages lie one behind the other, but where another oddity has it otherwise */
};

typedef struct shape {
    int64_t heads, key_heads, width, value_width, page_rows;
    int count;
    sequence sequences[MOST_SEQUENCES];
    int64_t window; /* -1: none */
    float cap, scale;
    unsigned odd;
} shape;

static void fill(harness *h, sb_dtype dtype, char *data, int64_t at, int64_t count, unsigned odd) {
    for (int64_t i = 0; i < count; i++) {
        double value = (double)random_between(&h->random, -3000, 3000) / 1000;
        if ((odd & WILD) != 0 && random_between(&h->random, 0, 300) == 0)
            value = (double[]){INFINITY, -INFINITY, NAN, 60000, -60000, 0}[random_between(&h->random, 0, 5)];
        sb_number_store(dtype, data, at + i, value);
    }
}

static int64_t pages_of(const shape *s, int64_t length) {
    return length <= 0 ? 0 : (length + s->page_rows - 1) / s->page_rows;
}

/* Numbers of pages, none twice unless sequences share them. Columns that nobody needs name anything. */
static sb_tensor *deal(harness *h, const shape *s, int64_t columns, int64_t *pages) {
    const int64_t dims[] = {s->count, columns};
    sb_tensor *table;
    MUST(sb_tensor_create(SB_S64, 2, dims, &table, error));
    int64_t *to = (int64_t *)(void *)table->data, count = 0;
    for (int i = 0; i < s->count; i++)
        count += pages_of(s, s->sequences[i].length);
    count += 3;
    int64_t *left = malloc((size_t)count * sizeof *left);
    for (int64_t i = 0; i < count; i++)
        left[i] = i;
    *pages = count;
    for (int i = 0; i < s->count; i++) {
        int64_t needed = pages_of(s, s->sequences[i].length);
        for (int64_t c = 0; c < columns; c++) {
            int64_t at = (s->odd & IN_ORDER) != 0 ? 0 : random_between(&h->random, 0, count - 1);
            int64_t *entry = &to[i * columns + c];
            *entry = (int64_t[]){-1, INT64_MAX, INT64_MIN, (INT64_C(1) << 32) + 1}[random_between(&h->random, 0, 3)];
            if (c >= needed)
                continue;
            *entry = left[at];
            memmove(left + at, left + at + 1, (size_t)(--count - at) * sizeof *left);
            if ((s->odd & SHARED) != 0 && i > 0 && c < pages_of(s, s->sequences[i - 1].length) / 2)
                *entry = to[(i - 1) * columns + c];
            if ((s->odd & REPEATED) != 0 && c % 3 == 1)
                *entry = to[i * columns + c - 1];
        }
    }
    free(left);
    return table;
}

/* A cache in which only what some row sees is a number; between its pages there may be more. */
static sb_tensor *make_cache(harness *h, sb_dtype dtype, const shape *s, int64_t pages, int64_t head_width,
                             const sb_tensor *table) {
    int64_t room = s->page_rows + ((s->odd & GAPS) != 0 ? 3 : 0), width = s->key_heads * head_width;
    const int64_t dims[] = {pages, room, width}, *numbers = (const int64_t *)(const void *)table->data;
    sb_tensor *all, *cache;
    MUST(sb_tensor_create(dtype, 3, dims, &all, error));
    for (int64_t i = 0; i < sb_tensor_elements(all); i++)
        sb_number_store(dtype, all->data, i, (s->odd & (BEGINS_ASTRAY | ASTRAY)) != 0 ? 0.25 : (double)NAN);
    for (int i = 0; i < s->count; i++) {
        const sequence *own = &s->sequences[i];
        int64_t first = s->window >= 0 ? own->length - own->rows - s->window : 0;
        for (int64_t key = first > 0 && (s->odd & BEGINS_ASTRAY) == 0 ? first : 0; own->rows > 0 && key < own->length;
             key++) {
            int64_t page = numbers[i * table->dims[1] + key / s->page_rows];
            fill(h, dtype, all->data, (page * room + key % s->page_rows) * width, width, s->odd);
        }
    }
    MUST(sb_tensor_slice(all, 1, 0, s->page_rows, 1, &cache, error));
    sb_tensor_release(all);
    return cache;
}

static sb_tensor *list(const int64_t *numbers, int64_t count) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, 1, &count, numbers, &tensor, error));
    return tensor;
}

/* How many cases kernels with this in their names have computed. */
static const char *wanted = "";
static int computed;

static void check(harness *h, sb_dtype dtype, const shape *s) {
    int64_t begins[MOST_SEQUENCES], lengths[MOST_SEQUENCES], rows = 0, columns = 1, pages;
    for (int i = 0; i < s->count; i++) {
        const sequence *own = &s->sequences[i];
        begins[i] = rows;
        rows += own->rows;
        lengths[i] = own->length;
        if (pages_of(s, own->length) > columns)
            columns = pages_of(s, own->length);
    }
    columns += random_between(&h->random, 0, 2);
    for (int i = 0; i < s->count; i++) {
        if ((s->odd & BEGINS_ASTRAY) != 0)
            begins[i] = random_between(&h->random, -2, rows + 2);
        if ((s->odd & ASTRAY) != 0 && random_between(&h->random, 0, 2) == 0)
            lengths[i] =
                (int64_t[]){-1, INT64_MIN, INT64_MAX, columns * s->page_rows + 1}[random_between(&h->random, 0, 3)];
    }
    const int64_t q_dims[] = {1, rows, s->heads * s->width};
    sb_tensor *q, *table = deal(h, s, columns, &pages);
    MUST(sb_tensor_create(dtype, 3, q_dims, &q, error));
    fill(h, dtype, q->data, 0, sb_tensor_elements(q), s->odd);
    harness_case test = harness_op("PagedAttention", 1);
    test.domain = "samebit";
    set_int(&test, "q_num_heads", s->heads);
    set_int(&test, "kv_num_heads", s->key_heads);
    if (s->window >= 0)
        set_int(&test, "left_window_size", s->window);
    if (s->cap != 0)
        set_float(&test, "softcap", s->cap);
    if (s->scale != 0)
        set_float(&test, "scale", s->scale);
    add_input(&test, q);
    add_input(&test, make_cache(h, dtype, s, pages, s->width, table));
    add_input(&test, make_cache(h, dtype, s, pages, s->value_width, table));
    add_input(&test, list(lengths, s->count));
    add_input(&test, list(begins, s->count));
    add_input(&test, table);
    harness_run(h, &test);
    const char *kernel = host_last_rings().kernel;
    computed += kernel != NULL && strstr(kernel, wanted) != NULL;
}

/* Each width that kernels are made for, with steps of decoding, prompts, and both. */
static void check_widths(harness *h) {
    static const struct {
        int64_t width, value_width;
    } widths[] = {{64, 64}, {80, 80}, {96, 96}, {128, 128}, {256, 256}, {8, 136}, {128, 24}, {40, 96}};
    static const shape shapes[] = {
        {4, 1, 0, 0, 16, 3, {{530, 1}, {17, 1}, {129, 1}}, -1, 0, 0, 0},
        {4, 2, 0, 0, 16, 1, {{150, 70}}, -1, 0, 0, 0},
        {4, 2, 0, 0, 16, 4, {{600, 1}, {70, 66}, {0, 0}, {16, 1}}, -1, 0, 0, 0},
        {2, 1, 0, 0, 24, 2, {{140, 10}, {516, 6}}, 30, 0, 0, 0},
        {4, 1, 0, 0, 16, 2, {{330, 20}, {40, 9}}, -1, 0, 0, IN_ORDER},
    };
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            shape s = shapes[i];
            s.width = widths[w].width;
            s.value_width = widths[w].value_width;
            check(h, (w + i) % 2 == 0 ? SB_BF16 : SB_F16, &s);
        }
    }
}

/* What is odd about sequences, pages and numbers. */
static void check_sequences(harness *h) {
    static const shape shapes[] = {
        /* Pages of every kind: one line, odd numbers of lines, more than a block of keys, and one for all. */
        {2, 1, 16, 16, 1, 2, {{130, 1}, {3, 1}}, -1, 0, 0, 0},
        {2, 1, 16, 16, 7, 2, {{700, 1}, {6, 2}}, -1, 0, 0, 0},
        {2, 2, 16, 16, 130, 2, {{900, 2}, {131, 1}}, -1, 0, 0, 0},
        {2, 2, 16, 16, 600, 2, {{600, 1}, {13, 13}}, -1, 0, 0, 0},
        {4, 2, 16, 24, 17, 3, {{300, 40}, {18, 1}, {511, 2}}, -1, 0, 0, 0},
        /* Windows that begin in a later split, and inside of pages. */
        {2, 1, 16, 16, 16, 3, {{1300, 1}, {700, 3}, {90, 1}}, 130, 0, 0, 0},
        {2, 1, 16, 16, 16, 3, {{1300, 70}, {700, 3}, {90, 80}}, 17, 0, 0, 0},
        {2, 1, 16, 16, 16, 2, {{513, 1}, {512, 1}}, 0, 0, 0, 0},
        {3, 1, 16, 16, 128, 3, {{81, 1}, {720, 1}, {1111, 2}}, 156, 0, 0, 0},
        {2, 1, 16, 16, 64, 3, {{150, 1}, {720, 2}, {576, 1}}, 40, 0, 0, 0},
        /* Several splits of sequences side by side, whose blocks count themselves. */
        {2, 1, 16, 16, 16, 3, {{600, 1}, {1100, 1}, {530, 1}}, -1, 0, 0, 0},
        /* Caps, and scales that are applied to each score. */
        {2, 1, 16, 16, 16, 3, {{520, 1}, {70, 60}, {16, 16}}, -1, 2.5f, 0, 0},
        {2, 1, 16, 16, 16, 3, {{520, 1}, {70, 3}, {16, 2}}, 100, 30, 0.125f, 0},
        {4, 1, 16, 16, 16, 3, {{520, 1}, {70, 3}, {16, 16}}, -1, 0, 0x1p-30f, 0},
        /* Sequences without rows, without keys, with more rows than keys; first, last and between. */
        {2, 2, 16, 16, 16, 6, {{40, 0}, {600, 1}, {0, 0}, {0, 2}, {3, 9}, {50, 0}}, -1, 0, 0, 0},
        {2, 2, 16, 16, 16, 6, {{0, 3}, {600, 20}, {0, 0}, {0, 40}, {3, 30}, {0, 1}}, -1, 0, 0, 0},
        {2, 2, 16, 16, 16, 3, {{0, 1}, {0, 0}, {0, 30}}, -1, 0, 0, 0},
        /* More sequences than a warp has threads, and than two have. */
        {2,
         1,
         16,
         16,
         16,
         70,
         {{33, 1},
          {600, 1},
          {17, 0},
          [31] = {5, 1},
          [32] = {513, 1},
          [33] = {40, 2},
          [63] = {6, 1},
          [64] = {520, 1},
          [69] = {70, 1}},
         -1,
         0,
         0,
         0},
        {2, 1, 16, 16, 16, 33, {{33, 3}, [1] = {600, 30}, [32] = {513, 1}}, -1, 0, 0, 0},
        /* A head of keys for more heads of queries than a block of few rows has. */
        {20, 1, 16, 16, 16, 3, {{530, 1}, {40, 1}, {9, 5}}, -1, 0, 0, 0},
        {16, 1, 16, 16, 16, 3, {{530, 1}, {40, 1}, {9, 2}}, -1, 0, 0, 0},
        {3, 1, 16, 16, 16, 3, {{530, 5}, {40, 6}, {9, 1}}, -1, 0, 0, 0},
        /* Fewer blocks of threads than splits, and more tiles than blocks of threads. */
        {1, 1, 8, 8, 16, 2, {{4200, 18}, {1030, 17}}, -1, 0, 0, 0},
        {8, 8, 8, 8, 16, 5, {{600, 20}, {520, 17}, {70, 30}, {530, 1}, {40, 20}}, -1, 0, 0, 0},
        {2, 1, 256, 8, 16, 4, {{1100, 1}, {600, 40}, {530, 30}, {16, 1}}, -1, 0, 0, 0},
        {2, 1, 16, 16, 16, 3, {{530, 1}, {300, 40}, {200, 1}}, -1, 0, 0, SHARED},
        {2, 1, 16, 16, 16, 3, {{530, 1}, {300, 40}, {200, 1}}, -1, 0, 0, GAPS},
        {2, 1, 16, 16, 16, 3, {{530, 1}, {300, 4}, {200, 1}}, -1, 0, 0, REPEATED},
        {2, 1, 64, 64, 16, 3, {{530, 20}, {300, 10}, {200, 1}}, -1, 0, 0, IN_ORDER},
        {2, 1, 64, 64, 32, 2, {{1290, 12}, {700, 20}}, 300, 0, 0, IN_ORDER},
        {2, 1, 64, 64, 16, 2, {{530, 20}, {300, 12}}, -1, 0, 0, IN_ORDER | SHARED},
        {2, 1, 64, 64, 16, 2, {{530, 20}, {300, 12}}, -1, 0, 0, IN_ORDER | REPEATED},
        {2, 1, 64, 64, 16, 2, {{530, 20}, {300, 12}}, -1, 0, 0, IN_ORDER | GAPS},
        {2, 1, 16, 16, 16, 4, {{530, 10}, {300, 40}, {200, 1}, {100, 1}}, -1, 0, 0, ASTRAY},
        {2, 1, 16, 16, 16, 4, {{530, 1}, {300, 4}, {200, 1}, {100, 1}}, 40, 0, 0, ASTRAY},
        {2, 1, 16, 16, 16, 3, {{530, 1}, {300, 4}, {200, 1}}, -1, 0, 0, WILD},
        {2, 1, 16, 16, 16, 3, {{530, 1}, {300, 40}, {200, 1}}, -1, 0, 0, WILD},
    };
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++)
        check(h, i % 2 == 0 ? SB_BF16 : SB_F16, &shapes[i / 2]);
}

/* Anything. */
static void check_random(harness *h) {
    static const int64_t page_rows[] = {16, 16, 16, 1, 3, 8, 32, 50, 128, 200, 1000};
    static const int64_t widths[] = {8, 16, 24, 64, 72, 96, 128};
    for (int i = 0; i < 60; i++) {
        random_source *random = &h->random;
        shape s = {.window = -1};
        s.key_heads = random_between(random, 1, 3);
        s.heads = s.key_heads * random_between(random, 1, 5);
        s.width = widths[random_between(random, 0, i % 5 == 0 ? 6 : 2)];
        s.value_width = widths[random_between(random, 0, i % 5 == 0 ? 6 : 2)];
        s.page_rows = page_rows[random_between(random, 0, 10)];
        s.count = (int)random_between(random, 1, i % 4 == 0 ? 40 : 6);
        for (int j = 0; j < s.count; j++) {
            bool is_prompt = random_between(random, 0, 4) == 0, is_long = random_between(random, 0, s.count) == 0;
            s.sequences[j].rows = is_prompt ? random_between(random, 0, 60) : 1;
            s.sequences[j].length = s.sequences[j].rows + random_between(random, 0, is_long ? 1100 : 150);
        }
        if (random_between(random, 0, 3) == 0)
            s.window = random_between(random, 0, 200);
        if (random_between(random, 0, 4) == 0)
            s.cap = 5;
        unsigned odds[] = {0, 0, IN_ORDER, SHARED, BEGINS_ASTRAY, WILD, ASTRAY, GAPS};
        s.odd = odds[random_between(random, 0, 7)];
        check(h, i % 2 == 0 ? SB_BF16 : SB_F16, &s);
    }
}

HARNESS_GROUP(paged, widths, HARNESS_CUDA) {
    check_widths(h);
}

HARNESS_GROUP(paged, sequences, HARNESS_CUDA) {
    check_sequences(h);
}

HARNESS_GROUP(paged, random, HARNESS_CUDA) {
    check_random(h);
}

/* The same in one way wherever it can be taken. */
static void check_chosen(harness *h, sb_cuda_attention_choice choice, const char *kernels) {
    const int64_t before = h->ran;
    wanted = kernels;
    computed = 0;
    harness_choose_attention(h, choice);
    check_widths(h);
    check_sequences(h);
    check_random(h);
    harness_choose_attention(h, SB_CUDA_ATTENTION_QUICKEST);
    if (h->ran - before > 100 && h->device != NULL && h->driver == NULL && computed < 30)
        harness_fail("of %lld cases %d were computed by %s", (long long)(h->ran - before), computed, kernels);
}

/* Rows of a sequence are tiles of eight that a cluster goes through. */
HARNESS_GROUP(paged, clusters, HARNESS_CUDA) {
    check_chosen(h, SB_CUDA_ATTENTION_CLUSTERS, "attention16_few_paged");
}

/* Sequences of more than 16 rows. */
HARNESS_GROUP(paged, warpgroups, HARNESS_CUDA) {
    check_chosen(h, SB_CUDA_ATTENTION_WARPGROUPS, "attention16_prefill_paged");
}

/* Few rows of a sequence by the copy engine, beside others or alone. */
HARNESS_GROUP(paged, streams, HARNESS_CUDA) {
    check_chosen(h, SB_CUDA_ATTENTION_STREAMS, "attention16_stream");
}
