/* Weights replaced in place: sessions, batches, queues and receipts come to what a checkpoint with those weights comes to. And
 * embeddings: against hidden states of steps, one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "llm/llm.h"
#include "llm/receipt.h"

#include "support/failing.h"
#include "support/must.h"
#include "tiny_models.h"

enum { COUNT = 40, HIDDEN_MOST = 256, VOCABULARY = 97 };

static int64_t ids[COUNT];

static sb_llm *load(const char *path, sb_dtype dtype, bool receipts) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_llm *llm;
    options.dtype = dtype;
    options.context = 64;
    options.receipts = receipts;
    options.hidden_states = true;
    MUST(sb_llm_load(path, &options, &llm, error));
    return llm;
}

static sb_llm_session *open_session(sb_llm *llm) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_session *session;
    options.threads = 1;
    MUST(sb_llm_session_create(llm, &options, &session, error));
    return session;
}

/* Writes a folder whose weights are other ones than those of the model of that name: the lowest bits are. */
static void write_other(const tiny_model *model, const char *path) {
    char name[256];
    tiny_write_folder(model, path);
    snprintf(name, sizeof name, "%s/model.safetensors", path);
    FILE *file = fopen(name, "r+b");
    unsigned char head[8] = {0};
    assert_int_equal(fread(head, 1, 8, file), 8);
    long begin = 8 + (head[0] | head[1] << 8 | head[2] << 16);
    fseek(file, 0, SEEK_END);
    long end = ftell(file);
    unsigned char *bytes = malloc((size_t)(end - begin));
    fseek(file, begin, SEEK_SET);
    assert_int_equal(fread(bytes, 1, (size_t)(end - begin), file), (size_t)(end - begin));
    for (long i = 0; i < end - begin; i += 2)
        bytes[i] ^= 4;
    fseek(file, begin, SEEK_SET);
    assert_int_equal(fwrite(bytes, 1, (size_t)(end - begin), file), (size_t)(end - begin));
    free(bytes);
    fclose(file);
}

/* All weights of a checkpoint, every second one seen through strides that are not row-major. */
typedef struct weights {
    sb_checkpoint *checkpoint;
    int64_t count;
    sb_llm_weight *all;
} weights;

static weights weights_of(const char *path) {
    weights w = {0};
    MUST(sb_checkpoint_open(path, &w.checkpoint, error));
    w.count = (int64_t)w.checkpoint->tensor_count;
    w.all = calloc((size_t)w.count, sizeof *w.all);
    for (int64_t i = 0; i < w.count; i++) {
        const sb_checkpoint_tensor *tensor = &w.checkpoint->tensors[i];
        w.all[i].name = tensor->name;
        MUST(sb_checkpoint_read(w.checkpoint, tensor, tensor->format->dtype, &w.all[i].tensor, error));
        if (tensor->rank != 2 || i % 2 != 0)
            continue;
        static const int swap[] = {1, 0};
        sb_tensor *turned, *dense;
        MUST(sb_tensor_transpose(w.all[i].tensor, swap, &turned, error));
        MUST(sb_tensor_contiguous(turned, &dense, error));
        sb_tensor_release(w.all[i].tensor);
        MUST(sb_tensor_transpose(dense, swap, &w.all[i].tensor, error));
        sb_tensor_release(turned);
        sb_tensor_release(dense);
    }
    return w;
}

static void free_weights(weights *w) {
    for (int64_t i = 0; i < w->count; i++)
        sb_tensor_release(w->all[i].tensor);
    free(w->all);
    sb_checkpoint_close(w->checkpoint);
}

static void digest_of(sb_llm_session *session, bool receipts, char digest[SB_DIGEST_TEXT_BYTES],
                      char receipt_digest[SB_DIGEST_TEXT_BYTES]) {
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_llm_receipt *receipt = NULL;
    sb_llm_result result;
    generation.limit = 9;
    generation.ignore_stops = true;
    generation.receipt = receipts ? &receipt : NULL;
    MUST(sb_llm_session_trim(session, 0, error));
    MUST(sb_llm_generate(session, COUNT, ids, &generation, &result, error));
    memcpy(digest, result.digest, SB_DIGEST_TEXT_BYTES);
    if (receipts)
        memcpy(receipt_digest, sb_llm_receipt_describe(receipt).digest, SB_DIGEST_TEXT_BYTES);
    sb_llm_receipt_release(receipt);
}

static void check_replaced(const tiny_model *model, sb_dtype dtype) {
    char path[256], other_path[256], other[SB_DIGEST_TEXT_BYTES], found[SB_DIGEST_TEXT_BYTES],
        first[SB_DIGEST_TEXT_BYTES];
    char other_receipt[SB_DIGEST_TEXT_BYTES], receipt[SB_DIGEST_TEXT_BYTES], first_receipt[SB_DIGEST_TEXT_BYTES];
    snprintf(path, sizeof path, "models/%s", model->name);
    snprintf(other_path, sizeof other_path, "other-%s", model->name);
    write_other(model, other_path);
    sb_llm *llm = load(path, dtype, true), *wanted = load(other_path, dtype, true);
    sb_llm_session *before = open_session(llm), *session = open_session(wanted);
    digest_of(session, true, other, other_receipt);
    digest_of(before, true, first, first_receipt);
    assert_string_not_equal(first, other);
    weights new = weights_of(other_path), old = weights_of(path);
    MUST(sb_llm_replace_weights(llm, new.count, new.all, error));
    sb_llm_session *behind = open_session(llm);
    digest_of(before, true, found, receipt);
    assert_string_equal(found, other);
    assert_string_equal(receipt, other_receipt);
    digest_of(behind, true, found, receipt);
    assert_string_equal(found, other);
    /* One alone is replaced; the others stay. And all as they were. */
    MUST(sb_llm_replace_weights(llm, 1, old.all, error));
    digest_of(before, true, found, receipt);
    assert_string_not_equal(found, other);
    MUST(sb_llm_replace_weights(llm, old.count, old.all, error));
    digest_of(before, true, found, receipt);
    assert_string_equal(found, first);
    assert_string_equal(receipt, first_receipt);
    free_weights(&new);
    free_weights(&old);
    sb_llm_session_destroy(before);
    sb_llm_session_destroy(behind);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    sb_llm_release(wanted);
}

static void test_replaced(void **unused) {
    (void)unused;
    for (int i = 0; i < TINY_MODELS; i++)
        check_replaced(&tiny_models[i], i % 2 == 0 ? SB_DTYPE_NONE : SB_F32);
}

/* ---- what holds positions ---- */

static void test_stale(void **unused) {
    (void)unused;
    sb_error error;
    sb_tensor *logits, *wanted;
    const int64_t last = 0;
    write_other(&tiny_models[0], "other-stale");
    sb_llm *llm = load("models/llama", SB_DTYPE_NONE, false), *other = load("other-stale", SB_DTYPE_NONE, false);
    sb_llm_session *session = open_session(llm), *reference = open_session(other);
    weights new = weights_of("other-stale");
    MUST(sb_llm_step(session, 5, ids, 0, NULL, &logits, error));
    sb_tensor_release(logits);
    MUST(sb_llm_replace_weights(llm, new.count, new.all, error));
    assert_int_equal(sb_llm_step(session, 1, ids, 1, &last, &logits, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "the 5 positions of a sequence are of weights that were replaced: trim it to 0");
    assert_int_equal(sb_llm_session_length(session), 5);
    MUST(sb_llm_session_trim(session, 0, error));
    MUST(sb_llm_step(session, 1, ids, 1, &last, &logits, error));
    MUST(sb_llm_step(reference, 1, ids, 1, &last, &wanted, error));
    assert_memory_equal(sb_tensor_data(logits), sb_tensor_data(wanted), VOCABULARY * sizeof(float));
    sb_tensor_release(logits);
    sb_tensor_release(wanted);
    free_weights(&new);
    sb_llm_session_destroy(session);
    sb_llm_session_destroy(reference);
    sb_llm_release(llm);
    sb_llm_release(other);
}

static void take_end(void *context, sb_status status, const sb_error *error, const sb_llm_result *result) {
    if (status != SB_OK)
        fail_msg("%s", error->message);
    memcpy(context, result->digest, SB_DIGEST_TEXT_BYTES);
}

/* A queue does not begin a request on pages that an earlier one has computed with other weights. */
static void test_queues(void **unused) {
    (void)unused;
    char first[SB_DIGEST_TEXT_BYTES], second[SB_DIGEST_TEXT_BYTES], wanted[SB_DIGEST_TEXT_BYTES],
        none[SB_DIGEST_TEXT_BYTES];
    sb_llm_batch *batch;
    sb_llm_queue *queue;
    write_other(&tiny_models[0], "other-queue");
    sb_llm *llm = load("models/llama", SB_DTYPE_NONE, false), *other = load("other-queue", SB_DTYPE_NONE, false);
    sb_llm_session *reference = open_session(other);
    digest_of(reference, false, wanted, none);
    weights new = weights_of("other-queue");
    MUST(sb_llm_batch_create(llm, NULL, &batch, error));
    MUST(sb_llm_queue_create(batch, NULL, &queue, error));
    sb_llm_request request = SB_LLM_REQUEST_DEFAULT;
    request.count = COUNT;
    request.tokens = ids;
    request.on_end = take_end;
    request.generation.limit = 9;
    request.generation.ignore_stops = true;
    request.generation.context = first;
    MUST(sb_llm_queue_add(queue, &request, error));
    MUST(sb_llm_queue_run(queue, error));
    assert_string_not_equal(first, wanted);
    MUST(sb_llm_replace_weights(llm, new.count, new.all, error));
    request.generation.context = second;
    MUST(sb_llm_queue_add(queue, &request, error));
    MUST(sb_llm_queue_run(queue, error));
    assert_string_equal(second, wanted);
    assert_int_equal(sb_llm_queue_count(queue).shared, 0);
    free_weights(&new);
    sb_llm_queue_destroy(queue);
    sb_llm_batch_release(batch);
    sb_llm_session_destroy(reference);
    sb_llm_release(llm);
    sb_llm_release(other);
}

/* ---- refusals ---- */

/* Refused, with nothing changed: the weights before the wrong one too. */
static void refuse(sb_llm *llm, sb_llm_session *session, int64_t count, const sb_llm_weight *all, sb_status status,
                   const char *says) {
    char before[SB_DIGEST_TEXT_BYTES], behind[SB_DIGEST_TEXT_BYTES], none[SB_DIGEST_TEXT_BYTES];
    sb_error error;
    digest_of(session, false, before, none);
    assert_int_equal(sb_llm_replace_weights(llm, count, all, &error), status);
    ASSERT_SAYS(error, says);
    digest_of(session, false, behind, none);
    assert_string_equal(before, behind);
}

static void test_refusals(void **unused) {
    (void)unused;
    write_other(&tiny_models[0], "other-refused");
    sb_llm *llm = load("models/llama", SB_F32, false);
    sb_llm_session *session = open_session(llm);
    weights new = weights_of("other-refused");
    sb_llm_weight *last = &new.all[new.count - 1], kept = *last;
    sb_tensor *wrong;
    last->name = "lm_head.wait";
    refuse(llm, session, new.count, new.all, SB_ERROR_INVALID_ARGUMENT, "has no tensor 'lm_head.wait'");
    last->name = NULL;
    refuse(llm, session, new.count, new.all, SB_ERROR_INVALID_ARGUMENT, "has no tensor ''");
    *last = new.all[0];
    refuse(llm, session, new.count, new.all, SB_ERROR_INVALID_ARGUMENT, "there are two tensors for '");
    *last = kept;
    last->tensor = NULL;
    refuse(llm, session, new.count, new.all, SB_ERROR_INVALID_ARGUMENT, "is not there");
    sb_dtype dtype = sb_tensor_dtype(kept.tensor), another = dtype == SB_F32 ? SB_BF16 : SB_F32;
    MUST(sb_tensor_create(another, sb_tensor_rank(kept.tensor), sb_tensor_dims(kept.tensor), &wrong, error));
    last->tensor = wrong;
    refuse(llm, session, new.count, new.all, SB_ERROR_INVALID_ARGUMENT, "and the checkpoint's of");
    sb_tensor_release(wrong);
    MUST(sb_tensor_create(dtype, 1, (int64_t[]){3}, &wrong, error));
    last->tensor = wrong;
    refuse(llm, session, new.count, new.all, SB_ERROR_SHAPE, "is [3], and the checkpoint's [");
    sb_tensor_release(wrong);
    *last = kept;
    refuse(llm, session, -1, new.all, SB_ERROR_INVALID_ARGUMENT, "-1 weights");
    free_weights(&new);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
}

static sb_status attempt(void *context) {
    const weights *new = context;
    sb_llm *llm = NULL;
    sb_llm_session *session = NULL;
    sb_tensor *logits = NULL, *states = NULL;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_session_options how = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_embedding mean = SB_LLM_EMBEDDING_DEFAULT;
    options.context = 16;
    options.hidden_states = true;
    how.threads = 1;
    mean.pooling = SB_LLM_POOL_MEAN;
    sb_status status = sb_llm_load("models/llama", &options, &llm, NULL);
    if (status == SB_OK)
        status = sb_llm_session_create(llm, &how, &session, NULL);
    if (status == SB_OK)
        status = sb_llm_replace_weights(llm, new->count, new->all, NULL);
    if (status == SB_OK)
        status = sb_llm_step(session, 3, ids, 0, NULL, &logits, NULL);
    if (status == SB_OK)
        status = sb_llm_embed(session, 3, ids, &mean, &states, NULL);
    sb_tensor_release(logits);
    sb_tensor_release(states);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    write_other(&tiny_models[0], "other-memory");
    weights new = weights_of("other-memory");
    check_failing_allocations(attempt, &new);
    free_weights(&new);
}

/* ---- embeddings ---- */

static float widened(const sb_tensor *hidden, int64_t i) {
    sb_dtype dtype = sb_tensor_dtype(hidden);
    if (dtype == SB_F32)
        return ((const float *)sb_tensor_data(hidden))[i];
    uint16_t bits = ((const uint16_t *)sb_tensor_data(hidden))[i];
    return dtype == SB_F16 ? sb_f16_to_f32(bits) : sb_bf16_to_f32(bits);
}

static void check_embeddings(const char *path, sb_dtype dtype) {
    static float states[COUNT * HIDDEN_MOST];
    sb_llm *llm = load(path, dtype, false);
    sb_llm_session *session = open_session(llm);
    int64_t width = sb_llm_describe(llm)->hidden, first = 0;
    assert_true(width <= HIDDEN_MOST);
    for (int64_t i = 0; i < COUNT; i++) { /* a step for each token */
        sb_tensor *outputs[SB_LLM_OUTPUTS];
        MUST(sb_llm_run(session, 1, ids + i, 1, &first, outputs, error));
        for (int64_t c = 0; c < width; c++)
            states[i * width + c] = widened(outputs[SB_LLM_HIDDEN], c);
        sb_tensor_release(outputs[SB_LLM_LOGITS]);
        sb_tensor_release(outputs[SB_LLM_HIDDEN]);
    }
    static const int64_t some[] = {0, 3, 17, 18, COUNT - 1}, chunks[] = {0, 1, 7, 40};
    for (int c = 0; c < 4; c++) {
        for (int kind = 0; kind < 5; kind++) { /* all, some, the last, the mean of all and of some */
            sb_llm_embedding about = {sizeof about,
                                      kind == 2  ? SB_LLM_POOL_LAST
                                      : kind > 2 ? SB_LLM_POOL_MEAN
                                                 : SB_LLM_POOL_NONE,
                                      kind == 1 || kind == 4 ? 5 : 0, kind == 1 || kind == 4 ? some : NULL, chunks[c]};
            int64_t looked = kind == 1 || kind == 4 ? 5 : kind == 2 ? 1 : COUNT;
            sb_tensor *found;
            MUST(sb_llm_session_trim(session, 0, error));
            MUST(sb_llm_embed(session, COUNT, ids, &about, &found, error));
            assert_int_equal(sb_llm_session_length(session), COUNT);
            assert_int_equal(sb_tensor_dims(found)[0], kind < 2 ? looked : 1);
            assert_int_equal(sb_tensor_dims(found)[1], width);
            const float *have = sb_tensor_data(found);
            for (int64_t i = 0; i < width; i++) {
                double sum = 0;
                for (int64_t r = 0; r < looked; r++) {
                    int64_t place = kind == 1 || kind == 4 ? some[r] : kind == 2 ? COUNT - 1 : r;
                    sum += (double)states[place * width + i];
                    if (kind < 3)
                        assert_memory_equal(have + r * width + i, states + place * width + i, sizeof *have);
                }
                float mean = (float)(sum / (double)looked);
                if (kind > 2)
                    assert_memory_equal(have + i, &mean, sizeof mean);
            }
            sb_tensor_release(found);
        }
    }
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
}

static void test_embeddings(void **unused) {
    (void)unused;
    check_embeddings("models/llama", SB_F32);
    check_embeddings("models/gemma3", SB_BF16);
    check_embeddings("models/gpt2", SB_F16);
}

static void refuse_embedding(sb_llm_session *session, sb_llm_embedding about, int64_t count, sb_status status,
                             const char *says) {
    sb_error error;
    sb_tensor *states;
    assert_int_equal(sb_llm_embed(session, count, ids, &about, &states, &error), status);
    ASSERT_SAYS(error, says);
    assert_int_equal(sb_llm_session_length(session), 2);
}

static void test_embedding_refusals(void **unused) {
    (void)unused;
    static const int64_t twice[] = {1, 1}, beyond[] = {1, 5}, negative[] = {-1};
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_llm_embedding standard = SB_LLM_EMBEDDING_DEFAULT, about = standard;
    sb_llm *llm = load("models/llama", SB_F32, false), *plain;
    sb_llm_session *session = open_session(llm);
    sb_tensor *states;
    sb_error error;
    MUST(sb_llm_embed(session, 2, ids, NULL, &states, error));
    sb_tensor_release(states);
    refuse_embedding(session, standard, 0, SB_ERROR_INVALID_ARGUMENT, "there are no tokens");
    refuse_embedding(session, standard, 63, SB_ERROR_LIMIT, "63 tokens behind 2 are more than the context of 64");
    about.wanted_count = 2;
    about.wanted = twice;
    refuse_embedding(session, about, 5, SB_ERROR_INVALID_ARGUMENT, "token 1 of 5 is wanted, as number 1");
    about.wanted = beyond;
    refuse_embedding(session, about, 5, SB_ERROR_INVALID_ARGUMENT, "token 5 of 5 is wanted");
    about.wanted_count = 1;
    about.wanted = negative;
    refuse_embedding(session, about, 5, SB_ERROR_INVALID_ARGUMENT, "token -1 of 5 is wanted");
    about.wanted_count = 0;
    refuse_embedding(session, about, 5, SB_ERROR_INVALID_ARGUMENT, "0 of 5 tokens are wanted");
    about = standard;
    about.pooling = SB_LLM_POOL_LAST;
    about.wanted = twice;
    about.wanted_count = 1;
    refuse_embedding(session, about, 5, SB_ERROR_INVALID_ARGUMENT, "none are named for the last one");
    about = standard;
    about.pooling = (sb_llm_pooling)3;
    refuse_embedding(session, about, 5, SB_ERROR_INVALID_ARGUMENT, "there is no pooling 3");
    MUST(sb_llm_load("models/llama", &options, &plain, error));
    sb_llm_session *without = open_session(plain);
    assert_int_equal(sb_llm_embed(without, 2, ids, NULL, &states, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "loaded with sb_llm_options.hidden_states");
    sb_llm_session_destroy(without);
    sb_llm_release(plain);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
}

int main(void) {
    for (int i = 0; i < COUNT; i++)
        ids[i] = 5 + (i * 37 + i * i * 5) % 90;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaced),           cmocka_unit_test(test_stale),  cmocka_unit_test(test_queues),
        cmocka_unit_test(test_refusals),           cmocka_unit_test(test_memory), cmocka_unit_test(test_embeddings),
        cmocka_unit_test(test_embedding_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
