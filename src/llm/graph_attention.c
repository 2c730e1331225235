/* Attention over a cache of pages: for each layer two variables [pages, positions of a page, heads · width], in which sequences
 * have the pages that a table names. A cache with a single page is one sequence in one piece. */
#include <math.h>
#include <stdio.h>

#include "llm/graph_nodes.h"

/* The variable's next version, with the new rows. */
static sb_status append(building *b, const char *what, value rows, value *all, sb_error *error) {
    char name[64];
    const sb_llm_config *config = b->config;
    const int64_t dims[] = {-1, -1, config->key_heads * config->head_width};
    static const char *const texts[] = {SB_LLM_PAGES_SYMBOL, SB_LLM_PAGE_SYMBOL, NULL};
    sb_variable_options options = SB_VARIABLE_OPTIONS_DEFAULT;
    sb_builder_variable cache;
    value before;
    snprintf(name, sizeof name, "cache.%lld.%s", (long long)b->layer, what);
    const sb_value_description description = {
        .name = name, .kind = SB_KIND_TENSOR, .dtype = b->plan->dtype, .rank = 3, .dims = dims, .dim_texts = texts};
    options.slots = true; /* pages are copied one by one */
    SB_TRY(sb_builder_add_variable(b->builder, &description, NULL, &options, &cache, error));
    SB_TRY(sb_builder_read(b->builder, cache, &before, error));
    snprintf(name, sizeof name, "append_%s", what);
    const value inputs[] = {before, rows, b->inputs[SB_LLM_STARTS], b->inputs[SB_LLM_BEGINS], b->inputs[SB_LLM_TABLE]};
    SB_TRY(sb_llm_node(b, "PagedScatter", name, 5, inputs, 0, NULL, all, error));
    return sb_builder_update(b->builder, cache, *all, error);
}

sb_status sb_llm_attend(building *b, value queries, value keys, value values, value *y, sb_error *error) {
    const sb_llm_config *config = b->config;
    value all_keys, all_values;
    SB_TRY(append(b, "keys", keys, &all_keys, error));
    SB_TRY(append(b, "values", values, &all_values, error));
    sb_builder_attribute attributes[5];
    int count = 0;
    attributes[count++] = sb_attribute_int("q_num_heads", config->heads);
    attributes[count++] = sb_attribute_int("kv_num_heads", config->key_heads);
    if (config->query_scalar != 0)
        attributes[count++] = sb_attribute_float("scale", (float)(1.0 / sqrt(config->query_scalar)));
    if (config->attention_cap != 0)
        attributes[count++] = sb_attribute_float("softcap", (float)config->attention_cap);
    if (sb_llm_layer_has_window(config, b->layer)) /* which includes the query's own key */
        attributes[count++] = sb_attribute_int("left_window_size", config->window - 1);
    const value inputs[] = {
        queries, all_keys, all_values, b->inputs[SB_LLM_LENGTHS], b->inputs[SB_LLM_BEGINS], b->inputs[SB_LLM_TABLE]};
    return sb_llm_node(b, "PagedAttention", "attention", 6, inputs, count, attributes, y, error);
}
