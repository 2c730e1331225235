/* RegexFullMatch: whether the whole of each text is matched by a pattern in RE2's syntax.
 *
 * PCRE2 matches, by the algorithm that follows all ways at once: what a text costs grows with its length, never exponentially. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/regex_syntax.h"
#include "rules/counting.h"
#include "rules/question.h"
#include "tensor/utf.h"

/* How many numbers a match may keep of ways that it follows: at first, and at most (32 MiB). */
#define FIRST_WAYS 1024
#define MOST_WAYS (8 << 20)

typedef struct regex_params {
    pcre2_code *code;
} regex_params;

static void *allocate(PCRE2_SIZE bytes, void *context) {
    (void)context;
    return sb_allocate(bytes);
}

static void release(void *memory, void *context) {
    (void)context;
    sb_free(memory);
}

static sb_status compile(const sb_node *node, const char *pattern, pcre2_code **code, sb_error *error) {
    uint32_t options = PCRE2_UTF | PCRE2_NO_AUTO_POSSESS | PCRE2_ALT_CIRCUMFLEX;
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, NULL);
    pcre2_compile_context *context = memory != NULL ? pcre2_compile_context_create(memory) : NULL;
    sb_status status = context == NULL ? sb_fail_memory(error, sizeof(void *)) : SB_OK;
    int problem = 0;
    PCRE2_SIZE place = 0;
    if (status == SB_OK) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        *code = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), options, &problem, &place, context);
    }
    if (status == SB_OK && *code == NULL && problem == PCRE2_ERROR_HEAP_FAILED) {
        status = sb_fail_memory(error, strlen(pattern));
    } else if (status == SB_OK && *code == NULL) {
        char message[160] = "";
        pcre2_get_error_message(problem, (PCRE2_UCHAR *)message, sizeof message);
        status = sb_fail(error, SB_ERROR_UNSUPPORTED, "node %s (RegexFullMatch): the pattern cannot be compiled: %s",
                         node->name, message);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(memory);
    return status;
}

static sb_status prepare_regex(sb_node *node, sb_error *error) {
    const char *pattern;
    char *translated;
    SB_TRY(sb_node_string(node, "pattern", NULL, &pattern, error));
    if (pattern == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (RegexFullMatch): attribute pattern is missing",
                       node->name);
    sb_status status = sb_regex_translate(pattern, &translated, error);
    if (status == SB_ERROR_OUT_OF_MEMORY)
        return status;
    if (status != SB_OK)
        return sb_fail_within(error, status,
                              "node %s (RegexFullMatch): the pattern is none of RE2's that Samebit has: ", node->name);
    status = compile(node, translated, &((regex_params *)node->params)->code, error);
    sb_free(translated);
    return status;
}

static void release_regex(void *params) {
    pcre2_code_free(((regex_params *)params)->code);
}

static sb_status infer_regex(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_STRING), &input));
    sb_infer_shape_of(infer, 0, input, SB_BOOL);
    return SB_OK;
}

typedef struct matcher {
    sb_call *call;
    const pcre2_code *code;
    pcre2_match_data *data;
    int *ways;
    size_t count;
    sb_status status;
} matcher;

/* pcre2_dfa_match's result, in as much room as it needs. */
static int match(matcher *matcher, sb_string text) {
    const PCRE2_SPTR subject = (PCRE2_SPTR)(text.bytes != 0 ? text.data : "");
    uint32_t options =
        PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK; /* with PCRE2_ENDANCHORED, 10.42 finds empty matches anywhere */
    for (;;) {
        int result = pcre2_dfa_match(matcher->code, subject, text.bytes, 0, options, matcher->data, NULL, matcher->ways,
                                     matcher->count);
        if (result != PCRE2_ERROR_DFA_WSSIZE || matcher->count >= MOST_WAYS)
            return result;
        int *more = sb_reallocate(matcher->ways, 2 * matcher->count * sizeof *more);
        if (more == NULL)
            return PCRE2_ERROR_NOMEMORY;
        matcher->ways = more;
        matcher->count *= 2;
    }
}

/* Text that is not UTF-8 is no sequence of characters, which is all that a pattern matches. */
static void match_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    matcher *matcher = opaque;
    for (int64_t i = 0; i < count && matcher->status == SB_OK; i++) {
        sb_string text = SB_CONST_AT(sb_string, data[1], steps[1], i);
        size_t characters;
        int result = sb_utf8_measure(text.bytes != 0 ? text.data : "", text.bytes, &characters) ? match(matcher, text)
                                                                                                : PCRE2_ERROR_NOMATCH;
        SB_AT(uint8_t, data[0], steps[0], i) = result >= 0;
        if (result == PCRE2_ERROR_NOMEMORY) {
            matcher->status = sb_fail_memory(matcher->call->error, 2 * matcher->count * sizeof *matcher->ways);
        } else if (result < 0 && result != PCRE2_ERROR_NOMATCH) {
            char message[160] = "";
            pcre2_get_error_message(result, (PCRE2_UCHAR *)message, sizeof message);
            matcher->status =
                sb_call_fail(matcher->call, SB_ERROR_UNSUPPORTED,
                             "a text of %zu bytes takes more than the pattern may: %s", text.bytes, message);
        }
    }
}

static sb_status eval_regex(sb_call *call) {
    matcher matcher = {.call = call, .code = ((const regex_params *)call->node->params)->code, .count = FIRST_WAYS};
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, NULL);
    matcher.data = memory != NULL ? pcre2_match_data_create(1, memory) : NULL;
    matcher.ways = sb_allocate(matcher.count * sizeof *matcher.ways);
    if (matcher.data == NULL || matcher.ways == NULL) {
        matcher.status = sb_fail_memory(call->error, matcher.count * sizeof *matcher.ways);
    } else {
        const sb_tensor *operands[2] = {output, sb_call_input(call, 0)};
        sb_walk walk;
        sb_walk_start(&walk, output->rank, output->dims, 2, operands);
        sb_walk_run(&walk, match_row, &matcher);
    }
    sb_free(matcher.ways);
    pcre2_match_data_free(matcher.data);
    pcre2_general_context_free(memory);
    return matcher.status;
}

const sb_op sb_ops_regex[] = {
    {.name = "RegexFullMatch",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(regex_params),
     .prepare = prepare_regex,
     .release = release_regex,
     .infer = infer_regex,
     .eval = eval_regex},
    {0},
};

static sb_status axes_of_regex(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_independent(question, answer, question->axis);
}

const sb_axes_entry sb_axes_regex[] = {
    {.op = {"RegexFullMatch"}, .rule = axes_of_regex, .independent = "every axis"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_regex[] = {
    {.op = {"RegexFullMatch"}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_uncounted},
    {.op = {NULL}},
};
