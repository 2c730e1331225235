/* samebit info: what a language model's checkpoint is. */
#include "commands.h"
#include "language_model.h"
#include "text.h"

const option info_options[] = {
    LANGUAGE_MODEL_OPTIONS,
    {"json", NULL, false, "Print it as JSON"},
    {0},
};

static void print_info(const sb_llm_description *d) {
    char first[TEXT_BYTES], second[TEXT_BYTES];
    printf("family       %s (%s)\n", d->family, d->format);
    printf("parameters   %s, %s in files\n", grouped(d->parameters, first),
           bytes_text((double)d->weight_bytes, second));
    printf("layers       %lld of %lld, with %lld in between\n", (long long)d->layers, (long long)d->hidden,
           (long long)d->intermediate);
    printf("attention    %lld heads of %lld, %lld of keys and values", (long long)d->heads, (long long)d->head_width,
           (long long)d->key_heads);
    if (d->windowed_layers > 0)
        printf("; %lld layers see the last %s keys", (long long)d->windowed_layers, grouped(d->window, first));
    printf("\ntokens       %s", grouped(d->vocabulary, first));
    if (d->begin >= 0)
        printf("; texts begin with %lld", (long long)d->begin);
    for (int i = 0; i < d->stop_count; i++)
        printf("%s%lld", i == 0 ? "; they end with " : ", ", (long long)d->stops[i]);
    printf("\ncontext      %s of %s declared\n", grouped(d->context, first), grouped(d->declared_positions, second));
    printf("computed in  %s, with a cache of %s for a sequence\n", sb_dtype_name(d->dtype),
           bytes_text((double)d->cache_bytes, first));
}

static json_t *info_json(const sb_llm_description *d) {
    json_t *stops = json_array();
    for (int i = 0; i < d->stop_count; i++)
        json_array_append_new(stops, json_integer(d->stops[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "family",
        d->family, "format", d->format, "dtype", sb_dtype_name(d->dtype), "layers", (json_int_t)d->layers, "hidden",
        (json_int_t)d->hidden, "heads", (json_int_t)d->heads, "key_heads", (json_int_t)d->key_heads, "head_width",
        (json_int_t)d->head_width, "intermediate", (json_int_t)d->intermediate, "vocabulary", (json_int_t)d->vocabulary,
        "window", (json_int_t)d->window, "windowed_layers", (json_int_t)d->windowed_layers, "declared_positions",
        (json_int_t)d->declared_positions, "context", (json_int_t)d->context, "parameters", (json_int_t)d->parameters,
        "weight_bytes", (json_int_t)d->weight_bytes, "cache_bytes", (json_int_t)d->cache_bytes, "begin",
        d->begin >= 0 ? json_integer(d->begin) : json_null(), "stops", stops);
}

int run_info(const arguments *arguments) {
    sb_llm *llm;
    int code = load_language_model(arguments, NULL, false, &llm);
    if (code != EXIT_RIGHT)
        return code;
    if (!has_option(arguments, "json"))
        print_info(sb_llm_describe(llm));
    else if (!print_json_value(stdout, info_json(sb_llm_describe(llm))))
        code = EXIT_FAILED;
    sb_llm_release(llm);
    return code;
}
