#include "inputs.h"

#include <stdlib.h>
#include <string.h>

#include "standard_input.h"
#include "stepping.h"

/* ---- reading files ---- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static int read_named(const sb_model *model, const char *name, const char *path, sb_value *values) {
    int index = sb_model_input_index(model, name);
    if (index < 0) {
        fprintf(stderr, "samebit: the model has no input %s; it has", name);
        for (int i = 0; i < sb_model_input_count(model); i++)
            fprintf(stderr, "%s %s", i > 0 ? "," : "", sb_model_input(model, i)->name);
        fputc('\n', stderr);
        return EXIT_USAGE;
    }
    if (values[index].kind != SB_KIND_NONE)
        return usage_error("input %s is given twice", name);
    sb_error error;
    sb_status status;
    if (ends_with(path, ".pb")) {
        status = sb_onnx_value_load(path, sb_model_input(model, index), &values[index], &error);
    } else {
        sb_tensor *tensor = NULL;
        status = sb_tensor_load(path, NULL, &tensor, &error);
        values[index] = sb_value_of_tensor(tensor);
    }
    return status == SB_OK ? EXIT_RIGHT : report(&error);
}

static int read_archive(const sb_model *model, const char *path, sb_value *values) {
    int count, code = EXIT_RIGHT;
    char **names;
    sb_tensor **tensors;
    sb_error error;
    if (sb_tensors_load(path, &count, &names, &tensors, &error) != SB_OK)
        return report(&error);
    for (int i = 0; i < count && code == EXIT_RIGHT; i++) {
        int index = sb_model_input_index(model, names[i]);
        if (index < 0)
            code = usage_error("%s holds %s, which is no input of the model", path, names[i]);
        else if (values[index].kind != SB_KIND_NONE)
            code = usage_error("input %s is given twice", names[i]);
        else
            values[index] = sb_value_of_tensor(sb_tensor_retain(tensors[i]));
    }
    sb_tensors_free(count, names, tensors);
    return code;
}

/* The one input that a run needs and no state keeps; NULL, after printing, where there are several. */
static const char *only_input(const arguments *arguments, const sb_model *model, const char *text) {
    const char *only = NULL;
    int count = 0;
    for (int i = 0; i < sb_model_input_count(model); i++) {
        const char *name = sb_model_input(model, i)->name;
        if (is_kept(arguments, name, true))
            continue;
        only = name;
        count++;
    }
    if (count == 1)
        return only;
    usage_error("the model has %d inputs, and --input takes NAME=FILE or FILE.npz, not %s", count, text);
    return NULL;
}

static int read_input(const arguments *arguments, const sb_model *model, const char *text, sb_value *values) {
    char *name = NULL;
    const char *path = text;
    if (strchr(text, '=') != NULL && !parse_assignment(text, &name, &path))
        return usage_error("--input takes NAME=FILE or FILE.npz, not %s", text);
    int code = find_array_file(&path);
    const char *input = name;
    bool archive = code == EXIT_RIGHT && name == NULL && is_archive(path);
    if (code == EXIT_RIGHT && name == NULL && !archive) {
        input = only_input(arguments, model, text);
        code = input != NULL ? EXIT_RIGHT : EXIT_USAGE;
    }
    if (code == EXIT_RIGHT)
        code = archive ? read_archive(model, path, values) : read_named(model, input, path, values);
    free(name);
    return code;
}

/* ---- symbols ---- */

/* The value that --set gives to a symbol, or -1. */
static long long set_value(const arguments *arguments, const char *symbol) {
    const char *text;
    for (int i = 0; (text = option_value_at(arguments, "set", i)) != NULL; i++) {
        size_t length = strlen(symbol);
        long long value;
        if (strncmp(text, symbol, length) == 0 && text[length] == '=' &&
            parse_integer(text + length + 1, 0, INT64_MAX, &value))
            return value;
    }
    return -1;
}

static bool occurs(const sb_model *model, const char *symbol) {
    for (int i = 0; i < sb_model_input_count(model); i++) {
        const sb_value_description *input = sb_model_input(model, i);
        for (int d = 0; d < input->rank; d++) {
            if (strcmp(input->dim_texts[d], symbol) == 0)
                return true;
        }
    }
    return false;
}

int check_settings(const arguments *arguments, const sb_model *model) {
    const char *text, *rest;
    char *symbol;
    for (int i = 0; (text = option_value_at(arguments, "set", i)) != NULL; i++) {
        long long value;
        if (!parse_assignment(text, &symbol, &rest))
            return usage_error("--set takes SYMBOL=N, not %s", text);
        bool known = occurs(model, symbol);
        free(symbol);
        if (!parse_integer(rest, 0, INT64_MAX, &value))
            return usage_error("--set takes SYMBOL=N with N of at least 0, not %s", text);
        if (!known)
            return usage_error("--set %s: no input of the model has an extent of that name", text);
    }
    return EXIT_RIGHT;
}

/* Whether the extents of a given tensor are what --set asks for. */
static int check_extents(const arguments *arguments, const sb_value_description *input, const sb_tensor *tensor) {
    for (int d = 0; d < input->rank && d < sb_tensor_rank(tensor); d++) {
        long long wanted = set_value(arguments, input->dim_texts[d]);
        if (wanted >= 0 && sb_tensor_dims(tensor)[d] != wanted)
            return usage_error("input %s: extent %s is %lld, but --set asks for %lld", input->name, input->dim_texts[d],
                               (long long)sb_tensor_dims(tensor)[d], wanted);
    }
    return EXIT_RIGHT;
}

/* ---- made-up inputs ---- */

/* SplitMix64: a fixed sequence, the same on every machine. */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The bits of 1 in the small types; of an integer, 1. */
static uint64_t small_one(sb_dtype dtype) {
    switch (dtype) {
    case SB_F8E4M3FN:
        return 0x38;
    case SB_F8E4M3FNUZ:
    case SB_F8E5M2FNUZ:
        return 0x40;
    case SB_F8E5M2:
        return 0x3c;
    case SB_F8E8M0:
        return 0x7f;
    case SB_F6E2M3:
        return 0x08;
    case SB_F6E3M2:
        return 0x0c;
    case SB_F4E2M1:
        return 0x02;
    default:
        return 1;
    }
}

/* Floats in [-1, 1) in steps of 2^-7, which f16 and all wider ones hold exactly; the rest 0 or 1 (f8e8m0, which has no
 * 0: 2^-127 or 1), so that integers are valid as indices and token numbers of any model. */
static void fill(sb_dtype dtype, int64_t count, uint64_t seed, unsigned char *data) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t random = next_random(&seed);
        float number = (float)((int)(random >> 56) - 128) / 128.0f;
        size_t size = sb_dtype_size(dtype);
        uint32_t bits;
        double wide = number;
        memcpy(&bits, &number, sizeof bits);
        uint16_t brain = (uint16_t)(bits >> 16);
        /* binary16 from binary32: exact here, so shifting exponent and significand is enough. */
        uint16_t half =
            number == 0
                ? 0
                : (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
        uint64_t integer = (random >> 63) * small_one(dtype);
        const void *element = dtype == SB_F32    ? (const void *)&number
                              : dtype == SB_F64  ? (const void *)&wide
                              : dtype == SB_BF16 ? (const void *)&brain
                              : dtype == SB_F16  ? (const void *)&half
                                                 : (const void *)&integer;
        memcpy(data + (size_t)i * size, element, size);
    }
}

static int make_input(const arguments *arguments, const sb_value_description *input, int index, sb_value *value) {
    if (input->optional)
        return EXIT_RIGHT;
    if (input->kind != SB_KIND_TENSOR || input->rank < 0 || input->dtype == SB_STRING)
        return usage_error("input %s cannot be made up: give it with --input", input->name);
    int64_t dims[SB_MAX_RANK];
    for (int d = 0; d < input->rank; d++) {
        long long set = set_value(arguments, input->dim_texts[d]);
        dims[d] = input->dims[d] >= 0 ? input->dims[d] : set >= 0 ? set : 1;
    }
    sb_tensor *tensor;
    sb_error error;
    if (sb_tensor_create(input->dtype, input->rank, dims, &tensor, &error) != SB_OK)
        return report(&error);
    fill(input->dtype, sb_tensor_elements(tensor), (uint64_t)index + 1, sb_tensor_mutable_data(tensor));
    *value = sb_value_of_tensor(tensor);
    return EXIT_RIGHT;
}

int read_given_inputs(const arguments *arguments, const sb_model *model, sb_value *values) {
    int code = check_settings(arguments, model);
    const char *text;
    for (int i = 0; code == EXIT_RIGHT && (text = option_value_at(arguments, "input", i)) != NULL; i++)
        code = read_input(arguments, model, text, values);
    return code;
}

int complete_inputs(const arguments *arguments, const sb_model *model, bool make_up, sb_value *values) {
    int code = EXIT_RIGHT;
    for (int i = 0; i < sb_model_input_count(model) && code == EXIT_RIGHT; i++) {
        const sb_value_description *input = sb_model_input(model, i);
        if (values[i].kind == SB_KIND_TENSOR)
            code = check_extents(arguments, input, values[i].tensor);
        else if (is_kept(arguments, input->name, true))
            continue; /* which the session refuses if it is given all the same */
        else if (values[i].kind == SB_KIND_NONE && make_up)
            code = make_input(arguments, input, i, &values[i]);
        else if (values[i].kind == SB_KIND_NONE && !input->optional)
            code = usage_error("input %s is missing: give --input %s=FILE", input->name, input->name);
    }
    return code;
}

int read_inputs(const arguments *arguments, const sb_model *model, bool make_up, sb_value *values) {
    int code = read_given_inputs(arguments, model, values);
    return code == EXIT_RIGHT ? complete_inputs(arguments, model, make_up, values) : code;
}
