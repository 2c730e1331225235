#include "llm/llm.h"

#include <string.h>

#include "base/allocation.h"

#define DEFAULT_CONTEXT 4096

/* ---- what it is ---- */

/* The type of most of the matrices' elements; bf16 for what is quantised. */
static sb_dtype usual_dtype(const sb_checkpoint *checkpoint) {
    int64_t count[SB_DTYPE_COUNT] = {0};
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        const sb_checkpoint_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->rank >= 2 && tensor->format->decode != NULL)
            count[tensor->format->is_float ? tensor->format->dtype : SB_BF16] += tensor->elements / 64 + 1;
    }
    sb_dtype best = SB_BF16;
    best = count[SB_F16] > count[best] ? SB_F16 : best;
    return count[SB_F32] > count[best] ? SB_F32 : best;
}

static void describe(sb_llm *llm, sb_dtype dtype, int64_t context) {
    const sb_llm_config *c = &llm->config;
    sb_llm_description *d = &llm->description;
    *d = (sb_llm_description){.family = c->family->name,
                              .format = c->gguf ? "GGUF" : "safetensors",
                              .dtype = dtype,
                              .layers = c->layers,
                              .hidden = c->hidden,
                              .heads = c->heads,
                              .key_heads = c->key_heads,
                              .head_width = c->head_width,
                              .intermediate = c->intermediate,
                              .vocabulary = c->vocabulary,
                              .window = c->window,
                              .declared_positions = c->positions,
                              .context = context,
                              .begin = c->begin,
                              .stop_count = c->stop_count,
                              .stops = c->stops};
    for (size_t i = 0; i < llm->checkpoint->tensor_count; i++) {
        d->parameters += llm->checkpoint->tensors[i].elements;
        d->weight_bytes += (int64_t)llm->checkpoint->tensors[i].bytes;
    }
    for (int64_t layer = 0; layer < c->layers; layer++)
        d->windowed_layers += sb_llm_layer_has_window(c, layer);
    d->cache_bytes = c->layers * 2 * context * c->key_heads * c->head_width * (int64_t)sb_dtype_size(dtype);
}

/* ---- loading ---- */

static sb_status settle(const sb_llm *llm, const sb_llm_options *options, sb_dtype *dtype, int64_t *context,
                        sb_error *error) {
    const sb_llm_config *config = &llm->config;
    *dtype = options->dtype != SB_DTYPE_NONE ? options->dtype : usual_dtype(llm->checkpoint);
    if (*dtype != SB_F32 && *dtype != SB_F16 && *dtype != SB_BF16)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "language models are computed in f32, f16 or bf16, not in %s",
                       sb_dtype_name(*dtype));
    *context = options->context;
    if (*context == 0)
        *context = config->positions < DEFAULT_CONTEXT ? config->positions : DEFAULT_CONTEXT;
    if (*context < 1 || *context > (int64_t)1 << 28)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a context of %lld positions is not from 1 to 2^28",
                       (long long)*context);
    if (config->family->learned_positions && *context > config->positions)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a context of %lld positions: the model has learned %lld, and there are no others",
                       (long long)*context, (long long)config->positions);
    return SB_OK;
}

static sb_status keep_options(sb_llm *llm, const sb_model_options *options, sb_error *error) {
    llm->options = options != NULL ? *options : (sb_model_options)SB_MODEL_OPTIONS_DEFAULT;
    if (llm->options.struct_bytes != sizeof llm->options || llm->options.unrelated_symbols == NULL)
        return SB_OK; /* (of another size: building refuses it) */
    llm->unrelated = sb_duplicate_string(llm->options.unrelated_symbols);
    llm->options.unrelated_symbols = llm->unrelated;
    return llm->unrelated != NULL ? SB_OK : sb_fail_memory(error, strlen(options->unrelated_symbols) + 1);
}

sb_status sb_llm_make_model(const sb_llm *llm, sb_model **model, sb_error *error) {
    const sb_llm_plan plan = {llm->checkpoint, &llm->config, llm->description.dtype, llm->description.context,
                              llm->hidden_states};
    sb_builder *builder;
    SB_TRY(sb_builder_create(&builder, error));
    sb_status status = sb_llm_build(&plan, builder, error);
    if (status == SB_OK)
        status = sb_builder_build(builder, &llm->options, model, error);
    sb_builder_destroy(builder);
    return status;
}

static sb_status load(sb_llm *llm, const char *path, const sb_llm_options *options, sb_error *error) {
    sb_dtype dtype;
    int64_t context;
    SB_TRY(sb_checkpoint_open(path, &llm->checkpoint, error));
    SB_TRY(sb_llm_config_read(llm->checkpoint, &llm->config, error));
    SB_TRY(settle(llm, options, &dtype, &context, error));
    describe(llm, dtype, context);
    llm->receipts = options->receipts;
    llm->hidden_states = options->receipts || options->hidden_states;
    SB_TRY(keep_options(llm, options->model, error));
    if (options->receipts)
        SB_TRY(sb_llm_fingerprint_of(llm->checkpoint, &llm->fingerprint, error));
    return sb_llm_make_model(llm, &llm->model, error);
}

sb_status sb_llm_load(const char *path, const sb_llm_options *options, sb_llm **llm, sb_error *error) {
    const sb_llm_options standard = SB_LLM_OPTIONS_DEFAULT;
    if (options == NULL)
        options = &standard;
    if (options->struct_bytes != sizeof *options)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "sb_llm_options: struct_bytes is not set");
    sb_llm *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->references = 1;
    sb_status status = load(fresh, path, options, error);
    if (status != SB_OK) {
        sb_llm_release(fresh);
        return status;
    }
    *llm = fresh;
    return SB_OK;
}

void sb_llm_release(sb_llm *llm) {
    if (llm == NULL || atomic_fetch_sub_explicit(&llm->references, 1, memory_order_acq_rel) != 1)
        return;
    sb_model_release(llm->model);
    sb_checkpoint_close(llm->checkpoint);
    sb_free(llm->unrelated);
    sb_free(llm);
}

const sb_llm_description *sb_llm_describe(const sb_llm *llm) {
    return &llm->description;
}

sb_model *sb_llm_model(const sb_llm *llm) {
    return llm->model;
}
