/* Small language models of every family with random weights, as folders of safetensors and as GGUF files of the same
 * numbers. */
#ifndef SB_TESTS_TINY_MODELS_H
#define SB_TESTS_TINY_MODELS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "llm/weights.h"
#include "numerics/convert.h"

typedef struct tiny_pair {
    const char *key; /* without the architecture, but for general.…; NULL: the end */
    double number;   /* whole ones are u32 in the file, others f32 */
} tiny_pair;

typedef struct tiny_model {
    const char *name, *config;
    const char *architecture; /* NULL: there is no GGUF file */
    tiny_pair pairs[12];      /* what a GGUF file says besides the common ones */
} tiny_model;

#define TINY_COMMON                                                                                                    \
    "\"vocab_size\":97,\"hidden_size\":32,\"intermediate_size\":48,\"num_attention_heads\":4,"                         \
    "\"num_key_value_heads\":2,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,\"head_dim\":8,"                   \
    "\"bos_token_id\":1,\"eos_token_id\":[2,3]"
#define TINY_LAYERS(n) "\"num_hidden_layers\":" #n ","

static const tiny_model tiny_models[] = {
    {"llama", "{\"model_type\":\"llama\"," TINY_LAYERS(2) TINY_COMMON "}", "llama", {{"block_count", 2}}},
    {"llama3",
     "{\"model_type\":\"llama\"," TINY_LAYERS(1) TINY_COMMON
     ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
     "\"original_max_position_embeddings\":16}}",
     NULL,
     {{NULL, 0}}},
    {"mistral", "{\"model_type\":\"mistral\",\"sliding_window\":9," TINY_LAYERS(2) TINY_COMMON "}", NULL, {{NULL, 0}}},
    {"qwen2",
     "{\"model_type\":\"qwen2\",\"rope_theta\":1000000," TINY_LAYERS(2) TINY_COMMON
     ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":16}}",
     NULL,
     {{NULL, 0}}},
    {"qwen3",
     "{\"model_type\":\"qwen3\"," TINY_LAYERS(2) TINY_COMMON ",\"tie_word_embeddings\":true}",
     "qwen3",
     {{"block_count", 2}}},
    {"gemma2",
     "{\"model_type\":\"gemma2\",\"sliding_window\":9," TINY_LAYERS(2) TINY_COMMON ",\"query_pre_attn_scalar\":8}",
     "gemma2",
     {{"block_count", 2},
      {"attention.sliding_window", 9},
      {"attn_logit_softcapping", 50},
      {"final_logit_softcapping", 30}}},
    {"gemma3",
     "{\"model_type\":\"gemma3_text\",\"sliding_window\":9," TINY_LAYERS(6) TINY_COMMON ",\"query_pre_attn_scalar\":8}",
     "gemma3",
     {{"block_count", 6}, {"attention.sliding_window", 9}, {"rope.freq_base", 1000000}}},
    {"phi3",
     "{\"model_type\":\"phi3\"," TINY_LAYERS(2) TINY_COMMON
     ",\"original_max_position_embeddings\":32,\"rope_scaling\":{\"type\":\"longrope\","
     "\"long_factor\":[1.0,2.0,3.5,7.25],\"short_factor\":[1.0,1.0,1.5,2.0]}}",
     NULL,
     {{NULL, 0}}},
    {"gpt2",
     "{\"model_type\":\"gpt2\",\"vocab_size\":97,\"n_embd\":32,\"n_layer\":2,\"n_head\":4,\"n_positions\":64,"
     "\"bos_token_id\":1,\"eos_token_id\":2}",
     "gpt2",
     {{"block_count", 2}}},
};

enum { TINY_MODELS = sizeof tiny_models / sizeof *tiny_models };

/* ---- numbers, by role, layer and place in the matrix [outputs, inputs] ---- */

static inline float tiny_number(int role, int64_t layer, bool bias, int64_t output, int64_t input) {
    uint64_t x = (uint64_t)role * 1000003 + (uint64_t)layer * 7919 + (bias ? 104729 : 0);
    x = (x * 2654435761u + (uint64_t)output) * 40503 + (uint64_t)input;
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 32;
    /* A multiple of 2^-6 in +-1/2, which bf16 holds, and 1 and it as well. */
    return (float)((int64_t)(x % 65) - 32) / 64;
}

/* Element (output, input) of the file's tensor, whatever its order. */
static inline float tiny_element(const sb_llm_config *config, int role, int64_t layer, bool bias, int64_t output,
                                 int64_t input) {
    int64_t width = config->head_width, within = output % width;
    bool pairs = config->gguf && config->family->gguf_interleaved && (role == SB_ROLE_QUERY || role == SB_ROLE_KEY);
    bool norm = role == SB_ROLE_FINAL_NORM || role == SB_ROLE_ATTENTION_NORM || role == SB_ROLE_MLP_NORM ||
                role == SB_ROLE_QUERY_NORM || role == SB_ROLE_KEY_NORM || role == SB_ROLE_AFTER_ATTENTION_NORM ||
                role == SB_ROLE_AFTER_MLP_NORM;
    if (pairs)
        output = output - within + within % 2 * (width / 2) + within / 2;
    float number = tiny_number(role, layer, bias, output, input);
    if (norm && !bias && !(config->family->norm_offset && !config->gguf))
        number += 1;
    return number;
}

/* ---- a file in memory ---- */

typedef struct tiny_bytes {
    char *data;
    size_t size, capacity;
} tiny_bytes;

static inline void tiny_add(tiny_bytes *to, const void *data, size_t size) {
    while (to->size + size > to->capacity) {
        to->capacity = to->capacity * 2 + 4096;
        to->data = realloc(to->data, to->capacity);
        if (to->data == NULL)
            abort();
    }
    if (size != 0)
        memcpy(to->data + to->size, data, size);
    to->size += size;
}

static inline void tiny_add_number(tiny_bytes *to, uint64_t number, size_t size) {
    for (size_t i = 0; i < size; i++)
        tiny_add(to, &(char){(char)(number >> (8 * i))}, 1);
}

static inline void tiny_add_text(tiny_bytes *to, const char *text) {
    tiny_add_number(to, strlen(text), 8);
    tiny_add(to, text, strlen(text));
}

static inline void tiny_save(const tiny_bytes *bytes, const char *path) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes->data, 1, bytes->size, file) != bytes->size || fclose(file) != 0)
        abort();
}

/* ---- tensors ---- */

typedef struct tiny_files {
    const sb_llm_config *config;
    tiny_bytes about, elements; /* descriptions, and what they describe */
    int64_t count;
} tiny_files;

static inline void tiny_add_tensor(tiny_files *files, sb_llm_role role, int64_t layer, bool bias) {
    char name[SB_LLM_NAME_BYTES], text[512];
    int rank;
    int64_t dims[2];
    const sb_llm_config *config = files->config;
    if (!sb_llm_weight_tensor(config, role, layer, bias, name, &rank, dims))
        return;
    bool wide = rank == 1 && config->gguf; /* GGUF files have vectors in f32 */
    bool table = role == SB_ROLE_EMBEDDING || role == SB_ROLE_POSITIONS || role == SB_ROLE_HEAD;
    bool turned = config->family->transposed && !config->gguf && !table && rank == 2;
    size_t begin = files->elements.size;
    int64_t columns = rank == 2 ? dims[1] : 1;
    for (int64_t i = 0; i < dims[0] * columns; i++) {
        int64_t row = i / columns, column = i % columns;
        float number = tiny_element(config, (int)role, layer, bias, turned ? column : row, turned ? row : column);
        uint16_t narrow = sb_bf16_from_f32(number);
        tiny_add(&files->elements, wide ? (const void *)&number : &narrow, wide ? 4 : 2);
    }
    if (config->gguf) {
        tiny_add_text(&files->about, name);
        tiny_add_number(&files->about, (uint64_t)rank, 4);
        for (int d = rank; d-- > 0;)
            tiny_add_number(&files->about, (uint64_t)dims[d], 8);
        tiny_add_number(&files->about, wide ? 0 : 30, 4);
        tiny_add_number(&files->about, begin, 8);
        while (files->elements.size % 32 != 0)
            tiny_add_number(&files->elements, 0, 1);
    } else {
        char second[32] = "";
        if (rank == 2)
            snprintf(second, sizeof second, ",%lld", (long long)dims[1]);
        snprintf(text, sizeof text, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%lld%s],\"data_offsets\":[%zu,%zu]}",
                 files->count != 0 ? "," : "{", name, (long long)dims[0], second, begin, files->elements.size);
        tiny_add(&files->about, text, strlen(text));
    }
    files->count++;
}

static inline void tiny_add_weight(tiny_files *files, sb_llm_role role, int64_t layer) {
    const sb_llm_family *family = files->config->family;
    const sb_llm_place *place = &(files->config->gguf ? family->gguf : family->folder)[role];
    bool later_part =
        place->part == SB_PART_QKV ? role != SB_ROLE_QUERY : place->part == SB_PART_GATE_UP && role != SB_ROLE_GATE;
    bool qkv = role == SB_ROLE_QUERY || role == SB_ROLE_KEY || role == SB_ROLE_VALUE;
    bool matrix = qkv || role == SB_ROLE_OUT || role == SB_ROLE_GATE || role == SB_ROLE_UP || role == SB_ROLE_DOWN;
    bool table = role == SB_ROLE_EMBEDDING || role == SB_ROLE_POSITIONS || role == SB_ROLE_HEAD;
    if (later_part || (role == SB_ROLE_HEAD && files->config->tied))
        return;
    tiny_add_tensor(files, role, layer, false);
    if (matrix ? (qkv ? family->qkv_bias : family->bias) == SB_BIAS_ALWAYS : !table && family->layer_norm)
        tiny_add_tensor(files, role, layer, true);
}

static inline void tiny_add_all(tiny_files *files) {
    for (int role = 0; role < SB_ROLE_ATTENTION_NORM; role++)
        tiny_add_weight(files, (sb_llm_role)role, 0);
    for (int64_t layer = 0; layer < files->config->layers; layer++) {
        for (int role = SB_ROLE_ATTENTION_NORM; role < SB_ROLES; role++)
            tiny_add_weight(files, (sb_llm_role)role, layer);
    }
}

/* ---- a tokenizer ---- */

/** Writes the tokenizer.json of 97 tokens `path`: 0 is <unk>, 1 begins texts, 2 ends them, and each of the others is
 * one of the characters from the space on. */
static inline void tiny_write_tokenizer(const char *path) {
    static const char marks[] = "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},"
                                "{\"id\":1,\"content\":\"<s>\",\"special\":true},"
                                "{\"id\":2,\"content\":\"</s>\",\"special\":true}],"
                                "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
                                "{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":"
                                "{\"<s>\":{\"ids\":[1]}}},\"decoder\":{\"type\":\"Fuse\"},\"model\":{\"type\":\"BPE\","
                                "\"unk_token\":\"<unk>\",\"merges\":[],\"vocab\":{\"<unk>\":0,\"<s>\":1,\"</s>\":2";
    tiny_bytes text = {0};
    char entry[32];
    tiny_add(&text, marks, strlen(marks));
    for (int token = 3; token < 97; token++) {
        char character = (char)(' ' + token - 3);
        const char *escape = character == '"' || character == '\\' ? "\\" : "";
        snprintf(entry, sizeof entry, ",\"%s%c\":%d", escape, character, token);
        tiny_add(&text, entry, strlen(entry));
    }
    tiny_add(&text, "}}}\n", 4);
    tiny_save(&text, path);
    free(text.data);
}

/** Writes a chat template for it: the day, and each message with its role in front. */
static inline void tiny_write_chat_template(const char *path) {
    static const char source[] = "<s>[{{ strftime_now('%Y-%m-%d') }}]{% for message in messages %}[{{ message.role }}]"
                                 "{{ message.content }}</s>{% endfor %}"
                                 "{% if add_generation_prompt %}[assistant]{% endif %}";
    tiny_bytes text = {0};
    tiny_add(&text, source, strlen(source));
    tiny_save(&text, path);
    free(text.data);
}

/* ---- whole checkpoints ---- */

/* The folder's configuration: what the GGUF file's has to be too. */
static inline sb_checkpoint tiny_configured(const tiny_model *model, sb_llm_config *config) {
    sb_error error = {0};
    sb_checkpoint checkpoint = {.path = (char *)(uintptr_t)model->name};
    if (sb_json_object(model->name, model->config, strlen(model->config), &checkpoint.config, &error) != SB_OK ||
        sb_llm_config_read(&checkpoint, config, &error) != SB_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    return checkpoint;
}

/** Writes the folder `path`, which must not be there. */
static inline void tiny_write_folder(const tiny_model *model, const char *path) {
    char name[1024];
    sb_llm_config config;
    sb_checkpoint checkpoint = tiny_configured(model, &config);
    tiny_files files = {.config = &config};
    tiny_bytes whole = {0};
    const tiny_bytes text = {(char *)(uintptr_t)model->config, strlen(model->config), 0};
    tiny_add_all(&files);
    tiny_add(&files.about, "}", 1);
    while (files.about.size % 8 != 0)
        tiny_add(&files.about, " ", 1);
    tiny_add_number(&whole, files.about.size, 8);
    tiny_add(&whole, files.about.data, files.about.size);
    tiny_add(&whole, files.elements.data, files.elements.size);
    mkdir(path, 0777);
    snprintf(name, sizeof name, "%.900s/config.json", path);
    tiny_save(&text, name);
    snprintf(name, sizeof name, "%.900s/model.safetensors", path);
    tiny_save(&whole, name);
    free(whole.data);
    free(files.about.data);
    free(files.elements.data);
    json_decref(checkpoint.config);
}

static inline void tiny_add_pair(tiny_bytes *to, int64_t *count, const char *architecture, const char *key,
                                 double number) {
    char name[128];
    float single = (float)number;
    uint32_t bits;
    bool whole = number == (double)(uint32_t)number;
    memcpy(&bits, &single, sizeof bits);
    snprintf(name, sizeof name, "%s.%s", architecture, key);
    tiny_add_text(to, strncmp(key, "general.", 8) == 0 ? key : name);
    tiny_add_number(to, whole ? SB_GGUF_U32 : SB_GGUF_F32, 4);
    tiny_add_number(to, whole ? (uint32_t)number : bits, 4);
    ++*count;
}

/** Writes the file `path`, of the folder's numbers. */
static inline void tiny_write_gguf(const tiny_model *model, const char *path) {
    sb_llm_config config;
    sb_checkpoint checkpoint = tiny_configured(model, &config);
    tiny_bytes pairs = {0}, whole = {0};
    int64_t count = 1;
    const char *architecture = model->architecture;
    config.gguf = true;
    tiny_files files = {.config = &config};
    tiny_add_text(&pairs, "general.architecture");
    tiny_add_number(&pairs, SB_GGUF_TEXT, 4);
    tiny_add_text(&pairs, architecture);
    tiny_add_pair(&pairs, &count, architecture, "embedding_length", (double)config.hidden);
    tiny_add_pair(&pairs, &count, architecture, "feed_forward_length", (double)config.intermediate);
    tiny_add_pair(&pairs, &count, architecture, "attention.head_count", (double)config.heads);
    tiny_add_pair(&pairs, &count, architecture, "attention.head_count_kv", (double)config.key_heads);
    tiny_add_pair(&pairs, &count, architecture, "attention.key_length", (double)config.head_width);
    tiny_add_pair(&pairs, &count, architecture, "context_length", (double)config.positions);
    tiny_add_pair(&pairs, &count, architecture, "vocab_size", (double)config.vocabulary);
    tiny_add_pair(&pairs, &count, architecture,
                  config.family->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
                  1e-5);
    for (int i = 0; model->pairs[i].key != NULL; i++)
        tiny_add_pair(&pairs, &count, architecture, model->pairs[i].key, model->pairs[i].number);
    tiny_add_all(&files);
    tiny_add(&whole, "GGUF", 4);
    tiny_add_number(&whole, 3, 4);
    tiny_add_number(&whole, (uint64_t)files.count, 8);
    tiny_add_number(&whole, (uint64_t)count, 8);
    tiny_add(&whole, pairs.data, pairs.size);
    tiny_add(&whole, files.about.data, files.about.size);
    while (whole.size % 32 != 0)
        tiny_add_number(&whole, 0, 1);
    tiny_add(&whole, files.elements.data, files.elements.size);
    tiny_save(&whole, path);
    free(pairs.data);
    free(whole.data);
    free(files.about.data);
    free(files.elements.data);
    json_decref(checkpoint.config);
}

#endif
