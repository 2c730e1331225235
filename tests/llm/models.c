/* models FOLDER: writes the small models of tiny_models.h: FOLDER/NAME and FOLDER/NAME.gguf; and FOLDER/llama-text, which is the
 * first one with a tokenizer and a chat template; and FOLDER/suggests.gguf, which is that one and suggests settings of sampling. */
#include "tiny_models.h"

int main(int argc, char **argv) {
    char path[512];
    if (argc != 2)
        return 2;
    mkdir(argv[1], 0777);
    for (int i = 0; i < TINY_MODELS; i++) {
        snprintf(path, sizeof path, "%s/%s", argv[1], tiny_models[i].name);
        tiny_write_folder(&tiny_models[i], path);
        snprintf(path, sizeof path, "%s/%s.gguf", argv[1], tiny_models[i].name);
        if (tiny_models[i].architecture != NULL)
            tiny_write_gguf(&tiny_models[i], path);
    }
    tiny_model suggests = tiny_models[0];
    const tiny_pair suggestions[] = {{"block_count", 2},
                                     {"general.sampling.temp", 0.75},
                                     {"general.sampling.top_k", 20},
                                     {"general.sampling.top_p", 0.875},
                                     {"general.sampling.min_p", 0.0625},
                                     {"general.sampling.penalty_repeat", 1.25},
                                     {"general.sampling.penalty_last_n", 64}};
    memcpy(suggests.pairs, suggestions, sizeof suggestions);
    snprintf(path, sizeof path, "%s/suggests.gguf", argv[1]);
    tiny_write_gguf(&suggests, path);
    snprintf(path, sizeof path, "%s/llama-text", argv[1]);
    tiny_write_folder(&tiny_models[0], path);
    snprintf(path, sizeof path, "%s/llama-text/tokenizer.json", argv[1]);
    tiny_write_tokenizer(path);
    snprintf(path, sizeof path, "%s/llama-text/chat_template.jinja", argv[1]);
    tiny_write_chat_template(path);
    return 0;
}
