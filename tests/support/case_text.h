/* Nodes with inputs, written as text, in C or in files:
 *
 *     inputs      "f32[2,3]" (random in [-1, 1]), "s64[4]%3" (random in [0, 3)), "s64{1,2}" (a list),
 *                 "f32[2,2]{1,2,3,4}", "s64{}1" (a scalar), "string[2]{a,b}" (words, '_' for a space; for tests/rules
 *                 alone); "" where omitted
 *     attributes  "axis=1 pads=[0,0,1,1] alpha=0.5 mode=linear" (a number with a point is a float)
 *
 * In a file each line is a case: operator, operator set and attributes; inputs; and, where they are known by hand or there are
 * several, outputs. '-' is an input that is omitted, '?' an output that nobody has worked out, '#' begins a comment:
 *
 *     TopK 11 axis=0 | f32[3]{1,nan,2} s64{2} | f32[2]{nan,2} s64[2]{1,2}
 *     Split 13 axis=1 | f32[2,6] s64{1,2,3} | ? ? ?
 *
 * What is refused has a part of the message in place of outputs; where there are several, behind a '?' for each:
 *
 *     Div 14 | s32[1]{1} s32[1]{0} | !integer division by zero
 *
 * An operator of another domain than the standard's own is written DOMAIN:OPERATOR.
 *
 * The line "sides cpu cuda" says which sides must have a kernel for the cases behind it; "sides" alone, none.
 *
 * Include after cmocka.h, or after what has its words. */
#ifndef SUPPORT_CASE_TEXT_H
#define SUPPORT_CASE_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "ops/convert_loops.h"
#include "ops/real.h"
#include "support/must.h"
#include "support/random.h"
#include "tensor/tensor.h"

#define MADE_INPUTS 12
#define MADE_OUTPUTS 5

typedef struct made_case {
    const char *domain, *op;
    int version, outputs;
    const char *attributes;
    const char *inputs[MADE_INPUTS];
    const char *results[MADE_OUTPUTS]; /* NULL where they are not known */
    const char *refusal;               /* a part of the message with which it is refused; NULL: it runs */
    bool sides, on_cpu, on_cuda;       /* whether it was said which sides must have a kernel; which ones */
} made_case;

/* ---- tensors ---- */

static inline void store_number(sb_dtype dtype, char *data, int64_t at, double value) {
    size_t size = sb_dtype_size(dtype);
    int64_t whole = dtype == SB_BOOL ? value != 0 : (int64_t)value;
    if (sb_dtype_is_small(dtype)) {
        /* Without saturation, so that "inf" is one. */
        sb_conversion conversion = {.to = dtype, .from = SB_F64};
        sb_convert_elements(&conversion, 1, (char *const[]){data + at, (char *)&value}, (const int64_t[]){1, 8});
    } else if (dtype == SB_F64)
        memcpy(data + (size_t)at * size, &value, size);
    else if (sb_dtype_is_float(dtype))
        sb_real_store_f32(dtype, data, at, (float)value);
    else
        memcpy(data + (size_t)at * size, &whole, size); /* little-endian: the low bytes */
}

static inline sb_tensor *made_words(const char *text, const char *list, int rank, const int64_t *dims,
                                    int64_t elements) {
    sb_string words[16];
    char letters[256];
    sb_tensor *tensor;
    snprintf(letters, sizeof letters, "%s", list != NULL ? list : "");
    char *at = letters;
    for (int64_t i = 0; i < elements; i++) {
        if (elements > 16 || *at == '\0' || *at == '}')
            fail_msg("%s has fewer than %lld words, or more than 16", text, (long long)elements);
        words[i] = (sb_string){at, strcspn(at, ",}")};
        at += words[i].bytes + 1;
    }
    for (char *c = letters; *c != '\0'; c++)
        *c = *c == '_' ? ' ' : *c;
    MUST(sb_tensor_from_strings(rank, dims, words, &tensor, error));
    return tensor;
}

static inline sb_tensor *made_tensor(const char *text, random_source *random) {
    char name[16];
    int64_t dims[SB_MAX_RANK], elements = 1;
    int rank = 0, length = (int)strcspn(text, "[{");
    snprintf(name, sizeof name, "%.*s", length, text);
    sb_dtype dtype = sb_dtype_from_name(name);
    if (dtype == SB_DTYPE_NONE)
        fail_msg("\"%s\" is no tensor: DTYPE[DIMS]{ELEMENTS}", text);
    const char *at = text + length;
    while (*at == '[' || (rank > 0 && *at == ',')) {
        dims[rank] = strtoll(at + 1, (char **)(uintptr_t)&at, 10);
        elements *= dims[rank++];
    }
    at += *at == ']';
    const char *list = *at == '{' ? at + 1 : NULL;
    if (list != NULL && rank == 0 && *list != '}') {
        dims[0] = 1;
        for (const char *c = list; *c != '}'; c++)
            dims[0] += *c == ',';
        elements = dims[0];
        rank = 1;
    }
    if (list != NULL && *list == '}')
        list++;
    if (dtype == SB_STRING)
        return made_words(text, list, rank, dims, elements);
    int64_t below = *at == '%' ? strtoll(at + 1, NULL, 10) : 0;
    sb_tensor *tensor;
    MUST(sb_tensor_create(dtype, rank, dims, &tensor, error));
    for (int64_t i = 0; i < elements; i++) {
        double value = below > 0 ? (double)random_between(random, 0, below - 1)
                                 : (double)random_between(random, -1000, 1000) / 1000.0;
        if (list != NULL) {
            const char *start = list;
            value = strtod(list, (char **)(uintptr_t)&list);
            if (list == start)
                fail_msg("%s has fewer than %lld elements", text, (long long)elements);
            list += *list == ',';
        } else if (below == 0 && !sb_dtype_is_float(dtype)) {
            value = (double)random_between(random, 0, dtype == SB_BOOL ? 1 : 100);
        }
        store_number(dtype, tensor->data, i, value);
    }
    if (list != NULL && *list != '\0' && strcmp(list, "}") != 0)
        fail_msg("%s has more than %lld elements", text, (long long)elements);
    return tensor;
}

/* ---- attributes ---- */

static inline void made_attribute(sb_attributes *attributes, const char *text) {
    char name[40], word[40];
    int64_t ints[16];
    int64_t count = 0;
    if (strcspn(text, "=") >= strcspn(text, " "))
        fail_msg("\"%s\" is no attribute: NAME=VALUE", text);
    const char *value = strchr(text, '=') + 1;
    snprintf(name, sizeof name, "%.*s", (int)(value - 1 - text), text);
    int length = (int)strcspn(value, " ");
    snprintf(word, sizeof word, "%.*s", length, value);
    if (*value == '[') {
        for (const char *at = value; *at == '[' || *at == ',';)
            ints[count++] = strtoll(at + 1, (char **)(uintptr_t)&at, 10);
        MUST(sb_attributes_add_ints(attributes, name, false, count, ints, error));
    } else if (strchr("-0123456789", *value) == NULL) {
        const sb_string string = {word, (size_t)length};
        MUST(sb_attributes_add_strings(attributes, name, true, 1, &string, error));
    } else if (strchr(word, '.') != NULL) {
        float number = strtof(word, NULL);
        MUST(sb_attributes_add_floats(attributes, name, true, 1, &number, error));
    } else {
        ints[0] = strtoll(word, NULL, 10);
        MUST(sb_attributes_add_ints(attributes, name, true, 1, ints, error));
    }
}

static inline void made_attributes(sb_attributes *attributes, const char *text) {
    for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, " "), at += strspn(at, " "))
        made_attribute(attributes, at);
}

/* ---- files ---- */

#define MADE_LINE 1024

/* Whether inputs of that text are known before the node runs, as shapes and axes are in most models: lists and scalars. */
static inline bool is_known_text(const char *text) {
    return strchr(text, '{') != NULL && strchr(text, '[') == NULL;
}

static inline void read_outputs(made_case *made, char *text) {
    char *refusal = text + strspn(text, "? ");
    if (*refusal == '!') {
        for (char *at = text; at < refusal; at++)
            made->outputs += *at == '?';
        made->outputs += made->outputs == 0;
        made->refusal = refusal + 1;
        return;
    }
    for (char *rest, *word = strtok_r(text, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
        assert_true(made->outputs < MADE_OUTPUTS);
        made->results[made->outputs++] = strcmp(word, "?") != 0 ? word : NULL;
    }
}

static inline void read_inputs(made_case *made, char *text) {
    int count = 0;
    for (char *rest, *word = strtok_r(text, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
        assert_true(count < MADE_INPUTS);
        made->inputs[count++] = strcmp(word, "-") == 0 ? "" : word;
    }
}

/* Cuts the line into the parts of a case, which stay in it. */
static inline void read_case(made_case *made, const char *path, char *line) {
    char *rest, *head = strtok_r(line, "|", &rest), *inputs = head != NULL ? strtok_r(NULL, "|", &rest) : NULL;
    char *outputs = inputs != NULL ? strtok_r(NULL, "|", &rest) : NULL,
         *version = inputs != NULL ? strchr(head, ' ') : NULL;
    *made = (made_case){.op = head, .sides = made->sides, .on_cpu = made->on_cpu, .on_cuda = made->on_cuda};
    if (version == NULL)
        fail_msg("%s: \"%s\" is no case: OPERATOR VERSION ATTRIBUTES | INPUTS | OUTPUTS", path, line);
    *version++ = '\0';
    char *colon = strchr(head, ':');
    made->domain = colon != NULL ? head : "";
    if (colon != NULL) {
        *colon = '\0';
        made->op = colon + 1;
    }
    made->version = (int)strtol(version, &version, 10);
    made->attributes = version + strspn(version, " ");
    read_inputs(made, inputs);
    if (outputs == NULL)
        made->outputs = 1;
    else
        read_outputs(made, outputs + strspn(outputs, " "));
    if (sb_op_find(made->domain, made->op) == NULL)
        fail_msg("%s: there is no operator %s", path, made->op);
}

static inline void read_sides(made_case *made, const char *path, char *text) {
    made->sides = true;
    made->on_cpu = made->on_cuda = false;
    for (char *rest, *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        bool cpu = strcmp(word, "cpu") == 0, cuda = strcmp(word, "cuda") == 0;
        if (!cpu && !cuda)
            fail_msg("%s: \"%s\" is no side: cpu, cuda", path, word);
        made->on_cpu = made->on_cpu || cpu;
        made->on_cuda = made->on_cuda || cuda;
    }
}

/* Calls `visit` for each case of a file, from the first to the last. */
static inline void read_cases(const char *path, void (*visit)(void *context, const made_case *made), void *context) {
    char line[MADE_LINE];
    made_case made = {0};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strchr(line, '\n') == NULL && !feof(file))
            fail_msg("%s: a line is longer than %d bytes", path, MADE_LINE - 2);
        line[strcspn(line, "#\n")] = '\0';
        if (strncmp(line, "sides", strlen("sides")) == 0) {
            read_sides(&made, path, line + strlen("sides"));
        } else if (line[strspn(line, " ")] != '\0') {
            read_case(&made, path, line);
            visit(context, &made);
        }
    }
    fclose(file);
}

#endif
