#include "llm/suggestion.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/allocation.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "llm/config_source.h"

#define FILE_NAME "generation_config.json"
#define FILE_BYTES ((size_t)1 << 24)

static sb_status read_real(const sb_config_source *source, const char *json, const char *gguf, double least,
                           double most, float *number, sb_error *error) {
    double value;
    bool found;
    SB_TRY(sb_config_real(source, json, gguf, least, most, &value, &found, error));
    if (found)
        *number = (float)value;
    return SB_OK;
}

/* Least numbers that f32 has room for, as the options have them: a smaller temperature would be no more than 0 with noise. GGUF files
 * have nothing like do_sample, so whoever names a temperature there wants it; and by their convention a top_k below 0 is all tokens. */
static sb_status read_all(const sb_config_source *source, sb_llm_sampling *sampling, sb_error *error) {
    bool is_json = source->json != NULL, samples = !is_json, found;
    *sampling = (sb_llm_sampling)SB_LLM_SAMPLING_DEFAULT;
    if (is_json)
        sampling->temperature = 1;
    SB_TRY(sb_config_flag(source, "do_sample", &samples, error));
    SB_TRY(read_real(source, "temperature", "temp", 0, 0x1p20, &sampling->temperature, error));
    SB_TRY(sb_config_integer(source, "top_k", "top_k", is_json ? 0 : INT32_MIN, INT64_C(1) << 40, &sampling->top_k,
                             &found, error));
    SB_TRY(read_real(source, "top_p", "top_p", 1e-6, 1, &sampling->top_p, error));
    SB_TRY(read_real(source, "min_p", "min_p", 0, 1, &sampling->min_p, error));
    SB_TRY(
        read_real(source, "repetition_penalty", "penalty_repeat", 1e-6, 0x1p20, &sampling->repetition_penalty, error));
    if (!samples)
        sampling->temperature = 0;
    if (sampling->top_k < 0)
        sampling->top_k = 0;
    return SB_OK;
}

sb_status sb_llm_suggestion_of(const char *path, const json_t *json, sb_llm_sampling *sampling, sb_error *error) {
    const sb_config_source source = {.path = path, .json = json};
    return read_all(&source, sampling, error);
}

sb_status sb_llm_suggestion_of_gguf(const char *path, const sb_gguf_metadata *metadata, sb_llm_sampling *sampling,
                                    sb_error *error) {
    const sb_config_source source = {.path = path, .gguf = metadata, .architecture = "general.sampling"};
    return read_all(&source, sampling, error);
}

static sb_status suggest_by_folder(const char *path, sb_llm_sampling *sampling, sb_error *error) {
    struct stat info;
    char name[4096];
    void *bytes;
    size_t size;
    json_t *json;
    int length = snprintf(name, sizeof name, "%s/" FILE_NAME, path);
    if (length < 0 || (size_t)length >= sizeof name || stat(name, &info) != 0)
        return SB_OK;
    SB_TRY(sb_file_read(name, FILE_BYTES, &bytes, &size, error));
    sb_status status = sb_json_object(name, bytes, size, &json, error);
    sb_free(bytes);
    if (status == SB_OK) {
        status = sb_llm_suggestion_of(name, json, sampling, error);
        json_decref(json);
    }
    return status;
}

static sb_status suggest_by_gguf(const char *path, sb_llm_sampling *sampling, sb_error *error) {
    sb_checkpoint *checkpoint;
    SB_TRY(sb_checkpoint_open(path, &checkpoint, error));
    sb_status status = sb_llm_suggestion_of_gguf(path, &checkpoint->gguf, sampling, error);
    sb_checkpoint_close(checkpoint);
    return status;
}

sb_status sb_llm_suggest_sampling(const char *path, sb_llm_sampling *sampling, sb_error *error) {
    struct stat info;
    *sampling = (sb_llm_sampling)SB_LLM_SAMPLING_DEFAULT;
    if (stat(path, &info) != 0)
        return SB_OK;
    return S_ISDIR(info.st_mode) ? suggest_by_folder(path, sampling, error) : suggest_by_gguf(path, sampling, error);
}
