/* Attention over a cache of pages: for each layer two variables [pages, positions of a page, heads · width], in which sequences
 * have the pages that a table names. A cache with a single page is one sequence in one piece. */
#include <math.h>
#include <stdio.h>

#include "llm/graph_nodes.h"

typedef struct cache {
    sb_builder_variable variable;
    value before;
} cache;

static sb_status add_cache(building *b, const char *what, cache *cache, sb_error *error) {
    char name[64];
    const sb_llm_config *config = b->config;
    const int64_t dims[] = {-1, -1, config->key_heads * config->head_width};
    static const char *const texts[] = {SB_LLM_PAGES_SYMBOL, SB_LLM_PAGE_SYMBOL, NULL};
    sb_variable_options options = SB_VARIABLE_OPTIONS_DEFAULT;
    snprintf(name, sizeof name, "cache.%lld.%s", (long long)b->layer, what);
    const sb_value_description description = {
        .name = name, .kind = SB_KIND_TENSOR, .dtype = b->plan->dtype, .rank = 3, .dims = dims, .dim_texts = texts};
    options.slots = true; /* pages are copied one by one */
    SB_TRY(sb_builder_add_variable(b->builder, &description, NULL, &options, &cache->variable, error));
    return sb_builder_read(b->builder, cache->variable, &cache->before, error);
}

/* The cache with the new rows. */
static sb_status append(building *b, const char *what, const cache *cache, value rows, value *all, sb_error *error) {
    char name[64];
    snprintf(name, sizeof name, "append_%s", what);
    const value inputs[] = {cache->before, rows, b->inputs[SB_LLM_STARTS], b->inputs[SB_LLM_BEGINS],
                            b->inputs[SB_LLM_TABLE]};
    return sb_llm_node(b, "PagedScatter", name, 5, inputs, 0, NULL, all, error);
}

/* Both caches with the new rows, and the queries, all turned by their positions. */
static sb_status turn_and_append(building *b, const cache *keys, const cache *values, value rows[3], value made[3],
                                 sb_error *error) {
    const sb_llm_config *config = b->config;
    int kind = sb_llm_layer_has_window(config, b->layer) ? 1 : 0;
    const value inputs[] = {keys->before,
                            values->before,
                            rows[0],
                            rows[1],
                            rows[2],
                            b->inputs[SB_LLM_STARTS],
                            b->inputs[SB_LLM_BEGINS],
                            b->inputs[SB_LLM_TABLE],
                            b->cosines[kind],
                            b->sines[kind],
                            b->inputs[SB_LLM_POSITIONS]};
    const sb_builder_attribute attributes[] = {sb_attribute_int("q_num_heads", config->heads),
                                               sb_attribute_int("kv_num_heads", config->key_heads),
                                               sb_attribute_int("rotary_embedding_dim", config->rotated)};
    return sb_llm_node_of_several(b, "PagedAppend", "append", 11, inputs, 3, attributes, 3, made, error);
}

sb_status sb_llm_attend(building *b, value queries, value keys, value values, value *y, sb_error *error) {
    const sb_llm_config *config = b->config;
    cache key_cache, value_cache;
    value made[3] = {0, 0, queries};
    SB_TRY(add_cache(b, "keys", &key_cache, error));
    SB_TRY(add_cache(b, "values", &value_cache, error));
    if (config->family->learned_positions) {
        SB_TRY(append(b, "keys", &key_cache, keys, &made[0], error));
        SB_TRY(append(b, "values", &value_cache, values, &made[1], error));
    } else {
        SB_TRY(turn_and_append(b, &key_cache, &value_cache, (value[]){queries, keys, values}, made, error));
    }
    SB_TRY(sb_builder_update(b->builder, key_cache.variable, made[0], error));
    SB_TRY(sb_builder_update(b->builder, value_cache.variable, made[1], error));
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
        made[2], made[0], made[1], b->inputs[SB_LLM_LENGTHS], b->inputs[SB_LLM_BEGINS], b->inputs[SB_LLM_TABLE]};
    return sb_llm_node(b, "PagedAttention", "attention", 6, inputs, count, attributes, y, error);
}
