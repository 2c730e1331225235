/* What a comparison found, as JSON. */
#include "compare.h"

#include <math.h>

#include "text.h"

/* ---- JSON ---- */

/* JSON has no infinities and no NaN: they become text. */
static json_t *number_json(double number) {
    if (isfinite(number))
        return json_real(number);
    return json_string(isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

static json_t *finding_json(const finding *finding) {
    const sb_comparison *found = &finding->comparison;
    json_t *worst = json_null(), *counts = json_null();
    if (finding->index != NULL)
        worst = json_pack("{s:s, s:o, s:o, s:o, s:o}", "index", finding->index, "ours", number_json(found->worst_left),
                          "recorded", number_json(found->worst_right), "error", number_json(found->worst_error), "ulps",
                          found->worst_ulps <= INT64_MAX ? json_integer((json_int_t)found->worst_ulps) : json_null());
    if (finding->why == NULL)
        counts = json_pack("{s:I, s:I, s:I, s:o}", "elements", (json_int_t)found->elements, "different",
                           (json_int_t)found->different, "outside", (json_int_t)found->outside, "max_relative",
                           number_json(found->max_relative));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:o, s:o, s:o}", "number", finding->node,
                     "node", text_json(finding->node_name), "op", text_json(finding->op), "output",
                     text_json(finding->output), "type", text_json(finding->type), "kernel", text_json(finding->kernel),
                     "state", finding_state_name(finding->state), "why", text_json(finding->why), "ran",
                     finding->ran == RAN_NOWHERE ? json_null() : json_string(ran_where_name(finding->ran)), "ns",
                     (json_int_t)finding->ns, "why_cpu", text_json(finding->why_cpu), "counts", counts, "worst", worst);
}

static json_t *copies_json(const findings *findings) {
    json_t *copies = json_array();
    for (int i = 0; i < findings->copy_count; i++)
        json_array_append_new(copies, json_pack("{s:o, s:s, s:i}", "value", text_json(findings->copies[i].value), "how",
                                                findings->copies[i].how, "before", findings->copies[i].before));
    return copies;
}

static json_t *unused_json(const findings *findings) {
    json_t *names = json_array();
    for (int i = 0; i < findings->unused; i++)
        json_array_append_new(names, text_json(findings->unused_names[i]));
    return names;
}

json_t *findings_json(const findings *findings) {
    json_t *rows = json_array();
    for (int i = 0; i < findings->count; i++)
        json_array_append_new(rows, finding_json(&findings->items[i]));
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:s, s:o, s:i, s:i, s:o, s:[f,f], s:b, "
                     "s:o, s:o}",
                     "nodes", findings->node_count, "compared", findings->compared, "equal", findings->equal, "within",
                     findings->within, "different", findings->different, "not_compared", findings->unchecked,
                     "unused_arrays", findings->unused, "unused_names", unused_json(findings), "against",
                     findings->against_cpu ? "cpu" : "recorded", "device", text_json(findings->device), "on_device",
                     findings->on_device, "on_cpu", findings->on_cpu, "copies", copies_json(findings), "tolerance",
                     findings->absolute, findings->relative, "cumulative", findings->cumulative, "first",
                     findings->first != NULL ? text_json(findings->first->node_name) : json_null(), "outputs", rows);
}
