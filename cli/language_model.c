#include "language_model.h"

#include <string.h>

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
    return sb_llm_load(arguments->positional[0], &options, llm, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}
