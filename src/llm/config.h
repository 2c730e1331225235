/* What a checkpoint's configuration says of a language model, whichever file it comes from. */
#ifndef SB_LLM_CONFIG_H
#define SB_LLM_CONFIG_H

#include "checkpoint/checkpoint.h"
#include "llm/family.h"

/* How positions beyond those of training are squeezed into the angles of rotary embeddings. */
typedef enum sb_rope_scaling {
    SB_ROPE_PLAIN,
    SB_ROPE_LINEAR,
    SB_ROPE_LLAMA3,
    SB_ROPE_YARN,
    SB_ROPE_LONG,   /* factors for each pair of elements: long ones, or short ones */
    SB_ROPE_FACTORS /* the file has the factors for each pair (GGUF: rope_freqs.weight) */
} sb_rope_scaling;

typedef struct sb_rope_config {
    double base;
    sb_rope_scaling scaling;
    double factor;                              /* by how much the context was stretched */
    double low, high;                           /* llama3: low_freq_factor, high_freq_factor */
    double fast, slow;                          /* yarn: beta_fast, beta_slow */
    double attention_factor;                    /* of the rotated vectors; 0: by the rule */
    double mscale, mscale_all_dim;              /* yarn: 0: not given */
    bool truncate;                              /* yarn: whole dimensions for its bounds */
    int64_t original;                           /* positions of training; 0: not given */
    const json_t *long_factors, *short_factors; /* longrope, of config.json; NULL: none, or in the file's tensors */
} sb_rope_config;

typedef enum sb_llm_activation { SB_LLM_SILU, SB_LLM_GELU, SB_LLM_GELU_TANH, SB_LLM_RELU } sb_llm_activation;

#define SB_LLM_STOPS 16

typedef struct sb_llm_config {
    const sb_llm_family *family;
    bool gguf; /* which names, and layout, the weights have */
    int64_t layers, hidden, heads, key_heads, head_width, intermediate, vocabulary;
    int64_t positions; /* max_position_embeddings: the longest context that it declares */
    double epsilon;
    sb_llm_activation activation;
    bool tied;                       /* the head is the embedding's matrix */
    int64_t rotated;                 /* elements of a head that are rotated */
    sb_rope_config rope, local_rope; /* the second for layers with a window, where the family has one of its own */
    int64_t window;                  /* keys that a layer with a window sees; 0: no layer has one */
    int64_t window_pattern; /* every so many layers, the last sees all keys; 0: all have the window; -1: `windows` */
    int64_t window_first;   /* the first layer that may have a window */
    const json_t *windows;  /* layer_types of config.json: a text for each layer */
    double attention_cap, final_cap; /* 0: none */
    double query_scalar;             /* scores are divided by its square root; 0: the head's width */
    int64_t begin;                   /* the token that a text begins with; -1: none */
    int stop_count;
    int64_t stops[SB_LLM_STOPS]; /* tokens that end a text */
} sb_llm_config;

/** Reads and checks the configuration. What it refers to is the checkpoint's. Errors: INVALID_FILE for numbers that are
 * missing, of the wrong kind or out of range; UNSUPPORTED for an unknown family (with the list of those that are known),
 * activation or kind of scaling; they name the file and the key. */
sb_status sb_llm_config_read(const sb_checkpoint *checkpoint, sb_llm_config *config, sb_error *error);

/** Whether the layer sees a window of keys alone. */
bool sb_llm_layer_has_window(const sb_llm_config *config, int64_t layer);

#endif
