/* Builds a perceptron of two layers by calls, without any file, runs it on a batch of 3 and
 * prints the digest of the answer.
 *
 *     build_model */
#include <stdio.h>

#include <samebit/samebit.h>

enum { INPUTS = 16, HIDDEN = 8, CLASSES = 4, BATCH = 3 };

/* A matrix of numbers that are not random, but all different. */
static sb_status make_tensor(int rows, int columns, int step, sb_tensor **tensor, sb_error *error) {
    int64_t dims[] = {rows, columns};
    if (sb_tensor_create(SB_F32, 2, dims, tensor, error) != SB_OK)
        return error->status;
    float *data = sb_tensor_mutable_data(*tensor);
    for (int i = 0; i < rows * columns; i++)
        data[i] = (float)(i * step % 101 - 50) / 64.0f;
    return SB_OK;
}

/* x · weights + bias, as the ONNX operator Gemm has it. */
static sb_status add_layer(sb_builder *builder, const char *name, int inputs, int outputs, sb_builder_value x,
                           sb_builder_value *y, sb_error *error) {
    char weight_name[32], bias_name[32];
    sb_tensor *weights = NULL, *bias = NULL;
    sb_builder_value operands[3] = {x, 0, 0};
    snprintf(weight_name, sizeof weight_name, "%s.weight", name);
    snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    sb_status status = make_tensor(inputs, outputs, 7, &weights, error);
    if (status == SB_OK)
        status = make_tensor(1, outputs, 13, &bias, error);
    if (status == SB_OK)
        status = sb_builder_constant(builder, weight_name, weights, &operands[1], error);
    if (status == SB_OK)
        status = sb_builder_constant(builder, bias_name, bias, &operands[2], error);
    if (status == SB_OK)
        status = sb_builder_op(builder, "Gemm", 3, operands, 0, NULL, y, error);
    sb_tensor_release(weights); /* the builder has references of its own */
    sb_tensor_release(bias);
    return status;
}

static sb_status build(sb_builder *builder, sb_model **model, sb_error *error) {
    const int64_t dims[] = {-1, INPUTS};
    const char *const texts[] = {"batch", NULL};
    sb_value_description description = {"x", SB_KIND_TENSOR, false, SB_F32, 2, dims, texts};
    sb_builder_value x, hidden, logits, answer;
    sb_status status = sb_builder_input(builder, &description, &x, error);
    if (status == SB_OK)
        status = add_layer(builder, "hidden", INPUTS, HIDDEN, x, &hidden, error);
    if (status == SB_OK)
        status = sb_builder_op(builder, "Relu", 1, &hidden, 0, NULL, &hidden, error);
    if (status == SB_OK)
        status = add_layer(builder, "classes", HIDDEN, CLASSES, hidden, &logits, error);
    if (status == SB_OK)
        status = sb_builder_op(builder, "Softmax", 1, &logits, 0, NULL, &answer, error);
    if (status == SB_OK)
        status = sb_builder_output(builder, answer, error);
    return status == SB_OK ? sb_builder_build(builder, NULL, model, error) : status;
}

static sb_status run(sb_model *model, char *digest, sb_error *error) {
    sb_session *session = NULL;
    sb_tensor *input = NULL, *output = NULL;
    sb_status status = make_tensor(BATCH, INPUTS, 29, &input, error);
    if (status == SB_OK)
        status = sb_session_create(model, NULL, &session, error);
    if (status == SB_OK)
        status = sb_session_run_tensors(session, &input, &output, error);
    sb_value answer = sb_value_of_tensor(output);
    if (status == SB_OK)
        status = sb_digest_values(1, &answer, digest, error);
    sb_value_release(&answer);
    sb_tensor_release(input);
    sb_session_destroy(session);
    return status;
}

int main(void) {
    sb_error error;
    sb_builder *builder = NULL;
    sb_model *model = NULL;
    char digest[SB_DIGEST_TEXT_BYTES];
    sb_status status = sb_builder_create(&builder, &error);
    if (status == SB_OK)
        status = build(builder, &model, &error);
    sb_builder_destroy(builder);
    if (status == SB_OK)
        status = run(model, digest, &error);
    sb_model_release(model);
    if (status != SB_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%s\n", digest);
    return 0;
}
