/* Operators that move, pick, place and make elements. */
#include "harness/harness.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* One dtype for each size of an element, and floats whose bits must stay. */
static const sb_dtype sizes[] = {SB_U8, SB_BOOL, SB_F16, SB_BF16, SB_F32, SB_S32, SB_F64, SB_S64};
#define SIZES (int)(sizeof sizes / sizeof sizes[0])

/* ---- copies ---- */

HARNESS_GROUP(moving, joins, HARNESS_CUDA) {
    for (int i = 0; i < SIZES; i++) {
        for (int axis = -3; axis < 3; axis++) {
            harness_case test = harness_op("Concat", 13);
            for (int part = 0; part < 4; part++) {
                int64_t dims[3] = {3, 4, 5};
                dims[axis < 0 ? axis + 3 : axis] = part;
                add_input(&test, any_tensor(h, sizes[i], 3, dims));
            }
            set_int(&test, "axis", axis);
            harness_run(h, &test);
        }
        harness_case test = harness_op("Tile", 13);
        add_input(&test, any_tensor(h, sizes[i], 3, DIMS(2, 3, 5)));
        add_list(&test, 3, DIMS(3, 1, 2));
        harness_run(h, &test);
        test = harness_op("Tile", 13);
        add_input(&test, any_tensor(h, sizes[i], 2, DIMS(2, 3)));
        add_list(&test, 2, DIMS(2, 0));
        harness_run(h, &test);
    }
}

/* Repeated rows and blocks of every size, of which some are pages and more, over inputs in every order in memory; and "on" among many
 * "off", by indices of every type, some of which lead outside. */
HARNESS_GROUP(moving, repeated, HARNESS_CPU | HARNESS_CUDA) {
    static const int64_t dims[][4] = {{3, 1, 5, 1},   {2, 3, 1, 7},   {1, 1, 1, 1},
                                      {5, 2, 40, 33}, {2, 1, 64, 16}, {1, 3, 0, 2}};
    static const int64_t repeats[][4] = {{1, 4, 1, 3},  {2, 1, 9, 1}, {1, 1, 1, 5000}, {3, 1, 1, 2},
                                         {1, 40, 1, 1}, {2, 2, 2, 2}, {1, 0, 1, 1}};
    for (int round = 0; round < SIZES * 6 * 7; round++) {
        const int64_t *extents = dims[round / SIZES % 6], *times = repeats[round / SIZES / 6];
        if (extents[0] * extents[1] * extents[2] * extents[3] > 1000 && times[3] > 1000)
            continue;
        harness_case test = harness_op("Tile", 13);
        add_input(&test, round % 2 == 0 ? permuted_tensor(h, sizes[round % SIZES], 4, extents)
                                        : any_tensor(h, sizes[round % SIZES], 4, extents));
        add_list(&test, 4, times);
        harness_run(h, &test);
    }
    static const sb_dtype indices[] = {SB_S64, SB_S32};
    for (int round = 0; round < SIZES * 2 * 3; round++) {
        const int64_t depth = round % 3 == 0 ? 1 : round % 3 == 1 ? 1500 : 37;
        harness_case test = harness_op("OneHot", 11);
        add_input(&test, any_indices(h, indices[round / SIZES % 2], 2, DIMS(9, 5), depth + 3, false));
        add_list(&test, 1, &depth);
        add_input(&test, any_tensor(h, sizes[round % SIZES], 1, DIMS(2)));
        set_int(&test, "axis", round / SIZES / 2 - 1);
        harness_run(h, &test);
    }
}

/* Many inputs, of which one kernel joins some at a time: lines of one element and of more, empty inputs among them, sizes of which
 * units of each number of bytes are made; lines apart from each other, and such as lie in any order. */
HARNESS_GROUP(moving, many_joins, HARNESS_CUDA) {
    static const int64_t widths[] = {1, 16, 6, 4, 24};
    for (int round = 0; round < SIZES * 5 * 4; round++) {
        sb_dtype dtype = sizes[round % SIZES];
        int64_t width = widths[round / SIZES % 5], variant = round / SIZES / 5;
        harness_case test = harness_op("Concat", 13);
        for (int part = 0; part < (variant == 3 ? 40 : variant == 2 ? 17 : 16); part++) {
            int64_t dims[3] = {5, part % 7 == 3 ? 0 : part % 4 == 2 ? 2 * width : width, variant == 1 ? 3 : 1};
            add_input(&test,
                      round % 3 != 2 ? packed_tensor(h, ORDINARY, dtype, 3, dims) : any_tensor(h, dtype, 3, dims));
        }
        set_int(&test, "axis", 1);
        harness_run(h, &test);
    }
}

/* Rows of whole groups of 8 bytes, of which copies make wider elements, and such that just are not. */
HARNESS_GROUP(moving, rows, HARNESS_CUDA) {
    static const int64_t lengths[] = {8, 16, 20, 24, 32, 64, 96};
    for (int i = 0; i < SIZES; i++) {
        for (int l = 0; l < 7; l++) {
            for (int layout = 0; layout < 2; layout++) {
                for (int axis = 0; axis < 3; axis++) {
                    harness_case test = harness_op("Concat", 13);
                    for (int part = 1; part < 4; part++) {
                        int64_t dims[3] = {3, 4, lengths[l]};
                        dims[axis] = axis == 2 ? lengths[(l + part) % 7] : part;
                        add_input(&test, layout == 0 ? make_tensor(h, sizes[i], 3, dims, PACKED)
                                                     : any_tensor(h, sizes[i], 3, dims));
                    }
                    set_int(&test, "axis", axis);
                    harness_run(h, &test);
                }
                harness_case test = harness_op("Tile", 13);
                add_input(&test, layout == 0 ? make_tensor(h, sizes[i], 3, DIMS(2, 3, lengths[l]), PACKED)
                                             : permuted_tensor(h, sizes[i], 3, DIMS(2, 3, lengths[l])));
                add_list(&test, 3, DIMS(3, 2, 1));
                harness_run(h, &test);
            }
        }
    }
}

HARNESS_GROUP(moving, blocks, HARNESS_CUDA) {
    for (int i = 0; i < SIZES; i++) {
        harness_case test = harness_op("DepthToSpace", 13);
        add_input(&test, any_tensor(h, sizes[i], 4, DIMS(2, 12, 3, 5)));
        set_int(&test, "blocksize", 2);
        set_text(&test, "mode", i % 2 == 0 ? "DCR" : "CRD");
        harness_run(h, &test);
        test = harness_op("SpaceToDepth", 13);
        add_input(&test, any_tensor(h, sizes[i], 4, DIMS(2, 3, 6, 9)));
        set_int(&test, "blocksize", 3);
        harness_run(h, &test);
        for (int64_t diagonal = -9; diagonal < 10; diagonal += 3) {
            test = harness_op("Trilu", 14);
            add_input(&test, any_tensor(h, sizes[i], 3, DIMS(2, 5, 7)));
            if (diagonal != 0)
                add_list(&test, 1, &diagonal);
            set_int(&test, "upper", diagonal & 1);
            harness_run(h, &test);
        }
        for (int batch = 0; batch < 2; batch++) {
            int64_t extent = batch == 0 ? 4 : 6, time = batch == 0 ? 6 : 4;
            test = harness_op("ReverseSequence", 10);
            add_input(&test, any_tensor(h, sizes[i], 4, DIMS(4, 6, 3, 2)));
            sb_tensor *lengths = any_indices(h, SB_S64, 1, &extent, time, i == 5);
            for (size_t at = 0; at < lengths->storage->bytes / 8; at++) {
                int64_t *length = (int64_t *)lengths->storage->data + at;
                *length = *length < 0 ? -*length : *length + (i == 5);
            }
            add_input(&test, lengths);
            set_int(&test, "batch_axis", batch);
            set_int(&test, "time_axis", 1 - batch);
            harness_run(h, &test);
        }
    }
}

HARNESS_GROUP(moving, pads, HARNESS_CUDA) {
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    static const int64_t pads[][6] = {
        {1, 0, 2, 0, 3, 1}, {0, 0, 0, 0, 0, 0}, {0, -1, 9, 7, 0, -2}, {-2, 12, 0, 1, 1, 0}};
    for (int i = 0; i < SIZES; i++) {
        for (int mode = 0; mode < 4; mode++) {
            for (int p = 0; p < 4; p++) {
                harness_case test = harness_op("Pad", 19);
                add_input(&test, any_tensor(h, sizes[i], 3, DIMS(3, 4, 5)));
                add_list(&test, 6, pads[p]);
                if (p % 2 == 0)
                    add_input(&test, any_tensor(h, sizes[i], 0, NULL));
                set_text(&test, "mode", modes[mode]);
                harness_run(h, &test);
            }
        }
        harness_case test = harness_op("Pad", 13);
        add_input(&test, any_tensor(h, sizes[i], 2, DIMS(0, 3)));
        add_list(&test, 4, DIMS(2, 0, 0, 1));
        harness_run(h, &test);
        test = harness_op("CenterCropPad", 18);
        add_input(&test, any_tensor(h, sizes[i], 4, DIMS(5, 4, 3, 6)));
        add_list(&test, 4, DIMS(2, 9, 3, 7));
        harness_run(h, &test);
    }
}

/* Images in every order of dimensions in memory. */
HARNESS_GROUP(moving, images, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    static const int64_t pads[][8] = {
        {0, 0, 1, 2, 0, 0, 3, 0}, {0, 1, 0, 0, 1, 0, 0, 2}, {0, 0, -2, 4, 0, 0, 1, -3}, {1, 0, 0, 0, 0, 3, 0, 0}};
    for (int round = 0; round < 64; round++) {
        sb_dtype dtype = sizes[round / 2 % SIZES];
        int64_t channels = (int64_t[]){1, 5, 16, 33}[round / 4 % 4];
        harness_case test = harness_op("Pad", 19);
        add_input(&test, random_tensor(h, ORDINARY, dtype, 4, DIMS(2, channels, 9, 12)));
        add_list(&test, 8, pads[round % 4]);
        if (round % 3 == 0)
            add_input(&test, any_tensor(h, dtype, 0, NULL));
        set_text(&test, "mode", modes[round / 16]);
        harness_run(h, &test);
        test = harness_op("Concat", 13);
        for (int part = 0; part < 3; part++) {
            int64_t dims[4] = {2, channels, 9, 12};
            dims[round % 4] = part + 1;
            add_input(&test, random_tensor(h, ORDINARY, dtype, 4, dims));
        }
        set_int(&test, "axis", round % 4);
        harness_run(h, &test);
    }
}

HARNESS_GROUP(moving, making, HARNESS_CUDA) {
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        harness_case test = harness_op("ConstantOfShape", 9);
        add_list(&test, 3, DIMS(3, 1, 7));
        sb_tensor *value = make_tensor(h, (sb_dtype)dtype, 1, DIMS(1), PACKED);
        MUST(sb_attributes_add_tensor(&test.attributes, "value", value, error));
        harness_run(h, &test);
        test = harness_op("EyeLike", 9);
        add_input(&test, any_tensor(h, (sb_dtype)dtype, 2, DIMS(5, 7)));
        set_int(&test, "k", dtype % 5 - 2);
        harness_run(h, &test);
    }
    static const float bounds[][3] = {{0.5f, 9.0f, 0.3f}, {3, -4, -0.7f}, {1, 1, 2}};
    for (int i = 0; i < 3; i++) {
        harness_case test = harness_op("Range", 11);
        for (int b = 0; b < 3; b++) {
            add_floats(&test, 1, &bounds[i][b]);
            test.inputs[b]->rank = 0;
        }
        harness_run(h, &test);
    }
    static const int64_t whole[][3] = {{-7, 1000, 3}, {7, 7, 1},       {300, 0, -7}, {0, 300, 1},
                                       {5, 4, 1},     {-3, -300, -99}, {0, 1, 1000}, {1 << 20, (1 << 20) + 257, 1}};
    for (int i = 0; i < 8; i++) {
        harness_case test = harness_op("Range", 11);
        for (int b = 0; b < 3; b++) {
            add_list(&test, 1, &whole[i][b]);
            test.inputs[b]->rank = 0;
        }
        harness_run(h, &test);
    }
}

/* x [4,7,6]: along one axis or two, from either end, in either direction. */
HARNESS_GROUP(moving, slices, HARNESS_CUDA) {
    static const int64_t bounds[][3] = {{1, 5, 1},          {-3, INT64_MAX, 1}, {0, -1, 2}, {-1, -9, -1}, {5, 0, -2},
                                        {-1, INT64_MAX, 1}, {3, 3, 1},          {9, 12, 1}, {-99, 4, 3},  {2, 99, 1}};
    for (int i = 0; i < SIZES; i++) {
        for (int first = 0; first < 10; first++) {
            for (int count = 1; count <= 2; count++) {
                int64_t lists[4][2];
                for (int e = 0; e < 2; e++) {
                    const int64_t *entry = bounds[(first + 3 * e) % 10];
                    int64_t axis = (first + e) % 3;
                    lists[0][e] = entry[0];
                    lists[1][e] = entry[1];
                    lists[2][e] = e == 0 ? axis - 3 : axis;
                    lists[3][e] = entry[2];
                }
                harness_case test = harness_op("Slice", 13);
                add_input(&test, any_tensor(h, sizes[i], 3, DIMS(4, 7, 6)));
                for (int list = 0; list < 4; list++)
                    add_list(&test, count, lists[list]);
                harness_run(h, &test);
            }
        }
    }
}

HARNESS_GROUP(moving, random, HARNESS_CUDA) {
    static const sb_dtype floats[] = {SB_F32, SB_F16, SB_BF16, SB_F64};
    static const char *const alike[] = {"RandomUniformLike", "RandomNormalLike"};
    for (int round = 0; round < 16; round++) {
        harness_case test = harness_op(alike[round % 2], 1);
        add_input(&test, any_tensor(h, floats[round / 2 % 4], 2, DIMS(13, 17)));
        if (round % 3 != 0)
            set_float(&test, "seed", (float)round);
        harness_run(h, &test);
        test = harness_op("Bernoulli", 15);
        add_input(&test, any_tensor(h, floats[round / 2 % 4], 2, DIMS(13, 17)));
        set_float(&test, "seed", 3.0f);
        harness_run(h, &test);
        test = harness_op("Multinomial", 7);
        add_input(&test, any_tensor(h, floats[round % 4], 2, DIMS(5, 9)));
        set_int(&test, "sample_size", 7);
        harness_run(h, &test);
    }
    harness_case test = harness_op("RandomNormal", 1);
    set_ints(&test, "shape", 2, DIMS(5, 7));
    harness_run(h, &test);
}

/* ---- by index ---- */

HARNESS_GROUP(moving, gathers, HARNESS_CUDA) {
    static const int64_t widths[] = {1, 2, 3, 4, 6, 8, 16, 768};
    for (int i = 0; i < SIZES; i++) {
        for (int round = 0; round < 8; round++) {
            sb_dtype index = round % 2 == 0 ? SB_S64 : SB_S32;
            bool astray = round == 7;
            int64_t dims[3] = {5, 7, widths[round]}, axis = round % 3;
            harness_case test = harness_op("Gather", 13);
            add_input(&test, any_tensor(h, sizes[i], 3, dims));
            add_input(&test, any_indices(h, index, 2, DIMS(3, 4), dims[axis], astray));
            set_int(&test, "axis", axis);
            harness_run(h, &test);
            int64_t picks[3] = {4, 6, widths[round] < 5 ? 1 : 5};
            picks[axis] = 9;
            test = harness_op("GatherElements", 13);
            add_input(&test, any_tensor(h, sizes[i], 3, dims));
            add_input(&test, any_indices(h, index, 3, picks, dims[axis], astray));
            set_int(&test, "axis", axis);
            harness_run(h, &test);
            test = harness_op("GatherND", 13);
            add_input(&test, any_tensor(h, sizes[i], 3, dims));
            add_input(&test, any_indices(h, index, 3, DIMS(5, 3, 1 + (round & 1)),
                                         (round & 1) != 0 && widths[round] < 7 ? widths[round] : 7, astray));
            set_int(&test, "batch_dims", 1);
            harness_run(h, &test);
        }
        harness_case test = harness_op("Gather", 13);
        add_input(&test, any_tensor(h, sizes[i], 2, DIMS(0, 3)));
        add_input(&test, any_indices(h, SB_S64, 1, DIMS(0), 0, false));
        harness_run(h, &test);
        for (int axis = -1; axis < 3; axis++) {
            int64_t depth = 5;
            test = harness_op("OneHot", 11);
            add_input(&test, any_indices(h, SB_S64, 2, DIMS(4, 6), 9, false));
            add_list(&test, 1, &depth);
            add_input(&test, any_tensor(h, sizes[i], 1, DIMS(2)));
            set_int(&test, "axis", axis);
            harness_run(h, &test);
        }
    }
}

/* An index for each row of updates, repeated along it as exporters expand it, and rows of every length; for tuples as many. */
HARNESS_GROUP(moving, scattered_rows, HARNESS_CPU) {
    static const char *const ways[] = {"none", "add", "mul", "max", "min"};
    static const int64_t widths[] = {1, 7, 16, 33};
    static const sb_dtype reduced[] = {SB_F32, SB_F16, SB_BF16};
    for (int round = 0; round < 5 * 4 * 4 * 3; round++) {
        int64_t width = widths[round / 5 % 4], axis = round / 20 % 2, places = 6;
        sb_dtype dtype = round % 5 == 0 ? sizes[round / 5 % SIZES] : reduced[round / 80],
                 index = round % 2 == 0 ? SB_S64 : SB_S32;
        int64_t data[4] = {3, 3, 2, width}, picks[4] = {3, 3, 2, width};
        data[axis] = places;
        picks[axis] = 19;
        sb_tensor *repeated = any_indices(h, index, 4, DIMS(picks[0], picks[1], 1, 1), places, round % 16 == 15);
        for (int d = 2; d < 4; d++) {
            repeated->dims[d] = picks[d];
            repeated->strides[d] = 0;
        }
        harness_case test = harness_op("ScatterElements", 18);
        add_input(&test, any_tensor(h, dtype, 4, data));
        add_input(&test, repeated);
        add_input(&test, round % 3 == 0 ? any_tensor(h, dtype, 4, picks) : make_tensor(h, dtype, 4, picks, PACKED));
        set_int(&test, "axis", axis);
        set_text(&test, "reduction", ways[round % 5]);
        harness_run(h, &test);
        test = harness_op("ScatterND", 18);
        add_input(&test, any_tensor(h, dtype, 2, DIMS(places, width)));
        add_input(&test, any_indices(h, index, 2, DIMS(19, 1), places, round % 16 == 15));
        add_input(&test, any_tensor(h, dtype, 2, DIMS(19, width)));
        set_text(&test, "reduction", ways[round % 5]);
        harness_run(h, &test);
    }
}

/* An index of its own for each element of lines that are longer than what is combined at once, many to the same place. */
HARNESS_GROUP(moving, scattered_lines, HARNESS_CPU) {
    static const char *const ways[] = {"add", "mul", "max", "min"};
    static const sb_dtype reduced[] = {SB_F32, SB_F16, SB_BF16};
    static const int64_t widths[] = {1, 5, 33, 256, 600};
    for (int round = 0; round < 3 * 4 * 5 * 2; round++) {
        const sb_dtype dtype = reduced[round % 3], index = round % 2 == 0 ? SB_S64 : SB_S32;
        const int64_t width = widths[round / 12 % 5], axis = round / 60;
        const int64_t data[3] = {4, 2, width}, picks[3] = {axis == 0 ? 9 : 4, axis == 0 ? 2 : 9, width};
        harness_case test = harness_op("ScatterElements", 18);
        add_input(&test, any_tensor(h, dtype, 3, data));
        add_input(&test, any_indices(h, index, 3, picks, data[axis], round % 16 == 15));
        add_input(&test, any_tensor(h, dtype, 3, picks));
        set_int(&test, "axis", axis);
        set_text(&test, "reduction", ways[round / 3 % 4]);
        harness_run(h, &test);
    }
}

/* Few places and many updates, so that most places are written several times. */
HARNESS_GROUP(moving, scatters, HARNESS_CUDA) {
    static const char *const ways[] = {"none", "add", "mul", "max", "min"};
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        for (int way = 0; way < 5; way++) {
            for (int axis = 0; axis < 3; axis++) {
                sb_dtype index = axis == 0 ? SB_S32 : SB_S64;
                bool astray = way == 2 && axis == 1;
                int64_t dims[3] = {3, 4, 5}, picks[3] = {2, 4, 3};
                picks[axis] = 17;
                harness_case test = harness_op("ScatterElements", 18);
                add_input(&test, any_tensor(h, (sb_dtype)dtype, 3, dims));
                add_input(&test, any_indices(h, index, 3, picks, dims[axis], astray));
                add_input(&test, any_tensor(h, (sb_dtype)dtype, 3, picks));
                set_int(&test, "axis", axis);
                set_text(&test, "reduction", ways[way]);
                harness_run(h, &test);
                int64_t depth = axis + 1, updates[4] = {7, 3, 4, 5};
                updates[2] = axis == 0 ? 4 : 5;
                test = harness_op("ScatterND", 18);
                add_input(&test, any_tensor(h, (sb_dtype)dtype, 3, dims));
                add_input(&test, any_indices(h, index, 3, DIMS(7, 3, depth), 3, astray));
                add_input(&test, any_tensor(h, (sb_dtype)dtype, 5 - (int)depth, updates));
                set_text(&test, "reduction", ways[way]);
                harness_run(h, &test);
            }
        }
    }
    harness_case test = harness_op("Scatter", 9);
    add_input(&test, any_tensor(h, SB_F32, 2, DIMS(3, 3)));
    add_input(&test, any_indices(h, SB_S64, 2, DIMS(0, 3), 3, false));
    add_input(&test, any_tensor(h, SB_F32, 2, DIMS(0, 3)));
    harness_run(h, &test);
}
