/* Runs an ONNX model that has one input and one output, and prints the digest of the answer.
 *
 *     run_model digits.onnx samples.npy */
#include <stdio.h>

#include <samebit/samebit.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.onnx INPUT.npy\n", argv[0]);
        return 2;
    }
    sb_error error;
    sb_model *model = NULL;
    sb_session *session = NULL;
    sb_tensor *input = NULL, *output = NULL;
    sb_value answer = {SB_KIND_NONE, {NULL}};
    char digest[SB_DIGEST_TEXT_BYTES];

    if (sb_model_load(argv[1], NULL, &model, &error) != SB_OK)
        goto failed;
    if (sb_model_input_count(model) != 1 || sb_model_output_count(model) != 1) {
        snprintf(error.message, sizeof error.message, "the model has not one input and one output");
        goto failed;
    }
    if (sb_tensor_load(argv[2], NULL, &input, &error) != SB_OK ||
        sb_session_create(model, NULL, &session, &error) != SB_OK ||
        sb_session_run_tensors(session, &input, &output, &error) != SB_OK)
        goto failed;
    answer = sb_value_of_tensor(output);
    if (sb_digest_values(1, &answer, digest, &error) != SB_OK)
        goto failed;
    printf("%s %s\n", sb_model_output(model, 0)->name, digest);

    sb_value_release(&answer);
    sb_tensor_release(input);
    sb_session_destroy(session);
    sb_model_release(model);
    return 0;

failed:
    fprintf(stderr, "%s\n", error.message);
    sb_value_release(&answer);
    sb_tensor_release(input);
    sb_session_destroy(session);
    sb_model_release(model);
    return 1;
}
