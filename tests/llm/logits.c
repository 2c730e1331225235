/* logits MODEL DTYPE CONTEXT CHUNK TOKENS FILE.npy [DRIVER]: the logits [tokens, vocabulary] of a language model for each of TOKENS
 * (ids with commas between), handed over CHUNK at a time; with DRIVER on its first device. */
#include <samebit/samebit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != SB_OK) {                                                                                         \
            fprintf(stderr, "%s\n", error.message);                                                                    \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv) {
    static int64_t tokens[1 << 16], wanted[1 << 16];
    sb_error error;
    if (argc != 7 && argc != 8)
        return 2;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    options.dtype = strcmp(argv[2], "f32") == 0 ? SB_F32 : strcmp(argv[2], "f16") == 0 ? SB_F16 : SB_BF16;
    options.context = atoll(argv[3]);
    int64_t chunk = atoll(argv[4]), count = 0;
    for (char *at = argv[5]; at != NULL && count < 1 << 16; at = strchr(at, ',')) {
        at += *at == ',';
        tokens[count] = atoll(at);
        wanted[count] = count;
        count++;
    }
    sb_llm *llm;
    sb_llm_session *session;
    sb_session_options how = SB_SESSION_OPTIONS_DEFAULT;
    if (argc == 8) {
        sb_device_options driver = SB_DEVICE_OPTIONS_DEFAULT;
        driver.cuda_driver = argv[7];
        CHECK(sb_device_open(&driver, 0, &how.device, &error));
        how.require_device = true;
    }
    CHECK(sb_llm_load(argv[1], &options, &llm, &error));
    CHECK(sb_llm_session_create(llm, &how, &session, &error));
    int64_t vocabulary = sb_llm_describe(llm)->vocabulary;
    sb_tensor *all, *piece;
    CHECK(sb_tensor_create(SB_F32, 2, (int64_t[]){count, vocabulary}, &all, &error));
    for (int64_t done = 0; done < count; done += chunk) {
        int64_t now = count - done < chunk ? count - done : chunk;
        CHECK(sb_llm_step(session, now, tokens + done, now, wanted, &piece, &error));
        memcpy((float *)sb_tensor_mutable_data(all) + done * vocabulary, sb_tensor_data(piece),
               (size_t)(now * vocabulary) * sizeof(float));
        sb_tensor_release(piece);
    }
    CHECK(sb_tensor_save(argv[6], all, &error));
    sb_tensor_release(all);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    sb_device_release(how.device);
    return 0;
}
