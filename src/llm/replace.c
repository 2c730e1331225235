/* Other weights in a model's place. Graph, packed weights and programs are made anew of the checkpoint with the new elements, so that
 * what comes of it is what comes of a checkpoint that holds them. Batches notice by the version, before their next run. */
#include <string.h>

#include "base/allocation.h"
#include "llm/llm.h"

/* ---- checking ---- */

static sb_status check_weight(const sb_checkpoint *checkpoint, const sb_llm_weight *weight, int32_t *index,
                              sb_error *error) {
    char have[SB_DIMS_TEXT_BYTES], want[SB_DIMS_TEXT_BYTES];
    const int32_t *found = weight->name != NULL ? sb_names_find(&checkpoint->names, weight->name) : NULL;
    if (found == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "%.300s has no tensor '%.200s' that could be replaced: names are the checkpoint's, and one that "
                       "it does not "
                       "hold, such as a head that is the embedding's matrix, is left out",
                       checkpoint->path, weight->name != NULL ? weight->name : "");
    const sb_checkpoint_tensor *old = &checkpoint->tensors[*found];
    if (weight->tensor == NULL || weight->tensor->storage->device != NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the tensor for '%.200s' is %s", old->name,
                       weight->tensor == NULL ? "not there" : "on a device: sb_tensor_to_host copies it");
    if (!old->format->is_float)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "tensor '%.200s' is of type %s in %.300s, which has no dtype: replace weights of a checkpoint "
                       "in F32, F16 or "
                       "BF16",
                       old->name, old->format->name, checkpoint->path);
    if (sb_tensor_dtype(weight->tensor) != old->format->dtype)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the tensor for '%.200s' is of %s, and the checkpoint's of %s",
                       old->name, sb_dtype_name(sb_tensor_dtype(weight->tensor)), sb_dtype_name(old->format->dtype));
    int rank = sb_tensor_rank(weight->tensor);
    const int64_t *dims = sb_tensor_dims(weight->tensor);
    if (rank != old->rank || memcmp(dims, old->dims, (size_t)rank * sizeof *dims) != 0)
        return sb_fail(error, SB_ERROR_SHAPE, "the tensor for '%.200s' is %s, and the checkpoint's %s", old->name,
                       sb_dims_text(rank, dims, have), sb_dims_text(old->rank, old->dims, want));
    *index = *found;
    return SB_OK;
}

/* ---- the checkpoint's tensors ---- */

static void release_all(const sb_checkpoint *checkpoint, sb_tensor **tensors) {
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        sb_tensor_release(tensors[i]);
}

/* Copies, in the places that they have in the checkpoint. */
static sb_status copy_all(const sb_checkpoint *checkpoint, int64_t count, const sb_llm_weight *weights,
                          sb_tensor **copies, sb_error *error) {
    for (int64_t i = 0; i < count; i++) {
        int32_t index = 0;
        SB_TRY(check_weight(checkpoint, &weights[i], &index, error));
        if (copies[index] != NULL)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "there are two tensors for '%.200s'", weights[i].name);
        const sb_tensor *from = weights[i].tensor;
        SB_TRY(
            sb_tensor_create(sb_tensor_dtype(from), sb_tensor_rank(from), sb_tensor_dims(from), &copies[index], error));
        sb_tensor_copy_elements(copies[index], from);
    }
    return SB_OK;
}

/* Exchanges those that there are. */
static void exchange(sb_checkpoint *checkpoint, sb_tensor **tensors) {
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        if (tensors[i] == NULL)
            continue;
        sb_tensor *old = checkpoint->tensors[i].replacement;
        checkpoint->tensors[i].replacement = tensors[i];
        tensors[i] = old;
    }
}

/* ---- all of it ---- */

static sb_status build(const sb_llm *llm, sb_model **model, sb_llm_fingerprint *fingerprint, sb_error *error) {
    SB_TRY(sb_llm_make_model(llm, model, error));
    if (!llm->receipts)
        return SB_OK;
    sb_status status = sb_llm_fingerprint_of(llm->checkpoint, fingerprint, error);
    if (status != SB_OK)
        sb_model_release(*model);
    else /* of files, which may be others by now than those that were read */
        memcpy(fingerprint->configuration, llm->fingerprint.configuration, SB_DIGEST_BYTES);
    return status;
}

sb_status sb_llm_replace_weights(sb_llm *llm, int64_t count, const sb_llm_weight *weights, sb_error *error) {
    sb_checkpoint *checkpoint = llm->checkpoint;
    sb_model *model = NULL;
    sb_llm_fingerprint fingerprint = llm->fingerprint;
    if (count < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%lld weights cannot be replaced", (long long)count);
    sb_tensor **tensors = sb_allocate_array(checkpoint->tensor_count + 1, sizeof *tensors);
    if (tensors == NULL)
        return sb_fail_memory(error, checkpoint->tensor_count * sizeof *tensors);
    sb_status status = copy_all(checkpoint, count, weights, tensors, error);
    if (status == SB_OK) {
        exchange(checkpoint, tensors);
        status = build(llm, &model, &fingerprint, error);
        if (status != SB_OK)
            exchange(checkpoint, tensors);
    }
    if (status == SB_OK) {
        sb_model_release(llm->model);
        llm->model = model;
        llm->fingerprint = fingerprint;
        llm->version++;
    }
    release_all(checkpoint, tensors);
    sb_free(tensors);
    return status;
}
