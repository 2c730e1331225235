/* Two threads, each with a session of its own, share one model. Both get the same bits.
 *
 *     threads digits.onnx samples.npy */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <samebit/samebit.h>

/* What one thread works with. The model and the input are shared: nobody writes to them. */
typedef struct work {
    sb_model *model;
    sb_tensor *input;
    int threads; /* workers of the session: any number gives the same bits */
    sb_status status;
    sb_error error;
    char digest[SB_DIGEST_TEXT_BYTES];
} work;

static sb_status run_many_times(work *work, sb_session *session) {
    for (int i = 0; i < 20; i++) {
        sb_tensor *output = NULL;
        sb_status status = sb_session_run_tensors(session, &work->input, &output, &work->error);
        if (status != SB_OK)
            return status;
        sb_value answer = sb_value_of_tensor(output);
        status = sb_digest_values(1, &answer, work->digest, &work->error);
        sb_value_release(&answer);
        if (status != SB_OK)
            return status;
    }
    return SB_OK;
}

static void *run(void *argument) {
    work *work = argument;
    sb_session *session = NULL;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = work->threads;
    work->status = sb_session_create(work->model, &options, &session, &work->error);
    if (work->status == SB_OK)
        work->status = run_many_times(work, session);
    sb_session_destroy(session);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.onnx INPUT.npy\n", argv[0]);
        return 2;
    }
    sb_error error;
    sb_model *model = NULL;
    sb_tensor *input = NULL;
    if (sb_model_load(argv[1], NULL, &model, &error) != SB_OK ||
        sb_tensor_load(argv[2], NULL, &input, &error) != SB_OK) {
        fprintf(stderr, "%s\n", error.message);
        sb_model_release(model);
        return 1;
    }
    int code = sb_model_input_count(model) == 1 && sb_model_output_count(model) == 1 ? 0 : 1;
    if (code != 0)
        fputs("the model has not one input and one output\n", stderr);

    work works[2] = {{.model = model, .input = input, .threads = 1}, {.model = model, .input = input, .threads = 3}};
    pthread_t threads[2];
    int started = 0;
    while (code == 0 && started < 2 && pthread_create(&threads[started], NULL, run, &works[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < started; i++) {
        if (works[i].status != SB_OK) {
            fprintf(stderr, "%s\n", works[i].error.message);
            code = 1;
        }
    }
    if (started != 2 || (code == 0 && strcmp(works[0].digest, works[1].digest) != 0))
        code = 1;
    if (code == 0)
        printf("both threads: %s\n", works[0].digest);
    sb_tensor_release(input);
    sb_model_release(model);
    return code;
}
