/* Runs an ONNX model that has one input and one output, and prints the digest of the answer.
 *
 *     run_model digits.onnx samples.npy */
#include <stdio.h>

#include <invar/invar.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.onnx INPUT.npy\n", argv[0]);
        return 2;
    }
    iv_error error;
    iv_model *model = NULL;
    iv_session *session = NULL;
    iv_tensor *input = NULL, *output = NULL;
    iv_value answer = {IV_KIND_NONE, {NULL}};
    char digest[IV_DIGEST_TEXT_BYTES];

    if (iv_model_load(argv[1], NULL, &model, &error) != IV_OK)
        goto failed;
    if (iv_model_input_count(model) != 1 || iv_model_output_count(model) != 1) {
        snprintf(error.message, sizeof error.message, "the model has not one input and one output");
        goto failed;
    }
    if (iv_tensor_load(argv[2], NULL, &input, &error) != IV_OK ||
        iv_session_create(model, NULL, &session, &error) != IV_OK ||
        iv_session_run_tensors(session, &input, &output, &error) != IV_OK)
        goto failed;
    answer = iv_value_of_tensor(output);
    if (iv_digest_values(1, &answer, digest, &error) != IV_OK)
        goto failed;
    printf("%s %s\n", iv_model_output(model, 0)->name, digest);

    iv_value_release(&answer);
    iv_tensor_release(input);
    iv_session_destroy(session);
    iv_model_release(model);
    return 0;

failed:
    fprintf(stderr, "%s\n", error.message);
    iv_value_release(&answer);
    iv_tensor_release(input);
    iv_session_destroy(session);
    iv_model_release(model);
    return 1;
}
