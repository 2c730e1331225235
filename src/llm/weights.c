#include "llm/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES SB_LLM_NAME_BYTES

/* ---- which tensor ---- */

static const sb_llm_place *place_of(const sb_llm_config *config, sb_llm_role role) {
    return &(config->gguf ? config->family->gguf : config->family->folder)[role];
}

/* "%" stands for the layer. */
static void write_name(const sb_llm_place *place, int64_t layer, const char *prefix, const char *ending,
                       char name[NAME_BYTES]) {
    const char *mark = strchr(place->name, '%');
    if (mark == NULL)
        snprintf(name, NAME_BYTES, "%s%s%s", prefix, place->name, ending);
    else
        snprintf(name, NAME_BYTES, "%s%.*s%" PRId64 "%s%s", prefix, (int)(mark - place->name), place->name, layer,
                 mark + 1, ending);
}

static const sb_checkpoint_tensor *find(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role,
                                        int64_t layer, const char *ending, char name[NAME_BYTES]) {
    const sb_llm_place *place = place_of(config, role);
    const char *prefix = config->gguf ? NULL : config->family->prefix;
    const sb_checkpoint_tensor *tensor = NULL;
    if (prefix != NULL) {
        write_name(place, layer, prefix, ending, name);
        tensor = sb_checkpoint_find(checkpoint, name);
    }
    if (tensor == NULL) {
        write_name(place, layer, "", ending, name);
        tensor = sb_checkpoint_find(checkpoint, name);
    }
    return tensor;
}

bool sb_llm_has_weight(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role) {
    char name[NAME_BYTES];
    if (place_of(config, role)->name == NULL)
        return false;
    if (role != SB_ROLE_HEAD)
        return true;
    const sb_checkpoint_tensor *head = find(checkpoint, config, role, 0, ".weight", name);
    return config->gguf ? head != NULL : !config->tied;
}

/* ---- its extents ---- */

typedef struct extents {
    int64_t outputs, inputs;      /* of the weight */
    int64_t first, whole_outputs; /* its first row in the tensor, and how many that has */
} extents;

static extents extents_of(const sb_llm_config *config, sb_llm_role role) {
    int64_t queries = config->heads * config->head_width, keys = config->key_heads * config->head_width;
    int64_t hidden = config->hidden, middle = config->intermediate;
    bool qkv = place_of(config, role)->part == SB_PART_QKV, pair = place_of(config, role)->part == SB_PART_GATE_UP;
    extents of = {0};
    switch (role) {
    case SB_ROLE_EMBEDDING:
    case SB_ROLE_HEAD:
        of = (extents){config->vocabulary, hidden, 0, 0};
        break;
    case SB_ROLE_POSITIONS:
        of = (extents){config->positions, hidden, 0, 0};
        break;
    case SB_ROLE_QUERY:
        of = (extents){queries, hidden, 0, qkv ? queries + 2 * keys : 0};
        break;
    case SB_ROLE_KEY:
    case SB_ROLE_VALUE:
        of = (extents){keys, hidden, qkv ? queries + (role == SB_ROLE_VALUE ? keys : 0) : 0,
                       qkv ? queries + 2 * keys : 0};
        break;
    case SB_ROLE_OUT:
        of = (extents){hidden, queries, 0, 0};
        break;
    case SB_ROLE_GATE:
    case SB_ROLE_UP:
        of = (extents){middle, hidden, pair && role == SB_ROLE_UP ? middle : 0, pair ? 2 * middle : 0};
        break;
    case SB_ROLE_DOWN:
        of = (extents){hidden, middle, 0, 0};
        break;
    case SB_ROLE_QUERY_NORM:
    case SB_ROLE_KEY_NORM:
        of = (extents){config->head_width, 1, 0, 0};
        break;
    default:
        of = (extents){hidden, 1, 0, 0};
        break;
    }
    if (of.whole_outputs == 0)
        of.whole_outputs = of.outputs;
    return of;
}

static sb_status missing(const sb_checkpoint *checkpoint, const sb_llm_config *config, const char *name,
                         sb_error *error) {
    return sb_fail(
        error, SB_ERROR_INVALID_FILE,
        "%.300s has no tensor '%.200s', which %s models have: the configuration is of another model, or a file "
        "is missing",
        checkpoint->path, name, config->family->name);
}

static sb_status check_extents(const sb_checkpoint *checkpoint, const sb_checkpoint_tensor *tensor, int rank,
                               const int64_t *wanted, sb_error *error) {
    if (tensor->rank == rank && memcmp(tensor->dims, wanted, (size_t)rank * sizeof *wanted) == 0)
        return SB_OK;
    char have[SB_DIMS_TEXT_BYTES], want[SB_DIMS_TEXT_BYTES];
    return sb_fail(error, SB_ERROR_INVALID_FILE,
                   "%.300s: tensor '%.200s' (byte %zu) is %s where the configuration says %s",
                   checkpoint->files[tensor->file].path, tensor->name, tensor->offset,
                   sb_dims_text(tensor->rank, tensor->dims, have), sb_dims_text(rank, wanted, want));
}

bool sb_llm_weight_tensor(const sb_llm_config *config, sb_llm_role role, int64_t layer, bool bias,
                          char name[SB_LLM_NAME_BYTES], int *rank, int64_t dims[2]) {
    const sb_llm_place *place = place_of(config, role);
    bool table = role == SB_ROLE_EMBEDDING || role == SB_ROLE_POSITIONS || role == SB_ROLE_HEAD;
    extents of = extents_of(config, role);
    if (place->name == NULL)
        return false;
    bool turned = config->family->transposed && !config->gguf && !table;
    write_name(place, layer, "", bias ? ".bias" : ".weight", name);
    *rank = bias || of.inputs == 1 ? 1 : 2;
    dims[0] = *rank == 2 && turned ? of.inputs : of.whole_outputs;
    dims[1] = turned ? of.whole_outputs : of.inputs;
    return true;
}

/* ---- reading ---- */

/* GGUF files of some families have the two rows of a rotated pair side by side: [heads, pairs, 2] rows for
 * [heads, 2, pairs]. Moves them back, so that the bits are those of the folder that the file was made from. */
static sb_status part_pairs(const sb_llm_config *config, int64_t heads, sb_tensor **tensor, sb_error *error) {
    sb_tensor *apart = NULL, *swapped = NULL, *dense = NULL, *result = NULL;
    const int64_t *dims = sb_tensor_dims(*tensor);
    int64_t inputs = sb_tensor_rank(*tensor) == 2 ? dims[1] : 1, half = config->head_width / 2;
    static const int order[] = {0, 2, 1, 3};
    sb_status status = sb_tensor_reshape(*tensor, 4, (int64_t[]){heads, half, 2, inputs}, &apart, error);
    if (status == SB_OK)
        status = sb_tensor_transpose(apart, order, &swapped, error);
    if (status == SB_OK)
        status = sb_tensor_contiguous(swapped, &dense, error);
    if (status == SB_OK)
        status = sb_tensor_reshape(dense, sb_tensor_rank(*tensor), dims, &result, error);
    sb_tensor_release(apart);
    sb_tensor_release(swapped);
    sb_tensor_release(dense);
    if (status == SB_OK) {
        sb_tensor_release(*tensor);
        *tensor = result;
        result->storage->dispensable = true;
    }
    return status;
}

/* The rows of `axis` that are the weight's; and in their own order. */
static sb_status take_rows(const sb_llm_config *config, sb_llm_role role, int axis, sb_tensor **tensor,
                           sb_error *error) {
    extents of = extents_of(config, role);
    if (of.whole_outputs != of.outputs) {
        sb_tensor *part;
        SB_TRY(sb_tensor_slice(*tensor, axis, of.first, of.outputs, 1, &part, error));
        sb_tensor_release(*tensor);
        *tensor = part;
    }
    bool mixed = config->gguf && config->family->gguf_interleaved && (role == SB_ROLE_QUERY || role == SB_ROLE_KEY);
    return mixed ? part_pairs(config, role == SB_ROLE_QUERY ? config->heads : config->key_heads, tensor, error) : SB_OK;
}

/* Keeps a tensor that fits, else releases it. */
static sb_status finish(sb_status status, sb_tensor *tensor, sb_tensor **result) {
    if (status == SB_OK)
        *result = tensor;
    else
        sb_tensor_release(tensor);
    return status;
}

sb_status sb_llm_matrix(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role, int64_t layer,
                        sb_dtype dtype, sb_tensor **matrix, sb_error *error) {
    static const int swap[] = {1, 0};
    char name[NAME_BYTES];
    extents of = extents_of(config, role);
    bool table = role == SB_ROLE_EMBEDDING || role == SB_ROLE_POSITIONS || role == SB_ROLE_HEAD;
    bool transposed = config->family->transposed && !config->gguf && !table;
    const int64_t dims[] = {transposed ? of.inputs : of.whole_outputs, transposed ? of.whole_outputs : of.inputs};
    const sb_checkpoint_tensor *tensor = find(checkpoint, config, role, layer, ".weight", name);
    sb_tensor *whole, *turned;
    if (tensor == NULL)
        return missing(checkpoint, config, name, error);
    SB_TRY(check_extents(checkpoint, tensor, 2, dims, error));
    SB_TRY(sb_checkpoint_read(checkpoint, tensor, dtype, &whole, error));
    if (transposed) {
        SB_TRY(finish(sb_tensor_transpose(whole, swap, &turned, error), whole, &whole));
        sb_tensor_release(whole);
        whole = turned;
    }
    sb_status status = take_rows(config, role, 0, &whole, error);
    return finish(status, whole, matrix);
}

sb_status sb_llm_matrix_bias(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role,
                             int64_t layer, sb_dtype dtype, sb_tensor **bias, sb_error *error) {
    char name[NAME_BYTES];
    extents of = extents_of(config, role);
    bool qkv = role == SB_ROLE_QUERY || role == SB_ROLE_KEY || role == SB_ROLE_VALUE;
    sb_llm_bias rule = qkv ? config->family->qkv_bias : config->family->bias;
    *bias = NULL;
    if (rule == SB_BIAS_NEVER || role == SB_ROLE_HEAD || role == SB_ROLE_EMBEDDING)
        return SB_OK;
    const sb_checkpoint_tensor *tensor = find(checkpoint, config, role, layer, ".bias", name);
    if (tensor == NULL)
        return rule == SB_BIAS_IF_THERE ? SB_OK : missing(checkpoint, config, name, error);
    sb_tensor *whole;
    SB_TRY(check_extents(checkpoint, tensor, 1, &of.whole_outputs, error));
    SB_TRY(sb_checkpoint_read(checkpoint, tensor, dtype, &whole, error));
    sb_status status = take_rows(config, role, 0, &whole, error);
    return finish(status, whole, bias);
}

/* 1 + weight, one addition each. */
static sb_status add_one(sb_tensor **scale, sb_error *error) {
    sb_tensor *sum;
    int64_t count = sb_tensor_elements(*scale);
    SB_TRY(sb_tensor_create(SB_F32, 1, &count, &sum, error));
    const float *from = sb_tensor_data(*scale);
    float *to = sb_tensor_mutable_data(sum);
    for (int64_t i = 0; i < count; i++)
        to[i] = 1.0f + from[i];
    sb_tensor_release(*scale);
    *scale = sum;
    return SB_OK;
}

sb_status sb_llm_norm(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_llm_role role, int64_t layer,
                      sb_dtype dtype, sb_tensor **scale, sb_tensor **bias, sb_error *error) {
    char name[NAME_BYTES];
    extents of = extents_of(config, role);
    const sb_checkpoint_tensor *tensor = find(checkpoint, config, role, layer, ".weight", name);
    sb_tensor *weight;
    *bias = NULL;
    if (tensor == NULL)
        return missing(checkpoint, config, name, error);
    SB_TRY(check_extents(checkpoint, tensor, 1, &of.outputs, error));
    SB_TRY(sb_checkpoint_read(checkpoint, tensor, SB_F32, &weight, error));
    sb_status status = SB_OK;
    if (config->family->norm_offset && !config->gguf)
        status = add_one(&weight, error);
    if (status == SB_OK && config->family->layer_norm) {
        tensor = find(checkpoint, config, role, layer, ".bias", name);
        status = tensor != NULL ? check_extents(checkpoint, tensor, 1, &of.outputs, error)
                                : missing(checkpoint, config, name, error);
        if (status == SB_OK)
            status = sb_checkpoint_read(checkpoint, tensor, dtype, bias, error);
    }
    return finish(status, weight, scale);
}

/* ---- what is left ---- */

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), bytes = strlen(ending);
    return length >= bytes && strcmp(text + length - bytes, ending) == 0;
}

/* Masks and frequencies that old files carry along, and a head that is the embedding's matrix once more. */
static bool means_nothing(const sb_llm_config *config, const char *name) {
    return ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias") ||
           ends_with(name, "rotary_emb.inv_freq") || (config->tied && ends_with(name, "lm_head.weight"));
}

sb_status sb_llm_check_unused(const sb_checkpoint *checkpoint, const sb_llm_config *config, sb_error *error) {
    size_t unused = 0;
    const sb_checkpoint_tensor *first = NULL;
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        const sb_checkpoint_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->used || means_nothing(config, tensor->name))
            continue;
        first = unused++ == 0 ? tensor : first;
    }
    if (unused == 0)
        return SB_OK;
    return sb_fail(
        error, SB_ERROR_UNSUPPORTED,
        "%.300s: tensor '%.200s' (byte %zu) and %zu others are none that %s models of this configuration have: "
        "the model computes something else, and is not run as if it did not",
        checkpoint->files[first->file].path, first->name, first->offset, unused - 1, config->family->name);
}
