/* models FOLDER: writes the small models of tiny_models.h: FOLDER/NAME and FOLDER/NAME.gguf; and FOLDER/llama-text, which is the
 * first one with a tokenizer and a chat template; FOLDER/wide, whose rows are as long as those of larger models; and FOLDER/suggests.gguf, which is that one and suggests settings of sampling. */
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
    const tiny_model wide = {
        .name = "wide",
        .config = "{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"vocab_size\":640,\"hidden_size\":512,"
                  "\"intermediate_size\":1024,\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":64,"
                  "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,\"bos_token_id\":1,\"eos_token_id\":[2,3]}"};
    snprintf(path, sizeof path, "%s/wide", argv[1]);
    tiny_write_folder(&wide, path);
    snprintf(path, sizeof path, "%s/llama-text", argv[1]);
    tiny_write_folder(&tiny_models[0], path);
    snprintf(path, sizeof path, "%s/llama-text/tokenizer.json", argv[1]);
    tiny_write_tokenizer(path);
    snprintf(path, sizeof path, "%s/llama-text/chat_template.jinja", argv[1]);
    tiny_write_chat_template(path);
    return 0;
}
