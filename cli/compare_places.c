/* Where the nodes of a comparison ran, by the plan of its run. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

/* The visit goes through the nodes in the order of the findings. */
typedef struct noting {
    findings *findings;
    int next;   /* the first finding that no node was found for yet */
    int copies; /* noted, of which those from here on come before the node that is found next */
    bool complete;
} noting;

static bool add_copy(findings *findings, const sb_placed_node *placed) {
    if (findings->copy_count == findings->copy_capacity) {
        int capacity = findings->copy_capacity > 0 ? 2 * findings->copy_capacity : 16;
        copy_found *copies = realloc(findings->copies, (size_t)capacity * sizeof *copies);
        if (copies == NULL)
            return false;
        findings->copies = copies;
        findings->copy_capacity = capacity;
    }
    char *value = strdup(placed->name);
    if (value == NULL)
        return false;
    bool once = strncmp(placed->kernel, "constant", 8) == 0;
    const char *how = once ? "constants to device, once" : placed->on_device ? "to device" : "to host";
    findings->copies[findings->copy_count++] = (copy_found){value, how, findings->node_count, placed->on_device, once};
    findings->once_count += once;
    return true;
}

static void note_placed(void *context, const sb_placed_node *placed) {
    noting *noting = context;
    findings *findings = noting->findings;
    if (placed->depth != 0 || !noting->complete)
        return;
    if (strcmp(placed->op, SB_TRANSFER) == 0) {
        noting->complete = add_copy(findings, placed);
        return;
    }
    int at = noting->next;
    while (at < findings->count &&
           (findings->items[at].ran == RAN_NOWHERE || strcmp(findings->items[at].node_name, placed->name) != 0 ||
            strcmp(findings->items[at].op, placed->op) != 0))
        at++;
    if (at == findings->count) /* a node whose outputs have no names has no findings */
        return;
    int number = findings->items[at].node;
    for (; noting->copies < findings->copy_count; noting->copies++)
        findings->copies[noting->copies].before = number;
    for (; at < findings->count && findings->items[at].node == number && noting->complete; at++) {
        findings->items[at].why_cpu = placed->why != NULL ? strdup(placed->why) : NULL;
        noting->complete = placed->why == NULL || findings->items[at].why_cpu != NULL;
    }
    noting->next = at;
}

int note_places(findings *findings, sb_session *session) {
    noting noting = {.findings = findings, .complete = true};
    sb_session_visit_placement(session, note_placed, &noting);
    return noting.complete ? EXIT_RIGHT : out_of_memory();
}
