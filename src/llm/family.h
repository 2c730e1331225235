/* Families of language models, as data: what one has and others do not, and what its weights are called. One graph is
 * built for all of them (llm/graph.c). */
#ifndef SB_LLM_FAMILY_H
#define SB_LLM_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

/* What a weight is for. */
typedef enum sb_llm_role {
    SB_ROLE_EMBEDDING, /* [vocabulary, hidden] */
    SB_ROLE_POSITIONS, /* [positions, hidden], where positions are learned */
    SB_ROLE_FINAL_NORM,
    SB_ROLE_HEAD, /* [vocabulary, hidden] */
    /* of a layer */
    SB_ROLE_ATTENTION_NORM,
    SB_ROLE_QUERY, /* matrices are [outputs, inputs] */
    SB_ROLE_KEY,
    SB_ROLE_VALUE,
    SB_ROLE_QUERY_NORM, /* of a head's width */
    SB_ROLE_KEY_NORM,
    SB_ROLE_OUT,
    SB_ROLE_AFTER_ATTENTION_NORM,
    SB_ROLE_MLP_NORM,
    SB_ROLE_GATE,
    SB_ROLE_UP,
    SB_ROLE_DOWN,
    SB_ROLE_AFTER_MLP_NORM,
    SB_ROLES
} sb_llm_role;

/* Where a weight is: a tensor, or some rows of one that holds several. */
typedef enum sb_llm_part { SB_PART_WHOLE, SB_PART_QKV, SB_PART_GATE_UP } sb_llm_part;

typedef struct sb_llm_place {
    const char *name; /* without ".weight" and ".bias", "%" for the layer; NULL: the family has no such weight */
    sb_llm_part part;
} sb_llm_place;

typedef enum sb_llm_bias {
    SB_BIAS_NEVER,
    SB_BIAS_IF_THERE, /* attention_bias and the like */
    SB_BIAS_ALWAYS
} sb_llm_bias;

typedef struct sb_llm_family {
    const char *name;
    const char *model_types[4];        /* config.json's "model_type" */
    const char *architectures[3];      /* GGUF's "general.architecture" */
    const sb_llm_place *folder, *gguf; /* SB_ROLES places each */
    bool layer_norm;                   /* LayerNormalization with a bias, else RMSNormalization */
    bool norm_offset;                  /* norms multiply by 1 + weight (GGUF files have added the 1) */
    bool learned_positions;            /* else rotary embeddings */
    bool gguf_interleaved;      /* GGUF files have the rows of queries and keys in another order: pairs side by side */
    bool transposed;            /* matrices of folders are [inputs, outputs] (GGUF files have them like others) */
    bool scaled_embedding;      /* by √hidden */
    sb_llm_bias qkv_bias, bias; /* of queries, keys, values; of the other matrices but the head */
    const char *activation;     /* where the configuration does not say */
    bool tied;                  /* where it does not say whether the head is the embedding's matrix */
    double base;                /* of rotary embeddings, where it does not say; 0: 10000 */
    int window_pattern;         /* as in sb_llm_config, where it does not say; 0: a window, if given, is all layers' */
    double local_base;          /* of rotary embeddings in layers with a window; 0: as in others */
    double query_scalar;        /* where it does not say; 0: the head's width */
    int gguf_scalar_layers;     /* GGUF files do not say: models of so many layers have hidden / heads in its place */
    double attention_cap, final_cap; /* where it does not say */
    bool window_switch;              /* "use_sliding_window" has to be true for a window to count */
    const char *prefix;              /* what names in folders may begin with besides; NULL: nothing */
} sb_llm_family;

/** The family with that model_type, or architecture in a GGUF file; NULL if there is none. The text has `bytes` bytes. */
const sb_llm_family *sb_llm_family_find(bool gguf, const char *name, size_t bytes);

/** The names that sb_llm_family_find knows, with commas between; cut to fit. */
void sb_llm_family_names(bool gguf, char *text, size_t bytes);

#endif
