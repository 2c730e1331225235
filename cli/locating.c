#include "locating.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/digest.h>

#include "answer_text.h"

/* Runs begin with the same node. */
static void count_run(locating *l, const sb_node_event *event) {
    if (!l->began)
        snprintf(l->first, sizeof l->first, "%s", event->name);
    else if (strcmp(l->first, event->name) == 0)
        l->run++;
    l->began = true;
}

static sb_status record(locating *l, const sb_node_event *event, const char *digest, sb_error *error) {
    if (l->count == l->room) {
        size_t room = 2 * l->room + 256;
        recorded_node *more = realloc(l->nodes, room * sizeof *more);
        if (more == NULL)
            return run_out(error);
        l->nodes = more;
        l->room = room;
    }
    recorded_node *node = &l->nodes[l->count];
    *node = (recorded_node){.name = strdup(event->name), .run = l->run};
    if (node->name == NULL)
        return run_out(error);
    snprintf(node->kernel, sizeof node->kernel, "%s", event->kernel);
    memcpy(node->digest, digest, SB_DIGEST_TEXT_BYTES);
    l->count++;
    return SB_OK;
}

static long long layer_of(const char *name) {
    long long layer;
    const char *at = strstr(name, "layer.");
    return at != NULL && sscanf(at, "layer.%lld", &layer) == 1 ? layer : -1;
}

static sb_status compare(locating *l, const sb_node_event *event, const char *digest, sb_error *error) {
    size_t at = l->at;
    while (at < l->count && l->nodes[at].run == l->run && strcmp(l->nodes[at].name, event->name) != 0)
        at++;
    if (at == l->count || l->nodes[at].run != l->run)
        return SB_OK; /* the other way has no such node here */
    l->at = at + 1;
    const recorded_node *node = &l->nodes[at];
    if (strcmp(node->digest, digest) == 0)
        return SB_OK;
    l->result = (located){.found = true, .layer = layer_of(event->name), .run = l->run};
    snprintf(l->result.name, sizeof l->result.name, "%s", event->name);
    snprintf(l->result.op, sizeof l->result.op, "%s", event->op);
    snprintf(l->result.kernel, sizeof l->result.kernel, "%s", node->kernel);
    snprintf(l->result.other_kernel, sizeof l->result.other_kernel, "%s", event->kernel);
    snprintf(error->message, sizeof error->message, "node %.100s differs", event->name);
    return error->status = SB_ERROR_INTERRUPTED;
}

/* Nodes inside of others, of which a definition shows some that a kernel does not, have their results in those. */
sb_status locate_by_node(void *context, sb_node_event *event, sb_error *error) {
    locating *l = context;
    char digest[SB_DIGEST_TEXT_BYTES];
    if (event->depth != 0 || event->output_count == 0 || strcmp(event->op, SB_TRANSFER) == 0)
        return SB_OK;
    count_run(l, event);
    if (l->comparing) {
        while (l->at < l->count && l->nodes[l->at].run < l->run)
            l->at++;
    }
    sb_status status = sb_digest_values(event->output_count, event->outputs, digest, error);
    if (status != SB_OK)
        return status;
    return l->comparing ? compare(l, event, digest, error) : record(l, event, digest, error);
}

void begin_comparing(locating *locating) {
    locating->comparing = true;
    locating->began = false;
    locating->run = 0;
    locating->at = 0;
}

void free_locating(locating *locating) {
    for (size_t i = 0; i < locating->count; i++)
        free(locating->nodes[i].name);
    free(locating->nodes);
    *locating = (struct locating){0};
}
