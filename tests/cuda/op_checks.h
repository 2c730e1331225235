/* One operator at a time: a graph of one node, run on the device and by its definition. Include
 * after device_calls.h. */
#ifndef OP_CHECKS_H
#define OP_CHECKS_H

/* A node in the making: inputs are added from left to right, and released by check_op. */
typedef struct op_case {
    const char *op;
    int version, outputs, count;
    sb_tensor *inputs[SB_WALK_OPERANDS]; /* NULL: omitted */
    uint64_t constants;                  /* inputs whose values are known beforehand, a bit each */
    sb_attributes attributes;
} op_case;

static inline op_case op_of(const char *op, int version) {
    return (op_case){.op = op, .version = version, .outputs = 1};
}

static inline void add_input(op_case *test, sb_tensor *tensor) {
    test->inputs[test->count++] = tensor;
}

/* A list of integers that is known beforehand, as shapes and axes are in most models. */
static inline void add_list(op_case *test, int count, const int64_t *values) {
    sb_tensor *tensor;
    int64_t extent = count;
    MUST(sb_tensor_from_data(SB_S64, 1, &extent, values, &tensor, error));
    test->constants |= UINT64_C(1) << test->count;
    add_input(test, tensor);
}

static inline void add_floats(op_case *test, int count, const float *values) {
    sb_tensor *tensor;
    int64_t extent = count;
    MUST(sb_tensor_from_data(SB_F32, 1, &extent, values, &tensor, error));
    test->constants |= UINT64_C(1) << test->count;
    add_input(test, tensor);
}

static inline void set_ints(op_case *test, const char *name, int count, const int64_t *values) {
    MUST(sb_attributes_add_ints(&test->attributes, name, false, count, values, error));
}

static inline void set_int(op_case *test, const char *name, int64_t value) {
    MUST(sb_attributes_add_ints(&test->attributes, name, true, 1, &value, error));
}

static inline void set_float(op_case *test, const char *name, float value) {
    MUST(sb_attributes_add_floats(&test->attributes, name, true, 1, &value, error));
}

static inline void set_text(op_case *test, const char *name, const char *value) {
    sb_string text = {value, strlen(value)};
    MUST(sb_attributes_add_strings(&test->attributes, name, true, 1, &text, error));
}

static inline sb_tensor *any_tensor(setting *setting, sb_dtype dtype, int rank, const int64_t *dims) {
    return make_tensor(&setting->random, dtype, rank, dims,
                       (enum layout)random_between(&setting->random, 0, LAYOUTS - 1));
}

/* Indices of `extent` elements, counted from either end; strided. With `astray` one is outside. */
static inline sb_tensor *any_indices(setting *setting, sb_dtype dtype, int rank, const int64_t *dims, int64_t extent,
                                     bool astray) {
    sb_tensor *tensor = any_tensor(setting, dtype, rank, dims);
    size_t count = tensor->storage->bytes / sb_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        int64_t index = extent == 0 ? 0 : random_between(&setting->random, -extent, extent - 1);
        index = astray ? extent : index;
        if (dtype == SB_S32)
            ((int32_t *)tensor->storage->data)[i] = (int32_t)index;
        else
            ((int64_t *)tensor->storage->data)[i] = index;
    }
    return tensor;
}

/* Runs the node on the device and by its definition: outputs must have the same bits, and both must
 * find the data at fault or not. Clears the case. */
static inline void check_op(const setting *setting, op_case *test, const char *what) {
    builder b = builder_create();
    sb_value_id ids[SB_WALK_OPERANDS], results[4];
    sb_tensor *expected[4] = {NULL}, *found[4] = {NULL};
    sb_error error = {SB_OK, ""};
    uint32_t fault;
    for (int i = 0; i < test->count; i++) {
        const sb_tensor *input = test->inputs[i];
        ids[i] = input != NULL ? builder_input(&b, input->dtype, input->rank, input->dims) : SB_NO_VALUE;
    }
    for (int i = 0; i < test->outputs; i++)
        results[i] = builder_value(&b);
    if (sb_graph_add_node(b.graph, sb_op_find("", test->op), test->version, "node", test->count, ids, 0, test->outputs,
                          results, &test->attributes, NULL, &error) != SB_OK)
        fail_msg("%s", error.message);
    const sb_node *node = b.graph->nodes[b.graph->node_count - 1];
    sb_status status = evaluate_node(&b, node, test->inputs, expected, &error);
    run_node(setting, &b, node, test->inputs, test->constants, found, &fault);
    if ((status == SB_OK) != (fault == 0))
        fail_msg("%s, %s: fault %u, but by its definition: %s", test->op, what, fault,
                 status == SB_OK ? "none" : error.message);
    for (int i = 0; i < test->outputs; i++) {
        if (status == SB_OK && !sb_tensor_equal(expected[i], found[i]))
            fail_msg("%s of %s, %s: output %d has other bits", test->op, sb_dtype_name(expected[i]->dtype), what, i);
        sb_tensor_release(expected[i]);
        sb_tensor_release(found[i]);
    }
    for (int i = 0; i < test->count; i++)
        sb_tensor_release(test->inputs[i]);
    builder_destroy(&b);
    *test = (op_case){0};
}

#endif
