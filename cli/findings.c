/* What a comparison finds: a list of outputs of nodes, each with a verdict. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

const char *finding_state_name(finding_state state) {
    static const char *const names[] = {"equal", "within tolerance", "different", "not compared"};
    return names[state];
}

const char *ran_where_name(ran_where ran) {
    static const char *const names[] = {"", "cpu", "cuda"};
    return names[ran];
}

const char *put_other(const findings *findings, const char *what, char room[TEXT_BYTES]) {
    snprintf(room, TEXT_BYTES, findings->against_cpu ? "the CPU has %s" : "%s is recorded", what);
    return room;
}

/* ---- one output ---- */

/* Of what leads to a tensor within sequences. */
#define PATH_BYTES 64

static char *copy_text(const char *text) {
    return strdup(text != NULL ? text : "");
}

/* "[0,3,1]" for a row-major index, behind `path`. */
static char *index_text(const char *path, const sb_tensor *tensor, int64_t index) {
    int rank = sb_tensor_rank(tensor);
    const int64_t *dims = sb_tensor_dims(tensor);
    int64_t place[SB_MAX_RANK + 1];
    for (int d = rank - 1; d >= 0; d--) {
        place[d] = index % dims[d];
        index /= dims[d];
    }
    char text[PATH_BYTES + SB_MAX_RANK * 21 + 3];
    size_t used = (size_t)snprintf(text, sizeof text, "%s[", path);
    for (int d = 0; d < rank; d++)
        used += (size_t)snprintf(text + used, sizeof text - used, d > 0 ? ",%lld" : "%lld", (long long)place[d]);
    snprintf(text + used, sizeof text - used, "]");
    return strdup(text);
}

/* "f32[2,3]", "a sequence of 2", "nothing"; in `room`, of TEXT_BYTES. */
static const char *kind_text(sb_value value, char *room) {
    size_t used;
    if (value.kind == SB_KIND_NONE)
        return "nothing";
    if (value.kind == SB_KIND_SEQUENCE) {
        snprintf(room, TEXT_BYTES, "a sequence of %lld", (long long)sb_sequence_count(value.sequence));
        return room;
    }
    used = (size_t)snprintf(room, TEXT_BYTES, "%s[", sb_dtype_name(sb_tensor_dtype(value.tensor)));
    for (int d = 0; d < sb_tensor_rank(value.tensor) && used < TEXT_BYTES; d++)
        used += (size_t)snprintf(room + used, TEXT_BYTES - used, d > 0 ? ",%lld" : "%lld",
                                 (long long)sb_tensor_dims(value.tensor)[d]);
    if (used < TEXT_BYTES)
        snprintf(room + used, TEXT_BYTES - used, "]");
    return room;
}

static char *type_text(sb_value value) {
    char room[TEXT_BYTES];
    return strdup(kind_text(value, room));
}

void free_findings(findings *findings) {
    for (int i = 0; i < findings->count; i++) {
        finding *finding = &findings->items[i];
        free(finding->node_name);
        free(finding->op);
        free(finding->output);
        free(finding->kernel);
        free(finding->type);
        free(finding->why);
        free(finding->why_cpu);
        free(finding->index);
    }
    for (int i = 0; i < findings->copy_count; i++)
        free(findings->copies[i].value);
    for (int i = 0; i < findings->unused; i++)
        free(findings->unused_names[i]);
    free(findings->copies);
    free(findings->unused_names);
    free(findings->items);
}

/* Room for one more; NULL when memory runs out. */
static finding *add_finding(findings *findings) {
    if (findings->count == findings->capacity) {
        int capacity = findings->capacity > 0 ? 2 * findings->capacity : 64;
        finding *items = realloc(findings->items, (size_t)capacity * sizeof *items);
        if (items == NULL)
            return NULL;
        findings->items = items;
        findings->capacity = capacity;
    }
    finding *fresh = &findings->items[findings->count++];
    *fresh = (finding){.state = FINDING_UNCHECKED, .comparison = {.worst = -1}};
    return fresh;
}

sb_status fail_memory(sb_error *error) {
    snprintf(error->message, sizeof error->message, "out of memory");
    return error->status = SB_ERROR_OUT_OF_MEMORY;
}

/* Joins the comparison of one tensor, found at `path`, to those before it. */
static sb_status join_comparison(finding *finding, const sb_comparison *one, const char *path,
                                 const sb_tensor *recorded, sb_error *error) {
    sb_comparison joined = *one;
    const sb_comparison *before = &finding->comparison;
    if (one->worst >= 0 && (before->worst < 0 || one->worst_error > before->worst_error)) {
        free(finding->index);
        finding->index = index_text(path, recorded, one->worst);
        if (finding->index == NULL)
            return fail_memory(error);
    } else {
        joined = *before;
        joined.elements = one->elements;
        joined.different = one->different;
        joined.outside = one->outside;
    }
    joined.elements += before->elements;
    joined.different += before->different;
    joined.outside += before->outside;
    joined.max_relative = one->max_relative > before->max_relative ? one->max_relative : before->max_relative;
    finding->comparison = joined;
    return SB_OK;
}

/* Compares tensors, or sequences item by item. SB_ERROR_SHAPE when the values are not alike. */
static sb_status compare_values(const findings *findings, finding *finding, const char *path, sb_value ours,
                                sb_value recorded, sb_error *error) {
    sb_comparison one;
    char type[2][TEXT_BYTES], other[TEXT_BYTES], item[PATH_BYTES];
    int64_t count = recorded.kind == SB_KIND_SEQUENCE ? sb_sequence_count(recorded.sequence) : 0;
    bool alike =
        ours.kind == recorded.kind && (ours.kind != SB_KIND_SEQUENCE || sb_sequence_count(ours.sequence) == count);
    if (!alike) {
        kind_text(recorded, type[0]);
        snprintf(error->message, sizeof error->message, "%s%s where %s", path, kind_text(ours, type[1]),
                 put_other(findings, type[0], other));
        return error->status = SB_ERROR_SHAPE;
    }
    sb_status status = SB_OK;
    if (ours.kind == SB_KIND_TENSOR) {
        status = sb_tensor_compare(ours.tensor, recorded.tensor, findings->absolute, findings->relative, &one, error);
        return status == SB_OK ? join_comparison(finding, &one, path, recorded.tensor, error) : status;
    }
    for (int64_t i = 0; i < count && status == SB_OK; i++) {
        snprintf(item, sizeof item, "%.30sitem %lld ", path, (long long)i);
        status = compare_values(findings, finding, item, sb_sequence_item(ours.sequence, i),
                                sb_sequence_item(recorded.sequence, i), error);
    }
    return status;
}

sb_status leave_unchecked(finding *finding, const char *why, sb_error *error) {
    finding->why = copy_text(why);
    return finding->why != NULL ? SB_OK : fail_memory(error);
}

sb_status judge(const findings *findings, finding *finding, sb_value ours, const sb_value *recorded, sb_error *error) {
    sb_error mismatch;
    if (recorded == NULL)
        return leave_unchecked(finding, "not recorded", error);
    sb_status status = compare_values(findings, finding, "", ours, *recorded, &mismatch);
    if (status == SB_ERROR_OUT_OF_MEMORY)
        return fail_memory(error);
    if (status != SB_OK) {
        finding->state = FINDING_DIFFERENT;
        return leave_unchecked(finding, mismatch.message, error);
    }
    const sb_comparison *found = &finding->comparison;
    finding->state = found->different == 0 ? FINDING_EQUAL : found->outside == 0 ? FINDING_WITHIN : FINDING_DIFFERENT;
    return SB_OK;
}

sb_status start_finding(findings *findings, const char *node_name, const char *op, const char *output,
                        const char *kernel, sb_value value, finding **started, sb_error *error) {
    finding *finding = *started = add_finding(findings);
    if (finding == NULL)
        return fail_memory(error);
    finding->node = findings->node_count;
    finding->node_name = copy_text(node_name);
    finding->op = copy_text(op);
    finding->output = copy_text(output);
    finding->kernel = copy_text(kernel);
    finding->type = type_text(value);
    bool complete = finding->node_name != NULL && finding->op != NULL && finding->output != NULL &&
                    finding->kernel != NULL && finding->type != NULL;
    return complete ? SB_OK : fail_memory(error);
}

bool was_found(const findings *findings, const char *output) {
    for (int i = 0; i < findings->count; i++) {
        if (strcmp(findings->items[i].output, output) == 0)
            return true;
    }
    return false;
}

/* ---- sums ---- */

void count_nodes(findings *findings) {
    for (int i = 0, end; i < findings->count; i = end) {
        int states[FINDING_UNCHECKED + 1] = {0};
        for (end = i; end < findings->count && findings->items[end].node == findings->items[i].node; end++)
            states[findings->items[end].state]++;
        if (states[FINDING_DIFFERENT] > 0)
            findings->different++;
        else if (states[FINDING_WITHIN] > 0)
            findings->within++;
        else if (states[FINDING_EQUAL] > 0)
            findings->equal++;
        else
            findings->unchecked++;
        findings->on_device += findings->items[i].ran == RAN_ON_DEVICE;
        findings->on_cpu += findings->items[i].ran == RAN_ON_CPU;
    }
    findings->compared = findings->different + findings->within + findings->equal;
    for (int i = 0; i < findings->count && findings->first == NULL; i++) {
        if (findings->items[i].state == FINDING_DIFFERENT)
            findings->first = &findings->items[i];
    }
}
