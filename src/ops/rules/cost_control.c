/* Nodes with graphs of their own, whose nodes are counted instead; sequences and text. */
#include "ops/list.h"
#include "rules/counting.h"

/* The extent of the first scanned input along its axis. */
static sb_dim scan_turns(const sb_cost_question *question) {
    const sb_node *node = question->node;
    int64_t scanned = 0, axes = 0, axis = node->version < 9 ? 1 : 0;
    const int64_t *listed = NULL;
    if (sb_node_int(node, "num_scan_inputs", 0, &scanned, NULL) != SB_OK ||
        sb_node_ints(node, "scan_input_axes", &axes, &listed, NULL) != SB_OK || scanned < 1 ||
        scanned > node->input_count - node->capture_count)
        return NULL;
    const sb_fact *first = sb_cost_input(question, node->input_count - node->capture_count - (int)scanned);
    if (listed != NULL && axes > 0)
        axis = listed[0] < 0 && first != NULL ? listed[0] + first->rank : listed[0];
    return first != NULL && axis >= 0 && axis < first->rank ? first->dims[axis] : NULL;
}

/* The most turns, where that is a constant. How many there are only the data tell. */
static sb_dim loop_turns(const sb_cost_question *question) {
    const sb_fact *most = sb_cost_input(question, 0);
    const sb_tensor *known = most != NULL ? most->constant : NULL;
    if (known == NULL || known->dtype != SB_S64 || *(const int64_t *)known->data > INT32_MAX)
        return NULL;
    return sb_dim_constant(question->scope, *(const int64_t *)known->data);
}

#define UNCOUNTED(op_name)                                                                                             \
    { .op = {op_name}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_uncounted }

#define REPEATED(op_name, rule)                                                                                        \
    { .op = {op_name}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_uncounted, .turns = rule }

const sb_cost_entry sb_cost_control[] = {
    UNCOUNTED("If"),
    REPEATED("Loop", loop_turns),
    REPEATED("Scan", scan_turns),
    UNCOUNTED("SequenceMap"),
    UNCOUNTED("SequenceConstruct"),
    UNCOUNTED("SequenceEmpty"),
    UNCOUNTED("SequenceAt"),
    UNCOUNTED("SequenceErase"),
    UNCOUNTED("SequenceInsert"),
    UNCOUNTED("SequenceLength"),
    UNCOUNTED("ConcatFromSequence"),
    UNCOUNTED("SplitToSequence"),
    UNCOUNTED("Optional"),
    UNCOUNTED("OptionalGetElement"),
    UNCOUNTED("OptionalHasElement"),
    UNCOUNTED("StringNormalizer"),
    UNCOUNTED("TfIdfVectorizer"),
    {.op = {NULL}},
};
