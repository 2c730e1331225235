/* Any bytes as calls of the builder: each is done or refused with a report, a refused one changes nothing, and what
 * gets built can run within its limits; and nothing stays behind.
 *
 * A call is a letter and its arguments, a character each ('0' is 0, '1' is 1, … as far as characters go; blanks
 * are skipped), so that seeds are text. Handles count from 1 in the order in which they were given; 0 is none,
 * and '~' one of another builder. */
#include <string.h>

#include <samebit/session.h>

#include "api/builder.h"
#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "runtime/model.h"

enum { MOST = 64, BYTES = 1 << 26 };

typedef struct script {
    const uint8_t *at, *end;
    sb_builder *builder;
    size_t value_count, variable_count, graph_count;
    int64_t values[MOST], variables[MOST], graphs[MOST];
    sb_error error;
} script;

/* ---- arguments ---- */

static int next(script *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n'))
        s->at++;
    return s->at < s->end ? *s->at++ : '0';
}

static int number(script *s, int limit) {
    return (uint8_t)(next(s) - '0') % limit;
}

static int64_t handle(script *s, size_t count, const int64_t *handles) {
    int byte = next(s);
    size_t index = (size_t)(uint8_t)(byte - '0') % (count + 1);
    if (byte == '~')
        return (INT64_C(1) << 62) | 1;
    return index != 0 ? handles[index - 1] : 0;
}

static sb_builder_value value(script *s) {
    return handle(s, s->value_count, s->values);
}

static void note(size_t *count, int64_t *handles, int64_t fresh) {
    handles[*count < MOST ? (*count)++ : MOST - 1] = fresh;
}

static const char *name(script *s) {
    static const char *const names[] = {NULL, "a", "b", "c", "d", "e", "f", ""};
    return names[number(s, 8)];
}

static sb_dtype dtype(script *s) {
    static const sb_dtype dtypes[] = {SB_F32, SB_S64, SB_BOOL, SB_F16, SB_STRING, SB_DTYPE_NONE};
    return dtypes[number(s, 6)];
}

/* An extent: 0 to 5, or 6 for the symbol "n", 7 for nothing known. */
static sb_value_description described(script *s, int64_t *dims, const char **texts) {
    sb_value_description description = {.name = name(s), .kind = SB_KIND_TENSOR, .dims = dims, .dim_texts = texts};
    description.dtype = dtype(s);
    description.rank = number(s, 5);
    for (int d = 0; d < description.rank; d++) {
        int extent = number(s, 8);
        dims[d] = extent < 6 ? extent : -1;
        texts[d] = extent == 6 ? "n" : NULL;
    }
    return description;
}

/* A tensor of 1, 2, 3, …; NULL where there is none. */
static sb_tensor *tensor(script *s) {
    int64_t dims[2];
    sb_dtype of = dtype(s);
    int rank = number(s, 3);
    sb_tensor *fresh;
    for (int d = 0; d < rank; d++)
        dims[d] = number(s, 6);
    if (sb_tensor_create(of, rank, dims, &fresh, NULL) != SB_OK)
        return NULL;
    for (int64_t i = 0; i < sb_tensor_elements(fresh); i++) {
        void *data = sb_tensor_mutable_data(fresh);
        if (of == SB_F32)
            ((float *)data)[i] = (float)i + 1;
        else if (of == SB_S64)
            ((int64_t *)data)[i] = i + 1;
        else if (of == SB_BOOL)
            ((uint8_t *)data)[i] = 1;
    }
    return fresh;
}

/* ---- calls ---- */

static sb_status add_input(script *s) {
    int64_t dims[4];
    const char *texts[4];
    sb_value_description description = described(s, dims, texts);
    int how = number(s, 4);
    description.kind = how == 1 ? SB_KIND_NONE : how == 2 ? SB_KIND_SEQUENCE : SB_KIND_TENSOR;
    description.optional = how == 3;
    sb_builder_value fresh;
    sb_status status = sb_builder_input(s->builder, &description, &fresh, &s->error);
    if (status == SB_OK)
        note(&s->value_count, s->values, fresh);
    return status;
}

static sb_status add_constant(script *s) {
    const char *called = name(s);
    sb_tensor *data = tensor(s);
    sb_builder_value fresh;
    sb_status status = sb_builder_constant(s->builder, called, data, &fresh, &s->error);
    sb_tensor_release(data);
    if (status == SB_OK)
        note(&s->value_count, s->values, fresh);
    return status;
}

static sb_status add_variable(script *s) {
    int64_t dims[4];
    const char *texts[4];
    sb_variable_options options = SB_VARIABLE_OPTIONS_DEFAULT;
    sb_value_description description = described(s, dims, texts);
    int how = number(s, 4);
    sb_tensor *initial = (how & 1) != 0 ? tensor(s) : NULL;
    sb_builder_variable fresh;
    options.slots = (how & 2) != 0;
    sb_status status = sb_builder_add_variable(s->builder, &description, initial, &options, &fresh, &s->error);
    sb_tensor_release(initial);
    if (status == SB_OK)
        note(&s->variable_count, s->variables, fresh);
    return status;
}

static sb_status read_variable(script *s) {
    sb_builder_value fresh;
    sb_status status = sb_builder_read(s->builder, handle(s, s->variable_count, s->variables), &fresh, &s->error);
    if (status == SB_OK)
        note(&s->value_count, s->values, fresh);
    return status;
}

static sb_status update_variable(script *s) {
    sb_builder_variable variable = handle(s, s->variable_count, s->variables);
    return sb_builder_update(s->builder, variable, value(s), &s->error);
}

static sb_builder_attribute attribute(script *s, sb_tensor **data) {
    static const char *const names[] = {"axis", "then_branch", "else_branch", "body", "num_scan_inputs",
                                        "perm", "keepdims",    "num_outputs", "to",   "value"};
    static const int64_t integers[] = {1, 0, 2};
    static const float floats[] = {1, 2};
    static const char *const texts[] = {"a", "b"};
    const char *called = names[number(s, 10)];
    switch (number(s, 7)) {
    case 0:
        return sb_attribute_int(called, number(s, 16) - 2);
    case 1:
        return sb_attribute_ints(called, number(s, 4), integers);
    case 2:
        return sb_attribute_float(called, 0.5f);
    case 3:
        return sb_attribute_floats(called, number(s, 3), floats);
    case 4:
        return sb_attribute_texts(called, number(s, 3), texts);
    case 5:
        sb_tensor_release(*data);
        *data = tensor(s);
        return sb_attribute_tensor(called, *data);
    default:
        return sb_attribute_graph(called, handle(s, s->graph_count, s->graphs));
    }
}

static sb_status add_node(script *s) {
    static const char *const operators[] = {"Add",    "Mul",   "Relu",   "Neg",    "MatMul",      "Softmax",
                                            "Concat", "Shape", "Gather", "Equal",  "Transpose",   "Identity",
                                            "If",     "Loop",  "Scan",   "Cast",   "SequenceMap", "SequenceConstruct",
                                            "Split",  "Where", "Fused",  "NoneOf", "Reshape",     "ReduceSum"};
    enum { LISTS = 6 };
    sb_builder_value inputs[LISTS], outputs[LISTS];
    sb_builder_attribute attributes[3];
    const char *names[LISTS];
    sb_tensor *data[3] = {NULL, NULL, NULL};
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = operators[number(s, 24)];
    node.version = number(s, 23);
    node.input_count = number(s, LISTS);
    node.inputs = inputs;
    for (int i = 0; i < node.input_count; i++)
        inputs[i] = value(s);
    node.attribute_count = number(s, 4);
    node.attributes = attributes;
    for (int i = 0; i < node.attribute_count; i++)
        attributes[i] = attribute(s, &data[i]);
    node.output_count = number(s, LISTS);
    node.output_names = names;
    for (int i = 0; i < node.output_count; i++)
        names[i] = name(s);
    sb_status status = sb_builder_add_node(s->builder, &node, outputs, &s->error);
    for (int i = 0; i < node.output_count && status == SB_OK; i++) {
        if (outputs[i] != 0)
            note(&s->value_count, s->values, outputs[i]);
    }
    for (int i = 0; i < 3; i++)
        sb_tensor_release(data[i]);
    return status;
}

static sb_status end_graph(script *s) {
    sb_builder_graph fresh;
    sb_status status = sb_builder_end_graph(s->builder, &fresh, &s->error);
    if (status == SB_OK)
        note(&s->graph_count, s->graphs, fresh);
    return status;
}

static sb_status do_call(script *s) {
    static const char *const entries[] = {"main", "step", "clear", ""};
    switch (next(s)) {
    case 'i':
        return add_input(s);
    case 'c':
        return add_constant(s);
    case 'v':
        return add_variable(s);
    case 'r':
        return read_variable(s);
    case 'u':
        return update_variable(s);
    case 'n':
        return add_node(s);
    case 'g':
        return sb_builder_begin_graph(s->builder, name(s), &s->error);
    case 'e':
        return end_graph(s);
    case 'o':
        return sb_builder_output(s->builder, value(s), &s->error);
    case 'm':
        return sb_builder_entry(s->builder, entries[number(s, 4)], &s->error);
    default:
        return SB_OK;
    }
}

/* ---- what must hold ---- */

typedef struct sizes {
    sb_graph_builder *open;
    sb_builder_mark mark;
    size_t nodes, value_names, node_names, captured, values, nested, variables, entries;
} sizes;

static sizes sizes_of(const sb_builder *builder) {
    const sb_graph_builder *open = builder->open;
    return (sizes){.open = builder->open,
                   .mark = sb_graph_builder_mark(open),
                   .nodes = open->graph->node_count,
                   .value_names = open->values.count,
                   .node_names = open->nodes.count,
                   .captured = open->captured.count,
                   .values = builder->value_count,
                   .nested = builder->nested_count,
                   .variables = builder->graphs.variables.count,
                   .entries = builder->entry_count};
}

static void check_status(const script *s, sb_status status) {
    FUZZ_CHECK(status == SB_OK || (s->error.status == status && s->error.message[0] != '\0'));
    FUZZ_CHECK(status != SB_ERROR_INTERNAL);
}

static void call(script *s) {
    sizes before = sizes_of(s->builder);
    sb_status status = do_call(s);
    check_status(s, status);
    sizes after = sizes_of(s->builder);
    FUZZ_CHECK(status == SB_OK || memcmp(&before, &after, sizeof before) == 0);
}

/* Zeros of the extents that the model wants, 2 for a symbol; nothing where there is no such tensor. */
static sb_value input_of(const sb_value_description *description) {
    int64_t dims[SB_MAX_RANK];
    sb_tensor *zeros = NULL;
    for (int d = 0; d < description->rank; d++)
        dims[d] = description->dims[d] >= 0 ? description->dims[d] : 2;
    if (description->kind == SB_KIND_TENSOR && description->rank >= 0 &&
        sb_tensor_create(description->dtype, description->rank, dims, &zeros, NULL) != SB_OK)
        zeros = NULL;
    return sb_value_of_tensor(zeros);
}

static void run(script *s, sb_model *model) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = 1;
    options.iteration_limit = 50;
    options.memory_limit = BYTES;
    sb_session *session = NULL;
    int inputs = sb_model_input_count(model), outputs = sb_model_output_count(model);
    sb_status status = sb_session_create(model, &options, &session, &s->error);
    check_status(s, status);
    const sb_graph *graph = model->entries[0].graph;
    FUZZ_CHECK(graph->read_count + graph->update_count == 0 || status == SB_ERROR_UNSUPPORTED); /* it needs a state */
    if (status != SB_OK)
        return;
    sb_value *values = calloc((size_t)(inputs + outputs) + 1, sizeof *values);
    FUZZ_CHECK(values != NULL);
    for (int i = 0; i < inputs; i++)
        values[i] = input_of(sb_model_input(model, i));
    check_status(s, sb_session_run(session, values, values + inputs, &s->error));
    for (int i = 0; i < inputs + outputs; i++)
        sb_value_release(&values[i]);
    free(values);
    sb_session_destroy(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t before = sb_allocation_count().live_blocks;
    script s = {.at = data, .end = data + size};
    sb_model *model = NULL;
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    options.memory_limit = BYTES;
    FUZZ_CHECK(sb_builder_create(&s.builder, &s.error) == SB_OK);
    while (s.at < s.end)
        call(&s);
    sb_status status = sb_builder_build(s.builder, &options, &model, &s.error);
    check_status(&s, status);
    sb_builder_destroy(s.builder);
    if (status == SB_OK)
        run(&s, model);
    sb_model_release(model);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
