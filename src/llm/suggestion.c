#include "llm/suggestion.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/allocation.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "llm/config_source.h"

#define FILE_NAME "generation_config.json"
#define FILE_BYTES ((size_t)1 << 24)

static sb_status read_real(const sb_config_source *source, const char *name, double least, double most, float *number,
                           sb_error *error) {
    double value;
    bool found;
    SB_TRY(sb_config_real(source, name, NULL, least, most, &value, &found, error));
    if (found)
        *number = (float)value;
    return SB_OK;
}

/* Least numbers that f32 has room for, as the options have them: a smaller temperature would be no more than 0 with noise. */
sb_status sb_llm_suggestion_of(const char *path, const json_t *json, sb_llm_sampling *sampling, sb_error *error) {
    const sb_config_source source = {.path = path, .json = json};
    bool samples = false, found;
    *sampling = (sb_llm_sampling)SB_LLM_SAMPLING_DEFAULT;
    sampling->temperature = 1;
    SB_TRY(sb_config_flag(&source, "do_sample", &samples, error));
    SB_TRY(read_real(&source, "temperature", 0, 0x1p20, &sampling->temperature, error));
    SB_TRY(sb_config_integer(&source, "top_k", NULL, 0, INT64_C(1) << 40, &sampling->top_k, &found, error));
    SB_TRY(read_real(&source, "top_p", 1e-6, 1, &sampling->top_p, error));
    SB_TRY(read_real(&source, "min_p", 0, 1, &sampling->min_p, error));
    SB_TRY(read_real(&source, "repetition_penalty", 1e-6, 0x1p20, &sampling->repetition_penalty, error));
    if (!samples)
        sampling->temperature = 0;
    return SB_OK;
}

sb_status sb_llm_suggest_sampling(const char *path, sb_llm_sampling *sampling, sb_error *error) {
    struct stat info;
    char name[4096];
    void *bytes;
    size_t size;
    json_t *json;
    *sampling = (sb_llm_sampling)SB_LLM_SAMPLING_DEFAULT;
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
