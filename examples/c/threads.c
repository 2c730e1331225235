/* Two threads, each with a session of its own, share one model. Both get the same bits.
 *
 *     threads digits.onnx samples.npy */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <invar/invar.h>

/* What one thread works with. The model and the input are shared: nobody writes to them. */
typedef struct work {
    iv_model *model;
    iv_tensor *input;
    int threads; /* workers of the session: any number gives the same bits */
    iv_status status;
    iv_error error;
    char digest[IV_DIGEST_TEXT_BYTES];
} work;

static iv_status run_many_times(work *work, iv_session *session) {
    for (int i = 0; i < 20; i++) {
        iv_tensor *output = NULL;
        iv_status status = iv_session_run_tensors(session, &work->input, &output, &work->error);
        if (status != IV_OK)
            return status;
        iv_value answer = iv_value_of_tensor(output);
        status = iv_digest_values(1, &answer, work->digest, &work->error);
        iv_value_release(&answer);
        if (status != IV_OK)
            return status;
    }
    return IV_OK;
}

static void *run(void *argument) {
    work *work = argument;
    iv_session *session = NULL;
    iv_session_options options = IV_SESSION_OPTIONS_DEFAULT;
    options.threads = work->threads;
    work->status = iv_session_create(work->model, &options, &session, &work->error);
    if (work->status == IV_OK)
        work->status = run_many_times(work, session);
    iv_session_destroy(session);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.onnx INPUT.npy\n", argv[0]);
        return 2;
    }
    iv_error error;
    iv_model *model = NULL;
    iv_tensor *input = NULL;
    if (iv_model_load(argv[1], NULL, &model, &error) != IV_OK ||
        iv_tensor_load(argv[2], NULL, &input, &error) != IV_OK) {
        fprintf(stderr, "%s\n", error.message);
        iv_model_release(model);
        return 1;
    }
    int code = iv_model_input_count(model) == 1 && iv_model_output_count(model) == 1 ? 0 : 1;
    if (code != 0)
        fputs("the model has not one input and one output\n", stderr);

    work works[2] = {{.model = model, .input = input, .threads = 1},
                     {.model = model, .input = input, .threads = 3}};
    pthread_t threads[2];
    int started = 0;
    while (code == 0 && started < 2 &&
           pthread_create(&threads[started], NULL, run, &works[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < started; i++) {
        if (works[i].status != IV_OK) {
            fprintf(stderr, "%s\n", works[i].error.message);
            code = 1;
        }
    }
    if (started != 2 || (code == 0 && strcmp(works[0].digest, works[1].digest) != 0))
        code = 1;
    if (code == 0)
        printf("both threads: %s\n", works[0].digest);
    iv_tensor_release(input);
    iv_model_release(model);
    return code;
}
