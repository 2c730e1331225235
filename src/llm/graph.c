#include "llm/graph.h"

#include <math.h>
#include <stdio.h>

#include "llm/graph_nodes.h"
#include "llm/rope.h"
#include "llm/weights.h"
#include "numerics/convert.h"

/* ---- what goes in ---- */

static sb_status add_input_of(building *b, int index, sb_dtype dtype, const char *name, int rank, const int64_t *dims,
                              const char *const *texts, sb_error *error) {
    const sb_value_description description = {
        .name = name, .kind = SB_KIND_TENSOR, .dtype = dtype, .rank = rank, .dims = dims, .dim_texts = texts};
    return sb_builder_input(b->builder, &description, &b->inputs[index], error);
}

static sb_status add_input(building *b, int index, const char *name, int rank, const int64_t *dims,
                           const char *const *texts, sb_error *error) {
    return add_input_of(b, index, SB_S64, name, rank, dims, texts, error);
}

static sb_status add_inputs(building *b, sb_error *error) {
    static const int64_t rows[] = {1, -1}, some[] = {-1}, pages[] = {-1, -1};
    static const char *const row_texts[] = {NULL, "rows"}, *const wanted[] = {"wanted"}, *const scored[] = {"scored"};
    static const int64_t integers[] = {-1, SB_CHOOSE_INTEGER_COLUMNS};
    static const char *const choices[] = {"choices", NULL}, *const settings[] = {"choices", "settings"};
    static const char *const sequences[] = {"sequences"}, *const columns[] = {"sequences", "columns"};
    SB_TRY(add_input(b, SB_LLM_TOKENS, "tokens", 2, rows, row_texts, error));
    SB_TRY(add_input(b, SB_LLM_POSITIONS, "positions", 2, rows, row_texts, error));
    SB_TRY(add_input(b, SB_LLM_STARTS, "starts", 1, some, sequences, error));
    SB_TRY(add_input(b, SB_LLM_LENGTHS, "lengths", 1, some, sequences, error));
    SB_TRY(add_input(b, SB_LLM_BEGINS, "begins", 1, some, sequences, error));
    SB_TRY(add_input(b, SB_LLM_TABLE, "table", 2, pages, columns, error));
    SB_TRY(add_input(b, SB_LLM_WANTED, "wanted_rows", 1, some, wanted, error));
    SB_TRY(add_input(b, SB_LLM_CHOICES, "choices", 2, integers, choices, error));
    SB_TRY(add_input_of(b, SB_LLM_SETTINGS, SB_F32, "settings", 2, pages, settings, error));
    return b->plan->receipts ? add_input(b, SB_LLM_SCORED, "scored_rows", 1, some, scored, error) : SB_OK;
}

static sb_status add_rope(building *b, int kind, const sb_rope_config *rope, sb_error *error) {
    sb_tensor *cosines, *sines;
    const sb_llm_plan *plan = b->plan;
    SB_TRY(sb_rope_tables(plan->checkpoint, plan->config, rope, plan->context, plan->dtype, &cosines, &sines, error));
    sb_status status = sb_llm_constant(b, kind == 0 ? "cosines" : "local_cosines", cosines, &b->cosines[kind], error);
    if (status != SB_OK) {
        sb_tensor_release(sines);
        return status;
    }
    return sb_llm_constant(b, kind == 0 ? "sines" : "local_sines", sines, &b->sines[kind], error);
}

static sb_status add_ropes(building *b, sb_error *error) {
    const sb_llm_family *family = b->config->family;
    if (family->learned_positions)
        return SB_OK;
    SB_TRY(add_rope(b, 0, &b->config->rope, error));
    b->cosines[1] = b->cosines[0];
    b->sines[1] = b->sines[0];
    return family->local_base != 0 ? add_rope(b, 1, &b->config->local_rope, error) : SB_OK;
}

/* Tokens that have been chosen and wait for a step, a slot for each page. */
static sb_status add_next(building *b, sb_error *error) {
    static const int64_t dims[] = {-1};
    static const char *const texts[] = {SB_LLM_PAGES_SYMBOL};
    const sb_value_description description = {
        .name = "next", .kind = SB_KIND_TENSOR, .dtype = SB_S64, .rank = 1, .dims = dims, .dim_texts = texts};
    sb_variable_options options = SB_VARIABLE_OPTIONS_DEFAULT;
    options.slots = true; /* a page is copied with the token that waits there */
    SB_TRY(sb_builder_add_variable(b->builder, &description, NULL, &options, &b->next, error));
    return sb_builder_read(b->builder, b->next, &b->waiting, error);
}

/* ---- embeddings ---- */

static sb_status look_up(building *b, sb_llm_role role, const char *what, value rows, value *x, sb_error *error) {
    sb_tensor *matrix;
    value table;
    SB_TRY(sb_llm_matrix(b->plan->checkpoint, b->config, role, 0, b->plan->dtype, &matrix, error));
    SB_TRY(sb_llm_constant(b, role == SB_ROLE_EMBEDDING ? "embedding.weight" : "position_embedding.weight", matrix,
                           &table, error));
    return sb_llm_node(b, "Gather", what, 2, (value[]){table, rows}, 0, NULL, x, error);
}

/* √hidden in f32, rounded to the others' type. */
static sb_status scale_embedding(building *b, value x, value *scaled, sb_error *error) {
    sb_tensor *number;
    value factor;
    float root = (float)sqrt((double)b->config->hidden);
    SB_TRY(sb_tensor_create(b->plan->dtype, 0, NULL, &number, error));
    void *data = sb_tensor_mutable_data(number);
    if (b->plan->dtype == SB_F32)
        *(float *)data = root;
    else
        *(uint16_t *)data = b->plan->dtype == SB_F16 ? sb_f16_from_f32(root) : sb_bf16_from_f32(root);
    SB_TRY(sb_llm_constant(b, "embedding.factor", number, &factor, error));
    return sb_llm_node(b, "Mul", "embedding.scale", 2, (value[]){x, factor}, 0, NULL, scaled, error);
}

static sb_status embed(building *b, value *x, sb_error *error) {
    value given, tokens, positions;
    SB_TRY(sb_llm_node(b, "PendingTokens", "pending", 2, (value[]){b->inputs[SB_LLM_TOKENS], b->waiting}, 0, NULL,
                       &given, error));
    SB_TRY(look_up(b, SB_ROLE_EMBEDDING, "embedding", given, &tokens, error));
    if (b->config->family->learned_positions) {
        SB_TRY(look_up(b, SB_ROLE_POSITIONS, "position_embedding", b->inputs[SB_LLM_POSITIONS], &positions, error));
        return sb_llm_node(b, "Add", "embeddings", 2, (value[]){tokens, positions}, 0, NULL, x, error);
    }
    if (b->config->family->scaled_embedding)
        return scale_embedding(b, tokens, x, error);
    *x = tokens;
    return SB_OK;
}

/* ---- a layer ---- */

/* The norm of each head by itself. */
static sb_status normalize_heads(building *b, sb_llm_role role, const char *what, int64_t heads, value *x,
                                 sb_error *error) {
    char name[64];
    const int64_t apart[] = {0, 0, heads, b->config->head_width}, joined[] = {0, 0, heads * b->config->head_width};
    value shape, split, normed;
    snprintf(name, sizeof name, "%s.heads", what);
    SB_TRY(sb_llm_integers(b, name, 4, apart, &shape, error));
    snprintf(name, sizeof name, "%s.part", what);
    SB_TRY(sb_llm_node(b, "Reshape", name, 2, (value[]){*x, shape}, 0, NULL, &split, error));
    SB_TRY(sb_llm_normalize(b, role, what, split, &normed, error));
    snprintf(name, sizeof name, "%s.width", what);
    SB_TRY(sb_llm_integers(b, name, 3, joined, &shape, error));
    snprintf(name, sizeof name, "%s.join", what);
    return sb_llm_node(b, "Reshape", name, 2, (value[]){normed, shape}, 0, NULL, x, error);
}

static sb_status add_attention(building *b, value x, value *y, sb_error *error) {
    const sb_llm_config *config = b->config;
    value queries, keys, values, seen;
    SB_TRY(sb_llm_project(b, SB_ROLE_QUERY, "query", x, &queries, error));
    SB_TRY(sb_llm_project(b, SB_ROLE_KEY, "key", x, &keys, error));
    SB_TRY(sb_llm_project(b, SB_ROLE_VALUE, "value", x, &values, error));
    if (sb_llm_has_weight(b->plan->checkpoint, config, SB_ROLE_QUERY_NORM)) {
        SB_TRY(normalize_heads(b, SB_ROLE_QUERY_NORM, "query_norm", config->heads, &queries, error));
        SB_TRY(normalize_heads(b, SB_ROLE_KEY_NORM, "key_norm", config->key_heads, &keys, error));
    }
    SB_TRY(sb_llm_attend(b, queries, keys, values, &seen, error));
    return sb_llm_project(b, SB_ROLE_OUT, "out", seen, y, error);
}

static sb_status activate(building *b, value x, value *y, sb_error *error) {
    const sb_builder_attribute tanh = sb_attribute_text("approximate", "tanh");
    switch (b->config->activation) {
    case SB_LLM_SILU:
        return sb_llm_node(b, "Swish", "activation", 1, &x, 0, NULL, y, error);
    case SB_LLM_GELU:
        return sb_llm_node(b, "Gelu", "activation", 1, &x, 0, NULL, y, error);
    case SB_LLM_GELU_TANH:
        return sb_llm_node(b, "Gelu", "activation", 1, &x, 1, &tanh, y, error);
    case SB_LLM_RELU:
        break;
    }
    return sb_llm_node(b, "Relu", "activation", 1, &x, 0, NULL, y, error);
}

static sb_status add_mlp(building *b, value x, value *y, sb_error *error) {
    value up, gate, active, middle;
    if (!sb_llm_has_weight(b->plan->checkpoint, b->config, SB_ROLE_GATE)) {
        SB_TRY(sb_llm_project(b, SB_ROLE_UP, "up", x, &up, error));
        SB_TRY(activate(b, up, &middle, error));
        return sb_llm_project(b, SB_ROLE_DOWN, "down", middle, y, error);
    }
    /* The gate first: where both are joined, so they lie in most files. */
    SB_TRY(sb_llm_project(b, SB_ROLE_GATE, "gate", x, &gate, error));
    SB_TRY(sb_llm_project(b, SB_ROLE_UP, "up", x, &up, error));
    if (b->config->activation == SB_LLM_SILU) {
        SB_TRY(sb_llm_node(b, "SwiGLU", "gated", 2, (value[]){gate, up}, 0, NULL, &middle, error));
    } else {
        SB_TRY(activate(b, gate, &active, error));
        SB_TRY(sb_llm_node(b, "Mul", "gated", 2, (value[]){active, up}, 0, NULL, &middle, error));
    }
    return sb_llm_project(b, SB_ROLE_DOWN, "down", middle, y, error);
}

/* x plus what `part` makes of its norm, which may have a norm of its own behind. */
static sb_status add_block(building *b, sb_llm_role before, sb_llm_role behind, const char *what, value *x,
                           sb_status part(building *, value, value *, sb_error *), sb_error *error) {
    char name[64];
    value normed, made;
    snprintf(name, sizeof name, "%s_norm", what);
    SB_TRY(sb_llm_normalize(b, before, name, *x, &normed, error));
    SB_TRY(part(b, normed, &made, error));
    snprintf(name, sizeof name, "after_%s_norm", what);
    if (sb_llm_has_weight(b->plan->checkpoint, b->config, behind))
        SB_TRY(sb_llm_normalize(b, behind, name, made, &made, error));
    snprintf(name, sizeof name, "%s_residual", what);
    return sb_llm_node(b, "Add", name, 2, (value[]){*x, made}, 0, NULL, x, error);
}

static sb_status add_layer(building *b, value *x, sb_error *error) {
    SB_TRY(add_block(b, SB_ROLE_ATTENTION_NORM, SB_ROLE_AFTER_ATTENTION_NORM, "attention", x, add_attention, error));
    return add_block(b, SB_ROLE_MLP_NORM, SB_ROLE_AFTER_MLP_NORM, "mlp", x, add_mlp, error);
}

/* ---- what comes out ---- */

static sb_status cap(building *b, value x, value *y, sb_error *error) {
    sb_tensor *number;
    value limit, quotient, bent;
    float most = (float)b->config->final_cap;
    SB_TRY(sb_tensor_from_data(SB_F32, 0, NULL, &most, &number, error));
    SB_TRY(sb_llm_constant(b, "cap", number, &limit, error));
    SB_TRY(sb_llm_node(b, "Div", "cap.divide", 2, (value[]){x, limit}, 0, NULL, &quotient, error));
    SB_TRY(sb_llm_node(b, "Tanh", "cap.bend", 1, &quotient, 0, NULL, &bent, error));
    return sb_llm_node(b, "Mul", "cap.multiply", 2, (value[]){bent, limit}, 0, NULL, y, error);
}

/* Choices from the logits of scored rows: their tokens wait for the next step. */
static sb_status add_choices(building *b, value logits, value *chosen, sb_error *error) {
    const value inputs[] = {b->waiting, logits, b->inputs[SB_LLM_CHOICES], b->inputs[SB_LLM_SETTINGS]};
    value made[2];
    SB_TRY(sb_llm_node_of_several(b, "ChooseTokens", "choose", 4, inputs, 0, NULL, 2, made, error));
    *chosen = made[1];
    return sb_builder_update(b->builder, b->next, made[0], error);
}

static sb_status add_head(building *b, value x, sb_error *error) {
    const sb_builder_attribute axis = sb_attribute_int("axis", 1);
    bool own = sb_llm_has_weight(b->plan->checkpoint, b->config, SB_ROLE_HEAD);
    value wanted, normed, scored, logits, chosen;
    SB_TRY(sb_llm_node(b, "Gather", "wanted", 2, (value[]){x, b->inputs[SB_LLM_WANTED]}, 1, &axis, &wanted, error));
    SB_TRY(sb_llm_normalize(b, SB_ROLE_FINAL_NORM, "final_norm", wanted, &normed, error));
    scored = normed;
    if (b->plan->receipts) /* an embedding has no use for a product over the vocabulary */
        SB_TRY(sb_llm_node(b, "Gather", "scored", 2, (value[]){normed, b->inputs[SB_LLM_SCORED]}, 1, &axis, &scored,
                           error));
    SB_TRY(sb_llm_project_f32(b, own ? SB_ROLE_HEAD : SB_ROLE_EMBEDDING, "head", scored, &logits, error));
    if (b->config->final_cap != 0)
        SB_TRY(cap(b, logits, &logits, error));
    SB_TRY(add_choices(b, logits, &chosen, error));
    SB_TRY(sb_builder_output(b->builder, logits, error));
    SB_TRY(sb_builder_output(b->builder, chosen, error));
    return b->plan->receipts ? sb_builder_output(b->builder, normed, error) : SB_OK;
}

sb_status sb_llm_build(const sb_llm_plan *plan, sb_builder *builder, sb_error *error) {
    building b = {.plan = plan, .config = plan->config, .builder = builder, .layer = -1};
    value x;
    SB_TRY(sb_builder_entry(builder, "step", error));
    SB_TRY(add_inputs(&b, error));
    SB_TRY(add_next(&b, error));
    SB_TRY(add_ropes(&b, error));
    SB_TRY(embed(&b, &x, error));
    for (b.layer = 0; b.layer < plan->config->layers; b.layer++)
        SB_TRY(add_layer(&b, &x, error));
    b.layer = -1;
    SB_TRY(add_head(&b, x, error));
    return sb_llm_check_unused(plan->checkpoint, plan->config, error);
}
