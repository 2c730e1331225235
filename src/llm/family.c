#include "llm/family.h"

#include <stdio.h>
#include <string.h>

/* ---- names of weights ---- */

#define LAYER(name)                                                                                                    \
    { "model.layers.%." name, SB_PART_WHOLE }

/* What most have in folders. */
#define FOLDER_COMMON                                                                                                  \
    [SB_ROLE_EMBEDDING] = {"model.embed_tokens", SB_PART_WHOLE}, [SB_ROLE_FINAL_NORM] = {"model.norm", SB_PART_WHOLE}, \
    [SB_ROLE_HEAD] = {"lm_head", SB_PART_WHOLE}, [SB_ROLE_ATTENTION_NORM] = LAYER("input_layernorm"),                  \
    [SB_ROLE_OUT] = LAYER("self_attn.o_proj"), [SB_ROLE_DOWN] = LAYER("mlp.down_proj")

#define FOLDER_QKV                                                                                                     \
    [SB_ROLE_QUERY] = LAYER("self_attn.q_proj"), [SB_ROLE_KEY] = LAYER("self_attn.k_proj"),                            \
    [SB_ROLE_VALUE] = LAYER("self_attn.v_proj"), [SB_ROLE_GATE] = LAYER("mlp.gate_proj"),                              \
    [SB_ROLE_UP] = LAYER("mlp.up_proj")

#define FOLDER_HEAD_NORMS                                                                                              \
    [SB_ROLE_QUERY_NORM] = LAYER("self_attn.q_norm"), [SB_ROLE_KEY_NORM] = LAYER("self_attn.k_norm")

static const sb_llm_place folder_llama[SB_ROLES] = {FOLDER_COMMON,
                                                    FOLDER_QKV, [SB_ROLE_MLP_NORM] = LAYER("post_attention_layernorm")};

static const sb_llm_place folder_qwen3[SB_ROLES] = {
    FOLDER_COMMON, FOLDER_QKV, FOLDER_HEAD_NORMS, [SB_ROLE_MLP_NORM] = LAYER("post_attention_layernorm")};

#define FOLDER_GEMMA_NORMS                                                                                             \
    [SB_ROLE_AFTER_ATTENTION_NORM] = LAYER("post_attention_layernorm"),                                                \
    [SB_ROLE_MLP_NORM] = LAYER("pre_feedforward_layernorm"),                                                           \
    [SB_ROLE_AFTER_MLP_NORM] = LAYER("post_feedforward_layernorm")

static const sb_llm_place folder_gemma2[SB_ROLES] = {FOLDER_COMMON, FOLDER_QKV, FOLDER_GEMMA_NORMS};
static const sb_llm_place folder_gemma3[SB_ROLES] = {FOLDER_COMMON, FOLDER_QKV, FOLDER_HEAD_NORMS, FOLDER_GEMMA_NORMS};

static const sb_llm_place folder_phi3[SB_ROLES] = {
    FOLDER_COMMON,
    [SB_ROLE_QUERY] = {"model.layers.%.self_attn.qkv_proj", SB_PART_QKV},
    [SB_ROLE_KEY] = {"model.layers.%.self_attn.qkv_proj", SB_PART_QKV},
    [SB_ROLE_VALUE] = {"model.layers.%.self_attn.qkv_proj", SB_PART_QKV},
    [SB_ROLE_GATE] = {"model.layers.%.mlp.gate_up_proj", SB_PART_GATE_UP},
    [SB_ROLE_UP] = {"model.layers.%.mlp.gate_up_proj", SB_PART_GATE_UP},
    [SB_ROLE_MLP_NORM] = LAYER("post_attention_layernorm")};

static const sb_llm_place folder_gpt2[SB_ROLES] = {
    [SB_ROLE_EMBEDDING] = {"wte", SB_PART_WHOLE},           [SB_ROLE_POSITIONS] = {"wpe", SB_PART_WHOLE},
    [SB_ROLE_FINAL_NORM] = {"ln_f", SB_PART_WHOLE},         [SB_ROLE_HEAD] = {"lm_head", SB_PART_WHOLE},
    [SB_ROLE_ATTENTION_NORM] = {"h.%.ln_1", SB_PART_WHOLE}, [SB_ROLE_QUERY] = {"h.%.attn.c_attn", SB_PART_QKV},
    [SB_ROLE_KEY] = {"h.%.attn.c_attn", SB_PART_QKV},       [SB_ROLE_VALUE] = {"h.%.attn.c_attn", SB_PART_QKV},
    [SB_ROLE_OUT] = {"h.%.attn.c_proj", SB_PART_WHOLE},     [SB_ROLE_MLP_NORM] = {"h.%.ln_2", SB_PART_WHOLE},
    [SB_ROLE_UP] = {"h.%.mlp.c_fc", SB_PART_WHOLE},         [SB_ROLE_DOWN] = {"h.%.mlp.c_proj", SB_PART_WHOLE}};

#define BLOCK(name)                                                                                                    \
    { "blk.%." name, SB_PART_WHOLE }

#define GGUF_COMMON                                                                                                    \
    [SB_ROLE_EMBEDDING] = {"token_embd", SB_PART_WHOLE}, [SB_ROLE_FINAL_NORM] = {"output_norm", SB_PART_WHOLE},        \
    [SB_ROLE_HEAD] = {"output", SB_PART_WHOLE}, [SB_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"),                         \
    [SB_ROLE_OUT] = BLOCK("attn_output"), [SB_ROLE_MLP_NORM] = BLOCK("ffn_norm"), [SB_ROLE_DOWN] = BLOCK("ffn_down")

#define GGUF_QKV                                                                                                       \
    [SB_ROLE_QUERY] = BLOCK("attn_q"), [SB_ROLE_KEY] = BLOCK("attn_k"), [SB_ROLE_VALUE] = BLOCK("attn_v"),             \
    [SB_ROLE_GATE] = BLOCK("ffn_gate"), [SB_ROLE_UP] = BLOCK("ffn_up")

#define GGUF_FUSED_QKV                                                                                                 \
    [SB_ROLE_QUERY] = {"blk.%.attn_qkv", SB_PART_QKV}, [SB_ROLE_KEY] = {"blk.%.attn_qkv", SB_PART_QKV},                \
    [SB_ROLE_VALUE] = {"blk.%.attn_qkv", SB_PART_QKV}

#define GGUF_HEAD_NORMS [SB_ROLE_QUERY_NORM] = BLOCK("attn_q_norm"), [SB_ROLE_KEY_NORM] = BLOCK("attn_k_norm")
#define GGUF_AFTER_NORMS                                                                                               \
    [SB_ROLE_AFTER_ATTENTION_NORM] = BLOCK("post_attention_norm"), [SB_ROLE_AFTER_MLP_NORM] = BLOCK("post_ffw_norm")

static const sb_llm_place gguf_llama[SB_ROLES] = {GGUF_COMMON, GGUF_QKV};
static const sb_llm_place gguf_qwen3[SB_ROLES] = {GGUF_COMMON, GGUF_QKV, GGUF_HEAD_NORMS};
static const sb_llm_place gguf_gemma2[SB_ROLES] = {GGUF_COMMON, GGUF_QKV, GGUF_AFTER_NORMS};
static const sb_llm_place gguf_gemma3[SB_ROLES] = {GGUF_COMMON, GGUF_QKV, GGUF_HEAD_NORMS, GGUF_AFTER_NORMS};
static const sb_llm_place gguf_phi3[SB_ROLES] = {GGUF_COMMON,
                                                 GGUF_FUSED_QKV, [SB_ROLE_GATE] = {"blk.%.ffn_up", SB_PART_GATE_UP},
                                                 [SB_ROLE_UP] = {"blk.%.ffn_up", SB_PART_GATE_UP}};
static const sb_llm_place gguf_gpt2[SB_ROLES] = {
    GGUF_COMMON,
    GGUF_FUSED_QKV, [SB_ROLE_POSITIONS] = {"position_embd", SB_PART_WHOLE}, [SB_ROLE_UP] = BLOCK("ffn_up")};

/* ---- families ---- */

#define GELU_TANH "gelu_pytorch_tanh"

static const sb_llm_family families[] = {
    {.name = "Llama",
     .model_types = {"llama"},
     .architectures = {"llama"},
     .folder = folder_llama,
     .gguf = gguf_llama,
     .gguf_interleaved = true,
     .qkv_bias = SB_BIAS_IF_THERE,
     .bias = SB_BIAS_IF_THERE,
     .activation = "silu"},
    /* (GGUF files call it llama, without a window, as its later versions have it.) */
    {.name = "Mistral", .model_types = {"mistral"}, .folder = folder_llama, .gguf = gguf_llama, .activation = "silu"},
    {.name = "Qwen2",
     .model_types = {"qwen2"},
     .architectures = {"qwen2"},
     .folder = folder_llama,
     .gguf = gguf_llama,
     .qkv_bias = SB_BIAS_ALWAYS,
     .activation = "silu",
     .window_switch = true},
    {.name = "Qwen3",
     .model_types = {"qwen3"},
     .architectures = {"qwen3"},
     .folder = folder_qwen3,
     .gguf = gguf_qwen3,
     .qkv_bias = SB_BIAS_IF_THERE,
     .bias = SB_BIAS_IF_THERE,
     .activation = "silu",
     .window_switch = true},
    {.name = "Gemma 2",
     .model_types = {"gemma2"},
     .architectures = {"gemma2"},
     .folder = folder_gemma2,
     .gguf = gguf_gemma2,
     .norm_offset = true,
     .scaled_embedding = true,
     .activation = GELU_TANH,
     .tied = true,
     .gguf_scalar_layers = 46,
     .window_pattern = 2,
     .attention_cap = 50,
     .final_cap = 30},
    {.name = "Gemma 3",
     .model_types = {"gemma3_text"},
     .architectures = {"gemma3"},
     .folder = folder_gemma3,
     .gguf = gguf_gemma3,
     .norm_offset = true,
     .scaled_embedding = true,
     .activation = GELU_TANH,
     .tied = true,
     .gguf_scalar_layers = 62,
     .window_pattern = 6,
     .base = 1000000,
     .local_base = 10000},
    {.name = "Phi-3",
     .model_types = {"phi3"},
     .architectures = {"phi3"},
     .folder = folder_phi3,
     .gguf = gguf_phi3,
     .activation = "silu"},
    {.name = "GPT-2",
     .model_types = {"gpt2"},
     .architectures = {"gpt2"},
     .folder = folder_gpt2,
     .gguf = gguf_gpt2,
     .layer_norm = true,
     .learned_positions = true,
     .transposed = true,
     .qkv_bias = SB_BIAS_ALWAYS,
     .bias = SB_BIAS_ALWAYS,
     .activation = "gelu_new",
     .tied = true,
     .prefix = "transformer."},
};

enum { FAMILIES = sizeof families / sizeof *families };

static const char *const *names_of(const sb_llm_family *family, bool gguf, size_t *count) {
    *count = gguf ? sizeof family->architectures / sizeof *family->architectures
                  : sizeof family->model_types / sizeof *family->model_types;
    return gguf ? family->architectures : family->model_types;
}

const sb_llm_family *sb_llm_family_find(bool gguf, const char *name, size_t bytes) {
    for (int i = 0; i < FAMILIES; i++) {
        size_t count;
        const char *const *names = names_of(&families[i], gguf, &count);
        for (size_t n = 0; n < count && names[n] != NULL; n++) {
            if (strlen(names[n]) == bytes && memcmp(names[n], name, bytes) == 0)
                return &families[i];
        }
    }
    return NULL;
}

void sb_llm_family_names(bool gguf, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < FAMILIES; i++) {
        size_t count;
        const char *const *names = names_of(&families[i], gguf, &count);
        for (size_t n = 0; n < count && names[n] != NULL && used < bytes; n++) {
            int length = snprintf(text + used, bytes - used, "%s%s", used != 0 ? ", " : "", names[n]);
            used += length > 0 ? (size_t)length : 0;
        }
    }
}
