#include "llm/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "llm/config_source.h"

/* No number of a model may be larger, so that products of three fit 63 bits with the size of an element. */
#define MOST ((int64_t)1 << 20)
#define MOST_POSITIONS ((int64_t)1 << 28)
#define MOST_VOCABULARY ((int64_t)1 << 24)

/* ---- families ---- */

static sb_status find_family(const sb_checkpoint *checkpoint, sb_config_source *source, sb_llm_config *config,
                             sb_error *error) {
    sb_gguf_text name = {"", 0};
    bool gguf = source->json == NULL;
    if (gguf) {
        sb_gguf_string(sb_gguf_find(&checkpoint->gguf, "general.architecture"), &name);
    } else {
        const char *type = json_string_value(json_object_get(source->json, "model_type"));
        if (type != NULL)
            name = (sb_gguf_text){type, strlen(type)};
    }
    int shown = (int)(name.bytes < 60 ? name.bytes : 60);
    config->gguf = gguf;
    config->family = sb_llm_family_find(gguf, name.data, name.bytes);
    snprintf(source->architecture, sizeof source->architecture, "%.*s", shown, name.data);
    if (config->family != NULL)
        return SB_OK;
    char known[256];
    sb_llm_family_names(gguf, known, sizeof known);
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "%.300s: the %s '%.*s' is no family that is known here; those are %s",
                   source->path, gguf ? "architecture" : "model_type", shown, name.data, known);
}

/* ---- numbers ---- */

/* A whole number of the configuration; `standard` -1: it has to be there. */
typedef struct number_row {
    size_t offset;
    const char *json, *other, *gguf; /* `other`: GPT-2's name */
    int64_t least, most, standard;
} number_row;

#define FIELD(name) offsetof(sb_llm_config, name)

static const number_row numbers[] = {
    {FIELD(layers), "num_hidden_layers", "n_layer", "block_count", 1, 10000, -1},
    {FIELD(hidden), "hidden_size", "n_embd", "embedding_length", 1, MOST, -1},
    {FIELD(heads), "num_attention_heads", "n_head", "attention.head_count", 1, MOST, -1},
    {FIELD(key_heads), "num_key_value_heads", NULL, "attention.head_count_kv", 1, MOST, 0},
    {FIELD(head_width), "head_dim", NULL, "attention.key_length", 1, MOST, 0},
    {FIELD(intermediate), "intermediate_size", "n_inner", "feed_forward_length", 1, MOST, 0},
    {FIELD(vocabulary), "vocab_size", NULL, "vocab_size", 1, MOST_VOCABULARY, 0},
    {FIELD(positions), "max_position_embeddings", "n_positions", "context_length", 1, MOST_POSITIONS, -1},
    {FIELD(window), "sliding_window", NULL, "attention.sliding_window", 0, MOST_POSITIONS, 0},
    {FIELD(window_pattern), "sliding_window_pattern", "_sliding_window_pattern", NULL, 1, 10000, 0},
    {FIELD(window_first), "max_window_layers", NULL, NULL, 0, 10000, 0},
};

static sb_status read_number(const sb_config_source *source, const number_row *row, sb_llm_config *config,
                             sb_error *error) {
    int64_t *number = (int64_t *)(void *)((char *)config + row->offset);
    bool found;
    SB_TRY(sb_config_integer(source, row->json, row->gguf, row->least, row->most, number, &found, error));
    if (!found && source->json != NULL && row->other != NULL)
        SB_TRY(sb_config_integer(source, row->other, NULL, row->least, row->most, number, &found, error));
    if (!found && row->standard < 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s says no %s", source->path,
                       source->json != NULL ? row->json : row->gguf);
    if (!found)
        *number = row->standard;
    return SB_OK;
}

/* A real number; 0 where it is not said. */
static sb_status read_real(const sb_config_source *source, const char *json, const char *gguf, double standard,
                           double *number, sb_error *error) {
    bool found;
    *number = standard;
    return sb_config_real(source, json, gguf, 0, 1e9, number, &found, error);
}

static sb_status read_activation(const sb_config_source *source, sb_llm_config *config, sb_error *error) {
    static const struct {
        const char *name;
        sb_llm_activation activation;
    } known[] = {{"silu", SB_LLM_SILU},          {"swish", SB_LLM_SILU},
                 {"gelu", SB_LLM_GELU},          {"gelu_pytorch_tanh", SB_LLM_GELU_TANH},
                 {"gelu_new", SB_LLM_GELU_TANH}, {"gelu_fast", SB_LLM_GELU_TANH},
                 {"relu", SB_LLM_RELU}};
    /* Of Gemma's two, hidden_act is left over from conversions and not looked at. */
    static const char *const keys[] = {"hidden_activation", "hidden_act", "activation_function"};
    char name[64] = "";
    for (int i = 0; i < 3 && name[0] == '\0'; i++) {
        if (!(i == 1 && config->family->norm_offset))
            sb_config_text(source, keys[i], NULL, name, sizeof name);
    }
    if (name[0] == '\0')
        snprintf(name, sizeof name, "%s", config->family->activation);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) == 0) {
            config->activation = known[i].activation;
            return SB_OK;
        }
    }
    return sb_fail(
        error, SB_ERROR_UNSUPPORTED,
        "%.300s: the activation '%.60s' is not known here; those are silu, gelu, gelu_pytorch_tanh, gelu_new "
        "and relu",
        source->path, name);
}

/* ---- rotary embeddings ---- */

static sb_status read_scaling_numbers(const sb_config_source *source, sb_rope_config *rope, sb_error *error) {
    bool found, truncate = true;
    int64_t original = 0;
    SB_TRY(read_real(source, "factor", "rope.scaling.factor", 0, &rope->factor, error));
    SB_TRY(read_real(source, "low_freq_factor", NULL, 1, &rope->low, error));
    SB_TRY(read_real(source, "high_freq_factor", NULL, 4, &rope->high, error));
    SB_TRY(read_real(source, "beta_fast", "rope.scaling.yarn_beta_fast", 32, &rope->fast, error));
    SB_TRY(read_real(source, "beta_slow", "rope.scaling.yarn_beta_slow", 1, &rope->slow, error));
    SB_TRY(read_real(source, "attention_factor", NULL, 0, &rope->attention_factor, error));
    SB_TRY(read_real(source, "mscale", NULL, 0, &rope->mscale, error));
    SB_TRY(read_real(source, "mscale_all_dim", NULL, 0, &rope->mscale_all_dim, error));
    SB_TRY(sb_config_integer(source, "original_max_position_embeddings", "rope.scaling.original_context_length", 1,
                             MOST_POSITIONS, &original, &found, error));
    if (found)
        rope->original = original;
    SB_TRY(sb_config_flag(source, "truncate", &truncate, error));
    rope->truncate = truncate;
    rope->long_factors = json_object_get(source->json, "long_factor");
    rope->short_factors = json_object_get(source->json, "short_factor");
    return SB_OK;
}

static sb_status read_scaling_kind(const sb_config_source *source, sb_rope_config *rope, sb_error *error) {
    static const struct {
        const char *name;
        sb_rope_scaling scaling;
    } kinds[] = {{"", SB_ROPE_PLAIN},        {"default", SB_ROPE_PLAIN}, {"none", SB_ROPE_PLAIN},
                 {"linear", SB_ROPE_LINEAR}, {"llama3", SB_ROPE_LLAMA3}, {"yarn", SB_ROPE_YARN},
                 {"longrope", SB_ROPE_LONG}, {"su", SB_ROPE_LONG}};
    char name[64];
    sb_config_text(source, "rope_type", "rope.scaling.type", name, sizeof name);
    if (name[0] == '\0')
        sb_config_text(source, "type", NULL, name, sizeof name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            rope->scaling = kinds[i].scaling;
            return SB_OK;
        }
    }
    return sb_fail(
        error, SB_ERROR_UNSUPPORTED,
        "%.300s: rotary embeddings scaled by '%.60s' are not known here; linear, llama3, yarn and longrope are",
        source->path, name);
}

static sb_status check_scaling(const sb_config_source *source, const sb_llm_config *config, sb_rope_config *rope,
                               sb_error *error) {
    const char *missing = NULL;
    if (rope->original == 0)
        rope->original = config->positions;
    /* (An untold factor of longrope, and of yarn, is what the context was stretched by.) */
    if (rope->factor == 0 && (rope->scaling == SB_ROPE_LONG || rope->scaling == SB_ROPE_YARN))
        rope->factor = (double)config->positions / (double)rope->original;
    if (rope->scaling != SB_ROPE_PLAIN && !(rope->factor > 0))
        missing = "a factor above 0";
    else if (rope->scaling == SB_ROPE_LLAMA3 && !(rope->high > rope->low && rope->low > 0))
        missing = "high_freq_factor above low_freq_factor";
    else if (rope->scaling == SB_ROPE_YARN && !(rope->fast > 0 && rope->slow > 0))
        missing = "beta_fast and beta_slow above 0";
    else if (!(rope->base >= 1))
        missing = "a base of at least 1";
    if (missing == NULL)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: its scaled rotary embeddings need %s", source->path, missing);
}

/* `table` is an object of JSON, or NULL for numbers of the configuration itself. */
static sb_status read_rope(const sb_config_source *source, const json_t *table, sb_llm_config *config,
                           sb_rope_config *rope, sb_error *error) {
    sb_config_source inner = *source;
    if (source->json != NULL && table == NULL)
        return check_scaling(source, config, rope, error);
    if (table != NULL)
        inner.json = table;
    SB_TRY(read_real(&inner, "rope_theta", "rope.freq_base", rope->base, &rope->base, error));
    SB_TRY(read_scaling_kind(&inner, rope, error));
    SB_TRY(read_scaling_numbers(&inner, rope, error));
    return check_scaling(source, config, rope, error);
}

static const json_t *object_of(const json_t *json, const char *key) {
    const json_t *object = json_object_get(json, key);
    return json_is_object(object) ? object : NULL;
}

static sb_status read_ropes(const sb_config_source *source, sb_llm_config *config, sb_error *error) {
    const sb_llm_family *family = config->family;
    sb_rope_config *rope = &config->rope, *local = &config->local_rope;
    bool found;
    *rope = (sb_rope_config){.base = family->base != 0 ? family->base : 10000, .truncate = true};
    SB_TRY(read_real(source, "rope_theta", NULL, rope->base, &rope->base, error));
    SB_TRY(sb_config_integer(source, "original_max_position_embeddings", NULL, 1, MOST_POSITIONS, &rope->original,
                             &found, error));
    *local = (sb_rope_config){.base = family->local_base, .truncate = true};
    SB_TRY(read_real(source, "rope_local_base_freq", "rope.freq_base_swa", local->base, &local->base, error));
    const json_t *table = object_of(source->json, "rope_parameters");
    if (table == NULL)
        table = object_of(source->json, "rope_scaling");
    const json_t *full = object_of(table, "full_attention"), *sliding = object_of(table, "sliding_attention");
    SB_TRY(read_rope(source, full != NULL ? full : table, config, rope, error));
    if (family->local_base != 0 && sliding != NULL)
        SB_TRY(read_rope(source, sliding, config, local, error));
    if (family->local_base == 0)
        *local = *rope;
    else if (!(local->base >= 1))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: rope_local_base_freq is below 1", source->path);
    double part = 1;
    SB_TRY(read_real(source, "partial_rotary_factor", NULL, 1, &part, error));
    if (table != NULL) {
        sb_config_source inner = *source;
        inner.json = table;
        SB_TRY(read_real(&inner, "partial_rotary_factor", NULL, part, &part, error));
    }
    config->rotated = part < 1 ? (int64_t)((double)config->head_width * part) : config->head_width;
    SB_TRY(sb_config_integer(source, NULL, "rope.dimension_count", 2, config->head_width, &config->rotated, &found,
                             error));
    if (!family->learned_positions && (config->rotated % 2 != 0 || config->rotated < 2))
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "%.300s: %lld elements of a head are to be rotated, which is odd or 0", source->path,
                       (long long)config->rotated);
    return SB_OK;
}

/* ---- windows ---- */

static sb_status read_windows(const sb_config_source *source, sb_llm_config *config, sb_error *error) {
    const sb_llm_family *family = config->family;
    bool on = !family->window_switch;
    SB_TRY(sb_config_flag(source, "use_sliding_window", &on, error));
    if (!on || config->window == 0)
        config->window = 0;
    if (!family->window_switch)
        config->window_first = 0;
    if (config->window_pattern == 0)
        config->window_pattern = family->window_pattern;
    const json_t *types = json_object_get(source->json, "layer_types");
    if (!json_is_array(types))
        return SB_OK;
    if (json_array_size(types) != (size_t)config->layers)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: \"layer_types\" has %zu entries for %lld layers",
                       source->path, json_array_size(types), (long long)config->layers);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (type == NULL || (strcmp(type, "full_attention") != 0 && strcmp(type, "sliding_attention") != 0))
            return sb_fail(error, SB_ERROR_UNSUPPORTED,
                           "%.300s: layer %zu is of type '%.60s'; full_attention and sliding_attention are known here",
                           source->path, i, type != NULL ? type : "");
    }
    config->windows = types;
    config->window_pattern = -1;
    return SB_OK;
}

bool sb_llm_layer_has_window(const sb_llm_config *config, int64_t layer) {
    if (config->window == 0 || layer < config->window_first)
        return false;
    if (config->window_pattern < 0)
        return strcmp(json_string_value(json_array_get(config->windows, (size_t)layer)), "sliding_attention") == 0;
    return config->window_pattern == 0 || (layer + 1) % config->window_pattern != 0;
}

/* ---- tokens ---- */

static void add_stop(sb_llm_config *config, int64_t token) {
    for (int i = 0; i < config->stop_count; i++) {
        if (config->stops[i] == token)
            return;
    }
    if (token >= 0 && token < config->vocabulary && config->stop_count < SB_LLM_STOPS)
        config->stops[config->stop_count++] = token;
}

static void add_stops(sb_llm_config *config, const json_t *tokens) {
    if (json_is_integer(tokens))
        add_stop(config, json_integer_value(tokens));
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        if (json_is_integer(json_array_get(tokens, i)))
            add_stop(config, json_integer_value(json_array_get(tokens, i)));
    }
}

static void read_tokens(const sb_checkpoint *checkpoint, sb_llm_config *config) {
    static const char *const ends[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"};
    int64_t token;
    const json_t *generation = json_object_get(checkpoint->generation, "eos_token_id");
    const json_t *begin = json_object_get(checkpoint->config, "bos_token_id");
    add_stops(config, generation != NULL ? generation : json_object_get(checkpoint->config, "eos_token_id"));
    config->begin = json_is_integer(begin) ? json_integer_value(begin) : -1;
    for (int i = 0; i < 2; i++) {
        if (sb_gguf_integer(sb_gguf_find(&checkpoint->gguf, ends[i]), 0, &token))
            add_stop(config, token);
    }
    if (sb_gguf_integer(sb_gguf_find(&checkpoint->gguf, "tokenizer.ggml.bos_token_id"), 0, &token))
        config->begin = token;
    if (config->begin >= config->vocabulary)
        config->begin = -1;
}

/* ---- all of it ---- */

static sb_status settle_extents(const sb_checkpoint *checkpoint, const sb_config_source *source, sb_llm_config *config,
                                sb_error *error) {
    const sb_llm_family *family = config->family;
    if (config->key_heads == 0)
        config->key_heads = config->heads;
    if (config->head_width == 0) {
        if (config->hidden % config->heads != 0)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: %lld elements are not shared out by %lld heads",
                           source->path, (long long)config->hidden, (long long)config->heads);
        config->head_width = config->hidden / config->heads;
    }
    if (config->intermediate == 0 && family->learned_positions)
        config->intermediate = 4 * config->hidden;
    if (config->intermediate == 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s says no intermediate_size", source->path);
    if (config->heads % config->key_heads != 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: %lld heads are not shared out by %lld heads of keys",
                       source->path, (long long)config->heads, (long long)config->key_heads);
    if (config->heads * config->head_width > MOST)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: %lld heads of %lld elements are too many", source->path,
                       (long long)config->heads, (long long)config->head_width);
    if (config->vocabulary == 0) {
        const sb_gguf_value *tokens = sb_gguf_find(&checkpoint->gguf, "tokenizer.ggml.tokens");
        if (tokens == NULL || tokens->count == 0 || tokens->count > (uint64_t)MOST_VOCABULARY)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s does not say how many tokens there are", source->path);
        config->vocabulary = (int64_t)tokens->count;
    }
    return SB_OK;
}

static sb_status read_rest(const sb_config_source *source, sb_llm_config *config, sb_error *error) {
    const sb_llm_family *family = config->family;
    bool tied = family->tied;
    SB_TRY(read_real(source, family->layer_norm ? "layer_norm_epsilon" : "rms_norm_eps",
                     family->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
                     family->layer_norm ? 1e-5 : 1e-6, &config->epsilon, error));
    SB_TRY(read_real(source, "attn_logit_softcapping", "attn_logit_softcapping", family->attention_cap,
                     &config->attention_cap, error));
    SB_TRY(read_real(source, "final_logit_softcapping", "final_logit_softcapping", family->final_cap,
                     &config->final_cap, error));
    SB_TRY(read_real(source, "query_pre_attn_scalar", NULL, family->query_scalar, &config->query_scalar, error));
    if (source->json == NULL && config->layers == family->gguf_scalar_layers)
        config->query_scalar = (double)(config->hidden / config->heads);
    SB_TRY(sb_config_flag(source, "tie_word_embeddings", &tied, error));
    config->tied = tied;
    return read_activation(source, config, error);
}

sb_status sb_llm_config_read(const sb_checkpoint *checkpoint, sb_llm_config *config, sb_error *error) {
    sb_config_source source = {.path = checkpoint->path, .json = checkpoint->config, .gguf = &checkpoint->gguf};
    *config = (sb_llm_config){0};
    SB_TRY(find_family(checkpoint, &source, config, error));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        SB_TRY(read_number(&source, &numbers[i], config, error));
    SB_TRY(settle_extents(checkpoint, &source, config, error));
    SB_TRY(read_rest(&source, config, error));
    SB_TRY(read_ropes(&source, config, error));
    SB_TRY(read_windows(&source, config, error));
    read_tokens(checkpoint, config);
    return SB_OK;
}
