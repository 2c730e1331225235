#include "language_model.h"

#include <string.h>

int load_language_model(const arguments *arguments, const sb_model_options *model, bool receipts, sb_llm **llm) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_error error;
    const char *dtype = option_value(arguments, "dtype");
    long long context = 0;
    static const sb_dtype known[] = {SB_F32, SB_F16, SB_BF16};
    for (int i = 0; dtype != NULL && i < 3; i++) {
        if (strcmp(dtype, sb_dtype_name(known[i])) == 0)
            options.dtype = known[i];
    }
    if (dtype != NULL && options.dtype == SB_DTYPE_NONE)
        return usage_error("--dtype %s: it may be f32, f16 or bf16", dtype);
    if (!read_count(arguments, "context", 1, 1LL << 28, &context))
        return EXIT_USAGE;
    options.context = context;
    options.model = model;
    options.receipts = receipts;
    return sb_llm_load(arguments->positional[0], &options, llm, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}
