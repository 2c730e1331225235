/* ChooseTokens with noise, over vocabularies of every size: some tokens left out or none, choices of many rows in any order, logits of few
 * values and of many, odd ones, weights that end with a token, units that vanish. */
#include <math.h>

#include "cuda/rows/choose.h"
#include "harness/harness.h"
#include "numerics/choose.h"

/* How the logits of a case lie. */
enum { NORMAL, FEW_VALUES, EQUAL, ONE_FAR_AHEAD, LONG_TAIL, SPREAD, ODD, KINDS };

static float logit(harness *h, int kind) {
    double u = (double)random_between(&h->random, -1000000, 1000000) / 1e6;
    switch (kind) {
    case NORMAL:
        return (float)(12 * u * u * u);
    case FEW_VALUES:
        return (float)random_between(&h->random, -3, 3) * (random_between(&h->random, 0, 3) == 0 ? -0.0f : 1.0f);
    case EQUAL:
        return 1.5f;
    case ONE_FAR_AHEAD:
        return random_between(&h->random, 0, 5000) == 0 ? 40.0f : (float)u;
    case LONG_TAIL: /* whose weights are below 2^32 units, and come to more than the first's */
        return random_between(&h->random, 0, 5000) == 0 ? 6.0f : (float)u * 0.1f;
    case SPREAD:
        return (float)(u * exp2((double)random_between(&h->random, -140, 100)));
    default:
        return random_between(&h->random, 0, 40) == 0 ? -INFINITY : (float)u;
    }
}

static void spoil(harness *h, float *logits, int64_t count) {
    for (int64_t i = random_between(&h->random, 0, 2); i > 0; i--)
        logits[random_between(&h->random, 0, count - 1)] = random_between(&h->random, 0, 1) == 0 ? NAN : INFINITY;
}

static float pick(harness *h, const float *of, int count) {
    return of[random_between(&h->random, 0, count - 1)];
}

/* A choice whose settings keep all, or, where it `cuts`, some: with one column it may not, and seldom does all the same. */
static void settle(harness *h, int64_t rows, int64_t slots, int64_t vocabulary, bool cuts, int64_t *integers,
                   int64_t columns, float *reals) {
    static const float temperatures[] = {0, 1, 1, 0.7f, 2, 0.01f, 0x1p-20f, 0x1p20f};
    static const float top_ps[] = {1, 1, 0.9f, 0.5f, 0.999f, 0x1p-30f, 0x1.fffffep-1f};
    static const float min_ps[] = {0, 0, 0.05f, 0.5f, 1, 1e-9f};
    integers[SB_CHOOSE_ROW] = random_between(&h->random, 0, rows - 1);
    integers[SB_CHOOSE_SLOT] = random_between(&h->random, 0, slots - 1);
    integers[SB_CHOOSE_TOP_K] =
        !cuts || random_between(&h->random, 0, 1) == 0 ? 0 : random_between(&h->random, 1, vocabulary + 1);
    integers[SB_CHOOSE_SEED] = (int64_t)random_bits(&h->random);
    integers[SB_CHOOSE_REQUEST] = random_between(&h->random, 0, UINT32_MAX);
    integers[SB_CHOOSE_POSITION] = random_between(&h->random, 0, INT64_C(1) << 40);
    reals[SB_CHOOSE_TEMPERATURE] = pick(h, temperatures, 8);
    if (columns == SB_CHOOSE_COLUMNS_OF_ALL)
        return;
    reals[SB_CHOOSE_TOP_P] = cuts ? pick(h, top_ps, 7) : 1;
    reals[SB_CHOOSE_MIN_P] = cuts ? pick(h, min_ps, 6) : 0;
}

/* Choices by settings that vary, or, where there are some, by these. */
static void choose_by(harness *h, int64_t rows, int64_t choices, int64_t vocabulary, int kind,
                      const sb_choose_settings *by) {
    const int64_t dims[] = {1, rows, vocabulary}, wide[] = {choices, SB_CHOOSE_INTEGER_COLUMNS};
    bool cuts = by != NULL || random_between(&h->random, 0, 3) > 0;
    const int64_t real[] = {choices, cuts ? SB_CHOOSE_REAL_COLUMNS : SB_CHOOSE_COLUMNS_OF_ALL};
    const int64_t slots = 1 + random_between(&h->random, 0, 2 * choices);
    harness_case test = harness_op("ChooseTokens", 1);
    test.domain = "samebit";
    test.outputs = 2;
    sb_tensor *waiting, *logits, *integers, *reals;
    MUST(sb_tensor_create(SB_S64, 1, &slots, &waiting, error));
    MUST(sb_tensor_create(SB_F32, 3, dims, &logits, error));
    MUST(sb_tensor_create(SB_S64, 2, wide, &integers, error));
    MUST(sb_tensor_create(SB_F32, 2, real, &reals, error));
    float *numbers = (float *)(void *)logits->data;
    for (int64_t i = 0; i < slots; i++)
        ((int64_t *)(void *)waiting->data)[i] = 1000 + i;
    for (int64_t i = 0; i < rows * vocabulary; i++)
        numbers[i] = logit(h, kind);
    if (kind == ODD)
        spoil(h, numbers, rows * vocabulary);
    for (int64_t c = 0; c < choices; c++) {
        int64_t *integer = (int64_t *)(void *)integers->data + c * wide[1];
        float *settings = (float *)(void *)reals->data + c * real[1];
        settle(h, rows, slots, vocabulary, c % 2 == 0 && c < 8 && (cuts || random_between(&h->random, 0, 5) == 0),
               integer, real[1], settings);
        if (by != NULL)
            sb_choose_write(by, integer[SB_CHOOSE_ROW], integer[SB_CHOOSE_SLOT], integer, settings, real[1]);
    }
    add_input(&test, waiting);
    add_input(&test, logits);
    add_input(&test, integers);
    add_input(&test, reals);
    harness_run(h, &test);
}

static void choose(harness *h, int64_t rows, int64_t choices, int64_t vocabulary, int kind) {
    choose_by(h, rows, choices, vocabulary, kind, NULL);
}

HARNESS_GROUP(choose, sizes, HARNESS_CUDA) {
    static const int64_t sizes[] = {1, 2, 3, 31, 127, 128, 129, 1000, 1023, 1024, 1025, 2048, 3001};
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            choose(h, 1 + random_between(&h->random, 0, 2), 1 + random_between(&h->random, 0, 5), sizes[s], kind);
    }
}

/* More tokens in a range than a block lists. */
HARNESS_GROUP(choose, large, HARNESS_CUDA) {
    for (int kind = 0; kind < KINDS; kind++) {
        choose(h, 2, 4, 5000 + random_between(&h->random, 0, 3000), kind);
        choose(h, 1, 2, 20011, kind);
    }
    choose(h, 1, 2, 128256, NORMAL);
}

/* Small weights whose sums are large, and many equal ones: with each of the settings, and with several at a time. */
HARNESS_GROUP(choose, weights, HARNESS_CUDA) {
    static const sb_choose_settings by[] = {
        {.temperature = 1, .top_p = 0.5f, .seed = 1},
        {.temperature = 0.9f, .top_p = 0.9f, .seed = 2, .min_p = 1e-8f},
        {.temperature = 1, .top_p = 0.7f, .seed = 3, .top_k = 9000},
        {.temperature = 1, .top_p = 1, .seed = 4, .top_k = 12000, .min_p = 0.002f},
        {.temperature = 1, .top_p = 1, .seed = 5, .min_p = 1e-3f},
    };
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        choose_by(h, 2, 2, 20011, LONG_TAIL, &by[i]);
        choose_by(h, 1, 1, 20011, EQUAL, &by[i]);
    }
}

/* The same by launches behind each other, as devices before Hopper do it. */
HARNESS_GROUP(choose, steps, HARNESS_CUDA) {
    sb_cuda_choose_force_steps(true);
    for (int kind = 0; kind < KINDS; kind++) {
        choose(h, 2, 4, 1 + random_between(&h->random, 0, 3000), kind);
        choose(h, 2, 4, 5000 + random_between(&h->random, 0, 3000), kind);
        choose(h, 1, 2, 20011, kind);
    }
    choose(h, 1, 2, 128256, NORMAL);
    sb_cuda_choose_force_steps(false);
}

/* More choices than arrivals are counted for: another kernel chooses. */
HARNESS_GROUP(choose, many, HARNESS_CUDA) {
    choose(h, 7, 4100, 5, FEW_VALUES);
    choose(h, 40, 64, 300, NORMAL);
}
