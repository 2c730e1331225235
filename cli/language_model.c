#include "language_model.h"

#include <string.h>

#include "progress.h"
#include "text.h"

bool read_language_dtype(const arguments *arguments, sb_dtype *dtype) {
    static const sb_dtype known[] = {SB_F32, SB_F16, SB_BF16};
    const char *name = option_value(arguments, "dtype");
    for (int i = 0; name != NULL && i < 3; i++) {
        if (strcmp(name, sb_dtype_name(known[i])) == 0) {
            *dtype = known[i];
            return true;
        }
    }
    if (name != NULL)
        usage_error("--dtype %s: it may be f32, f16 or bf16", name);
    return name == NULL;
}

int load_language_model(const arguments *arguments, const sb_model_options *model, bool receipts, sb_llm **llm) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_error error;
    long long context = 0;
    if (!read_language_dtype(arguments, &options.dtype))
        return EXIT_USAGE;
    if (!read_count(arguments, "context", 1, 1LL << 28, &context))
        return EXIT_USAGE;
    options.context = context;
    options.model = model;
    options.receipts = receipts;
    show_progress("opening %s", arguments->positional[0]);
    sb_status status = sb_llm_load(arguments->positional[0], &options, llm, &error);
    clear_progress();
    return status == SB_OK ? EXIT_RIGHT : report(&error);
}

int read_cache_memory(const arguments *arguments, const sb_llm *llm, int64_t positions, int64_t *fit) {
    const char *text = option_value(arguments, "cache-memory");
    const sb_llm_description *about = sb_llm_describe(llm);
    char have[TEXT_BYTES], needed[TEXT_BYTES];
    double each = (double)about->cache_bytes / (double)about->context;
    long long bytes;
    *fit = INT64_MAX;
    if (text == NULL)
        return EXIT_RIGHT;
    if (!parse_bytes(text, &bytes))
        return usage_error("--cache-memory takes a number of bytes, such as 500M or 2G, not %s", text);
    double most = (double)bytes / each;
    *fit = most < 1e15 ? (int64_t)most : INT64_MAX;
    if (*fit >= positions)
        return EXIT_RIGHT;
    return usage_error("--cache-memory %s is %s: %lld positions take %s, and %lld fit", text,
                       bytes_text((double)bytes, have), (long long)positions,
                       bytes_text(each * (double)positions, needed), (long long)*fit);
}
