/* StringNormalizer and TfIdfVectorizer. */
#include <utf8proc.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"

/* ---- StringNormalizer ---- */

typedef enum case_change { CASE_NONE, CASE_LOWER, CASE_UPPER } case_change;

typedef struct normalizer_params {
    case_change change;
    bool sensitive;
    int64_t stop_count;
    sb_string *stops; /* in lower case unless `sensitive`; owned */
} normalizer_params;

/* The text with each code point in another case (Unicode's simple mappings; no locale changes
 * them). Bytes that are not UTF-8 stay. The caller frees result->data. */
static sb_status change_case(sb_string text, case_change change, sb_string *result, sb_error *error) {
    char *to = sb_allocate(4 * text.bytes + 1);
    if (to == NULL)
        return sb_fail_memory(error, 4 * text.bytes + 1);
    size_t used = 0;
    for (size_t at = 0; at < text.bytes;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t step =
            utf8proc_iterate((const utf8proc_uint8_t *)text.data + at, (utf8proc_ssize_t)(text.bytes - at), &point);
        if (step <= 0) {
            to[used++] = text.data[at++];
            continue;
        }
        at += (size_t)step;
        point = change == CASE_LOWER ? utf8proc_tolower(point) : change == CASE_UPPER ? utf8proc_toupper(point) : point;
        used += (size_t)utf8proc_encode_char(point, (utf8proc_uint8_t *)to + used);
    }
    *result = (sb_string){to, used};
    return SB_OK;
}

static bool same_text(sb_string left, sb_string right) {
    return left.bytes == right.bytes && (left.bytes == 0 || memcmp(left.data, right.data, left.bytes) == 0);
}

static sb_status prepare_normalizer(sb_node *node, sb_error *error) {
    static const char *const changes[] = {"NONE", "LOWER", "UPPER"};
    normalizer_params *params = node->params;
    const char *change;
    int64_t sensitive;
    SB_TRY(sb_node_string(node, "case_change_action", "NONE", &change, error));
    SB_TRY(sb_node_int(node, "is_case_sensitive", 0, &sensitive, error));
    params->sensitive = sensitive != 0;
    for (params->change = CASE_NONE; strcmp(change, changes[params->change]) != 0; params->change++) {
        if (params->change == CASE_UPPER)
            return sb_fail(error, SB_ERROR_INVALID_MODEL,
                           "node %s: case_change_action is %s, not one of NONE, LOWER, UPPER", node->name, change);
    }
    const sb_attribute *stops = sb_attributes_find(&node->attributes, "stopwords");
    if (stops == NULL || stops->kind != SB_ATTRIBUTE_STRINGS)
        return SB_OK;
    params->stops = sb_allocate_array((size_t)stops->count, sizeof *params->stops);
    if (params->stops == NULL)
        return sb_fail_memory(error, (size_t)stops->count * sizeof *params->stops);
    for (int64_t i = 0; i < stops->count; i++) {
        sb_string text = {stops->strings[i], strlen(stops->strings[i])};
        SB_TRY(change_case(text, params->sensitive ? CASE_NONE : CASE_LOWER, &params->stops[i], error));
        params->stop_count++;
    }
    return SB_OK;
}

static void release_normalizer(void *memory) {
    normalizer_params *params = memory;
    for (int64_t i = 0; i < params->stop_count; i++)
        sb_free((char *)(uintptr_t)params->stops[i].data);
    sb_free(params->stops);
}

static sb_status infer_normalizer(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_STRING), &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], SB_STRING, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (input->rank < 1 || input->rank > 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 1 or 2", input->rank);
    sb_infer_open(infer, 0, SB_STRING, input->rank);
    if (input->rank == 2)
        infer->outputs[0].dims[0] = sb_dim_constant(infer->scope, 1);
    return SB_OK;
}

static sb_status is_stop(const sb_call *call, sb_string text, bool *stop) {
    const normalizer_params *params = call->node->params;
    sb_string folded = text;
    *stop = false;
    if (params->stop_count == 0)
        return SB_OK;
    if (!params->sensitive)
        SB_TRY(change_case(text, CASE_LOWER, &folded, call->error));
    for (int64_t i = 0; i < params->stop_count && !*stop; i++)
        *stop = same_text(folded, params->stops[i]);
    if (!params->sensitive)
        sb_free((char *)(uintptr_t)folded.data);
    return SB_OK;
}

/* Words that are no stop words, in their order and in the wanted case; one empty text when none is left. */
static sb_status eval_normalizer(sb_call *call) {
    const normalizer_params *params = call->node->params;
    sb_tensor *input, *output;
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t elements = sb_tensor_elements(input), kept = 0;
    sb_string *words = sb_allocate_array((size_t)elements + 1, sizeof *words);
    sb_status status = words == NULL ? sb_fail_memory(call->error, (size_t)elements * sizeof *words) : SB_OK;
    if (status == SB_OK && input->rank == 2 && input->dims[0] != 1)
        status = sb_call_fail(call, SB_ERROR_SHAPE, "the first of two dimensions has the extent %lld, not 1",
                              (long long)input->dims[0]);
    for (int64_t i = 0; i < elements && status == SB_OK; i++) {
        sb_string text = ((const sb_string *)(const void *)input->data)[i];
        bool stop;
        status = is_stop(call, text, &stop);
        if (status == SB_OK && !stop) {
            status = change_case(text, params->change, &words[kept], call->error);
            kept += status == SB_OK;
        }
    }
    if (status == SB_OK) {
        int64_t count = kept > 0 ? kept : 1, dims[2] = {1, count};
        status = sb_tensor_from_strings(input->rank, dims + 2 - input->rank, words, &output, call->error);
        if (status == SB_OK)
            status = sb_call_set_output(call, 0, output);
    }
    for (int64_t i = 0; words != NULL && i < kept; i++)
        sb_free((char *)(uintptr_t)words[i].data);
    sb_free(words);
    sb_tensor_release(input);
    return status;
}

/* ---- TfIdfVectorizer ---- */

typedef struct vectorizer_params {
    int64_t shortest, longest, skips; /* n-gram lengths, and elements skipped between two of an n-gram at most */
    bool weighted, presence;          /* TFIDF, IDF: weights count; IDF: presence rather than how often */
    int64_t size_count;               /* of ngram_counts: where the n-grams of length i + 1 begin in the pool */
    const int64_t *starts;
    int64_t gram_count;
    const int64_t *columns; /* per n-gram */
    const float *weights;   /* per n-gram; NULL: all 1 */
    int64_t pool_count;
    const int64_t *numbers; /* the pool: either this */
    char *const *texts;     /* or this */
    int64_t output_size;
} vectorizer_params;

/* The numbers of n-grams in the pool must fit the lists. */
static sb_status check_pool(const sb_node *node, sb_error *error) {
    const vectorizer_params *params = node->params;
    int64_t grams = 0;
    bool fits = params->size_count > 0;
    for (int64_t i = 0; i < params->size_count && fits; i++) {
        int64_t end = i + 1 < params->size_count ? params->starts[i + 1] : params->pool_count;
        fits = params->starts[i] >= 0 && end >= params->starts[i] && end <= params->pool_count &&
               (end - params->starts[i]) % (i + 1) == 0;
        grams += fits ? (end - params->starts[i]) / (i + 1) : 0;
    }
    for (int64_t i = 0; i < params->gram_count && fits; i++)
        fits = params->columns[i] >= 0 && params->columns[i] < INT32_MAX;
    if (!fits || grams != params->gram_count || params->gram_count == 0 || params->shortest < 1 ||
        params->longest < params->shortest || params->longest > params->size_count || params->skips < 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s: TfIdfVectorizer's pool, ngram_counts, ngram_indexes and lengths do not fit",
                       node->name);
    return SB_OK;
}

static sb_status prepare_vectorizer(sb_node *node, sb_error *error) {
    vectorizer_params *params = node->params;
    const char *mode;
    int64_t weights;
    SB_TRY(sb_node_string(node, "mode", NULL, &mode, error));
    if (mode == NULL || (strcmp(mode, "TF") != 0 && strcmp(mode, "IDF") != 0 && strcmp(mode, "TFIDF") != 0))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: mode must be TF, IDF or TFIDF", node->name);
    params->weighted = strcmp(mode, "TF") != 0;
    params->presence = strcmp(mode, "IDF") == 0;
    SB_TRY(sb_node_int(node, "min_gram_length", 0, &params->shortest, error));
    SB_TRY(sb_node_int(node, "max_gram_length", 0, &params->longest, error));
    SB_TRY(sb_node_int(node, "max_skip_count", 0, &params->skips, error));
    SB_TRY(sb_node_ints(node, "ngram_counts", &params->size_count, &params->starts, error));
    SB_TRY(sb_node_ints(node, "ngram_indexes", &params->gram_count, &params->columns, error));
    SB_TRY(sb_node_floats(node, "weights", &weights, &params->weights, error));
    SB_TRY(sb_node_ints(node, "pool_int64s", &params->pool_count, &params->numbers, error));
    const sb_attribute *texts = sb_attributes_find(&node->attributes, "pool_strings");
    if (texts != NULL && texts->kind == SB_ATTRIBUTE_STRINGS && params->pool_count == 0) {
        params->pool_count = texts->count;
        params->texts = texts->strings;
        params->numbers = NULL;
    }
    SB_TRY(check_pool(node, error));
    if (params->weights != NULL && weights != params->gram_count)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: %lld weights for %lld n-grams", node->name,
                       (long long)weights, (long long)params->gram_count);
    for (int64_t i = 0; i < params->gram_count; i++)
        params->output_size = params->columns[i] >= params->output_size ? params->columns[i] + 1 : params->output_size;
    return SB_OK;
}

static sb_status infer_vectorizer(sb_infer *infer) {
    const vectorizer_params *params = infer->node->params;
    const sb_fact *input;
    uint32_t allowed = params->texts != NULL ? SB_SET(SB_STRING) : SB_SET_INDEX;
    SB_TRY(sb_infer_require(infer, 0, allowed, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], SB_F32, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (input->rank > 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 1 or 2", input->rank);
    sb_dim size = sb_dim_constant(infer->scope, params->output_size), dims[2] = {size, size};
    if (input->rank == 2)
        dims[0] = input->dims[0];
    sb_fact_set_tensor(&infer->outputs[0], SB_F32, input->rank == 2 ? 2 : 1, dims);
    return SB_OK;
}

static bool same_item(const vectorizer_params *params, const sb_tensor *input, int64_t element, int64_t item) {
    if (params->texts != NULL) {
        sb_string text = ((const sb_string *)(const void *)input->data)[element];
        const char *word = params->texts[item];
        return text.bytes == strlen(word) && (text.bytes == 0 || memcmp(text.data, word, text.bytes) == 0);
    }
    int64_t number = input->dtype == SB_S32 ? ((const int32_t *)(const void *)input->data)[element]
                                            : ((const int64_t *)(const void *)input->data)[element];
    return number == params->numbers[item];
}

/* How often the n-gram (`length` items from `item` of the pool) occurs in a row, with 0 to `skips`
 * elements between neighbours. A single item has no neighbours, and is counted once. */
static int64_t count_gram(const vectorizer_params *params, const sb_tensor *input, int64_t row, int64_t width,
                          int64_t item, int64_t length) {
    int64_t found = 0;
    for (int64_t skip = 0; skip <= (length == 1 ? 0 : params->skips); skip++) {
        if (skip >= width || (length - 1) > (width - 1) / (skip + 1))
            break;
        int64_t span = (length - 1) * (skip + 1);
        for (int64_t start = 0; start + span < width; start++) {
            int64_t matched = 0;
            while (matched < length &&
                   same_item(params, input, row * width + start + matched * (skip + 1), item + matched))
                matched++;
            found += matched == length;
        }
    }
    return found;
}

/* TF is how often an n-gram occurs; IDF its weight if it occurs; TFIDF the product of weight and TF in f32. */
static void vectorize_row(const vectorizer_params *params, const sb_tensor *input, int64_t row, int64_t width,
                          float *to) {
    int64_t gram = 0;
    for (int64_t i = 0; i < params->size_count; i++) {
        int64_t length = i + 1;
        int64_t end = i + 1 < params->size_count ? params->starts[i + 1] : params->pool_count;
        for (int64_t item = params->starts[i]; item < end; item += length, gram++) {
            if (length < params->shortest || length > params->longest)
                continue;
            float count = (float)count_gram(params, input, row, width, item, length);
            float weight = params->weighted && params->weights != NULL ? params->weights[gram] : 1.0f;
            if (params->presence)
                count = count > 0.0f ? 1.0f : 0.0f;
            to[params->columns[gram]] += count * weight; /* n-grams may share a column */
        }
    }
}

static sb_status eval_vectorizer(sb_call *call) {
    const vectorizer_params *params = call->node->params;
    sb_tensor *input, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t rows = input->rank == 2 ? input->dims[0] : 1;
    int64_t width = input->rank == 0 ? 1 : input->dims[input->rank - 1];
    float *to = (float *)(void *)output->data;
    memset(to, 0, (size_t)sb_tensor_elements(output) * sizeof *to);
    for (int64_t row = 0; row < rows; row++)
        vectorize_row(params, input, row, width, to + row * params->output_size);
    sb_tensor_release(input);
    return SB_OK;
}

const sb_op sb_ops_text[] = {
    {.name = "StringNormalizer",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(normalizer_params),
     .prepare = prepare_normalizer,
     .release = release_normalizer,
     .infer = infer_normalizer,
     .eval = eval_normalizer},
    {.name = "TfIdfVectorizer",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(vectorizer_params),
     .prepare = prepare_vectorizer,
     .infer = infer_vectorizer,
     .eval = eval_vectorizer},
    {0},
};
