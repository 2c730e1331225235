/* Nodes with graphs of their own, whose nodes are counted instead; sequences and text. */
#include "ops/list.h"
#include "rules/counting.h"

#define UNCOUNTED(op_name)                                                                                             \
    { .op = {op_name}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_uncounted }

const sb_cost_entry sb_cost_control[] = {
    UNCOUNTED("If"),
    UNCOUNTED("Loop"),
    UNCOUNTED("Scan"),
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
