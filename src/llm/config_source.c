#include "llm/config_source.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const sb_gguf_value *find(const sb_config_source *source, const char *name, char *key, size_t bytes) {
    if (name == NULL)
        return NULL;
    snprintf(key, bytes, "%s.%s", source->architecture, name);
    return sb_gguf_find(source->gguf, key);
}

static const json_t *find_json(const sb_config_source *source, const char *name) {
    const json_t *value = name != NULL ? json_object_get(source->json, name) : NULL;
    return value == NULL || json_is_null(value) ? NULL : value;
}

sb_status sb_config_real(const sb_config_source *source, const char *json, const char *gguf, double least, double most,
                         double *number, bool *found, sb_error *error) {
    char key[256];
    double value = NAN;
    *found = false;
    if (source->json != NULL) {
        const json_t *given = find_json(source, json);
        if (given == NULL)
            return SB_OK;
        snprintf(key, sizeof key, "\"%s\"", json);
        value = json_is_number(given) ? json_number_value(given) : NAN;
    } else {
        const sb_gguf_value *given = find(source, gguf, key, sizeof key);
        if (given == NULL)
            return SB_OK;
        if (given->is_array || given->type == SB_GGUF_BOOL || !sb_gguf_real(given, 0, &value))
            value = NAN;
    }
    if (!(value >= least && value <= most))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: %s is no number from %g to %g", source->path, key, least,
                       most);
    *number = value;
    *found = true;
    return SB_OK;
}

sb_status sb_config_integer(const sb_config_source *source, const char *json, const char *gguf, int64_t least,
                            int64_t most, int64_t *number, bool *found, sb_error *error) {
    double value;
    SB_TRY(sb_config_real(source, json, gguf, (double)least, (double)most, &value, found, error));
    if (!*found)
        return SB_OK;
    if (value != floor(value))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: \"%s\" is %g, which is no whole number", source->path,
                       source->json != NULL ? json : gguf, value);
    *number = (int64_t)value;
    return SB_OK;
}

sb_status sb_config_flag(const sb_config_source *source, const char *json, bool *flag, sb_error *error) {
    const json_t *given = find_json(source, json);
    if (given == NULL)
        return SB_OK;
    if (!json_is_boolean(given))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: \"%s\" is neither true nor false", source->path, json);
    *flag = json_is_true(given);
    return SB_OK;
}

void sb_config_text(const sb_config_source *source, const char *json, const char *gguf, char *text, size_t bytes) {
    char key[256];
    sb_gguf_text found = {"", 0};
    const char *string =
        source->json != NULL && json != NULL ? json_string_value(json_object_get(source->json, json)) : NULL;
    if (string != NULL)
        found = (sb_gguf_text){string, strlen(string)};
    if (source->json == NULL)
        sb_gguf_string(find(source, gguf, key, sizeof key), &found);
    snprintf(text, bytes, "%.*s", (int)(found.bytes < bytes ? found.bytes : bytes), found.data);
}
