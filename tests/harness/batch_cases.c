/* BatchNormalization in inference whose statistics are known beforehand: factors that are worked out once, of the input's
 * dtype or of another, over channels that lie anywhere in memory. */
#include "harness/graphs.h"

static const struct {
    int rank;
    int64_t dims[4];
} shapes[] = {{2, {3, 5}},         {2, {1, 70}},      {3, {2, 4, 9}},  {4, {2, 16, 5, 7}},
              {4, {1, 33, 40, 1}}, {4, {3, 1, 2, 2}}, {3, {2, 0, 3}},  {4, {0, 8, 3, 3}},
              {3, {1, 2, 1300}},   {2, {2, 1300}},    {3, {40, 7, 1}}, {4, {2, 3, 1, 300}}};

HARNESS_GROUP(batch, constants, HARNESS_CPU) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int round = 0; round < 3 * DISTRIBUTIONS; round++) {
            distribution kind = (distribution)(round % DISTRIBUTIONS);
            sb_dtype dtype = dtypes[round % 3], other = dtypes[(round + (round % 4 == 0)) % 3];
            harness_case test = harness_op("BatchNormalization", 15);
            add_input(&test, random_tensor(h, kind, dtype, shapes[s].rank, shapes[s].dims));
            for (int i = 1; i < 5; i++)
                add_input(&test, random_tensor(h, kind, i < 3 ? dtype : other, 1, &shapes[s].dims[1]));
            test.constants = 30;
            harness_run(h, &test);
        }
    }
}
